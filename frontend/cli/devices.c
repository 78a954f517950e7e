// devices.c: fusec devices: what there is to compute on, and how fast it copies.
#include "frontend/cli/cli.h"
#include "frontend/cli/json.h"

#include "runtime/device.h"
#include "runtime/target.h"

#include <inttypes.h>

// LLVM's feature string, "+avx,+avx2,-amx", as the names of what is there.
static void
add_features(const char *features, struct str *out)
{
    const char *gap = "";
    for (const char *s = features; *s;) {
        const char *end = s;
        while (*end && *end != ',')
            end++;
        if (*s == '+') {
            str_add(out, gap);
            str_addn(out, s + 1, (size_t)(end - s - 1));
            gap = " ";
        }
        s = *end ? end + 1 : end;
    }
}

static void
add_text(const struct device *v, double gbps, int64_t bytes, struct str *out)
{
    char l1[32], l2[32], llc[32], copied[32];
    const struct target *t = &v->target;
    str_printf(out, "%s: %s\n", v->name, v->words);
    str_printf(out, "  processor  %s (as LLVM calls it), vectors of %u bits\n", t->arch,
               8 * t->vec_bytes);
    str_printf(out, "  cores      %u in use\n", t->units);
    str_printf(out, "  caches     first level %s, second %s, last %s\n", bytes_text(t->l1, l1),
               bytes_text(t->l2, l2), bytes_text(t->llc, llc));
    str_printf(out, "  copies     %.1f GB/s read and written (%s at a time)\n", gbps,
               bytes_text(bytes, copied));
    str_add(out, "  features   ");
    add_features(t->features, out);
    str_addc(out, '\n');
}

static void
add_json(const struct device *v, double gbps, int64_t bytes, struct str *out)
{
    struct json j = {.out = out};
    struct str features = {0};
    const struct target *t = &v->target;
    add_features(t->features, &features);
    json_open(&j, NULL, '[');
    json_open(&j, NULL, '{');
    json_text(&j, "name", v->name);
    json_text(&j, "words", v->words);
    json_text(&j, "processor", t->arch);
    json_int(&j, "cores", t->units);
    json_int(&j, "vector_bytes", t->vec_bytes);
    json_int(&j, "l1_bytes", t->l1);
    json_int(&j, "l2_bytes", t->l2);
    json_int(&j, "llc_bytes", t->llc);
    json_number(&j, "copy_gbps", gbps, 2);
    json_int(&j, "copied_bytes", bytes);
    json_text(&j, "features", str_text(&features));
    json_close(&j, '}');
    json_close(&j, ']');
    str_addc(out, '\n');
    str_free(&features);
}

int
devices_command(struct args *a)
{
    const int64_t bytes = (int64_t)256 << 20;
    bool json = false;
    struct diag d = {0};
    struct str out = {0};
    while (a->n && !a->failed)
        if (args_flag(a, "--json"))
            json = true;
        else
            args_unknown(a);
    if (a->failed)
        return CLI_USAGE;
    struct device *v = device_open("cpu", 0, 0, &d);
    if (!v)
        return cli_fail(a, &d);
    double gbps = cpu_copy_gbps(bytes, v->target.units);
    (json ? add_json : add_text)(v, gbps, bytes, &out);
    int code = cli_write(a, &out);
    device_close(v);
    str_free(&out);
    return code;
}
