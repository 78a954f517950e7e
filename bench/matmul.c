// matmul.c: fusec's contractions beside those of the libraries given by --peer PATH (or, separated
// by colons, in FUSEC_PEERS): oneDNN, MKL and OpenBLAS, opened with dlopen and told apart by a
// symbol that only they have. Nothing of them is needed to build this.
//
// Every contestant lives in a process of its own, because their thread pools spin after a call and
// would take the cores of whoever comes next. The parent gives turns, A B C C B A: it lets a
// process go on (SIGCONT), asks for one batch of calls, reads microseconds a call, stops it
// (SIGSTOP). A batch begins with calls that are not counted: they wake the pool and warm the
// caches. Figures are the median and the least over the rounds; a ratio is that of two medians.
// Before it is timed each result is compared with sums in double at some of its elements.
//
// The arrays of a case are the same at each call and mostly fit the caches, as in other benchmarks
// of matrix products. All libraries read the factors as they lie: nothing is packed in advance.
#include "ir/base/check.h"
#include "ir/base/clock.h"
#include "ir/base/half.h"
#include "ir/base/str.h"
#include "ir/text.h"
#include "runtime/device.h"

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind { FUSEC, ONEDNN, MKL, OPENBLAS };
static const char *const kind_name[] = {"fusec", "oneDNN", "MKL", "OpenBLAS"};
enum { MAX_PEERS = 8, MAX_ROUNDS = 1000 };

// C[batch, m, n] = A B. how: "nt" says that B is transposed, which lies as [n][k] then, "tn" that A
// is; "gelu" is an epilogue on plain factors, gelu_tanh(C + bias) + residual, for fusec alone.
struct problem {
    const char *name; // m x k x n
    uint8_t dtype;
    const char *how;
    int64_t batch, m, n, k;
};

static const struct problem table[] = {
    {"1024^3", DT_f32, "nn", 1, 1024, 1024, 1024},
    {"1024^3", DT_f32, "tn", 1, 1024, 1024, 1024},
    {"1024^3", DT_f32, "nt", 1, 1024, 1024, 1024},
    {"1024^3", DT_f32, "tt", 1, 1024, 1024, 1024},
    {"1024^3", DT_f32, "gelu", 1, 1024, 1024, 1024},
    {"1000^3", DT_f32, "nn", 1, 1000, 1000, 1000},
    {"1024x1024x4096", DT_f32, "nn", 1, 1024, 4096, 1024},
    {"4096^3", DT_f32, "nn", 1, 4096, 4096, 4096},
    {"127x1023x255", DT_f32, "nn", 1, 127, 255, 1023},
    {"127x1023x255", DT_f32, "tn", 1, 127, 255, 1023},
    {"127x1023x255", DT_f32, "nt", 1, 127, 255, 1023},
    {"127x1023x255", DT_f32, "tt", 1, 127, 255, 1023},
    {"256^3", DT_f32, "nn", 1, 256, 256, 256},
    {"64^3", DT_f32, "nn", 1, 64, 64, 64},
    {"96 of 64^3", DT_f32, "nn", 96, 64, 64, 64},
    {"96 of 64^3", DT_f32, "nt", 96, 64, 64, 64},
    {"64x784x128", DT_f32, "nn", 1, 64, 128, 784},
    {"64x784x128", DT_f32, "nt", 1, 64, 128, 784},
    {"1x784x128", DT_f32, "nn", 1, 1, 128, 784},
    {"1x784x128", DT_f32, "nt", 1, 1, 128, 784},
    {"64x128x10", DT_f32, "nn", 1, 64, 10, 128},
    {"1x4096x4096", DT_f32, "nn", 1, 1, 4096, 4096},
    {"1x4096x4096", DT_f32, "nt", 1, 1, 4096, 4096},
    {"4096x4096x1", DT_f32, "nn", 1, 4096, 1, 4096},
    {"4096x4096x1", DT_f32, "tn", 1, 4096, 1, 4096},
    {"4096x64x64", DT_f32, "nn", 1, 4096, 64, 64},
    {"64x4096x64", DT_f32, "nn", 1, 64, 64, 4096},
    {"1024^3", DT_f64, "nn", 1, 1024, 1024, 1024},
    {"127x1023x255", DT_f64, "nn", 1, 127, 255, 1023},
    {"64x784x128", DT_f64, "nn", 1, 64, 128, 784},
    {"1024^3", DT_bf16, "nn", 1, 1024, 1024, 1024},
    {"64x784x128", DT_bf16, "nn", 1, 64, 128, 784},
};

