// random.c: a context's own random state. A state is data, a tensor of 16 bytes, not a literal: a
// loop that draws new numbers in each turn records the same graph over another state, finds its
// plan in the cache, and gets other numbers; and two ops with two states are never taken for one.
// The op holds its state for as long as it needs it: the handle is released at once.
#include "frontend/shorthands.h"

fc_status
fc_seed(fc_context *ctx, uint64_t seed)
{
    if (!ctx)
        return FC_INVALID;
    context_lock(ctx);
    ctx->random_key = seed;
    ctx->random_counter = 0;
    context_unlock(ctx);
    return FC_OK;
}

fc_tensor
fc_rand_state_at(const char *file, int line, fc_context *ctx)
{
    if (!ctx)
        return (fc_tensor){0};
    context_lock(ctx);
    uint64_t state[2] = {ctx->random_key, ctx->random_counter++};
    context_unlock(ctx);
    fc_dim two = fc_n(2);
    return fc_from_host_at(file, line, ctx, FC_U64, state, &two, 1);
}

fc_tensor
fc_rand_uniform_at(const char *file, int line, fc_context *ctx, const fc_dim *shape, int rank,
                   fc_dtype dtype)
{
    fc_tensor state = fc_rand_state_at(file, line, ctx);
    return made_of(state, fc_uniform_at(file, line, state, shape, rank, dtype));
}

fc_tensor
fc_rand_normal_at(const char *file, int line, fc_context *ctx, const fc_dim *shape, int rank,
                  fc_dtype dtype)
{
    fc_tensor state = fc_rand_state_at(file, line, ctx);
    return made_of(state, fc_normal_at(file, line, state, shape, rank, dtype));
}

fc_tensor
fc_rand_bernoulli_at(const char *file, int line, fc_context *ctx, const fc_dim *shape, int rank,
                     double p)
{
    fc_tensor state = fc_rand_state_at(file, line, ctx);
    return made_of(state, fc_bernoulli_at(file, line, state, shape, rank, p));
}

fc_tensor
fc_rand_dropout_at(const char *file, int line, fc_tensor x, double p)
{
    fc_tensor state = fc_rand_state_at(file, line, context_of(x));
    return made_of(state, fc_dropout_at(file, line, x, state, p));
}
