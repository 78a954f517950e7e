// generate.c: a program of the build. From the tables (ops.def, dtypes.def, status.def) it makes
//   generate header fusec.h.in   fusec.h: the template with its @MARKS@ filled in
//   generate source              the bodies of the op functions, over frontend/call.h
// so that a new row of a table is in the public interface at once. How a row becomes a function:
// operands first (none: the context; any number: array and count), then the attributes in the
// schema's order, arrays with their lengths, except that a `bits` attribute, a number, comes first.
// Presets are the text form's: functions have all arguments.
#include "ir/base/check.h"
#include "ir/dtype.h"
#include "ir/ops.h"
#include "ir/schema.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schema {
    struct schema_field field[SCHEMA_MAX];
    uint32_t n;
};

static struct schema
schema_of(const struct op_info *op)
{
    struct schema s;
    s.n = schema_fields(op->attrs, s.field);
    return s;
}

static void
print_operand(const char *before, const struct op_info *op, int i, const char *after)
{
    uint32_t n;
    const char *name = op_operand_name((uint16_t)(op - op_table), (uint32_t)i, &n);
    printf("%s%.*s%s", before, (int)n, name, after);
}

static void
print_parameter(const struct schema_field *f)
{
    bool axis = !strcmp(f->name, "axis"); // all other integers may be as large as an extent
    switch ((enum attr_type)f->type) {
    case ATTR_INT: printf(", %s %s", axis ? "int" : "int64_t", f->name); return;
    case ATTR_BOOL: printf(", bool %s", f->name); return;
    case ATTR_FLOAT: printf(", double %s", f->name); return;
    case ATTR_DTYPE: printf(", fc_dtype %s", f->name); return;
    case ATTR_DIMS: printf(", const fc_dim *%s, int rank", f->name); return;
    case ATTR_INTS: printf(", const int64_t *%s, int n%s", f->name, f->name); return;
    case ATTR_BITS: return; // in front
    }
}

static const char *
bits_field(const struct schema *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->field[i].type == ATTR_BITS)
            return s->field[i].name;
    return NULL;
}

static void
print_signature(const struct op_info *op, const struct schema *s)
{
    // Lists make long lines: these break after the place of the call.
    const char *gap = s->n || op->operands || op->arity == 3 ? ",\n        " : ", ";
    printf("fc_%s_at(const char *file, int line%s", op->name, gap);
    if (!op->arity)
        printf("fc_context *ctx");
    else if (op->arity == 255)
        printf("const fc_tensor *x, int count");
    else
        for (int i = 0; i < op->arity; i++)
            print_operand(i ? ", fc_tensor " : "fc_tensor ", op, i, "");
    if (bits_field(s))
        printf(", fc_num %s", bits_field(s));
    for (uint32_t i = 0; i < s->n; i++)
        print_parameter(&s->field[i]);
    printf(")");
}

static bool
has_scalar_form(const struct op_info *op)
{
    return op->kind == OPK_ELEM && op->arity == 2;
}

// Words as lines of a comment.
static void
print_comment(const char *words)
{
    enum { COLUMNS = 100 };
    size_t column = (size_t)printf("//");
    while (*words) {
        size_t n = strcspn(words, " ");
        if (column + 1 + n > COLUMNS)
            column = (size_t)printf("\n//") - 1;
        column += (size_t)printf(" %.*s", (int)n, words);
        words += n + (words[n] == ' ');
    }
    putchar('\n');
}

static void
print_prototype(const struct op_info *op)
{
    struct schema s = schema_of(op);
    print_comment(op->doc);
    printf("FC_API fc_tensor ");
    print_signature(op, &s);
    printf(";\n");
    if (bits_field(&s))
        printf("#define fc_%s(x, %s, ...) fc_%s_at(FC_HERE, x, FC_NUM(%s), __VA_ARGS__)\n",
               op->name, bits_field(&s), op->name, bits_field(&s));
    else
        printf("#define fc_%s(...) fc_%s_at(FC_HERE, __VA_ARGS__)\n", op->name, op->name);
    if (has_scalar_form(op))
        printf(
            "FC_API fc_tensor fc_%s_scalar_at(const char *file, int line, fc_tensor a, fc_num b);\n"
            "#define fc_%s_scalar(a, b) fc_%s_scalar_at(FC_HERE, a, FC_NUM(b))\n",
            op->name, op->name, op->name);
}

static void
print_ops(void)
{
    static const char *const title[] = {
        [OPK_ELEM] = "elementwise (fc_OP_scalar: the second operand a number)",
        [OPK_REDUCE] = "reductions",
        [OPK_SCAN] = "scans: of each element and those before it (reverse: and those behind it)",
        [OPK_VIEW] = "views",
        [OPK_INDEX] = "indices",
        [OPK_SCATTER] =
            "scattering: the updates c are joined with the elements of a that the index b names;\n"
            "// they are broadcast, and taken in the row-major order of the index",
        [OPK_ORDER] = "order",
        [OPK_CONTRACT] = "contraction",
        [OPK_COMPOSITE] = "composites: one op, one kernel when eager",
    };
    int kind = OPK_NONE;
    for (int i = 1; i < OP_COUNT; i++) {
        if (!op_is_public((uint16_t)i))
            continue;
        if (op_table[i].kind != kind)
            printf("%s// -- %s\n\n", kind ? "\n" : "", title[op_table[i].kind]);
        kind = op_table[i].kind;
        print_prototype(&op_table[i]);
    }
    printf("\n");
}