// A problem with its arrays.
struct task {
    uint8_t dtype;
    int64_t batch, m, n, k;
    bool ta, tb, epilogue;
    void *a, *b, *c, *bias, *residual;
};

// ---- arrays

static double
element(const struct task *p, const void *x, int64_t i)
{
    switch (p->dtype) {
    case DT_f64: return ((const double *)x)[i];
    case DT_bf16: return (double)bf16_to_f32(((const uint16_t *)x)[i]);
    default: return (double)((const float *)x)[i];
    }
}

// Uniform numbers between -scale and scale.
static void *
array(const struct task *p, int64_t n, uint64_t seed, double scale)
{
    enum { HUGE_PAGE = 2 << 20 }; // what NumPy and fusec ask for too where arrays are large
    size_t bytes = ((size_t)n * dtype_size(p->dtype) + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    void *x = aligned_alloc(HUGE_PAGE, bytes);
    CHECK(x, "no memory for %zu bytes", bytes);
    madvise(x, bytes, MADV_HUGEPAGE);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double v = ((double)(int64_t)(seed >> 33) / (1 << 30) - 1) * scale;
        if (p->dtype == DT_f64)
            ((double *)x)[i] = v;
        else if (p->dtype == DT_bf16)
            ((uint16_t *)x)[i] = f32_to_bf16((float)v);
        else
            ((float *)x)[i] = (float)v;
    }
    return x;
}

static void
make_task(struct task *p, const struct problem *q)
{
    *p = (struct task){.dtype = q->dtype, .batch = q->batch, .m = q->m, .n = q->n, .k = q->k,
                       .ta = *q->how == 't', .tb = q->how[1] == 't',
                       .epilogue = *q->how == 'g'};
    // Products of about 1, as an activation has them.
    p->a = array(p, p->batch * p->m * p->k, 1, 1);
    p->b = array(p, p->batch * p->k * p->n, 2, 3 / sqrt((double)p->k));
    p->c = array(p, p->batch * p->m * p->n, 3, 1);
    p->bias = array(p, p->n, 4, 1);
    p->residual = array(p, p->m * p->n, 5, 1);
}

static bool
right(const struct task *p)
{
    double tolerance = p->dtype == DT_f64 ? 1e-12 : p->dtype == DT_bf16 ? 2e-2 : 1e-5;
    for (int64_t s = 0; s < 64; s++) {
        int64_t at = (s * 7919 + 13) * 104729 % (p->batch * p->m * p->n);
        int64_t z = at / (p->m * p->n), i = at / p->n % p->m, j = at % p->n;
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++)
            sum += element(p, p->a, z * p->m * p->k + (p->ta ? k * p->m + i : i * p->k + k)) *
                   element(p, p->b, z * p->k * p->n + (p->tb ? j * p->k + k : k * p->n + j));
        if (p->epilogue) {
            double x = sum + element(p, p->bias, j);
            x *= 0.5 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
            sum = x + element(p, p->residual, i * p->n + j);
        }
        double error = fabs(element(p, p->c, at) - sum);
        if (!(error <= tolerance * (sqrt((double)p->k) + fabs(sum))))
            return false;
    }
    return true;
}

// ---- contestants: open prepares a case and returns what call needs; NULL: it cannot

struct contestant {
    enum kind kind;
    const char *path;
    void *lib;
    void *(*open)(struct contestant *, struct task *);
    void (*call)(void *);
    char words[256];
    int threads;
    pid_t pid;
    int ask, answer;
};

struct fusec_run {
    struct executable *e;
    void *in[4], *out[1];
};

