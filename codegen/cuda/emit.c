// emit.c: the parts of CUDA C that all classes share (see emit.h), and the whole program: prelude,
// tables, joins of accumulators, the arguments, the function.
#include "codegen/cuda/emit.h"

#include "ir/base/check.h"
#include "ir/base/mem.h"
#include "ir/expand.h"

#include <stdio.h>
#include <string.h>

// ---- arguments

const char *
cuda_number(struct cuda_emitter *e, int64_t value, char at[static 24])
{
    uint32_t i = 0;
    while (i < e->num->n && e->num->at[i] != value)
        i++;
    snprintf(at, 24, "a.n[%u]", i);
    if (i == e->num->n)
        vec_push(e->num, value);
    return at;
}

// A number that has a meaning of its own: equal values of others do not make it the same argument.
static const char *
own_number(struct cuda_emitter *e, int64_t value, char at[static 24])
{
    vec_push(e->num, value);
    snprintf(at, 24, "a.n[%u]", e->num->n - 1);
    return at;
}

static const char *
memory_type(uint8_t dtype)
{
    return dtype == DT_bool ? "u8" : cuda_type(dtype);
}

// ---- which instructions

void
cuda_need(const struct cuda_emitter *e, uint32_t inst, bool *needed)
{
    needed[inst] |= !e->given[inst];
    for (uint32_t i = inst; i > 0; i--) {
        const struct inst *in = &e->kernel.inst.at[i];
        if (!needed[i] || in->op == OP_literal || in->op == OP_result)
            continue;
        const uint32_t operand[] = {in->a, in->b, in->c};
        for (uint32_t o = 0; o < 3; o++)
            if (operand[o] && !e->given[operand[o]])
                needed[operand[o]] = true;
    }
}

void
cuda_need_stage(const struct cuda_emitter *e, uint32_t stage, bool *needed)
{
    const struct kernel *k = &e->kernel;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].stage == stage)
            cuda_need(e, k->acc.at[i].value, needed);
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage == stage && k->store.at[i].level == LEVEL_ELEM)
            cuda_need(e, k->store.at[i].value, needed);
}

// ---- where elements are

void
cuda_coordinates(struct cuda_emitter *e, const char *at, uint32_t from, uint32_t to)
{
    char n[24];
    if (to == from)
        return;
    if (to > from + 1)
        str_printf(e->text, "ix left%u = %s;\n", from, at);
    for (uint32_t x = to; x-- > from;) {
        if (to == from + 1)
            str_printf(e->text, "const ix x%u = %s;\n", x, at);
        else if (x == from)
            str_printf(e->text, "const ix x%u = left%u;\n", x, from);
        else
            str_printf(e->text, "const ix x%u = left%u %% %s; left%u /= %s;\n", x, from,
                       cuda_number(e, e->kernel.axis[x].extent, n), from, n);
    }
}

// "b1[a.n[0] + x0 * a.n[1] + x1": an element's place without its lane and the bracket.
static void
place(struct cuda_emitter *e, const struct access *x, struct str *out)
{
    char n[24];
    bool first = true;
    if (x->base) {
        str_add(out, cuda_number(e, x->base, n));
        first = false;
    }
    for (uint32_t i = 0; i < e->kernel.naxis; i++) {
        if (!x->stride[i])
            continue;
        str_printf(out, "%sx%u", first ? "" : " + ", i);
        if (x->stride[i] != 1)
            str_printf(out, " * %s", cuda_number(e, x->stride[i], n));
        first = false;
    }
    if (first)
        str_addc(out, '0');
}

// The lane's part of a place: how far element `lane` of a vector is from the first.
static void
lane_place(struct cuda_emitter *e, const struct access *x, const char *lane, struct str *out)
{
    char n[24];
    int64_t stride = e->sched->vec > 1 && lane ? x->stride[e->vec_axis] : 0;
    if (stride == 1)
        str_printf(out, " + %s", lane);
    else if (stride)
        str_printf(out, " + %s * %s", lane, cuda_number(e, stride, n));
}

// ---- loads

