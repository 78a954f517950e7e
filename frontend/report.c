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
tell(struct str *out)
{
    str_addc(out, '\n');
    fwrite(out->at, 1, out->n, stderr); // one call: reports of several threads don't mix
    str_free(out);
}

static void
report_text(void *user, const struct plan *p)
{
    (void)user;
    struct str out = {0};
    explain_text(p, false, &out);
    tell(&out);
}

static void
report_json(void *user, const struct plan *p)
{
    (void)user;
    struct str out = {0};
    explain_json(p, &out);
    tell(&out);
}

void
report_if_asked(fc_context *ctx)
{
    const char *form = getenv("FUSEC_EXPLAIN");
    if (form && *form)
        context_on_plan(ctx, strcmp(form, "json") ? report_text : report_json, NULL);
}