static void *
fusec_open(struct contestant *c, struct task *p)
{
    struct diag d = {0};
    struct str t = {0};
    struct device *dev = device_open("cpu", (uint32_t)c->threads, 0, &d);
    CHECK(dev, "%s", d.text);
    snprintf(c->words, sizeof c->words, "%s", dev->words);
    const char *type = dtype_name(p->dtype);
    long long z = p->batch, m = p->m, n = p->n, k = p->k;
    str_printf(&t, "graph @g(%%a: %s[%lld, %lld, %lld], %%b: %s[%lld, %lld, %lld]", type, z,
               p->ta ? k : m, p->ta ? m : k, type, z, p->tb ? n : k, p->tb ? k : n);
    if (p->epilogue)
        str_printf(&t, ", %%bias: %s[%lld], %%r: %s[%lld, %lld]", type, n, type, m, n);
    str_printf(&t, ") {\n  %%x = matmul %s, %s\n",
               p->ta ? "(permute %a {axes = [0, 2, 1]})" : "%a",
               p->tb ? "(permute %b {axes = [0, 2, 1]})" : "%b");
    str_printf(&t, "  return %s\n}\n",
               p->epilogue ? "add (gelu_tanh (add %x, %bias)), %r" : "%x");
    struct graph *g = graph_parse(str_text(&t), t.n, "bench", &d);
    CHECK(g, "%s", d.text);
    struct compile_options o = {0};
    struct plan *plan = plan_build(g, &dev->target, &o, &d);
    struct fusec_run *r = xcalloc(1, sizeof *r);
    CHECK(plan && (r->e = executable_new(plan, dev, &d)), "%s", d.text);
    r->in[0] = p->a, r->in[1] = p->b, r->in[2] = p->bias, r->in[3] = p->residual;
    r->out[0] = p->c;
    graph_free(g);
    str_free(&t);
    return r;
}

static void
fusec_call(void *run)
{
    struct fusec_run *r = run;
    struct diag d = {0};
    CHECK(executable_run(r->e, r->in, r->out, &d), "%s", d.text);
}

// The C interface of BLAS, by whatever names the library exports it.
struct blas_run {
    const struct task *p;
    void (*gemm)(void);
    void (*gemv)(void);
    void (*batched)(void);
};
typedef void f32_gemm(int, int, int, int, int, int, float, const void *, int, const void *, int,
                      float, void *, int);
typedef void f64_gemm(int, int, int, int, int, int, double, const void *, int, const void *, int,
                      double, void *, int);
typedef void f32_gemv(int, int, int, int, float, const void *, int, const void *, int, float,
                      void *, int);
typedef void f64_gemv(int, int, int, int, double, const void *, int, const void *, int, double,
                      void *, int);
typedef void f32_batched(int, int, int, int, int, int, float, const void *, int, int, const void *,
                         int, int, float, void *, int, int, int);
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

static void (*blas_symbol(void *lib, const char *letter, const char *rest))(void)
{
    static const char *const form[] = {"cblas_%s%s", "scipy_cblas_%s%s"};
    union {
        void *object;
        void (*function)(void);
    } u = {0};
    char name[64];
    for (size_t i = 0; i < 2 && !u.object; i++) {
        snprintf(name, sizeof name, form[i], letter, rest);
        u.object = dlsym(lib, name);
    }
    return u.function;
}

static void *
blas_open(struct contestant *c, struct task *p)
{
    if (p->epilogue || p->dtype == DT_bf16)
        return NULL;
    const char *letter = p->dtype == DT_f64 ? "d" : "s";
    struct blas_run *r = xcalloc(1, sizeof *r);
    r->p = p;
    r->gemm = blas_symbol(c->lib, letter, "gemm");
    r->gemv = blas_symbol(c->lib, letter, "gemv");
    r->batched = blas_symbol(c->lib, letter, "gemm_batch_strided");
    CHECK(r->gemm && r->gemv, "%s has no cblas_%sgemm", c->path, letter);
    return r;
}

// One row or one column: matrix times vector.
static void
blas_gemv(const struct blas_run *r)
{
    const struct task *p = r->p;
    bool row = p->m == 1;
    bool as_lies = row ? p->tb : !p->ta;
    const void *matrix = row ? p->b : p->a, *vector = row ? p->a : p->b;
    int64_t out = row ? p->n : p->m;
    int rows = (int)(as_lies ? out : p->k), columns = (int)(as_lies ? p->k : out);
    int how = as_lies ? PLAIN : TRANSPOSED;
    if (p->dtype == DT_f64)
        ((f64_gemv *)r->gemv)(ROW_MAJOR, how, rows, columns, 1, matrix, columns, vector, 1, 0, p->c,
                              1);
    else
        ((f32_gemv *)r->gemv)(ROW_MAJOR, how, rows, columns, 1, matrix, columns, vector, 1, 0, p->c,
                              1);
}

