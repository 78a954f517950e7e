// fuse.c: merges groups while that saves time, the most profitable pair first.
//
// A candidate is a producer and its reader, or two groups that read one tensor. Its profit is the
// bytes no longer moved. A merge is tried for real: the domains are unified, the joint body is
// built, its axes normalised and a schedule class asked; what fails leaves both as they were, with
// a reason. A merge that would make the graph of groups cyclic is refused: there must be no path
// from one to the other through a third.
#include "passes/fuse.h"

#include "ir/base/check.h"
#include "passes/cost.h"
#include "passes/schedule.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 200, MAX_BODY = 1200, SIBLINGS = 3 };

struct candidate {
    uint32_t a, b; // groups
    int64_t bytes;
};
typedef VEC(struct candidate) candidates;

bool
hero_is_stored(const struct fuser *f, uint32_t hero)
{
    const struct hero *h = &f->hero.at[hero];
    if (h->is_output)
        return true;
    for (uint32_t i = 0; i < h->readers.n; i++) {
        uint32_t reader = h->readers.at[i];
        if (!f->group.at[reader].dead && reader != h->group)
            return true;
    }
    return false;
}

static void
note_readers(struct fuser *f, uint32_t group)
{
    const struct group *gr = &f->group.at[group];
    for (uint32_t i = 0; i < gr->use.n; i++) {
        if (!gr->use.at[i].hero)
            continue;
        struct hero *h = &f->hero.at[gr->use.at[i].hero];
        if (!h->readers.n || h->readers.at[h->readers.n - 1] != group)
            vec_push(&h->readers, group);
    }
}

// ---- the kernel of a group

static void
drop_stores(const struct fuser *f, const struct group *gr, struct kernel *k, uint32_t a, uint32_t b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->store.n; i++) {
        uint32_t buffer = k->access.at[k->store.at[i].access].buffer;
        const struct hero *h = &f->hero.at[k->buffers.at[buffer].span_lo];
        bool needed = h->is_output || !h->readers.n; // alone: its readers are not known yet
        for (uint32_t r = 0; r < h->readers.n && !needed; r++) {
            uint32_t reader = h->readers.at[r];
            needed = !f->group.at[reader].dead && &f->group.at[reader] != gr && reader != a &&
                     reader != b;
        }
        if (needed)
            k->store.at[kept++] = k->store.at[i];
    }
    k->store.n = kept;
}

// Leaves out instructions, accesses and buffers that no store, accumulator or contraction needs.
static void
drop_dead(struct kernel *k)
{
    bool *live = xcalloc(k->inst.n, 1);
    uint32_t *to = xcalloc(k->inst.n, sizeof *to);
    for (uint32_t i = 0; i < k->store.n; i++)
        live[k->store.at[i].value] = true;
    if (k->cls == CLASS_CONTRACT)
        live[k->contraction.a] = live[k->contraction.b] = true;
    if (k->cls == CLASS_SCATTER)
        live[k->scatter.init] = live[k->scatter.index] = true;
    for (uint32_t i = k->inst.n; i-- > 1;) {
        const struct inst *x = &k->inst.at[i];
        if (!live[i])
            continue;
        live[x->a] = live[x->b] = live[x->c] = true;
        if (x->op == OP_result)
            live[k->acc.at[x->aux].value] = true;
    }
    uint32_t *acc_to = xcalloc(k->acc.n + 1, sizeof *acc_to), nacc = 0, n = 1;
    bool *acc_live = xcalloc(k->acc.n + 1, 1);
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (live[i] && k->inst.at[i].op == OP_result)
            acc_live[k->inst.at[i].aux] = true;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (acc_live[i]) {
            acc_to[i] = nacc;
            k->acc.at[nacc++] = k->acc.at[i];
        }
    k->acc.n = nacc;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        if (!live[i])
            continue;
        struct inst x = k->inst.at[i];
        x.a = to[x.a], x.b = to[x.b], x.c = to[x.c];
        if (x.op == OP_result)
            x.aux = acc_to[x.aux];
        to[i] = n;
        k->inst.at[n++] = x;
    }
    k->inst.n = n;
    for (uint32_t i = 0; i < k->store.n; i++)
        k->store.at[i].value = to[k->store.at[i].value];
    for (uint32_t i = 0; i < k->acc.n; i++)
        k->acc.at[i].value = to[k->acc.at[i].value];
    if (k->cls == CLASS_SCATTER) {
        k->scatter.init = to[k->scatter.init];
        k->scatter.index = to[k->scatter.index];
        k->scatter.acc = acc_to[k->scatter.acc];
    }
    if (k->cls == CLASS_CONTRACT) {
        k->contraction.a = to[k->contraction.a];
        k->contraction.b = to[k->contraction.b];
        k->contraction.acc = acc_to[k->contraction.acc];
    }
    xfree(live);
    xfree(to);
    xfree(acc_to);
    xfree(acc_live);
}