static void
load_element(struct cuda_emitter *e, uint32_t i, const char *lane)
{
    struct kernel *k = &e->kernel;
    const struct inst *in = &k->inst.at[i];
    const struct access *x = &k->access.at[in->aux];
    char n[24];
    struct str at = {0};
    place(e, x, &at);
    lane_place(e, x, lane, &at);
    if (in->a)
        str_printf(&at, " + (ix)v%u * %s", in->a, cuda_number(e, (int64_t)in->bits, n));
    if (in->c) {
        char origin[24];
        own_number(e, 1 + (int64_t)in->origin, origin);
        str_add(e->text, "if (");
        if (in->b)
            str_printf(e->text, "v%u && ", in->b);
        str_printf(e->text, "!v%u) *a.error = (int)%s;\n", in->c, origin);
    }
    str_printf(e->text, "const %s v%u = ", cuda_type(in->dtype), i);
    if (in->b && in->c)
        str_printf(e->text, "!(v%u && v%u) ? (%s)0 : ", in->b, in->c, cuda_type(in->dtype));
    else if (in->b || in->c)
        str_printf(e->text, "!v%u ? (%s)0 : ", in->b ? in->b : in->c, cuda_type(in->dtype));
    str_printf(e->text, in->dtype == DT_bool ? "(bool)b%u[%s];\n" : "b%u[%s];\n", x->buffer,
               str_text(&at));
    str_free(&at);
}

void
cuda_declare_vectors(struct cuda_emitter *e, const bool *needed, uint32_t in_flight)
{
    for (uint32_t i = 1; i < e->kernel.inst.n; i++)
        if (needed[i] && e->vector[i])
            str_printf(e->text, "vec<%s, %u> w%u[%u];\n", memory_type(e->kernel.inst.at[i].dtype),
                       e->sched->vec, i, in_flight);
}

void
cuda_load_vectors(struct cuda_emitter *e, const bool *needed, const char *subscript)
{
    for (uint32_t i = 1; i < e->kernel.inst.n; i++) {
        if (!needed[i] || !e->vector[i])
            continue;
        const struct inst *in = &e->kernel.inst.at[i];
        const struct access *x = &e->kernel.access.at[in->aux];
        struct str at = {0};
        place(e, x, &at);
        str_printf(e->text, "w%u[%s].load(b%u + (%s));\n", i, subscript, x->buffer, str_text(&at));
        str_free(&at);
    }
}

// ---- bodies

static void
check(struct cuda_emitter *e, uint32_t i)
{
    const struct inst *in = &e->kernel.inst.at[i];
    char origin[24];
    own_number(e, 1 + (int64_t)in->origin, origin);
    str_printf(e->text, "if (!v%u) *a.error = (int)%s;\nconst %s v%u = v%u;\n", in->b, origin,
               cuda_type(in->dtype), i, in->a);
}

static void
index_value(struct cuda_emitter *e, uint32_t i, const char *lane)
{
    const struct access *x = &e->kernel.affine.at[e->kernel.inst.at[i].aux];
    struct str at = {0};
    place(e, x, &at);
    lane_place(e, x, lane, &at);
    str_printf(e->text, "const i64 v%u = (i64)(%s);\n", i, str_text(&at));
    str_free(&at);
}

static void
instruction(struct cuda_emitter *e, uint32_t i, const char *lane, const char *subscript)
{
    const struct inst *in = &e->kernel.inst.at[i];
    switch (in->op) {
    case OP_load:
        if (e->vector[i])
            str_printf(e->text, "const %s v%u = (%s)w%u[%s].at[%s];\n", cuda_type(in->dtype), i,
                       cuda_type(in->dtype), i, subscript, lane);
        else
            load_element(e, i, lane);
        break;
    case OP_checked:
        check(e, i);
        break;
    case OP_index:
        index_value(e, i, lane);
        break;
    case OP_result:
        if (e->result) {
            e->result(e, i);
            break;
        }
        str_printf(e->text, "const %s v%u = r%u", cuda_type(in->dtype), i, in->aux);
        str_printf(e->text, e->result_per_lane ? "[%s];\n" : ";\n", lane);
        break;
    case OP_philox:
        str_printf(e->text, "const %s v%u = (%s)philox(v%u, v%u, v%u, %u);\n",
                   cuda_type(in->dtype), i, cuda_type(in->dtype), in->a, in->b, in->c,
                   dtype_table[in->dtype].bits);
        break;
    default:
        cuda_statement(&e->kernel, i, e->text);
    }
}

void
cuda_body(struct cuda_emitter *e, const bool *needed, uint8_t from, uint8_t to, const char *lane,
          const char *subscript)
{
    for (uint32_t i = 1; i < e->kernel.inst.n; i++) {
        uint8_t level = e->kernel.inst.at[i].level;
        if (needed[i] && level >= from && level <= to)
            instruction(e, i, lane, subscript);
    }
}

// ---- stores

