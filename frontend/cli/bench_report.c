// bench_report.c: measurements as a table for people and as JSON.
#include "frontend/cli/bench.h"
#include "frontend/cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// Above this share of what memory gives a figure is not believed.
static const double believable = 1.03;

void
bench_print_head(struct str *out)
{
    str_printf(out, "%-25s %10s %10s %10s %10s %10s %7s %7s %6s %7s %7s %7s %10s %10s\n",
               "workload", "eager us", "min", "compiled", "min", "replay", "ratio", "kernels",
               "eager", "GB/s", "copy", "read", "compile ms", "break-even");
}

void
bench_print_row(const struct measurement *m, struct str *out)
{
    char calls[32] = "never";
    if (m->breakeven_calls >= 0)
        snprintf(calls, sizeof calls, "%.0f", m->breakeven_calls);
    str_printf(out,
               "%-25s %10.2f %10.2f %10.2f %10.2f %10.2f %7.2f %7" PRId64 " %6" PRId64
               " %7.2f %7.2f %7.2f %10.1f %10s\n",
               m->workload, m->eager_us, m->eager_min_us, m->compiled_us, m->compiled_min_us,
               m->replay_us, m->ratio, m->kernels, m->eager_kernels, m->gbps, m->copy_gbps,
               m->read_gbps, m->compile_ms, calls);
}

void
bench_note(const struct measurement *m, struct str *out)
{
    if (m->limit_gbps > 0 && m->gbps > believable * m->limit_gbps)
        str_printf(out,
                   "%s: %.2f GB/s are %.0f %% of the fastest %s; above 103 %% something is wrong "
                   "with the bench\n",
                   m->workload, m->gbps, 100 * m->gbps / m->limit_gbps,
                   m->only_reads ? "read" : "copy");
}

void
bench_print_means(const struct measurement *m, uint32_t n, struct str *out)
{
    double logs[2] = {0};
    uint32_t count[2] = {0};
    for (uint32_t i = 0; i < n; i++)
        if (m[i].ratio > 0) {
            logs[m[i].eager_kernels > 1] += log(m[i].ratio);
            count[m[i].eager_kernels > 1]++;
        }
    for (uint32_t many = 2; many-- > 0;)
        if (count[many])
            str_printf(out, "geometric mean of the ratio: %.2f over %" PRIu32 " workloads of %s op "
                            "by op\n", exp(logs[many] / count[many]), count[many],
                       many ? "several kernels" : "one kernel");
}

static void
add_arrays(const char *key, const struct bench_array *array, uint32_t n, struct json *j)
{
    json_open(j, key, '[');
    for (uint32_t i = 0; i < n; i++) {
        const struct tensor *t = &array[i].shape;
        json_open(j, NULL, '{');
        json_text(j, "name", array[i].name);
        json_text(j, "dtype", dtype_name(t->dtype));
        json_open(j, "dims", '[');
        for (uint32_t a = 0; a < t->rank; a++)
            json_int(j, NULL, t->dim[a]);
        json_close(j, ']');
        if (array[i].places)
            json_int(j, "places", array[i].places);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void
add_row(const struct measurement *m, struct json *j)
{
    json_open(j, NULL, '{');
    json_text(j, "workload", m->workload);
    json_text(j, "graph", m->graph);
    json_text(j, "device", m->device);
    json_text(j, "machine", m->machine);
    json_int(j, "threads", m->threads);
    add_arrays("inputs", m->arrays, m->inputs, j);
    add_arrays("outputs", m->arrays + m->inputs, m->outputs, j);
    json_int(j, "array_bytes", m->array_bytes);
    json_int(j, "sets", m->sets);
    json_bool(j, "in_cache", m->in_cache);
    json_number(j, "eager_us", m->eager_us, 3);
    json_number(j, "eager_min_us", m->eager_min_us, 3);
    json_number(j, "compiled_us", m->compiled_us, 3);
    json_number(j, "compiled_min_us", m->compiled_min_us, 3);
    json_number(j, "replay_us", m->replay_us, 3);
    json_number(j, "replay_min_us", m->replay_min_us, 3);
    json_number(j, "ratio", m->ratio, 4);
    json_int(j, "kernels", m->kernels);
    json_int(j, "eager_kernels", m->eager_kernels);
    json_int(j, "traffic_bytes", m->traffic_bytes);
    json_int(j, "minimum_bytes", m->minimum_bytes);
    json_number(j, "gbps", m->gbps, 3);
    json_number(j, "copy_gbps", m->copy_gbps, 3);
    json_number(j, "read_gbps", m->read_gbps, 3);
    json_number(j, "limit_gbps", m->limit_gbps, 3);
    json_number(j, "compile_ms", m->compile_ms, 3);
    if (m->breakeven_calls < 0)
        json_text(j, "breakeven_calls", NULL);
    else
        json_int(j, "breakeven_calls", (int64_t)m->breakeven_calls);
    json_close(j, '}');
}

void
bench_json(const struct measurement *m, uint32_t n, struct str *out)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '[');
    for (uint32_t i = 0; i < n; i++)
        add_row(&m[i], &j);
    json_close(&j, ']');
    str_addc(out, '\n');
}
