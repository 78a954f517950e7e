// cuda.c: one GPU as a device. compile: kernel → CUDA C → code cache, which on a miss has NVRTC
// make a cubin and loads it. launch: the function on the device's stream, with one block of
// arguments: the buffers' addresses, the error word's, the numbers.
//
// Everything of a device runs in order on one stream of its own, in the device's primary context,
// so memory that is released can be handed out again at once. Memory that a kernel writes an index
// error to is the host's, pinned: it is read after the stream has been waited for.
#include "runtime/cuda/cuda.h"

#include "ir/base/mem.h"
#include "passes/schedule.h"
#include "runtime/alloc.h"
#include "runtime/code_cache.h"
#include "runtime/cuda/driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { UNUSED_CODES = 1024, UNUSED_TEXT = 64 << 20 };
enum { ERROR_WORDS = 1024 }; // of one pinned block
enum { ARGUMENT_BYTES = 4096 };

struct cuda_device {
    struct device base; // first: struct device * is one of these
    const struct cuda_driver *driver;
    int device;
    void *context, *stream;
    struct allocator *memory;
    struct code_cache *codes;
    atomic_int_fast64_t kernels;
    pthread_mutex_t compiling;  // of code without vectors
    pthread_mutex_t lock;       // of what follows
    VEC(int32_t *) error_block; // pinned
    VEC(int32_t *) error_word;  // nobody's
};

struct loaded { // the code cache's
    void *module, *function;
};

struct code {
    struct cached_code *cached; // of struct loaded
    uint32_t n;                 // bytes of arguments behind the pointers
    uint32_t pointers;          // buffers, at least 1
    struct code *plain;         // without vectors, for buffers that are not aligned for them; made
    struct schedule plain_sched;// when first needed, under the device's lock
    void *scratch;              // one launch follows the other
    int64_t scratch_bytes;
    char numbers[];
};

static _Thread_local void *current; // this thread's context, as far as this file has set it

static struct cuda_device *
cuda_of(struct device *d)
{
    return (struct cuda_device *)d;
}

// Driver calls act on the thread's current context.
static bool
enter(const struct cuda_device *c, struct diag *d)
{
    if (current == c->context)
        return true;
    if (!cuda_ok(c->driver, c->driver->cuCtxSetCurrent(c->context), "making a context current", d))
        return false;
    current = c->context;
    return true;
}

// ---- memory

static void *
take_memory(void *user, int64_t bytes)
{
    struct cuda_device *c = user;
    struct diag d;
    uint64_t at = 0;
    diag_clear(&d);
    if (!enter(c, &d) || c->driver->cuMemAlloc_v2(&at, (size_t)bytes))
        return NULL;
    return (void *)(uintptr_t)at;
}

static void
give_memory(void *user, void *p, int64_t bytes)
{
    (void)bytes;
    struct cuda_device *c = user;
    struct diag d;
    diag_clear(&d);
    if (enter(c, &d))
        c->driver->cuMemFree_v2((uintptr_t)p);
}

static void *
cuda_alloc(struct device *d, int64_t bytes)
{
    return alloc_take(cuda_of(d)->memory, bytes);
}

static void
cuda_release(struct device *d, void *p, int64_t bytes)
{
    alloc_release(cuda_of(d)->memory, p, bytes);
}

static bool
wait(struct cuda_device *c, const char *doing, struct diag *diag)
{
    return cuda_ok(c->driver, c->driver->cuStreamSynchronize(c->stream), doing, diag);
}

static bool
cuda_upload(struct device *d, void *dst, const void *src, int64_t bytes, struct diag *diag)
{
    struct cuda_device *c = cuda_of(d);
    static const char doing[] = "copying to the GPU";
    if (bytes <= 0)
        return true;
    return enter(c, diag) &&
           cuda_ok(c->driver, c->driver->cuMemcpyHtoDAsync_v2((uintptr_t)dst, src, (size_t)bytes,
                                                              c->stream), doing, diag) &&
           wait(c, doing, diag);
}

static bool
cuda_download(struct device *d, void *dst, const void *src, int64_t bytes, struct diag *diag)
{
    struct cuda_device *c = cuda_of(d);
    static const char doing[] = "copying from the GPU";
    if (bytes <= 0)
        return true;
    return enter(c, diag) &&
           cuda_ok(c->driver, c->driver->cuMemcpyDtoHAsync_v2(dst, (uintptr_t)src, (size_t)bytes,
                                                              c->stream), doing, diag) &&
           wait(c, doing, diag);
}

