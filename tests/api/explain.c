// explain.c: with FUSEC_EXPLAIN in the environment a program reports each graph that it compiles.
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// What a small program writes to standard error.
static void
run_captured(const char *form, char *text, size_t n)
{
    FILE *f = tmpfile();
    cr_assert_not_null(f);
    int old = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(f), STDERR_FILENO);
    if (form)
        setenv("FUSEC_EXPLAIN", form, 1);
    else
        unsetenv("FUSEC_EXPLAIN");
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){1, -2}), FC_SHAPE(2));
    for (int i = 0; i < 3; i++) {
        float out[2];
        cr_assert_eq(fc_read(fc_relu(fc_add(x, x)), out, sizeof out), FC_OK);
    }
    fc_context_free(ctx);
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(f);
    text[fread(text, 1, n - 1, f)] = 0;
    fclose(f);
}

Test(explain, text_json_and_silence)
{
    static char text[1 << 16];
    run_captured("text", text, sizeof text);
    const char *first = strstr(text, "fused_add_relu_0");
    cr_assert(first, "%s", text);
    cr_assert(strstr(text, "graph @lazy"), "%s", text);
    cr_assert_null(strstr(first + 1, "graph @"), "reported more than once: %s", text);
    run_captured("json", text, sizeof text);
    cr_assert(strstr(text, "\"name\": \"fused_add_relu_0\""), "%s", text);
    run_captured(NULL, text, sizeof text);
    cr_assert_str_eq(text, "");
}
