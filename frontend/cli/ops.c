// ops.c: fusec ops [NAME…]: the op table as a reference.
#include "frontend/cli/cli.h"
#include "frontend/cli/json.h"

#include "ir/schema.h"
#include "ir/text.h"

#include <string.h>

static const char *const kind_words[] = {
    [OPK_ELEM] = "elementwise: operands are broadcast", [OPK_REDUCE] = "reductions",
    [OPK_SCAN] = "scans: running reductions",
    [OPK_VIEW] = "views: move elements",                [OPK_INDEX] = "indices",
    [OPK_SCATTER] = "scattering: updates at positions given by an index",
    [OPK_ORDER] = "order: the elements along an axis",  [OPK_CONTRACT] = "contraction",
    [OPK_COMPOSITE] = "composites of other ops",
};

static const char *const rule_words[] = {
    [DTR_SAME] = "any, promoted",
    [DTR_FLOAT] = "floats; integers and bool become floats",
    [DTR_NUMERIC] = "numbers, promoted",
    [DTR_INT] = "integers, promoted",
    [DTR_BITS] = "integers and bool, promoted",
    [DTR_COMPARE] = "any, promoted; gives bool",
    [DTR_PREDICATE] = "any; gives bool",
    [DTR_WHERE] = "bool, or any of which 0 is false; then any, promoted",
    [DTR_CAST] = "any; gives what is asked for",
};

// Ops with a rule of their own: what the kind has in common.
static const char *const own_words[] = {
    [OPK_REDUCE] = "as its words say; small types accumulate in wider ones",
    [OPK_SCAN] = "as its words say; small types accumulate in wider ones",
    [OPK_VIEW] = "any, kept",
    [OPK_INDEX] = "any, kept; indices are integers, not u64",
    [OPK_SCATTER] = "any, that of a; indices are integers, not u64",
    [OPK_ORDER] = "any, kept; positions are i64",
    [OPK_CONTRACT] = "numbers, promoted",
    [OPK_COMPOSITE] = "floats; integers and bool become floats",
};

static const char *const attr_words[] = {
    [ATTR_INT] = "int",   [ATTR_BOOL] = "bool",  [ATTR_DTYPE] = "dtype", [ATTR_FLOAT] = "float",
    [ATTR_BITS] = "number", [ATTR_INTS] = "[int]", [ATTR_DIMS] = "[dim]",
};

static const char *
dtype_words(uint16_t op)
{
    const struct op_info *o = &op_table[op];
    if (o->dtypes)
        return o->dtypes;
    return o->rule == DTR_OWN ? own_words[o->kind] : rule_words[o->rule];
}

static void
add_operands(uint16_t op, struct str *out)
{
    uint8_t arity = op_table[op].arity;
    for (uint32_t i = 0, n; i < arity && arity != 255; i++) {
        const char *name = op_operand_name(op, i, &n);
        str_printf(out, "%s%.*s", i ? ", " : "", (int)n, name);
    }
    if (arity == 255)
        str_add(out, "x0, x1, …");
}

static void
add_attributes(uint16_t op, struct str *out)
{
    struct schema_field field[SCHEMA_MAX];
    uint32_t n = schema_fields(op_table[op].attrs, field);
    for (uint32_t i = 0; i < n; i++) {
        str_printf(out, "%s%s: %s", i ? ", " : "", field[i].name, attr_words[field[i].type]);
        if (field[i].preset)
            str_printf(out, " = %.*s", (int)strcspn(field[i].preset, " "), field[i].preset);
    }
}

static void
add_accuracy(uint16_t op, struct str *out)
{
    const struct op_info *o = &op_table[op];
    if (o->ulp32 > 0)
        str_printf(out, "within %g ulp in f32, %g in f64", (double)o->ulp32, (double)o->ulp64);
    else if ((o->flags & OPF_EXACT) || o->kind == OPK_VIEW || o->kind == OPK_INDEX)
        str_add(out, "exact");
    else if (o->kind == OPK_COMPOSITE)
        str_add(out, "that of its parts");
    else
        str_add(out, "rounded at each step, in a fixed order");
}

static void
add_gradient(uint16_t op, struct str *out)
{
    const struct op_info *o = &op_table[op];
    bool discrete = o->rule == DTR_COMPARE || o->rule == DTR_PREDICATE || o->rule == DTR_BITS ||
                    o->rule == DTR_INT;
    if (o->grad)
        str_add(out, o->grad);
    else if (discrete)
        str_add(out, "none");
    else
        str_add(out, o->kind == OPK_COMPOSITE ? "that of its parts" : "not yet");
}

static void
add_call(uint16_t op, bool colour, struct str *out)
{
    struct str attributes = {0};
    add_attributes(op, &attributes);
    str_printf(out, "  %s%s%s ", colour ? "\033[1m" : "", op_name(op), colour ? "\033[0m" : "");
    add_operands(op, out);
    if (attributes.n)
        str_printf(out, "%s{%s}", op_table[op].arity ? " " : "", str_text(&attributes));
    str_free(&attributes);
}