// Vectors of a store run along memory where its access does.
static bool
stores_vectors(const struct cuda_emitter *e, const struct store *st)
{
    return e->sched->vec > 1 && e->kernel.access.at[st->access].stride[e->vec_axis] == 1;
}

static bool
is_due(const struct store *st, uint32_t stage, uint8_t level)
{
    return st->stage == stage && st->level == level;
}

bool
cuda_has_stores(const struct cuda_emitter *e, uint32_t stage, uint8_t level)
{
    for (uint32_t i = 0; i < e->kernel.store.n; i++)
        if (is_due(&e->kernel.store.at[i], stage, level))
            return true;
    return false;
}

void
cuda_declare_outputs(struct cuda_emitter *e, uint32_t stage, uint8_t level)
{
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        const struct store *st = &e->kernel.store.at[i];
        if (is_due(st, stage, level) && stores_vectors(e, st))
            str_printf(e->text, "vec<%s, %u> o%u;\n",
                       memory_type(e->kernel.access.at[st->access].dtype), e->sched->vec, i);
    }
}

void
cuda_put(struct cuda_emitter *e, uint32_t stage, uint8_t level, const char *lane)
{
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        const struct store *st = &e->kernel.store.at[i];
        const struct access *x = &e->kernel.access.at[st->access];
        if (!is_due(st, stage, level))
            continue;
        if (stores_vectors(e, st)) {
            str_printf(e->text, "o%u.at[%s] = v%u;\n", i, lane, st->value);
            continue;
        }
        struct str at = {0};
        place(e, x, &at);
        lane_place(e, x, lane, &at);
        str_printf(e->text, "b%u[%s] = v%u;\n", x->buffer, str_text(&at), st->value);
        str_free(&at);
    }
}

void
cuda_store_outputs(struct cuda_emitter *e, uint32_t stage, uint8_t level)
{
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        const struct store *st = &e->kernel.store.at[i];
        const struct access *x = &e->kernel.access.at[st->access];
        if (!is_due(st, stage, level) || !stores_vectors(e, st))
            continue;
        struct str at = {0};
        place(e, x, &at);
        str_printf(e->text, "o%u.store(b%u + (%s));\n", i, x->buffer, str_text(&at));
        str_free(&at);
    }
}

// ---- accumulators

bool
cuda_has_accs(const struct cuda_emitter *e, uint32_t stage)
{
    for (uint32_t i = 0; i < e->kernel.acc.n; i++)
        if (e->kernel.acc.at[i].stage == stage)
            return true;
    return false;
}

void
cuda_each_acc(struct cuda_emitter *e, uint32_t stage, const char *line)
{
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        if (e->kernel.acc.at[i].stage != stage)
            continue;
        for (const char *c = line; *c; c++)
            if (*c == '$')
                str_printf(e->text, "%u", i);
            else
                str_addc(e->text, *c);
    }
}

void
cuda_acc_type(const struct acc *a, struct str *out)
{
    if (op_gives_position(a->op))
        str_printf(out, "place<%s>", cuda_type(a->dtype));
    else
        str_add(out, cuda_type(a->dtype));
}

static void
literal_text(uint8_t dtype, uint64_t bits, struct str *out)
{
    struct inst at[] = {{0}, {.op = OP_literal, .dtype = dtype, .bits = bits}};
    struct kernel k = {.inst = {.at = at, .n = 2}};
    struct str s = {0};
    cuda_statement(&k, 1, &s); // "const T v1 = …;\n"
    const char *value = strstr(str_text(&s), " = ");
    CHECK(value, "a literal without a value");
    str_addn(out, value + 3, strlen(value + 3) - 2);
    str_free(&s);
}

void
cuda_acc_identity(const struct acc *a, struct str *out)
{
    bool position = op_gives_position(a->op);
    if (position)
        str_printf(out, "place<%s>{", cuda_type(a->dtype));
    literal_text(a->dtype, op_identity_bits(a->op, a->dtype), out);
    if (position)
        str_add(out, ", 0x7fffffffffffffffll}");
}