static void
print_upper(const char *s)
{
    for (; *s; s++)
        putchar(toupper((unsigned char)*s));
}

static void
print_dtypes(void)
{
    for (int i = 1; i < DT_COUNT; i++) {
        printf("    FC_");
        print_upper(dtype_table[i].name);
        printf(" = %d, // %s\n", i, dtype_table[i].doc);
    }
}

static void
print_statuses(void)
{
#define STATUS(name, value, doc) printf("    FC_%s = %d, // %s\n", #name, value, doc);
#include "ir/status.def"
#undef STATUS
}

static void
fill_mark(const char *mark, size_t n)
{
    static const struct {
        const char *mark;
        void (*print)(void);
    } marks[] = {{"STATUSES", print_statuses}, {"DTYPES", print_dtypes}, {"OPS", print_ops}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strlen(marks[i].mark) == n && !strncmp(marks[i].mark, mark, n)) {
            marks[i].print();
            return;
        }
    if (n == 7 && !strncmp(mark, "VERSION", n))
        printf("%s", FUSEC_VERSION);
}

static int
make_header(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        return 1;
    }
    for (char line[512]; fgets(line, sizeof line, f);) {
        char *open = strchr(line, '@'), *close = open ? strchr(open + 1, '@') : NULL;
        if (!close) {
            fputs(line, stdout);
            continue;
        }
        fwrite(line, 1, (size_t)(open - line), stdout);
        fill_mark(open + 1, (size_t)(close - open - 1));
        if (open != line || strcmp(close + 1, "\n"))
            fputs(*(close + 1) == '\n' && open == line ? "" : close + 1, stdout);
    }
    return fclose(f) ? 1 : 0;
}

static void
print_attribute_call(const struct schema_field *f)
{
    const char *n = f->name;
    switch ((enum attr_type)f->type) {
    case ATTR_INT: printf("    call_int(&call, %s);\n", n); return;
    case ATTR_BOOL: printf("    call_bool(&call, %s);\n", n); return;
    case ATTR_FLOAT: printf("    call_float(&call, %s);\n", n); return;
    case ATTR_DTYPE: printf("    call_dtype(&call, %s);\n", n); return;
    case ATTR_BITS: printf("    call_bits(&call, %s);\n", n); return;
    case ATTR_INTS: printf("    call_ints(&call, %s, n%s);\n", n, n); return;
    case ATTR_DIMS: printf("    call_dims(&call, %s, rank);\n", n); return;
    }
}

static void
print_body(const struct op_info *op)
{
    struct schema s = schema_of(op);
    printf("\nfc_tensor\n");
    print_signature(op, &s);
    printf("\n{\n    struct call call;\n    call_begin(&call, OP_%s, file, line);\n", op->name);
    if (!op->arity)
        printf("    call_context(&call, ctx);\n");
    else if (op->arity == 255)
        printf("    call_tensors(&call, x, count);\n");
    else
        for (int i = 0; i < op->arity; i++)
            print_operand("    call_tensor(&call, ", op, i, ");\n");
    for (uint32_t i = 0; i < s.n; i++)
        print_attribute_call(&s.field[i]);
    printf("    return call_end(&call);\n}\n");
    if (has_scalar_form(op))
        printf(
            "\nfc_tensor\nfc_%s_scalar_at(const char *file, int line, fc_tensor a, fc_num b)\n{\n"
            "    struct call call;\n    call_begin(&call, OP_%s, file, line);\n"
            "    call_tensor(&call, a);\n    call_number(&call, b);\n    return "
            "call_end(&call);\n}\n",
            op->name, op->name);
}

static void
make_source(void)
{
    printf("// Made by generate.c from the op table: one function an op.\n"
           "#include \"frontend/call.h\"\n\n");
    for (int i = 1; i < DT_COUNT; i++) {
        printf("_Static_assert(FC_");
        print_upper(dtype_table[i].name);
        printf(" == (int)DT_%s, \"dtypes\");\n", dtype_table[i].name);
    }
    int most = 0;
    for (int i = 1; i < OP_COUNT; i++)
        most = op_table[i].arity > most && op_table[i].arity != 255 ? op_table[i].arity : most;
    printf("_Static_assert(%d <= CALL_OPERANDS, \"operands of one op\");\n", most);
    for (int i = 1; i < OP_COUNT; i++)
        if (op_is_public((uint16_t)i))
            print_body(&op_table[i]);
}

int
main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "header"))
        return make_header(argv[2]);
    if (argc == 2 && !strcmp(argv[1], "source")) {
        make_source();
        return 0;
    }
    fprintf(stderr, "usage: generate header TEMPLATE | source\n");
    return 2;
}