static void
add_entry(uint16_t op, bool colour, struct str *out)
{
    add_call(op, colour, out);
    const char *text = strstr(op_name(op), "_reduce");
    if (text)
        str_printf(out, " (in .fuse text: %.*s)", (int)(text - op_name(op)), op_name(op));
    str_printf(out, "\n      %s\n      dtypes: %s; result: ", op_table[op].doc, dtype_words(op));
    add_accuracy(op, out);
    str_add(out, "\n      gradient: ");
    add_gradient(op, out);
    str_addc(out, '\n');
}

// The call, and beside it, or below when it is long, what it means.
static void
add_brief_entry(uint16_t op, bool colour, struct str *out)
{
    enum { CALL_WIDTH = 30 };
    size_t start = out->n;
    add_call(op, colour, out);
    size_t width = out->n - start;
    if (width >= CALL_WIDTH)
        str_addc(out, '\n');
    str_printf(out, "%*s%s\n", width >= CALL_WIDTH ? CALL_WIDTH : (int)(CALL_WIDTH - width), "",
               op_table[op].doc);
}

static void
add_json(uint16_t op, struct json *j)
{
    struct schema_field field[SCHEMA_MAX];
    struct str accuracy = {0}, gradient = {0};
    uint32_t n = schema_fields(op_table[op].attrs, field);
    add_accuracy(op, &accuracy);
    add_gradient(op, &gradient);
    json_open(j, NULL, '{');
    json_text(j, "name", op_name(op));
    json_text(j, "kind", kind_words[op_table[op].kind]);
    if (op_table[op].arity == 255)
        json_text(j, "operands", NULL);
    else
        json_int(j, "operands", op_table[op].arity);
    json_open(j, "attributes", '{');
    for (uint32_t i = 0; i < n; i++)
        json_text(j, field[i].name, attr_words[field[i].type]);
    json_close(j, '}');
    json_text(j, "dtypes", dtype_words(op));
    json_text(j, "accuracy", str_text(&accuracy));
    json_text(j, "gradient", str_text(&gradient));
    json_text(j, "doc", op_table[op].doc);
    json_close(j, '}');
    str_free(&accuracy);
    str_free(&gradient);
}

static bool
is_wanted(const word_list *names, uint16_t op)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (!strcmp(names->at[i], op_name(op)))
            return true;
    return !names->n;
}

typedef void add_entry_fn(uint16_t op, bool colour, struct str *out);

static void
print_kind(const word_list *names, uint8_t kind, add_entry_fn *add, struct str *out)
{
    bool colour = cli_colour(), any = false;
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        if (op_table[op].kind != kind || !op_is_public(op) || !is_wanted(names, op))
            continue;
        if (!any)
            str_printf(out, "%s%s\n\n", out->n ? "\n" : "", kind_words[kind]);
        any = true;
        add(op, colour, out);
    }
}

static void
print_table(const word_list *names, add_entry_fn *add, struct str *out)
{
    for (uint8_t kind = 0; kind < sizeof kind_words / sizeof *kind_words; kind++)
        print_kind(names, kind, add, out);
}

static void
print_json(const word_list *names, struct str *out)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '[');
    for (uint16_t op = 1; op < OP_COUNT; op++)
        if (op_is_public(op) && is_wanted(names, op))
            add_json(op, &j);
    json_close(&j, ']');
    str_addc(out, '\n');
}

// What is no op, with the op that may be meant: of fc_add add, of softmx softmax.
static void
add_unknown(const char *name, struct str *out)
{
    bool prefixed = !strncmp(name, "fc_", 3) && op_by_name(name + 3);
    const char *nearest = prefixed          ? name + 3
                          : strlen(name) < 32 ? op_nearest(name)
                                              : NULL;
    str_printf(out, "%s'%s'", out->n ? ", " : "", name);
    if (nearest)
        str_printf(out, " (%s?)", nearest);
}

// The ops asked for; those that do not exist are told at last, behind the others.
int
ops_command(struct args *a)
{
    word_list names = {0};
    bool json = false, brief = false;
    struct str out = {0}, unknown = {0};
    int code = CLI_OK;
    while (a->n && !a->failed) {
        const char *name;
        if (args_flag(a, "--json"))
            json = true;
        else if (args_flag(a, "--brief"))
            brief = true;
        else if (!(name = args_word(a)))
            args_unknown(a);
        else if (!op_by_name(name) || !op_is_public(op_by_name(name)))
            add_unknown(name, &unknown);
        else
            vec_push(&names, name);
    }
    if (json && brief)
        args_fail(a, "--json and --brief exclude each other");
    bool any = !a->failed && (names.n || !unknown.n);
    if (any && json)
        print_json(&names, &out);
    else if (any)
        print_table(&names, brief ? add_brief_entry : add_entry, &out);
    if (any)
        code = cli_write(a, &out);
    if (unknown.n)
        args_fail(a, "no op is called %s; fusec ops lists all, fusec.h has what is made of several",
                  str_text(&unknown));
    vec_free(&names);
    str_free(&out);
    str_free(&unknown);
    return a->failed ? CLI_USAGE : code;
}