static void
drop_dead_buffers(struct kernel *k)
{
    uint32_t *access_to = xcalloc(k->access.n + 1, sizeof *access_to), n = 0;
    uint32_t *buffer_to = xcalloc(k->buffers.n + 1, sizeof *buffer_to), nb = 0;
    bool *used = xcalloc(k->access.n + 1, 1), *held = xcalloc(k->buffers.n + 1, 1);
    for (uint32_t i = 0; i < k->store.n; i++)
        used[k->store.at[i].access] = true;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_load)
            used[k->inst.at[i].aux] = true;
    for (uint32_t i = 0; i < k->access.n; i++)
        held[k->access.at[i].buffer] |= used[i];
    for (uint32_t i = 0; i < k->buffers.n; i++)
        if (held[i]) {
            buffer_to[i] = nb;
            k->buffers.at[nb++] = k->buffers.at[i];
        }
    k->buffers.n = nb;
    for (uint32_t i = 0; i < k->access.n; i++)
        if (used[i]) {
            access_to[i] = n;
            k->access.at[n] = k->access.at[i];
            k->access.at[n].buffer = (uint16_t)buffer_to[k->access.at[n].buffer];
            n++;
        }
    k->access.n = n;
    for (uint32_t i = 0; i < k->store.n; i++)
        k->store.at[i].access = access_to[k->store.at[i].access];
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_load)
            k->inst.at[i].aux = access_to[k->inst.at[i].aux];
    xfree(access_to);
    xfree(buffer_to);
    xfree(used);
    xfree(held);
}

bool
finish_kernel(struct fuser *f, struct group *gr, struct kernel *k, struct schedule *s, uint32_t a,
              uint32_t b, uint8_t *reason)
{
    drop_stores(f, gr, k, a, b);
    drop_dead(k);
    drop_dead_buffers(k);
    *reason = REASON_budget_args;
    if (k->buffers.n > MAX_BUFFERS)
        return false;
    *reason = REASON_budget_insts;
    if (k->inst.n > MAX_BODY)
        return false;
    kernel_normalise_axes(k);
    return schedule_kernel(k, f->target, s, reason);
}

bool
group_kernel(struct fuser *f, struct group *gr, struct kernel *k, struct schedule *s,
             uint8_t *reason)
{
    struct body_result r = body_build_refined(f, gr, k);
    *reason = r.reason;
    return r.ok && finish_kernel(f, gr, k, s, UINT32_MAX, UINT32_MAX, reason);
}

// ---- merging

// Whether b depends on a through a third group. A group all of whose nodes come before a's first
// cannot depend on a: the search stays between the two.
static bool
path_through_third(struct fuser *f, uint32_t a, uint32_t b)
{
    if (f->nseen < f->group.n) {
        uint32_t n = f->group.n * 2;
        f->seen = xrealloc(f->seen, n * sizeof *f->seen);
        memset(f->seen + f->nseen, 0, (n - f->nseen) * sizeof *f->seen);
        f->nseen = n;
    }
    uint32_t stamp = ++f->stamp, first = f->group.at[a].first_node;
    bool found = false;
    VEC(uint32_t) stack = {0};
    vec_push(&stack, b);
    f->seen[b] = stamp;
    while (stack.n && !found) {
        uint32_t x = stack.at[--stack.n];
        const struct group *gr = &f->group.at[x];
        f->work += gr->use.n;
        for (uint32_t i = 0; i < gr->use.n; i++) {
            if (!gr->use.at[i].hero)
                continue;
            uint32_t y = f->hero.at[gr->use.at[i].hero].group;
            if (y == a && x != b)
                found = true;
            const struct group *from = &f->group.at[y];
            if (y == a || f->seen[y] == stamp || from->dead || from->last_node < first)
                continue;
            f->seen[y] = stamp;
            vec_push(&stack, y);
        }
    }
    vec_free(&stack);
    return found;
}

static bool
reaches(struct fuser *f, uint32_t a, uint32_t b) // a → b directly
{
    const struct group *gr = &f->group.at[b];
    for (uint32_t i = 0; i < gr->use.n; i++)
        if (gr->use.at[i].hero && f->hero.at[gr->use.at[i].hero].group == a)
            return true;
    return false;
}

struct saved {
    struct group a, b; // axes only
    struct hero *hero;
    uint32_t *id, n;
};

