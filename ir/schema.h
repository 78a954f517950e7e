// schema.h: an op's attribute schema (op_info.attrs), field by field.
#ifndef FUSEC_IR_SCHEMA_H
#define FUSEC_IR_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

// How a field is laid out in an attribute row: see struct attr in graph.h.
enum attr_type { ATTR_INT, ATTR_BOOL, ATTR_DTYPE, ATTR_FLOAT, ATTR_BITS, ATTR_INTS, ATTR_DIMS };

struct schema_field {
    char name[16];
    uint8_t type;       // enum attr_type
    const char *preset; // what an absent one counts as, in the schema's text; NULL: none is given
};
enum { SCHEMA_MAX = 6 };

// The fields of "axes:ints keepdims:bool eps:float=1e-5"; returns how many. attrs may be NULL.
uint32_t schema_fields(const char *attrs, struct schema_field field[SCHEMA_MAX]);

#endif
