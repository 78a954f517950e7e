// column_keep.c: walks the stages as the column emitter does. Each stage computes what its sinks
// (accumulators, element stores) need, from the top down, stopping at values that are held. A value
// that an earlier stage computed and that this stage reaches first is worth holding: everything
// below it need not be computed or loaded again.
#include "passes/column_keep.h"

#include <string.h>

static void
mark_sinks(const struct kernel *k, uint32_t stage, bool *need)
{
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].stage == stage)
            need[k->acc.at[i].value] = true;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage == stage && k->store.at[i].level == LEVEL_ELEM)
            need[k->store.at[i].value] = true;
}

static bool
may_keep(const struct kernel *k, const bool *allowed, uint32_t i)
{
    const struct inst *in = &k->inst.at[i];
    return in->level == LEVEL_ELEM && in->op != OP_index && (!allowed || allowed[i]);
}

// Sets kept, first and last. done: 1 + the stage that first computed an instruction.
static void
find_kept(const struct kernel *k, const bool *allowed, struct kept_value *value)
{
    bool *need = xcalloc(k->inst.n, sizeof *need);
    uint8_t *done = xcalloc(k->inst.n, sizeof *done);
    for (uint32_t s = 0; s < k->nstage; s++) {
        memset(need, 0, k->inst.n * sizeof *need);
        mark_sinks(k, s, need);
        for (uint32_t i = k->inst.n; i-- > 1;) {
            const struct inst *in = &k->inst.at[i];
            if (!need[i])
                continue;
            if (done[i] && may_keep(k, allowed, i)) {
                value[i] = (struct kept_value){.kept = true, .first = (uint8_t)(done[i] - 1),
                                               .last = (uint8_t)s};
                continue;
            }
            if (!done[i])
                done[i] = (uint8_t)(s + 1);
            need[in->a] = need[in->b] = need[in->c] = true;
        }
    }
    xfree(need);
    xfree(done);
}

enum { MAX_ARRAYS = 16 };

int64_t
column_keep(const struct kernel *k, const bool *allowed, struct kept_value *value)
{
    struct {
        uint8_t size, last;
        int64_t at;
    } array[MAX_ARRAYS];
    uint32_t n = 0;
    int64_t bytes = 0;
    memset(value, 0, k->inst.n * sizeof *value);
    find_kept(k, allowed, value);
    for (uint32_t s = 0; s < k->nstage; s++)
        for (uint32_t i = 1; i < k->inst.n; i++) {
            if (!value[i].kept || value[i].first != s)
                continue;
            uint8_t size = dtype_size(k->inst.at[i].dtype);
            uint32_t a = 0;
            while (a < n && (array[a].size != size || array[a].last > s))
                a++;
            if (a == MAX_ARRAYS) {
                value[i].kept = false;
                continue;
            }
            if (a == n) {
                array[n].size = size;
                array[n++].at = bytes;
                bytes += size;
            }
            array[a].last = value[i].last;
            value[i].at = array[a].at;
        }
    return bytes;
}
