// report.c: a program that explains itself. With FUSEC_EXPLAIN=text (or json) in the environment
// each graph that a context compiles is reported on standard error, once, when it is compiled; this
// is what `fusec explain -- PROGRAM` sets. A process of its own cannot look into the program's
// contexts, so the library does.
#include "frontend/cli/explain.h"
#include "frontend/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
report(void *user, const struct plan *p)
{
    struct str out = {0};
    if (user)
        explain_json(p, &out);
    else
        explain_text(p, false, &out);
    str_addc(&out, '\n');
    fwrite(out.at, 1, out.n, stderr); // one call: reports of several threads don't mix
    str_free(&out);
}

void
report_if_asked(fc_context *ctx)
{
    const char *form = getenv("FUSEC_EXPLAIN");
    if (!form || !*form)
        return;
    bool json = !strcmp(form, "json");
    context_on_plan(ctx, report, json ? ctx : NULL);
}