void
cuda_acc_functions(const struct kernel *k, struct str *out)
{
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        struct str type = {0};
        cuda_acc_type(a, &type);
        const char *t = str_text(&type);
        str_printf(out, "static __device__ __forceinline__ %s join%u(%s v1, %s v2)\n{\n", t, i, t,
                   t);
        if (!op_table[a->op].combine && !op_gives_position(a->op)) {
            str_add(out, "return v2;\n}\n"); // of a scatter that sets
        } else if (op_gives_position(a->op)) {
            str_printf(out, "return better_place<%s>(v1, v2);\n}\n",
                       a->op == OP_argmax ? "true" : "false");
        } else {
            struct inst at[] = {{0},
                                {.op = OP_none, .dtype = a->dtype},
                                {.op = OP_none, .dtype = a->dtype},
                                {.op = op_table[a->op].combine, .dtype = a->dtype, .a = 1, .b = 2}};
            struct kernel join = {.inst = {.at = at, .n = 4}};
            cuda_statement(&join, 3, out);
            str_add(out, "return v3;\n}\n");
        }
        str_free(&type);
    }
}

void
cuda_declare_partials(struct cuda_emitter *e, uint32_t stage, const char *prefix, const char *dims)
{
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        if (e->kernel.acc.at[i].stage != stage)
            continue;
        cuda_acc_type(&e->kernel.acc.at[i], e->text);
        str_printf(e->text, " %s%u%s;\n", prefix, i, dims);
    }
}

void
cuda_start_partials(struct cuda_emitter *e, uint32_t stage)
{
    str_printf(e->text, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n", e->sched->vec);
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        if (e->kernel.acc.at[i].stage != stage)
            continue;
        str_printf(e->text, "p%u[l] = ", i);
        cuda_acc_identity(&e->kernel.acc.at[i], e->text);
        str_add(e->text, ";\n");
    }
    str_add(e->text, "}\n");
}

static void
join_elements(struct cuda_emitter *e, uint32_t stage, const char *position)
{
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        const struct acc *a = &e->kernel.acc.at[i];
        if (a->stage != stage)
            continue;
        str_printf(e->text, "p%u[l] = join%u(p%u[l], ", i, i, i);
        if (op_gives_position(a->op)) {
            cuda_acc_type(a, e->text);
            str_printf(e->text, "{v%u, %s});\n", a->value, position);
        } else {
            str_printf(e->text, "v%u);\n", a->value);
        }
    }
}

void
cuda_block_elements(struct cuda_emitter *e, uint32_t stage, const char *position)
{
    struct str *t = e->text;
    const struct kernel *k = &e->kernel;
    uint32_t in_flight = e->sched->unroll;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    cuda_need_stage(e, stage, needed);
    str_printf(t, "for (int s = 0; s < 16; s += %u) {\nif (j0 + s * 16 >= n) break;\n", in_flight);
    cuda_declare_vectors(e, needed, in_flight);
    for (int body = 0; body < 2; body++) {
        if (!body && e->sched->vec == 1)
            continue;
        str_printf(t, "#pragma unroll\nfor (int u = 0; u < %u; u++) {\n"
                      "const ix j = j0 + (s + u) * 16;\nif (j < n) {\n", in_flight);
        cuda_coordinates(e, "j", k->naxis - k->nred, k->naxis);
        if (!body) {
            cuda_load_vectors(e, needed, "u");
        } else {
            cuda_declare_outputs(e, stage, LEVEL_ELEM);
            str_printf(t, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n", e->sched->vec);
            cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, "l", "u");
            join_elements(e, stage, position);
            cuda_put(e, stage, LEVEL_ELEM, "l");
            str_add(t, "}\n");
            cuda_store_outputs(e, stage, LEVEL_ELEM);
        }
        str_add(t, "}\n}\n");
    }
    str_add(t, "}\n");
    xfree(needed);
}

void
cuda_all_stores(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    const char *lane = e->result_per_lane ? "0" : NULL;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    for (uint32_t i = 0; i < k->store.n; i++)
        cuda_need(e, k->store.at[i].value, needed);
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, lane, lane);
    for (uint32_t stage = 0; stage < k->nstage; stage++)
        for (uint8_t level = LEVEL_ONCE; level <= LEVEL_ELEM; level++)
            cuda_put(e, stage, level, lane);
    xfree(needed);
}

// ---- the program

// Loads of vectors: along memory on the vectors' axis, at positions that are no data.
static void
find_vectors(struct cuda_emitter *e)
{
    struct kernel *k = &e->kernel;
    for (uint32_t i = 1; i < k->inst.n && e->sched->vec > 1; i++) {
        const struct inst *in = &k->inst.at[i];
        e->vector[i] = in->op == OP_load && !in->a && !in->b && !in->c &&
                       k->access.at[in->aux].stride[e->vec_axis] == 1;
    }
}