static void
blas_call(void *run)
{
    const struct blas_run *r = run;
    const struct task *p = r->p;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = p->ta ? m : k, ldb = p->tb ? k : n;
    int ta = p->ta ? TRANSPOSED : PLAIN, tb = p->tb ? TRANSPOSED : PLAIN;
    if (p->batch == 1 && (m == 1 || n == 1)) {
        blas_gemv(r);
    } else if (p->dtype == DT_f64) {
        ((f64_gemm *)r->gemm)(ROW_MAJOR, ta, tb, m, n, k, 1, p->a, lda, p->b, ldb, 0, p->c, n);
    } else if (p->batch > 1 && r->batched) {
        ((f32_batched *)r->batched)(ROW_MAJOR, ta, tb, m, n, k, 1, p->a, lda, m * k, p->b, ldb,
                                    k * n, 0, p->c, n, m * n, (int)p->batch);
    } else {
        for (int64_t z = 0; z < p->batch; z++)
            ((f32_gemm *)r->gemm)(ROW_MAJOR, ta, tb, m, n, k, 1, (float *)p->a + z * m * k, lda,
                                  (float *)p->b + z * k * n, ldb, 0, (float *)p->c + z * m * n, n);
    }
}

// oneDNN's matmul primitive; what is needed of its C interface (version 3).
struct dnnl_arg {
    int arg;
    void *memory;
};
struct dnnl_run {
    int (*execute)(void *, void *, int, const struct dnnl_arg *);
    int (*wait)(void *);
    void *primitive, *stream;
    struct dnnl_arg arg[3];
};
typedef int dnnl_fn();

static void *
dnnl_get(struct contestant *c, const char *name)
{
    void *f = dlsym(c->lib, name);
    CHECK(f, "%s has no %s", c->path, name);
    return f;
}

static void *
dnnl_desc(struct contestant *c, const struct task *p, int64_t rows, int64_t columns, bool t)
{
    int (*create)(void **, int, const int64_t *, int, const int64_t *) =
        dnnl_get(c, "dnnl_memory_desc_create_with_strides");
    int64_t dim[12] = {p->batch, rows, columns};
    int64_t stride[12] = {rows * columns, t ? 1 : columns, t ? rows : 1};
    bool flat = p->batch == 1;
    int type = p->dtype == DT_f64 ? 7 : p->dtype == DT_bf16 ? 2 : 3;
    void *desc = NULL;
    CHECK(!create(&desc, flat ? 2 : 3, dim + flat, type, stride + flat), "oneDNN: descriptor");
    return desc;
}

static void *
dnnl_open(struct contestant *c, struct task *p)
{
    if (p->epilogue)
        return NULL;
    int (*engine_create)(void **, int, size_t) = dnnl_get(c, "dnnl_engine_create");
    int (*stream_create)(void **, void *, int) = dnnl_get(c, "dnnl_stream_create");
    int (*describe)(void **, void *, void *, void *, void *, void *, void *) =
        dnnl_get(c, "dnnl_matmul_primitive_desc_create");
    int (*create)(void **, void *) = dnnl_get(c, "dnnl_primitive_create");
    int (*memory)(void **, void *, void *, void *) = dnnl_get(c, "dnnl_memory_create");
    struct dnnl_run *r = xcalloc(1, sizeof *r);
    void *engine, *pd, *desc[3] = {dnnl_desc(c, p, p->m, p->k, p->ta),
                                   dnnl_desc(c, p, p->k, p->n, p->tb),
                                   dnnl_desc(c, p, p->m, p->n, false)};
    void *data[3] = {p->a, p->b, p->c};
    static const int role[3] = {1, 33, 17}; // source, weights, destination
    CHECK(!engine_create(&engine, 1, 0) && !stream_create(&r->stream, engine, 1), "oneDNN: engine");
    if (describe(&pd, engine, desc[0], desc[1], NULL, desc[2], NULL))
        return NULL;
    CHECK(!create(&r->primitive, pd), "oneDNN: primitive");
    for (int i = 0; i < 3; i++) {
        r->arg[i].arg = role[i];
        CHECK(!memory(&r->arg[i].memory, desc[i], engine, data[i]), "oneDNN: memory");
    }
    r->execute = dnnl_get(c, "dnnl_primitive_execute");
    r->wait = dnnl_get(c, "dnnl_stream_wait");
    return r;
}

static void
dnnl_call(void *run)
{
    struct dnnl_run *r = run;
    CHECK(!r->execute(r->primitive, r->stream, 3, r->arg) && !r->wait(r->stream), "oneDNN");
}

