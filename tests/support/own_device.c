// own_device.c: see own_device.h. Code is kept by text and level for the device's life. A chain of
// launches is not run block by block: caches are given as so large that the planner makes none.
#include "tests/support/own_device.h"

#include "ir/base/check.h"
#include "ir/base/clock.h"
#include "ir/base/hash.h"
#include "runtime/fpstate.h"
#include "runtime/orc.h"
#include "runtime/target.h"
#include "tests/support/graph_gen.h"

#include <pthread.h>
#include <string.h>

struct own_code {
    char *text;
    size_t n;
    enum code_level level;
    struct jit_code jit;
};

struct own_device {
    struct device base; // first: struct device * is one of these
    struct own_options options;
    struct own_counts counts;
    struct jit *jit;
    pthread_mutex_t lock; // kernels of one plan are compiled on the pool
    VEC(struct own_code) codes;
    struct map by_text;
    VEC(struct guarded) blocks; // memory handed out
};

struct code {
    struct jit_code jit;
    int64_t num[];
};

static struct own_device *
own_of(struct device *d)
{
    return (struct own_device *)d;
}

static void *
own_alloc(struct device *d, int64_t bytes)
{
    struct own_device *o = own_of(d);
    struct guarded b = guarded_alloc(((size_t)bytes + 63) / 64 * 64, true);
    memset(b.data, 0xa5, b.bytes);
    pthread_mutex_lock(&o->lock);
    vec_push(&o->blocks, b);
    pthread_mutex_unlock(&o->lock);
    return b.data;
}

static void
own_release(struct device *d, void *p, int64_t bytes)
{
    struct own_device *o = own_of(d);
    (void)bytes;
    pthread_mutex_lock(&o->lock);
    for (uint32_t i = 0; i < o->blocks.n; i++)
        if (o->blocks.at[i].data == p) {
            guarded_free(&o->blocks.at[i]);
            o->blocks.at[i] = o->blocks.at[--o->blocks.n];
            break;
        }
    pthread_mutex_unlock(&o->lock);
}

static bool
own_copy(struct device *d, void *dst, const void *src, int64_t bytes, struct diag *diag)
{
    (void)d, (void)diag;
    if (bytes > 0)
        memcpy(dst, src, (size_t)bytes);
    return true;
}

// ---- compiling

static uint64_t
key_of(const struct own_device *o, const struct str *text)
{
    return hash_bytes(o->options.level + 1, text->at, text->n);
}

static const struct own_code *
find_code(const struct own_device *o, const struct str *text)
{
    uint32_t id, at = 0;
    while ((id = map_next(&o->by_text, key_of(o, text), &at))) {
        const struct own_code *c = &o->codes.at[id - 1];
        if (c->level == o->options.level && c->n == text->n && !memcmp(c->text, text->at, c->n))
            return c;
    }
    return NULL;
}

static const struct own_code *
make_code(struct own_device *o, struct str *text, struct diag *diag)
{
    struct own_code c = {.n = text->n, .level = o->options.level};
    uint64_t key = key_of(o, text);
    c.text = xmalloc(text->n + 1);
    memcpy(c.text, text->at, text->n);
    if (o->options.edit)
        o->options.edit(o->options.user, text);
    size_t size = 0;
    int64_t begin = clock_ns();
    void *object = cpu_object(text->at, text->n, &o->base.target, c.level, &size, diag);
    bool ok = object && jit_load(o->jit, object, size, &c.jit, diag);
    xfree(object);
    o->counts.compile_us += (double)(clock_ns() - begin) * 1e-3;
    o->counts.compiles++;
    if (!ok) {
        xfree(c.text);
        return NULL;
    }
    vec_push(&o->codes, c);
    map_add(&o->by_text, key, o->codes.n);
    return &o->codes.at[o->codes.n - 1];
}

