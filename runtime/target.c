// target.c: struct target for the host. The CPU's name and features come from LLVM, whose names
// they are; a build without LLVM runs kernels in the interpreter and only needs the vector width.
// Cores are those that this process may run on; caches come from sysfs, else from sysconf. The
// last-level cache counts once per instance that those cores reach.
#include "runtime/target.h"

#include "codegen/codegen.h"
#include "runtime/pool.h"

#ifdef FUSEC_LLVM
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#endif

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_INSTANCES = 64 };

// ---- caches

static bool
read_line(char *line, size_t size, int cpu, int index, const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index, file);
    FILE *f = fopen(path, "r");
    bool ok = f && fgets(line, (int)size, f);
    if (f)
        fclose(f);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

static int64_t
parse_size(const char *s) // 48K, 1024K, 32M
{
    char *end;
    long long n = strtoll(s, &end, 10);
    return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : *end == 'G' ? n << 30 : n;
}

struct cache_seen {
    int n;
    char cpus[MAX_INSTANCES][64]; // shared_cpu_list of last-level caches counted
};

static bool
first_sight(struct cache_seen *seen, const char *cpus)
{
    for (int i = 0; i < seen->n; i++)
        if (strcmp(seen->cpus[i], cpus) == 0)
            return false;
    if (seen->n < MAX_INSTANCES)
        snprintf(seen->cpus[seen->n++], sizeof seen->cpus[0], "%s", cpus);
    return true;
}

static void
caches_of_cpu(struct target *t, int cpu, struct cache_seen *seen)
{
    int64_t size[8] = {0};
    int top = 0;
    char line[64], top_cpus[64] = "";
    for (int index = 0; index < 8 && read_line(line, sizeof line, cpu, index, "type"); index++) {
        if (strcmp(line, "Instruction") == 0)
            continue;
        int level = read_line(line, sizeof line, cpu, index, "level") ? atoi(line) : 0;
        if (level < 1 || level > 7 || !read_line(line, sizeof line, cpu, index, "size"))
            continue;
        size[level] = parse_size(line);
        if (level < top)
            continue;
        top = level;
        if (!read_line(top_cpus, sizeof top_cpus, cpu, index, "shared_cpu_list"))
            snprintf(top_cpus, sizeof top_cpus, "%d", cpu);
    }
    t->l1 = size[1] ? size[1] : t->l1;
    t->l2 = size[2] ? size[2] : t->l2;
    if (top && first_sight(seen, top_cpus))
        t->llc += size[top];
}

static int64_t
configured(int name, int64_t otherwise)
{
    long n = sysconf(name);
    return n > 0 ? n : otherwise;
}

static void
find_caches(struct target *t, const cpu_set_t *cpus)
{
    struct cache_seen seen = {0};
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, cpus))
            caches_of_cpu(t, cpu, &seen);
    if (!t->l1)
        t->l1 = configured(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    if (!t->l2)
        t->l2 = configured(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
    if (!t->llc)
        t->llc = configured(_SC_LEVEL3_CACHE_SIZE, t->l2);
    if (t->llc < t->l2)
        t->llc = t->l2;
}

// ---- the processor

#ifdef FUSEC_LLVM
static void
find_processor(struct target *t)
{
    cpu_codegen_start();
    char *name = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    snprintf(t->arch, sizeof t->arch, "%s", name);
    // Cut between features; the list is some 900 bytes where all are known.
    size_t n = strlen(features);
    if (n >= sizeof t->features)
        for (n = sizeof t->features - 1; n && features[n] != ',';)
            n--;
    memcpy(t->features, features, n);
    t->features[n] = '\0';
    LLVMDisposeMessage(name);
    LLVMDisposeMessage(features);
}
#else
static void
find_processor(struct target *t)
{
    snprintf(t->arch, sizeof t->arch, "generic");
}
#endif

uint32_t
cpu_vector_bytes(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
#else
    return 16;
#endif
}

static void
model_name(char *out, size_t size)
{
    snprintf(out, size, "processor");
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(out, size, "%.80s", colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

bool
cuda_target(struct target *t, const char *arch)
{
    static const struct {
        const char *arch;
        uint32_t units;
        int64_t shared, l2;
    } known[] = {{"sm_80", 108, 164 << 10, 40 << 20},  {"sm_86", 84, 100 << 10, 6 << 20},
                 {"sm_89", 142, 100 << 10, 72 << 20},  {"sm_90", 132, 228 << 10, 50 << 20},
                 {"sm_100", 148, 228 << 10, 126 << 20}, {"sm_120", 170, 100 << 10, 96 << 20}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(arch, known[i].arch))
            continue;
        *t = (struct target){.kind = DEVICE_CUDA, .units = known[i].units, .vec_bytes = 16,
                             .l1 = known[i].shared, .l2 = known[i].l2, .llc = known[i].l2};
        snprintf(t->arch, sizeof t->arch, "%s", arch);
        return true;
    }
    return false;
}

void
cpu_target(struct target *t, uint32_t threads, char *words, size_t words_size)
{
    *t = (struct target){.kind = DEVICE_CPU};
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
        CPU_ZERO(&cpus);
        CPU_SET(0, &cpus);
    }
    uint32_t cores = (uint32_t)CPU_COUNT(&cpus);
    t->units = threads ? threads : cores;
    if (t->units > POOL_MAX_THREADS)
        t->units = POOL_MAX_THREADS;
    find_processor(t);
    find_caches(t, &cpus);
    t->vec_bytes = cpu_vector_bytes();
    char model[96];
    model_name(model, sizeof model);
    snprintf(words, words_size,
             "%s (%s), %u of %u cores, %u-byte vectors, L1 %lld KiB, L2 %lld KiB, "
             "last level %lld KiB",
             model, t->arch, t->units, cores, t->vec_bytes, (long long)(t->l1 >> 10),
             (long long)(t->l2 >> 10), (long long)(t->llc >> 10));
}
