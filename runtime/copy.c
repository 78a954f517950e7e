// copy.c: measures copy and read bandwidth. What a kernel moves is compared with the fastest way to
// copy as much: memcpy (which may switch to streaming stores by its own rules), a loop of vector
// loads and stores, and one whose stores pass the caches by; the loops also with requests for the
// lines 2 KiB on, without which they took up to twice as long beyond the second-level cache. A read
// loads every vector and does nothing with it: one after the other, with requests or without, and
// from the four quarters of a page in turn, which keeps more misses in flight. Each way has its
// best of several rounds; a round takes the next of the buffers, so with enough of them nothing is
// left in the caches from the one before. A round repeats small copies until the clock's resolution
// does not matter.
#include "runtime/target.h"

#include "ir/base/clock.h"
#include "ir/base/mem.h"
#include "ir/base/size.h"
#include "runtime/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { AHEAD = 2048, ROUNDS_LEAST = 5, ROUNDS_MOST = 400, UNIT = 4096, ROUND_BYTES = 1 << 18,
       SMALL = 1 << 20, LARGE = 16 << 20 };
#define BUDGET_NS ((int64_t)60000000) // per way

// 64-byte aligned, multiples of 64; reads ignore dst
typedef void copy_fn(char *dst, const char *src, int64_t bytes);

static void
copy_memcpy(char *dst, const char *src, int64_t bytes)
{
    memcpy(dst, src, (size_t)bytes);
}

// A barrier after each store keeps the compiler from turning a loop into memcpy.
static void
copy_plain_any(char *dst, const char *src, int64_t bytes)
{
    typedef uint64_t vector __attribute__((vector_size(16), may_alias));
    for (int64_t i = 0; i < bytes; i += 16) {
        *(vector *)(dst + i) = *(const vector *)(src + i);
        __asm__ volatile("" ::: "memory");
    }
}

static void
read_any(char *dst, const char *src, int64_t bytes)
{
    typedef uint64_t vector __attribute__((vector_size(16), may_alias));
    (void)dst;
    for (int64_t i = 0; i < bytes; i += 64)
        for (int64_t at = 0; at < 64; at += 16)
            (void)*(const volatile vector *)(src + i + at);
}

#if defined(__x86_64__)
static inline __attribute__((always_inline)) void
ask_ahead(char *dst, const char *src, bool write)
{
    _mm_prefetch(src + AHEAD, _MM_HINT_T1);
    if (write)
        __builtin_prefetch(dst + AHEAD, 1);
}

static inline __attribute__((always_inline, target("avx512f,prfchw"))) void
copy_512(char *dst, const char *src, int64_t bytes, bool stream, bool ahead)
{
    for (int64_t i = 0; i < bytes; i += 64) {
        if (ahead)
            ask_ahead(dst + i, src + i, !stream);
        __m512i v = _mm512_load_si512((const void *)(src + i));
        if (stream)
            _mm512_stream_si512((void *)(dst + i), v);
        else
            _mm512_store_si512((void *)(dst + i), v);
        __asm__ volatile("" ::: "memory");
    }
    if (stream)
        _mm_sfence();
}

__attribute__((target("avx512f,prfchw"))) static void
copy_plain_512(char *dst, const char *src, int64_t bytes)
{
    copy_512(dst, src, bytes, false, false);
}

__attribute__((target("avx512f,prfchw"))) static void
copy_plain_ahead_512(char *dst, const char *src, int64_t bytes)
{
    copy_512(dst, src, bytes, false, true);
}

__attribute__((target("avx512f,prfchw"))) static void
copy_streaming_512(char *dst, const char *src, int64_t bytes)
{
    copy_512(dst, src, bytes, true, false);
}

__attribute__((target("avx512f,prfchw"))) static void
copy_streaming_ahead_512(char *dst, const char *src, int64_t bytes)
{
    copy_512(dst, src, bytes, true, true);
}

static inline __attribute__((always_inline, target("avx"))) void
copy_256(char *dst, const char *src, int64_t bytes, bool stream, bool ahead)
{
    for (int64_t i = 0; i < bytes; i += 32) {
        if (ahead && i % 64 == 0)
            ask_ahead(dst + i, src + i, !stream);
        __m256i v = _mm256_load_si256((const void *)(src + i));
        if (stream)
            _mm256_stream_si256((void *)(dst + i), v);
        else
            _mm256_store_si256((void *)(dst + i), v);
        __asm__ volatile("" ::: "memory");
    }
    if (stream)
        _mm_sfence();
}