static struct saved
save(const struct fuser *f, uint32_t a, uint32_t b)
{
    const struct group *ga = &f->group.at[a], *gb = &f->group.at[b];
    struct saved s = {*ga, *gb, NULL, NULL, ga->hero.n + gb->hero.n};
    s.hero = xmalloc(s.n * sizeof *s.hero);
    s.id = xmalloc(s.n * sizeof *s.id);
    for (uint32_t i = 0; i < s.n; i++) {
        s.id[i] = i < ga->hero.n ? ga->hero.at[i] : gb->hero.at[i - ga->hero.n];
        s.hero[i] = f->hero.at[s.id[i]];
    }
    return s;
}

static void
restore_group(struct group *gr, const struct group *old)
{
    gr->naxes = old->naxes;
    memcpy(gr->axis, old->axis, sizeof gr->axis);
}

static void
restore(struct fuser *f, struct saved *s, uint32_t a, uint32_t b)
{
    bool split = f->group.at[a].naxes != s->a.naxes || f->group.at[b].naxes != s->b.naxes;
    restore_group(&f->group.at[a], &s->a);
    restore_group(&f->group.at[b], &s->b);
    for (uint32_t i = 0; i < s->n; i++) {
        s->hero[i].readers = f->hero.at[s->id[i]].readers;
        f->hero.at[s->id[i]] = s->hero[i];
    }
    if (!split)
        return;
    for (uint32_t i = 0; i < 2; i++) { // their uses were over split axes
        struct kernel k;
        body_build(f, &f->group.at[i ? b : a], &k);
        kernel_free_body(&k);
    }
}

// Whether all that a kernel computes is one op as the user called it.
static bool
is_one_op(const struct kernel *k)
{
    uint32_t origin = 0;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        if (x->op == OP_load || x->op == OP_literal || x->op == OP_index)
            continue;
        if (origin && x->origin != origin)
            return false;
        origin = x->origin;
    }
    return true;
}

// Costs are estimates: one kernel is taken unless it is clearly dearer, and more so where the user
// called one op.
static bool
pays(const struct fuser *f, uint32_t a, uint32_t b, const struct kernel *k, int64_t joint)
{
    int64_t ca = f->group.at[a].cost, cb = f->group.at[b].cost;
    bool known = joint != COST_UNKNOWN && ca != COST_UNKNOWN && cb != COST_UNKNOWN;
    return !known || joint <= ca + cb + (ca + cb) / (is_one_op(k) ? 2 : 8);
}

static bool
try_merge(struct fuser *f, uint32_t a, uint32_t b, uint8_t *reason)
{
    *reason = REASON_cycle;
    if (path_through_third(f, a, b) || (!reaches(f, a, b) && path_through_third(f, b, a)))
        return false;
    struct saved s = save(f, a, b);
    struct group out = {0};
    bool ok = unify_groups(f, &f->group.at[a], &f->group.at[b], &out, reason);
    if (ok) {
        struct kernel k;
        struct schedule sched = {0};
        struct body_result r = body_build_refined(f, &out, &k);
        ok = r.ok;
        if (!ok)
            *reason = r.reason;
        else
            ok = finish_kernel(f, &out, &k, &sched, a, b, reason);
        out.cost = ok ? kernel_cost(&k, &sched, f->target) : COST_UNKNOWN;
        if (ok && !pays(f, a, b, &k, out.cost)) {
            *reason = REASON_slower;
            ok = false;
        }
        kernel_free_body(&k);
    }
    if (ok) {
        f->group.at[a].dead = f->group.at[b].dead = true;
        for (uint32_t i = 0; i < out.hero.n; i++)
            f->hero.at[out.hero.at[i]].group = f->group.n;
        out.first_node = f->hero.at[out.hero.at[0]].node.i;
        out.last_node = f->hero.at[out.hero.at[out.hero.n - 1]].node.i;
        vec_push(&f->group, out);
        note_readers(f, f->group.n - 1);
    } else {
        restore(f, &s, a, b);
        group_free(&out);
    }
    xfree(s.hero);
    xfree(s.id);
    return ok;
}

static void
add_candidate(struct fuser *f, candidates *c, uint32_t a, uint32_t b, int64_t bytes)
{
    if (a == b || f->group.at[a].dead || f->group.at[b].dead)
        return;
    uint32_t at = 0;
    if (map_next(&f->tried, pair_key(a, b), &at))
        return;
    struct candidate x = {a, b, bytes};
    vec_push(c, x);
}

