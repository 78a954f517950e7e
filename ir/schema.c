// schema.c: reads the small language of op_info.attrs: name:type or name:type=preset,
// separated by blanks. The strings come from ops.def only, so a malformed one is a bug and CHECKs.
#include "ir/schema.h"

#include "ir/base/check.h"

#include <string.h>

static const char *const type_name[] = {
    [ATTR_INT] = "int",   [ATTR_BOOL] = "bool", [ATTR_DTYPE] = "dtype", [ATTR_FLOAT] = "float",
    [ATTR_BITS] = "bits", [ATTR_INTS] = "ints", [ATTR_DIMS] = "dims",
};

static uint8_t
type_by_name(const char *s, size_t n)
{
    for (uint8_t i = 0; i < sizeof type_name / sizeof *type_name; i++)
        if (strlen(type_name[i]) == n && !memcmp(type_name[i], s, n))
            return i;
    check_failed(__FILE__, __LINE__, "attribute type", "unknown type in %s", s);
}

uint32_t
schema_fields(const char *attrs, struct schema_field field[SCHEMA_MAX])
{
    uint32_t n = 0;
    for (const char *s = attrs ? attrs : ""; *s; s += *s == ' ') {
        size_t name = strcspn(s, ":");
        CHECK(n < SCHEMA_MAX && name < sizeof field->name, "schema %s", attrs);
        field[n] = (struct schema_field){0};
        memcpy(field[n].name, s, name);
        s += name + (s[name] == ':');
        size_t type = strcspn(s, " =");
        field[n].type = type_by_name(s, type);
        s += type;
        field[n++].preset = *s == '=' ? ++s : NULL;
        s += strcspn(s, " ");
    }
    return n;
}