// ---- error words

static int32_t *
cuda_error_word(struct device *d)
{
    struct cuda_device *c = cuda_of(d);
    struct diag ignored;
    int32_t *word = NULL;
    void *block;
    diag_clear(&ignored);
    pthread_mutex_lock(&c->lock);
    if (!c->error_word.n && enter(c, &ignored) &&
        !c->driver->cuMemHostAlloc(&block, ERROR_WORDS * sizeof *word, CUDA_HOST_PORTABLE)) {
        vec_push(&c->error_block, block);
        for (uint32_t i = 0; i < ERROR_WORDS; i++)
            vec_push(&c->error_word, (int32_t *)block + i);
    }
    if (c->error_word.n)
        word = c->error_word.at[--c->error_word.n];
    pthread_mutex_unlock(&c->lock);
    if (word)
        *word = 0;
    return word;
}

static void
cuda_error_word_release(struct device *d, int32_t *word)
{
    struct cuda_device *c = cuda_of(d);
    pthread_mutex_lock(&c->lock);
    vec_push(&c->error_word, word);
    pthread_mutex_unlock(&c->lock);
}

// ---- compiling

static bool
make_code(void *user, const char *text, size_t n, enum code_level level, void *code,
          struct diag *diag)
{
    (void)level;
    struct cuda_device *c = user;
    struct loaded *l = code;
    size_t size;
    struct str program = {0}; // with an end
    str_addn(&program, text, n);
    void *cubin = cuda_object(str_text(&program), c->base.target.arch, &size, diag);
    str_free(&program);
    *l = (struct loaded){0};
    bool ok = cubin && enter(c, diag) &&
              cuda_ok(c->driver, c->driver->cuModuleLoadData(&l->module, cubin),
                      "loading a kernel", diag) &&
              cuda_ok(c->driver, c->driver->cuModuleGetFunction(&l->function, l->module, "kernel"),
                      "looking for a kernel", diag);
    xfree(cubin);
    if (!ok && l->module)
        c->driver->cuModuleUnload(l->module);
    return ok;
}

static void
drop_code(void *user, void *code)
{
    struct cuda_device *c = user;
    struct diag d;
    diag_clear(&d);
    if (enter(c, &d) && wait(c, "waiting before a kernel is unloaded", &d))
        c->driver->cuModuleUnload(((struct loaded *)code)->module);
}

// The numbers as the kernel has them: 32 bits each, or 64.
static struct code *
code_new(struct cached_code *cached, const struct kernel *k, const struct schedule *s,
         const num_vec *num)
{
    uint32_t width = s->index64 ? 8 : 4, n = num->n ? num->n : 1;
    struct code *code = xcalloc(1, sizeof *code + n * width);
    code->cached = cached;
    code->pointers = k->buffers.n ? k->buffers.n : 1;
    code->n = n * width;
    for (uint32_t i = 0; i < num->n; i++) {
        int32_t narrow = (int32_t)num->at[i];
        memcpy(code->numbers + i * width, s->index64 ? (void *)&num->at[i] : (void *)&narrow,
               width);
    }
    return code;
}

// Where the numbers start among the arguments: behind the pointers and the error word's, at a
// multiple of their size.
static uint32_t
numbers_at(const struct code *code)
{
    return (code->pointers + 2) * 8;
}

static void
cuda_code_release(struct device *d, struct code *code)
{
    if (!code)
        return;
    cuda_code_release(d, code->plain);
    cuda_release(d, code->scratch, code->scratch_bytes);
    code_cache_release(cuda_of(d)->codes, code->cached);
    xfree(code);
}

// Memory that launches leave to each other, zeros at first.
static bool
take_scratch(struct cuda_device *c, struct code *code, int64_t bytes, struct diag *d)
{
    code->scratch = cuda_alloc(&c->base, bytes);
    if (!code->scratch)
        return diag_set(d, DIAG_RESOURCE, "no memory for %lld bytes of scratch", (long long)bytes);
    code->scratch_bytes = bytes;
    return enter(c, d) &&
           cuda_ok(c->driver, c->driver->cuMemsetD8Async((uintptr_t)code->scratch, 0, (size_t)bytes,
                                                         c->stream), "clearing memory", d);
}