__attribute__((target("avx"))) static void
copy_plain_256(char *dst, const char *src, int64_t bytes)
{
    copy_256(dst, src, bytes, false, false);
}

__attribute__((target("avx"))) static void
copy_plain_ahead_256(char *dst, const char *src, int64_t bytes)
{
    copy_256(dst, src, bytes, false, true);
}

__attribute__((target("avx"))) static void
copy_streaming_256(char *dst, const char *src, int64_t bytes)
{
    copy_256(dst, src, bytes, true, false);
}

__attribute__((target("avx"))) static void
copy_streaming_ahead_256(char *dst, const char *src, int64_t bytes)
{
    copy_256(dst, src, bytes, true, true);
}

static void
copy_streaming_128(char *dst, const char *src, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((void *)(dst + i), _mm_load_si128((const void *)(src + i)));
    _mm_sfence();
}

// An empty instruction that wants the vector in a register: the load stays, and nothing else.
static inline __attribute__((always_inline, target("avx512f"))) void
load_line_512(const char *p)
{
    __asm__ volatile("" ::"v"(_mm512_load_si512((const void *)p)));
}

static inline __attribute__((always_inline, target("avx"))) void
load_line_256(const char *p)
{
    __asm__ volatile("" ::"x"(_mm256_load_si256((const void *)p)));
    __asm__ volatile("" ::"x"(_mm256_load_si256((const void *)(p + 32))));
}

// The way of reading with `line` for a cache line, four lines a turn: along src, or (quarters) from
// the four quarters of each page; and with requests for the lines `ahead` bytes on.
#define READ(name, isa, line, quarters, ahead)                                                     \
    static inline __attribute__((always_inline, target(isa))) void name##_turn(const char *p)      \
    {                                                                                              \
        enum { STEP = (quarters) ? UNIT / 4 : 64 };                                                \
        for (int64_t q = 0; (ahead) && q < 4; q++)                                                 \
            _mm_prefetch(p + q * STEP + (ahead), _MM_HINT_T1);                                     \
        line(p);                                                                                   \
        line(p + STEP);                                                                            \
        line(p + 2 * STEP);                                                                        \
        line(p + 3 * STEP);                                                                        \
    }                                                                                              \
    __attribute__((target(isa))) static void name(char *dst, const char *src, int64_t bytes)       \
    {                                                                                              \
        (void)dst;                                                                                 \
        int64_t whole = bytes - bytes % UNIT;                                                      \
        for (int64_t page = 0; page < whole; page += UNIT)                                         \
            for (int64_t i = 0; i < UNIT / 4; i += 64)                                             \
                name##_turn(src + page + ((quarters) ? i : 4 * i));                                \
        for (int64_t i = whole; i < bytes; i += 64)                                                \
            line(src + i);                                                                         \
    }

READ(read_512, "avx512f", load_line_512, false, 0)
READ(read_ahead_512, "avx512f", load_line_512, false, AHEAD)
READ(read_quarters_512, "avx512f", load_line_512, true, UNIT)
READ(read_256, "avx", load_line_256, false, 0)
READ(read_ahead_256, "avx", load_line_256, false, AHEAD)
READ(read_quarters_256, "avx", load_line_256, true, UNIT)
#endif

struct ways {
    copy_fn *way[5];
    uint32_t n;
    int64_t blocks; // of memory that one call goes through: a copy two, a read one
};

// By hand: function multi-versioning resolves before a sanitizer has started.
static struct ways
ways_to_copy(uint32_t vec_bytes)
{
#if defined(__x86_64__)
    if (vec_bytes >= 64)
        return (struct ways){{copy_memcpy, copy_plain_512, copy_plain_ahead_512,
                              copy_streaming_512, copy_streaming_ahead_512}, 5, 2};
    if (vec_bytes >= 32)
        return (struct ways){{copy_memcpy, copy_plain_256, copy_plain_ahead_256,
                              copy_streaming_256, copy_streaming_ahead_256}, 5, 2};
    return (struct ways){{copy_memcpy, copy_plain_any, copy_streaming_128}, 3, 2};
#else
    (void)vec_bytes;
    return (struct ways){{copy_memcpy, copy_plain_any}, 2, 2};
#endif
}