// Groups that read one tensor: the nearest few pairs, in group order.
static void
add_siblings(struct fuser *f, candidates *c)
{
    uint32_t ninput = f->g->inputs.n;
    typedef VEC(uint32_t) ids;
    ids *reader = xcalloc(ninput, sizeof *reader);
    for (uint32_t i = 0; i < f->group.n; i++) {
        const struct group *gr = &f->group.at[i];
        for (uint32_t u = 0; !gr->dead && u < gr->use.n; u++) {
            if (gr->use.at[u].hero || graph_node(f->g, gr->use.at[u].node)->op != OP_input)
                continue;
            ids *r = &reader[graph_attr(f->g, gr->use.at[u].node)[0]];
            if (!r->n || r->at[r->n - 1] != i)
                vec_push(r, i);
        }
    }
    for (uint32_t t = 0; t < ninput; t++) {
        int64_t bytes = graph_bytes(f->g, f->g->inputs.at[t].node);
        for (uint32_t i = 0; i < reader[t].n; i++)
            for (uint32_t k = i + 1; k < reader[t].n && k <= i + SIBLINGS; k++)
                add_candidate(f, c, reader[t].at[i], reader[t].at[k], bytes);
        vec_free(&reader[t]);
    }
    xfree(reader);
    for (uint32_t h = 1; h < f->hero.n; h++) {
        const struct hero *x = &f->hero.at[h];
        int64_t bytes = graph_bytes(f->g, x->node);
        for (uint32_t i = 0; i < x->readers.n; i++)
            for (uint32_t k = i + 1; k < x->readers.n && k <= i + SIBLINGS; k++)
                add_candidate(f, c, x->readers.at[i], x->readers.at[k], bytes);
    }
}

static void
add_edges(struct fuser *f, candidates *c)
{
    for (uint32_t h = 1; h < f->hero.n; h++) {
        const struct hero *x = &f->hero.at[h];
        if (x->reason == REASON_peak) // one kernel would keep what both read
            continue;
        int64_t bytes = graph_bytes(f->g, x->node);
        uint32_t live = 0;
        for (uint32_t i = 0; i < x->readers.n; i++)
            live += !f->group.at[x->readers.at[i]].dead;
        bool vanishes = live == 1 && !x->is_output;
        bool early = x->shares && f->group.at[x->group].hero.n == 1; // not with its own yet
        int64_t profit = early ? 0 : vanishes ? 2 * bytes : bytes;
        for (uint32_t i = 0; i < x->readers.n; i++)
            add_candidate(f, c, x->group, x->readers.at[i], profit);
    }
}

static int
by_profit(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    return a->b < b->b ? -1 : a->b > b->b;
}

static void
note_refusal(struct fuser *f, uint32_t a, uint32_t b, uint8_t reason)
{
    struct refusal r = {f->group.at[a].hero.at[0], f->group.at[b].hero.at[0], reason};
    for (uint32_t i = 0; i < f->group.at[b].use.n; i++) {
        uint32_t h = f->group.at[b].use.at[i].hero;
        if (h && f->hero.at[h].group == a)
            r.from = h;
    }
    vec_push(&f->refused, r);
}

static bool
merge_round(struct fuser *f)
{
    candidates c = {0};
    add_edges(f, &c);
    if (f->level < 2)
        add_siblings(f, &c);
    if (c.n)
        qsort(c.at, c.n, sizeof *c.at, by_profit);
    f->work += c.n;
    bool changed = false;
    for (uint32_t i = 0; i < c.n; i++) {
        uint32_t a = c.at[i].a, b = c.at[i].b, at = 0;
        if (changed && !c.at[i].bytes) // may wait for what others have become
            break;
        if (f->group.at[a].dead || f->group.at[b].dead || map_next(&f->tried, pair_key(a, b), &at))
            continue;
        if (f->options->stop_after && f->rewrites >= f->options->stop_after)
            break;
        uint8_t reason;
        map_add(&f->tried, pair_key(a, b), 1);
        if (reaches(f, b, a) && !reaches(f, a, b))
            continue; // siblings with an edge: the edge is a candidate of its own
        if (try_merge(f, a, b, &reason)) {
            changed = true;
            f->rewrites++;
        } else {
            note_refusal(f, a, b, reason);
        }
    }
    vec_free(&c);
    return changed;
}

// A group that only empty groups read has nothing to compute either. Each still has one hero.
static void
drop_unread(struct fuser *f)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = f->group.n; i-- > 0;) {
            struct group *gr = &f->group.at[i];
            if (!gr->dead && !hero_is_stored(f, gr->hero.at[0]))
                changed = gr->dead = true;
        }
    }
}

void
fuse_graph(struct fuser *f)
{
    choose_heroes(f);
    for (uint32_t i = 0; i < f->group.n; i++)
        if (!f->group.at[i].dead)
            note_readers(f, i);
    drop_unread(f);
    while (f->level < 3 && merge_round(f))
        ;
}

void
fuser_free(struct fuser *f)
{
    for (uint32_t i = 0; i < f->group.n; i++)
        group_free(&f->group.at[i]);
    for (uint32_t i = 0; i < f->hero.n; i++)
        vec_free(&f->hero.at[i].readers);
    vec_free(&f->group);
    vec_free(&f->hero);
    vec_free(&f->refused);
    map_free(&f->tried);
    xfree(f->seen);
    xfree(f->hero_of);
}