static struct code *
cuda_compile(struct device *d, const struct kernel *k, const struct schedule *s, struct diag *diag)
{
    struct cuda_device *c = cuda_of(d);
    struct str text = {0};
    num_vec num = {0};
    struct diag own;
    struct code *code = NULL;
    diag_clear(&own);
    if (cuda_emit(k, s, &d->target, &text, &num, &own)) {
        struct cached_code *cached = code_cache_get(c->codes, text.at, text.n, &own);
        if (cached)
            code = code_new(cached, k, s, &num);
    }
    if (code && numbers_at(code) + code->n > ARGUMENT_BYTES) {
        diag_set(&own, DIAG_UNSUPPORTED, "its arguments take %u bytes, a launch has room for %d",
                 numbers_at(code) + code->n, ARGUMENT_BYTES);
        code_cache_release(c->codes, code->cached);
        xfree(code);
        code = NULL;
    }
    if (code && s->shared_scratch_bytes && !take_scratch(c, code, s->shared_scratch_bytes, &own)) {
        cuda_code_release(d, code);
        code = NULL;
    }
    if (!code)
        diag_set(diag, own.code, "kernel %s: %s", k->name ? k->name : "?", own.text);
    str_free(&text);
    vec_free(&num);
    return code;
}

// ---- launching

static bool
aligned_for_vectors(const struct kernel *k, const struct schedule *s, void *const *ptr)
{
    uintptr_t bits = 0;
    for (uint32_t b = 0; b < k->buffers.n && s->vec > 1; b++)
        bits |= k->buffers.at[b].by_value ? 0 : (uintptr_t)ptr[b];
    return bits % 16 == 0;
}

// The same kernel without vectors; NULL: diag.
static struct code *
plain_code(struct cuda_device *c, struct code *code, const struct kernel *k,
           const struct schedule *s, struct diag *diag)
{
    struct target t = c->base.target;
    struct kernel same = *k;
    uint8_t why;
    t.vec_bytes = 1;
    pthread_mutex_lock(&c->compiling);
    if (!code->plain &&
        schedule_cuda(&same, &t, s->cls == CLASS_COLUMN, &code->plain_sched, &why))
        code->plain = cuda_compile(&c->base, k, &code->plain_sched, diag);
    struct code *plain = code->plain;
    pthread_mutex_unlock(&c->compiling);
    if (!plain)
        diag_set(diag, DIAG_INTERNAL, "kernel %s: no code for buffers not aligned to 16 bytes",
                 k->name);
    return plain;
}

static bool
cuda_launch(struct device *d, struct code *code, const struct kernel *k, const struct schedule *s,
            void *const *ptr, int32_t *error_op, struct diag *diag)
{
    if (!aligned_for_vectors(k, s, ptr)) {
        struct code *owner = code;
        code = plain_code(cuda_of(d), code, k, s, diag);
        if (!code)
            return false;
        s = &owner->plain_sched;
    }
    struct cuda_device *c = cuda_of(d);
    _Alignas(16) char arguments[ARGUMENT_BYTES];
    void *parameter[] = {arguments};
    if (s->units <= 0)
        return true;
    if (s->units > INT32_MAX)
        return diag_set(diag, DIAG_UNSUPPORTED, "kernel %s: %lld blocks, a launch has 2147483647",
                        k->name, (long long)s->units);
    for (uint32_t b = 0; b < k->buffers.n; b++)
        memcpy(arguments + 8 * b, k->buffers.at[b].by_value ? ptr[b] : (void *)&ptr[b], 8);
    memcpy(arguments + 8 * code->pointers, &error_op, sizeof error_op);
    memcpy(arguments + 8 * code->pointers + 8, &code->scratch, sizeof code->scratch);
    memcpy(arguments + numbers_at(code), code->numbers, code->n);
    const struct loaded *l = code_cache_use(c->codes, code->cached);
    atomic_fetch_add_explicit(&c->kernels, 1, memory_order_relaxed);
    if (!enter(c, diag))
        return false;
    int status = c->driver->cuLaunchKernel(l->function, (unsigned)s->units, 1, 1, s->threads, 1, 1,
                                           0, c->stream, parameter, NULL);
    return status == 0 || cuda_ok(c->driver, status, k->name, diag);
}

