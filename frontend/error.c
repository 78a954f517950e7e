// error.c: the first error of each thread in a context. A thread's record is made when it has an
// error or opens a scope, and taken over by another thread once it holds neither, so a context used
// by many short-lived threads keeps few; finding one is a short search.
#include "frontend/context.h"

#include <stdarg.h>
#include <stdio.h>

struct thread_state *
thread_find(fc_context *ctx, bool make)
{
    pthread_t self = pthread_self();
    struct thread_state *spare = NULL;
    for (uint32_t i = 0; i < ctx->threads.n; i++) {
        struct thread_state *t = ctx->threads.at[i];
        if (pthread_equal(t->thread, self))
            return t;
        if (!t->error.code && !t->scopes.n)
            spare = t;
    }
    if (!make)
        return NULL;
    if (!spare) {
        spare = xcalloc(1, sizeof *spare);
        vec_push(&ctx->threads, spare);
    }
    spare->thread = self;
    diag_clear(&spare->error);
    return spare;
}

fc_status
context_fail(fc_context *ctx, const char *file, int line, fc_status code, const char *fmt, ...)
{
    struct thread_state *t = thread_find(ctx, true);
    if (t->error.code)
        return code;
    t->error.code = (enum diag_code)code;
    int at = 0;
    if (file)
        at = snprintf(t->error.text, sizeof t->error.text, "%s:%d: ", file, line);
    if (at < 0 || at >= (int)sizeof t->error.text)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->error.text + at, sizeof t->error.text - (size_t)at, fmt, ap);
    va_end(ap);
    return code;
}

fc_status
context_fail_handle(fc_context *ctx, const char *what)
{
    struct thread_state *t = thread_find(ctx, false);
    if (t && t->error.code)
        return (fc_status)t->error.code;
    return context_fail(ctx, NULL, 0, FC_HANDLE,
                        "%s: the handle is null, was released, or belongs to another context",
                        what);
}

fc_status
context_fail_device(fc_context *ctx)
{
    struct thread_state *t = thread_find(ctx, false);
    if (t && t->error.code)
        return (fc_status)t->error.code;
    return context_fail(ctx, NULL, 0, FC_UNSUPPORTED, "the context's device could not be opened");
}

const char *
fc_error(fc_context *ctx)
{
    if (!ctx)
        return "no context";
    context_lock(ctx);
    struct thread_state *t = thread_find(ctx, false);
    const char *words = t && t->error.code ? t->error.text : "";
    context_unlock(ctx);
    return words;
}

fc_status
fc_error_code(fc_context *ctx)
{
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    struct thread_state *t = thread_find(ctx, false);
    fc_status s = t ? (fc_status)t->error.code : FC_OK;
    context_unlock(ctx);
    return s;
}

void
fc_error_clear(fc_context *ctx)
{
    if (!ctx)
        return;
    context_lock(ctx);
    struct thread_state *t = thread_find(ctx, false);
    if (t)
        t->error.code = DIAG_OK;
    context_unlock(ctx);
}