static void
describe_openblas(struct contestant *c)
{
    static const char *const form[] = {"openblas_get_config", "scipy_openblas_get_config",
                                       "openblas_get_config64_"};
    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        char *(*config)(void) = (char *(*)(void))dlsym(c->lib, form[i]);
        if (config)
            snprintf(c->words, sizeof c->words, "%s", config());
    }
}

static void
describe_mkl(struct contestant *c)
{
    void (*words)(char *, int) = (void (*)(char *, int))dlsym(c->lib, "MKL_Get_Version_String");
    if (words)
        words(c->words, sizeof c->words);
}

static void
load(struct contestant *c)
{
    char threads[16];
    snprintf(threads, sizeof threads, "%d", c->threads);
    setenv("OMP_NUM_THREADS", threads, 1);
    setenv("MKL_NUM_THREADS", threads, 1);
    setenv("OPENBLAS_NUM_THREADS", threads, 1);
    setenv("MKL_DYNAMIC", "FALSE", 1);
    c->open = fusec_open, c->call = fusec_call;
    if (!c->path)
        return;
    c->lib = dlopen(c->path, RTLD_NOW | RTLD_GLOBAL);
    CHECK(c->lib, "%s", dlerror());
    c->kind = dlsym(c->lib, "dnnl_engine_create")       ? ONEDNN
              : dlsym(c->lib, "MKL_Get_Version_String") ? MKL
                                                        : OPENBLAS;
    c->open = c->kind == ONEDNN ? dnnl_open : blas_open;
    c->call = c->kind == ONEDNN ? dnnl_call : blas_call;
    if (c->kind == OPENBLAS)
        describe_openblas(c);
    if (c->kind == MKL)
        describe_mkl(c);
}

// ---- turns

struct turn {
    double us;
    enum kind kind;
    char words[256];
};

// The child: a case when asked for a number, a batch of it when asked for -1.
static void
serve(struct contestant *c, int in, int out)
{
    static const double warm_us = 300, batch_us = 2500;
    struct task p = {0};
    void *run = NULL;
    load(c);
    for (int what; read(in, &what, sizeof what) == sizeof what;) {
        struct turn t = {.us = -1, .kind = c->kind};
        if (what >= 0) {
            make_task(&p, &table[what]);
            run = c->open(c, &p);
            if (run) {
                c->call(run);
                t.us = right(&p) ? 0 : -2;
            }
        } else {
            double start = clock_us(), end = start;
            int64_t n = 0;
            do
                c->call(run);
            while (clock_us() - start < warm_us);
            for (start = clock_us(); end - start < batch_us || n < 2; end = clock_us(), n++)
                c->call(run);
            t.us = (end - start) / (double)n;
        }
        memcpy(t.words, c->words, sizeof t.words);
        if (write(out, &t, sizeof t) != sizeof t)
            break;
    }
    _exit(0);
}

static void
start(struct contestant *c)
{
    int ask[2], answer[2];
    CHECK(!pipe(ask) && !pipe(answer), "pipe");
    fflush(NULL);
    c->pid = fork();
    CHECK(c->pid >= 0, "fork");
    if (c->pid == 0) {
        close(ask[1]), close(answer[0]);
        serve(c, ask[0], answer[1]);
    }
    close(ask[0]), close(answer[1]);
    c->ask = ask[1], c->answer = answer[0];
}

static struct turn
take_turn(struct contestant *c, int what)
{
    struct turn t = {.us = -1};
    kill(c->pid, SIGCONT);
    if (write(c->ask, &what, sizeof what) != sizeof what ||
        read(c->answer, &t, sizeof t) != sizeof t) {
        fprintf(stderr, "%s: its process ended\n", c->path ? c->path : "fusec");
        exit(3);
    }
    kill(c->pid, SIGSTOP);
    return t;
}

static void
stop(struct contestant *c)
{
    close(c->ask), close(c->answer);
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
}

// ---- the table