// GPUs run chains like other launches: what a block would keep to itself is in the second level.
static bool
cuda_launch_chain(struct device *d, const struct plan *p, const struct chain *chain,
                  struct code *const *code, void *const *const *ptr, int32_t *error_op,
                  struct diag *diag)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct launch *l = &p->launch.at[chain->first + i];
        if (!cuda_launch(d, code[i], &l->kernel, &l->sched, ptr[i], error_op, diag))
            return false;
    }
    return true;
}

static bool
cuda_synchronize(struct device *d, struct diag *diag)
{
    struct cuda_device *c = cuda_of(d);
    return enter(c, diag) && wait(c, "waiting for the GPU", diag);
}

// ---- copy bandwidth

enum { COPY_ROUNDS = 5 };

static bool
time_copies(struct cuda_device *c, char *memory, int64_t bytes, int64_t pairs, void *const event[2],
            float *ms)
{
    const struct cuda_driver *drv = c->driver;
    bool ok = !drv->cuEventRecord(event[0], c->stream);
    for (int64_t i = 0; i < pairs && ok; i++) {
        uint64_t from = (uintptr_t)memory + (uint64_t)(2 * i * bytes);
        ok = !drv->cuMemcpyDtoDAsync_v2(from + (uint64_t)bytes, from, (size_t)bytes, c->stream);
    }
    return ok && !drv->cuEventRecord(event[1], c->stream) &&
           !drv->cuEventSynchronize(event[1]) &&
           !drv->cuEventElapsedTime(ms, event[0], event[1]);
}

static double
cuda_copy_gbps(struct device *d, int64_t bytes, int64_t pairs)
{
    struct cuda_device *c = cuda_of(d);
    struct diag ignored;
    diag_clear(&ignored);
    bytes = (bytes + 255) & ~(int64_t)255;
    void *event[2] = {NULL, NULL};
    float least = 0;
    char *memory = cuda_alloc(d, 2 * pairs * bytes);
    bool ok = memory && enter(c, &ignored) && !c->driver->cuEventCreate(&event[0], 0) &&
              !c->driver->cuEventCreate(&event[1], 0);
    for (int round = 0; round <= COPY_ROUNDS && ok; round++) {
        float ms = 0;
        ok = time_copies(c, memory, bytes, pairs, event, &ms);
        if (round && (least == 0 || ms < least))
            least = ms;
    }
    for (int i = 0; i < 2; i++)
        if (event[i])
            c->driver->cuEventDestroy_v2(event[i]);
    cuda_release(d, memory, 2 * pairs * bytes);
    return ok && least > 0 ? 2e-6 * (double)(bytes * pairs) / (double)least : 0;
}

static void
cuda_settle(struct device *d)
{
    (void)d; // there is no baseline code
}

// ---- opening and closing

static void
cuda_counters(struct device *d, struct device_counters *out)
{
    struct cuda_device *c = cuda_of(d);
    struct code_cache_stats codes = code_cache_read_stats(c->codes);
    struct alloc_stats memory = alloc_read_stats(c->memory);
    *out = (struct device_counters){
        .kernels = atomic_load_explicit(&c->kernels, memory_order_relaxed),
        .compiles = codes.makes,
        .code_hits = codes.hits,
        .compile_us = codes.make_us,
        .bytes_allocated = memory.in_use,
        .peak_bytes = memory.peak,
    };
}

static void
cuda_close(struct device *d)
{
    struct cuda_device *c = cuda_of(d);
    struct diag ignored;
    diag_clear(&ignored);
    if (enter(c, &ignored) && c->stream)
        wait(c, "closing", &ignored);
    code_cache_free(c->codes);
    allocator_free(c->memory);
    for (uint32_t i = 0; i < c->error_block.n; i++)
        c->driver->cuMemFreeHost(c->error_block.at[i]);
    if (c->stream)
        c->driver->cuStreamDestroy_v2(c->stream);
    if (c->context) {
        c->driver->cuCtxSetCurrent(NULL);
        current = NULL;
        c->driver->cuDevicePrimaryCtxRelease_v2(c->device);
    }
    vec_free(&c->error_block);
    vec_free(&c->error_word);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->compiling);
    xfree(c);
}