static struct ways
ways_to_read(uint32_t vec_bytes)
{
#if defined(__x86_64__)
    if (vec_bytes >= 64)
        return (struct ways){{read_512, read_ahead_512, read_quarters_512}, 3, 1};
    if (vec_bytes >= 32)
        return (struct ways){{read_256, read_ahead_256, read_quarters_256}, 3, 1};
#endif
    (void)vec_bytes;
    return (struct ways){{read_any}, 1, 1};
}

struct copy_job {
    copy_fn *copy;
    char *dst;
    const char *src;
    int64_t bytes;
};

static void
copy_units(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    (void)slot;
    const struct copy_job *j = arg;
    int64_t from = begin * UNIT, to = end * UNIT < j->bytes ? end * UNIT : j->bytes;
    j->copy(j->dst + from, j->src + from, to - from);
}

struct buffers {
    char *memory;
    int64_t bytes, blocks; // of a block; that one call goes through
    int64_t sets;          // of as many blocks, to go round among
};

static void
copy_once(copy_fn *copy, const struct buffers *m, int64_t set, uint32_t threads)
{
    char *src = m->memory + set * m->blocks * m->bytes;
    struct copy_job j = {copy, src + (m->blocks - 1) * m->bytes, src, m->bytes};
    // Several pieces a thread, as kernels have: with one each, a worker that wakes later than the
    // caller takes for its own would find nothing left, and sleep again, in every round. Large
    // copies have more, as all wait for the last piece in the end.
    int64_t units = (m->bytes + UNIT - 1) / UNIT;
    int64_t pieces = (m->bytes < LARGE * threads ? 16 : 64) * (int64_t)threads;
    if (threads < 2)
        copy(j.dst, j.src, m->bytes);
    else
        pool_run(units, (units + pieces - 1) / pieces, threads, copy_units, &j);
}

// Nanoseconds of one call in the best round.
static double
best_round(copy_fn *copy, const struct buffers *m, uint32_t threads)
{
    int64_t start = clock_ns(), repeats = ROUND_BYTES / m->bytes + 1, next = 0;
    double best = 1e300;
    for (int round = 0; round < ROUNDS_MOST; round++) {
        int64_t before = clock_ns();
        for (int64_t i = 0; i < repeats; i++)
            copy_once(copy, m, next++ % m->sets, threads);
        int64_t after = clock_ns();
        double ns = (double)(after - before) / (double)repeats;
        best = ns < best ? ns : best;
        if (round >= ROUNDS_LEAST && after - start > BUDGET_NS)
            break;
    }
    return best > 0 ? best : 1;
}

static int64_t
whole_lines(int64_t bytes)
{
    return round_up(max64(bytes, 1), 64);
}

static double
fastest(const struct ways *w, int64_t bytes, uint32_t threads, int64_t sets)
{
    struct buffers m = {NULL, whole_lines(bytes), w->blocks, sets};
    int64_t all = sets * w->blocks * m.bytes;
    m.memory = mmap(NULL, (size_t)all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.memory == MAP_FAILED)
        return 0;
    madvise(m.memory, (size_t)all, MADV_HUGEPAGE);
    memset(m.memory, 1, (size_t)all); // pages exist before the clock runs
    double best = 1e300;
    for (uint32_t i = 0; i < w->n; i++) {
        double ns = best_round(w->way[i], &m, threads);
        best = ns < best ? ns : best;
        // Small copies may be faster on the caller's thread alone, where kernels of that size stay.
        if (threads > 1 && m.bytes < SMALL) {
            ns = best_round(w->way[i], &m, 1);
            best = ns < best ? ns : best;
        }
    }
    munmap(m.memory, (size_t)all);
    return (double)(w->blocks * m.bytes) / best;
}

double
cpu_copy_gbps_among(int64_t bytes, uint32_t threads, int64_t pairs)
{
    struct ways w = ways_to_copy(cpu_vector_bytes());
    return fastest(&w, bytes, threads, pairs);
}

double
cpu_read_gbps_among(int64_t bytes, uint32_t threads, int64_t blocks)
{
    struct ways w = ways_to_read(cpu_vector_bytes());
    return fastest(&w, bytes, threads, blocks);
}

double
cpu_copy_gbps(int64_t bytes, uint32_t threads)
{
    struct target t;
    char words[256];
    cpu_target(&t, threads, words, sizeof words);
    return cpu_copy_gbps_among(bytes, t.units, 4 * t.llc / (2 * whole_lines(bytes)) + 1);
}