struct request {
    const char *filter;
    int threads, rounds;
    bool wrong; // a result was
    struct contestant who[MAX_PEERS + 1];
    int n;
};

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// One line: of each contestant microseconds (median, least) and GFLOP/s; then fusec against the
// best of the others.
static void
measure(struct request *q, int number)
{
    static double us[MAX_PEERS + 1][MAX_ROUNDS];
    const struct problem *p = &table[number];
    double flop = 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k, best = 0;
    bool takes_part[MAX_PEERS + 1] = {0};
    for (int i = 0; i < q->n; i++) {
        start(&q->who[i]);
        struct turn t = take_turn(&q->who[i], number);
        takes_part[i] = t.us >= 0;
        if (t.us == -2) {
            fprintf(stderr, "%s %s: %s is wrong\n", p->name, p->how, kind_name[t.kind]);
            q->wrong = true;
        }
    }
    for (int r = 0; r < q->rounds; r++)
        for (int j = 0; j < q->n; j++) {
            int i = r % 2 ? q->n - 1 - j : j;
            us[i][r] = takes_part[i] ? take_turn(&q->who[i], -1).us : 0;
        }
    printf("%-4s %-14s %-4s", dtype_name(p->dtype), p->name, p->how);
    for (int i = 0; i < q->n; i++) {
        stop(&q->who[i]);
        qsort(us[i], (size_t)q->rounds, sizeof **us, by_size);
        double median = us[i][q->rounds / 2];
        if (!takes_part[i]) {
            printf(" %28s", "-");
            continue;
        }
        printf(" %10.2f %10.2f %6.1f", median, us[i][0], flop / median * 1e-3);
        if (i && (best == 0 || median < best))
            best = median;
    }
    if (takes_part[0] && best > 0)
        printf(" %6.2f", best / us[0][q->rounds / 2]);
    printf("\n");
    fflush(stdout);
}

static void
print_head(struct request *q)
{
    for (int i = 0; i < q->n; i++) {
        start(&q->who[i]);
        struct turn t = take_turn(&q->who[i], 0);
        q->who[i].kind = t.kind;
        printf("%s: %s%s%s\n", kind_name[t.kind], q->who[i].path ? q->who[i].path : "",
               q->who[i].path && *t.words ? ": " : "", t.words);
        stop(&q->who[i]);
    }
    printf("\n%-24s", "m x k x n");
    for (int i = 0; i < q->n; i++)
        printf(" %10s %10s %6s", kind_name[q->who[i].kind], "min us", "GF/s");
    printf(" %6s\n", "ahead");
}

// The filter is a list of words separated by commas: "f32 1024^3", "nt".
static bool
chosen(const struct request *q, const struct problem *p)
{
    char name[64], list[256];
    if (!q->filter)
        return true;
    snprintf(name, sizeof name, "%s %s %s", dtype_name(p->dtype), p->name, p->how);
    snprintf(list, sizeof list, "%s", q->filter);
    for (char *at = strtok(list, ","); at; at = strtok(NULL, ","))
        if (strstr(name, at))
            return true;
    return false;
}

static void
add_peer(struct request *q, const char *path)
{
    CHECK(q->n <= MAX_PEERS, "at most %d peers", MAX_PEERS);
    q->who[q->n++] = (struct contestant){.path = path};
}

static void
parse(struct request *q, int argc, char **argv)
{
    char *list = getenv("FUSEC_PEERS");
    for (char *at = list ? strtok(strdup(list), ":") : NULL; at; at = strtok(NULL, ":"))
        add_peer(q, at);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--peer"))
            add_peer(q, argv[i + 1]);
        else if (!strcmp(argv[i], "--filter"))
            q->filter = argv[i + 1];
        else if (!strcmp(argv[i], "--threads"))
            q->threads = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--rounds"))
            q->rounds = atoi(argv[i + 1]);
        else
            argc = 0;
    }
    if (argc % 2 == 0 || q->rounds < 1 || q->rounds > MAX_ROUNDS || q->threads < 1) {
        fprintf(stderr, "usage: matmul [--peer PATH]… [--threads N] [--filter NAME] "
                        "[--rounds N]\n");
        exit(2);
    }
    for (int i = 0; i < q->n; i++)
        q->who[i].threads = q->threads;
}

int
main(int argc, char **argv)
{
    struct request q = {.threads = (int)sysconf(_SC_NPROCESSORS_ONLN), .rounds = 31};
    add_peer(&q, NULL);
    parse(&q, argc, argv);
    print_head(&q);
    int measured = 0;
    for (int i = 0; i < (int)(sizeof table / sizeof *table); i++)
        if (chosen(&q, &table[i])) {
            measure(&q, i);
            measured++;
        }
    if (!measured)
        fprintf(stderr, "no product is named '%s'\n", q.filter);
    return q.wrong ? 1 : measured ? 0 : 2;
}
