// math_numpy.c: NumPy's own tables of its functions' accuracy, umath-validation-set-*.csv: argument
// and correctly rounded result as bits, and how many units in the last place NumPy allows itself.
// Compiled functions have to be within that, and within their own bound: the tables' results are
// rounded, so that half a unit is added to it.
//
// The tables are read from FUSEC_NUMPY_DATA, or where Debian's python3-numpy has them; a function
// whose table is in neither is reported as skipped.
#include "tests/support/accuracy.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    const char *name;
    struct compiled c;
    uint8_t dtype;
    uint64_t in[BLOCK], want[BLOCK];
    double allowed[BLOCK];
    uint32_t n, all;
};

static FILE *
open_table(const char *name)
{
    const char *given = getenv("FUSEC_NUMPY_DATA");
    const char *const places[] = {
        given ? given : "",
        "/usr/lib/python3/dist-packages/numpy/core/tests/data",
        "/usr/lib/python3/dist-packages/numpy/_core/tests/data",
    };
    FILE *f = NULL;
    for (uint32_t i = 0; i < 3 && !f; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s/umath-validation-set-%s.csv", places[i], name);
        f = *places[i] ? fopen(path, "r") : NULL;
    }
    return f;
}

static void
run_rows(struct rows *r, uint16_t op)
{
    double bound = (double)(r->dtype == DT_f32 ? op_table[op].ulp32 : op_table[op].ulp64) + 0.5;
    for (uint32_t i = 0; i < BLOCK; i++)
        compiled_set(&r->c, 0, i, r->in[i < r->n ? i : 0]);
    compiled_run(&r->c);
    for (uint32_t i = 0; i < r->n; i++) {
        double got = scalar_to_double(r->dtype, compiled_get(&r->c, i));
        double want = scalar_to_double(r->dtype, r->want[i]);
        double error = want == 0 && got == 0 ? 0 : distance(r->dtype, got, (long double)want);
        cr_expect(error <= bound && error <= r->allowed[i], "%s %s(%a): %a, NumPy has %a: %.2f ulp",
                  op_name(op), dtype_name(r->dtype), scalar_to_double(r->dtype, r->in[i]), got,
                  want, error);
    }
    r->all += r->n;
    r->n = 0;
}

static void
read_rows(FILE *f, struct rows *r, uint16_t op)
{
    char line[200];
    const char *dtype = r->dtype == DT_f32 ? "np.float32" : "np.float64";
    while (fgets(line, sizeof line, f)) {
        unsigned long long in, want;
        char type[20];
        double allowed;
        if (sscanf(line, "%19[^,],%llx,%llx,%lf", type, &in, &want, &allowed) != 4 ||
            strcmp(type, dtype))
            continue;
        r->in[r->n] = in;
        r->want[r->n] = want;
        r->allowed[r->n] = allowed;
        if (++r->n == BLOCK)
            run_rows(r, op);
    }
    run_rows(r, op);
}

static void
check(uint16_t op, const char *name)
{
    FILE *f = open_table(name);
    if (!f)
        cr_skip_test("NumPy's umath-validation-set-%s.csv is not here", name);
    uint32_t all = 0;
    for (uint8_t i = 0; i < 2; i++) {
        struct rows *r = calloc(1, sizeof *r);
        cr_assert_not_null(r);
        r->dtype = i ? DT_f64 : DT_f32;
        r->c = compiled_new(op, r->dtype);
        rewind(f);
        read_rows(f, r, op);
        all += r->all;
        compiled_free(&r->c);
        free(r);
    }
    fclose(f);
    cr_expect(all > 100, "%s: %u rows", name, all);
}

#define TABLE(op, name)                                                                            \
    Test(math_numpy, op)                                                                           \
    {                                                                                              \
        check(OP_##op, name);                                                                      \
    }
TABLE(acos, "arccos")
TABLE(acosh, "arccosh")
TABLE(asin, "arcsin")
TABLE(asinh, "arcsinh")
TABLE(atan, "arctan")
TABLE(atanh, "arctanh")
TABLE(cbrt, "cbrt")
TABLE(cos, "cos")
TABLE(cosh, "cosh")
TABLE(exp, "exp")
TABLE(exp2, "exp2")
TABLE(expm1, "expm1")
TABLE(log, "log")
TABLE(log10, "log10")
TABLE(log1p, "log1p")
TABLE(log2, "log2")
TABLE(sin, "sin")
TABLE(sinh, "sinh")
TABLE(tan, "tan")
TABLE(tanh, "tanh")
