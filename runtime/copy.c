// copy.c: measures copy bandwidth. What a kernel moves is compared with the fastest way to copy as
// much: memcpy (which may switch to streaming stores by its own rules), a loop of vector loads and
// stores, and one whose stores pass the caches by; the loops also with requests for the lines 2 KiB
// on, without which they took up to twice as long beyond the second-level cache. Each way has its
// best of several rounds; a copy takes the next of the buffers, so with enough of them nothing is
// left in the caches from the one before. A round repeats small copies until the clock's resolution
// does not matter.
#include "runtime/target.h"

#include "ir/base/clock.h"
#include "ir/base/mem.h"
#include "runtime/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { AHEAD = 2048, ROUNDS_LEAST = 5, ROUNDS_MOST = 400, UNIT = 4096, ROUND_BYTES = 1 << 18,
       SMALL = 1 << 20 };
#define BUDGET_NS ((int64_t)60000000) // per way

typedef void copy_fn(char *dst, const char *src, int64_t bytes); // 64-byte aligned, multiples of 64

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
#endif

struct ways {
    copy_fn *way[5];
    uint32_t n;
};

// By hand: function multi-versioning resolves before a sanitizer has started.
static struct ways
ways_to_copy(uint32_t vec_bytes)
{
#if defined(__x86_64__)
    if (vec_bytes >= 64)
        return (struct ways){{copy_memcpy, copy_plain_512, copy_plain_ahead_512,
                              copy_streaming_512, copy_streaming_ahead_512}, 5};
    if (vec_bytes >= 32)
        return (struct ways){{copy_memcpy, copy_plain_256, copy_plain_ahead_256,
                              copy_streaming_256, copy_streaming_ahead_256}, 5};
    return (struct ways){{copy_memcpy, copy_plain_any, copy_streaming_128}, 3};
#else
    (void)vec_bytes;
    return (struct ways){{copy_memcpy, copy_plain_any}, 2};
#endif
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

static void
copy_once(copy_fn *copy, char *memory, int64_t bytes, int64_t pair, uint32_t threads)
{
    char *src = memory + pair * 2 * bytes;
    struct copy_job j = {copy, src + bytes, src, bytes};
    // Several pieces a thread, as kernels have: with one each, a worker that wakes later than the
    // caller takes for its own would find nothing left, and sleep again, in every round.
    int64_t units = (bytes + UNIT - 1) / UNIT, pieces = 16 * (int64_t)threads;
    if (threads < 2)
        copy(j.dst, j.src, bytes);
    else
        pool_run(units, (units + pieces - 1) / pieces, threads, copy_units, &j);
}

// Nanoseconds of one copy in the best round over `pairs` pairs of blocks.
static double
best_round(copy_fn *copy, char *memory, int64_t bytes, int64_t pairs, uint32_t threads)
{
    int64_t start = clock_ns(), repeats = ROUND_BYTES / bytes + 1, next = 0;
    double best = 1e300;
    for (int round = 0; round < ROUNDS_MOST; round++) {
        int64_t before = clock_ns();
        for (int64_t i = 0; i < repeats; i++)
            copy_once(copy, memory, bytes, next++ % pairs, threads);
        int64_t after = clock_ns();
        double ns = (double)(after - before) / (double)repeats;
        best = ns < best ? ns : best;
        if (round >= ROUNDS_LEAST && after - start > BUDGET_NS)
            break;
    }
    return best > 0 ? best : 1;
}

static int64_t
round_up(int64_t bytes)
{
    return bytes < 64 ? 64 : (bytes + 63) & ~(int64_t)63;
}

double
cpu_copy_gbps_among(int64_t bytes, uint32_t threads, int64_t pairs)
{
    bytes = round_up(bytes);
    int64_t all = pairs * 2 * bytes;
    char *memory = mmap(NULL, (size_t)all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    madvise(memory, (size_t)all, MADV_HUGEPAGE);
    memset(memory, 1, (size_t)all); // pages exist before the clock runs
    struct ways w = ways_to_copy(cpu_vector_bytes());
    double best = 1e300;
    for (uint32_t i = 0; i < w.n; i++) {
        double ns = best_round(w.way[i], memory, bytes, pairs, threads);
        best = ns < best ? ns : best;
        // Small copies may be faster on the caller's thread alone, where kernels of that size stay.
        if (threads > 1 && bytes < SMALL) {
            ns = best_round(w.way[i], memory, bytes, pairs, 1);
            best = ns < best ? ns : best;
        }
    }
    munmap(memory, (size_t)all);
    return 2.0 * (double)bytes / best;
}

double
cpu_copy_gbps(int64_t bytes, uint32_t threads)
{
    struct target t;
    char words[256];
    cpu_target(&t, threads, words, sizeof words);
    return cpu_copy_gbps_among(bytes, t.units, 4 * t.llc / (2 * round_up(bytes)) + 1);
}