// What no point and no accumulator changes, once a thread.
static void
constants(struct cuda_emitter *e)
{
    struct kernel *k = &e->kernel;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    for (uint32_t i = 1; i < k->inst.n; i++)
        needed[i] = k->inst.at[i].level == LEVEL_ONCE && k->inst.at[i].stage == 0;
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ONCE, NULL, NULL);
    for (uint32_t i = 1; i < k->inst.n; i++)
        e->given[i] |= needed[i];
    xfree(needed);
}

static bool
class_body(struct cuda_emitter *e, struct diag *d)
{
    switch (e->sched->cls) {
    case CLASS_POINTWISE:
        cuda_pointwise(e);
        return true;
    case CLASS_ROW:
    case CLASS_SPLIT:
        cuda_row(e);
        return true;
    case CLASS_COLUMN:
        cuda_column(e);
        return true;
    case CLASS_CONTRACT:
        cuda_contract(e);
        return true;
    case CLASS_SCAN:
        cuda_scan(e);
        return true;
    case CLASS_SORT:
        cuda_sort(e);
        return true;
    case CLASS_SCATTER:
        cuda_scatter(e);
        return true;
    default:
        return diag_set(d, DIAG_UNSUPPORTED, "CUDA has no %s kernels yet",
                        kernel_class_name[e->sched->cls]);
    }
}

static void
arguments(const struct cuda_emitter *e, struct str *out)
{
    const struct kernel *k = &e->kernel;
    str_printf(out, "typedef %s ix;\n"
                    "struct kernel_args {\nchar *p[%u];\nint *error;\nchar *scratch;\n"
                    "ix n[%u];\n};\n",
               e->sched->index64 ? "long long" : "int", k->buffers.n ? k->buffers.n : 1,
               e->num->n ? e->num->n : 1);
    str_printf(out, "extern \"C\" __global__ void __launch_bounds__(%u)\n"
                    "kernel(const __grid_constant__ kernel_args a)\n{\n", e->sched->threads);
    for (uint32_t b = 0; b < k->buffers.n; b++) {
        const char *type = memory_type(k->buffers.at[b].dtype);
        bool in = k->buffers.at[b].role == BUF_IN;
        if (k->buffers.at[b].by_value) {
            str_printf(out, "const %s *const b%u = (const %s *)&a.p[%u];\n", type, b, type, b);
            continue;
        }
        str_printf(out, "%s%s *const __restrict__ b%u = (%s *)a.p[%u];\n", in ? "const " : "",
                   type, b, type, b);
    }
}

// Adds the function with its lines indented by the braces they are in.
static void
add_indented(const char *function, struct str *out)
{
    uint32_t depth = 1;
    for (const char *line = function; *line;) {
        size_t n = strcspn(line, "\n");
        uint32_t before = depth - (*line == '}');
        for (size_t i = 0; i < n; i++)
            depth += (line[i] == '{') - (line[i] == '}');
        for (uint32_t i = 0; i < before && *line != '#'; i++)
            str_add(out, "    ");
        str_addn(out, line, n);
        str_addc(out, '\n');
        line += n + (line[n] == '\n');
    }
}

bool
cuda_emit(const struct kernel *k, const struct schedule *s, const struct target *t,
          struct str *text, num_vec *num, struct diag *d)
{
    (void)t;
    struct str function = {0};
    struct cuda_emitter e = {.sched = s, .text = &function, .num = num};
    kernel_copy(&e.kernel, k);
    kernel_expand(&e.kernel);
    e.given = xcalloc(e.kernel.inst.n, sizeof *e.given);
    e.vector = xcalloc(e.kernel.inst.n, sizeof *e.vector);
    bool along_p = s->cls == CLASS_COLUMN || !k->nred || s->cls == CLASS_CONTRACT;
    e.vec_axis = k->naxis ? (along_p ? k->naxis - k->nred - 1u : k->naxis - 1u) : 0;
    e.result_per_lane = s->cls == CLASS_COLUMN || s->cls == CLASS_CONTRACT;
    find_vectors(&e);
    constants(&e);
    bool ok = class_body(&e, d);
    uint64_t tables = 0;
    str_add(text, cuda_prelude);
    cuda_tables(&e.kernel, &tables, text);
    cuda_acc_functions(&e.kernel, text);
    arguments(&e, text);
    add_indented(str_text(&function), text);
    str_add(text, "}\n");
    str_free(&function);
    xfree(e.given);
    xfree(e.vector);
    kernel_free_body(&e.kernel);
    return ok;
}