static struct code *
own_compile(struct device *d, const struct kernel *k, const struct schedule *s, struct diag *diag)
{
    struct own_device *o = own_of(d);
    struct str text = {0};
    num_vec num = {0};
    struct code *code = NULL;
    if (cpu_emit(k, s, &d->target, &text, &num, diag)) {
        pthread_mutex_lock(&o->lock);
        const struct own_code *c = find_code(o, &text);
        o->counts.hits += c != NULL;
        if (!c)
            c = make_code(o, &text, diag);
        if (c) {
            code = xcalloc(1, sizeof *code + num.n * sizeof *num.at);
            code->jit = c->jit;
            if (num.n)
                memcpy(code->num, num.at, num.n * sizeof *num.at);
        }
        pthread_mutex_unlock(&o->lock);
    }
    str_free(&text);
    vec_free(&num);
    return code;
}

static void
own_code_release(struct device *d, struct code *code)
{
    (void)d;
    xfree(code);
}

// ---- launching

// Units 0 … n - 1 in so many pieces, the last one first.
static void
run_pieces(kernel_fn *f, const struct kernel_args *args, int64_t n, int64_t pieces, char *scratch)
{
    if (pieces > n)
        pieces = n;
    for (int64_t i = pieces; i-- > 0;)
        if (n * i / pieces < n * (i + 1) / pieces)
            f(args, n * i / pieces, n * (i + 1) / pieces, scratch);
}

static bool
own_launch(struct device *d, struct code *code, const struct kernel *k, const struct schedule *s,
           void *const *ptr, int32_t *error_op, struct diag *diag)
{
    struct own_device *o = own_of(d);
    (void)k, (void)diag;
    if (s->units <= 0 && s->finish_units <= 0)
        return true;
    o->counts.kernels++;
    void *shared = own_alloc(d, s->shared_scratch_bytes), *scratch = own_alloc(d, s->scratch_bytes);
    struct kernel_args args = {.ptr = ptr, .num = code->num, .shared = shared, .error = error_op};
    int64_t pieces = o->options.pieces ? o->options.pieces : 1;
    fp_state callers = fp_enter();
    run_pieces(code->jit.kernel, &args, s->units, pieces, scratch);
    if (s->finish_units > 0)
        run_pieces(code->jit.finish, &args, s->finish_units, pieces, scratch);
    fp_leave(callers);
    own_release(d, scratch, 0);
    own_release(d, shared, 0);
    return true;
}

static bool
own_launch_chain(struct device *d, const struct plan *p, const struct chain *c,
                 struct code *const *code, void *const *const *ptr, int32_t *error_op,
                 struct diag *diag)
{
    (void)d, (void)p, (void)c, (void)code, (void)ptr, (void)error_op, (void)diag;
    CHECK(false, "a chain on a device that has none");
    return false;
}

static bool
own_synchronize(struct device *d, struct diag *diag)
{
    (void)d, (void)diag;
    return true;
}

static void
own_settle(struct device *d)
{
    (void)d;
}

static void
own_close(struct device *d)
{
    struct own_device *o = own_of(d);
    for (uint32_t i = 0; i < o->codes.n; i++)
        xfree(o->codes.at[i].text);
    for (uint32_t i = 0; i < o->blocks.n; i++)
        guarded_free(&o->blocks.at[i]);
    vec_free(&o->codes);
    vec_free(&o->blocks);
    map_free(&o->by_text);
    jit_free(o->jit);
    pthread_mutex_destroy(&o->lock);
    xfree(o);
}

static const struct device_ops own_ops = {
    .alloc = own_alloc,
    .release = own_release,
    .upload = own_copy,
    .download = own_copy,
    .compile = own_compile,
    .code_release = own_code_release,
    .launch = own_launch,
    .launch_chain = own_launch_chain,
    .synchronize = own_synchronize,
    .settle = own_settle,
    .close = own_close,
};

struct device *
own_device_open(struct own_options options, struct diag *d)
{
    struct jit *jit = jit_new(d);
    if (!jit)
        return NULL;
    struct own_device *o = xcalloc(1, sizeof *o);
    o->base.ops = &own_ops;
    o->options = options;
    o->jit = jit;
    pthread_mutex_init(&o->lock, NULL);
    cpu_target(&o->base.target, 1, o->base.words, sizeof o->base.words);
    o->base.target.l2 = 64 << 20; // see the top
    return &o->base;
}

void
own_device_level(struct device *dev, enum code_level level)
{
    own_of(dev)->options.level = level;
}

struct own_counts
own_device_counts(const struct device *dev)
{
    return ((const struct own_device *)dev)->counts;
}
