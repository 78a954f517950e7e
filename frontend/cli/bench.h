// bench.h: what the parts of fusec bench share.
#ifndef FUSEC_FRONTEND_CLI_BENCH_H
#define FUSEC_FRONTEND_CLI_BENCH_H

#include "frontend/cli/cli.h"

#include "ir/interp.h"

struct bench_array {
    const char *name;
    struct tensor shape; // without data
    int64_t places;      // bench_places of an input
};

struct measurement { // times of one call in microseconds, medians and minima
    const char *workload, *graph;
    const struct bench_array *arrays; // inputs, then outputs
    uint32_t inputs, outputs;
    char device[64], machine[256];
    uint32_t threads;
    double eager_us, eager_min_us;
    double compiled_us, compiled_min_us; // the graph rebuilt, looked up and run
    double replay_us, replay_min_us;     // the compiled plan alone
    double ratio;                        // median of eager / compiled, pair by pair
    int64_t kernels, eager_kernels;      // launched by one call
    int64_t traffic_bytes, minimum_bytes;
    double gbps, copy_gbps, read_gbps;   // of traffic in compiled_us; of as many bytes, fastest
    double limit_gbps;                   // the one of the two that applies: reading, where
    bool only_reads;                     // outputs are next to nothing
    int64_t array_bytes, sets;           // of all arrays of one call; among which calls go round
    bool in_cache;                       // one set, which fits in the last-level cache or is hot
    double compile_ms, breakeven_calls;  // -1: compiled is not faster
};

struct bench_options {
    const char *device; // NULL: "cpu"
    uint32_t threads; // 0: all cores
    bool hot;         // one set of arrays, however large
};

// Compiles and measures g. mem holds what m points to.
bool bench_measure(const struct graph *g, const struct bench_options *o, struct arena *mem,
                   struct measurement *m, struct diag *d);

// An input's elements, the same in every run: normal, but positive for what is called v, var or
// variance; i64 as places of the first input's last axis; other integers 0 … 99. t: dims, strides
// and the address of element 0.
// How many values the integers of an input may have: places of what it is an index of; of 64 bits
// and no index, of the first input's last axis; 0: any.
int64_t bench_places(const struct graph *g, uint32_t input);
void bench_fill(const struct graph *g, uint32_t input, const struct tensor *t);

void bench_print_head(struct str *out);
void bench_print_row(const struct measurement *m, struct str *out);
// What must be said about a row ("" if nothing): above what memory gives, a wrong kernel count.
void bench_note(const struct measurement *m, struct str *out);
// Geometric means of the ratios, for workloads of one kernel op by op and of more.
void bench_print_means(const struct measurement *m, uint32_t n, struct str *out);
void bench_json(const struct measurement *m, uint32_t n, struct str *out);

// ---- bench_compile.c

struct compile_row { // a kernel; times in milliseconds
    const char *workload;
    uint32_t kernel, text_bytes;
    double start_ms; // LLVM's, in a process that has not used it
    double cold_ms;  // then the kernel
    double plan_ms;  // the passes over the whole graph; at its first kernel
    double emit_ms, object_ms, load_ms, warm_ms, least_ms; // medians but the last
    double optimised_ms; // likewise
};
typedef VEC(struct compile_row) compile_rows;

// Adds a row for each kernel of g. This process must not have used LLVM yet.
bool bench_compile_cold(const struct graph *g, const char *workload, uint32_t threads,
                        compile_rows *rows, struct diag *d);
// Fills in the rest of the rows of g's kernels.
bool bench_compile_warm(const struct graph *g, uint32_t threads, struct compile_row *row,
                        struct diag *d);
void bench_compile_table(const compile_rows *rows, struct str *out); // reorders them

#endif