static const struct device_ops cuda_ops = {
    .alloc = cuda_alloc,
    .release = cuda_release,
    .upload = cuda_upload,
    .download = cuda_download,
    .error_word = cuda_error_word,
    .error_word_release = cuda_error_word_release,
    .compile = cuda_compile,
    .code_release = cuda_code_release,
    .launch = cuda_launch,
    .launch_chain = cuda_launch_chain,
    .synchronize = cuda_synchronize,
    .copy_gbps = cuda_copy_gbps,
    .settle = cuda_settle,
    .close = cuda_close,
};

static int
attribute(const struct cuda_device *c, enum cuda_attribute which)
{
    int value = 0;
    c->driver->cuDeviceGetAttribute(&value, (int)which, c->device);
    return value;
}

static void
describe(struct cuda_device *c, size_t bytes)
{
    struct target *t = &c->base.target;
    char name[128] = "";
    int version = 0;
    c->driver->cuDeviceGetName(name, sizeof name, c->device);
    c->driver->cuDriverGetVersion(&version);
    t->kind = DEVICE_CUDA;
    snprintf(t->arch, sizeof t->arch, "sm_%d%d", attribute(c, CUDA_ATTRIBUTE_MAJOR),
             attribute(c, CUDA_ATTRIBUTE_MINOR));
    t->units = (uint32_t)attribute(c, CUDA_ATTRIBUTE_SMS);
    t->vec_bytes = 16;
    t->l1 = attribute(c, CUDA_ATTRIBUTE_SHARED_BYTES_SM);
    t->l2 = t->llc = attribute(c, CUDA_ATTRIBUTE_L2_BYTES);
    snprintf(c->base.words, sizeof c->base.words,
             "%s: %s (%s), %u multiprocessors, %.1f GB, L2 %.1f MB, driver for CUDA %d.%d",
             c->base.name, name, t->arch, t->units, (double)bytes / 1e9, (double)t->l2 / 1e6,
             version / 1000, version % 1000 / 10);
}

static bool
start(struct cuda_device *c, int ordinal, struct diag *d)
{
    const struct cuda_driver *drv = c->driver;
    int n = 0;
    size_t bytes = 0;
    if (!cuda_ok(drv, drv->cuDeviceGetCount(&n), "counting GPUs", d))
        return false;
    if (ordinal >= n)
        return diag_set(d, DIAG_UNSUPPORTED, "device 'cuda:%d': the driver sees %d GPU%s, from "
                                             "cuda:0 on", ordinal, n, n == 1 ? "" : "s");
    if (!cuda_ok(drv, drv->cuDeviceGet(&c->device, ordinal), "asking for a GPU", d) ||
        !cuda_ok(drv, drv->cuDeviceTotalMem_v2(&bytes, c->device), "asking for its memory", d) ||
        !cuda_ok(drv, drv->cuDevicePrimaryCtxRetain(&c->context, c->device), "making a context",
                 d) ||
        !enter(c, d) ||
        !cuda_ok(drv, drv->cuStreamCreate(&c->stream, CUDA_STREAM_NON_BLOCKING),
                 "making a stream", d))
        return false;
    describe(c, bytes);
    struct alloc_source source = {take_memory, give_memory, c};
    c->memory = allocator_new_of((int64_t)bytes, source);
    return true;
}

struct device *
cuda_open(int ordinal, struct diag *d)
{
    struct diag own;
    diag_clear(&own);
    const struct cuda_driver *driver = cuda_driver(&own);
    if (!driver || !cuda_codegen_available(&own)) {
        diag_set(d, own.code, "device 'cuda:%d': %s", ordinal, own.text);
        return NULL;
    }
    struct cuda_device *c = xcalloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->compiling, NULL);
    c->driver = driver;
    c->base.ops = &cuda_ops;
    c->base.counters = cuda_counters;
    snprintf(c->base.name, sizeof c->base.name, "cuda:%d", ordinal);
    struct code_maker maker = {make_code, drop_code, c, sizeof(struct loaded), 0};
    c->codes = code_cache_new(maker, UNUSED_CODES, UNUSED_TEXT, 64);
    if (start(c, ordinal, d))
        return &c->base;
    cuda_close(&c->base);
    return NULL;
}
