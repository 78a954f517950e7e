// args.c: the command line's arguments, one at a time from the front; the ways out of a command.
#include "frontend/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
advance(struct args *a)
{
    a->at++;
    a->n--;
}

bool
args_flag(struct args *a, const char *flag)
{
    if (!a->n || strcmp(a->at[0], flag) != 0)
        return false;
    advance(a);
    return true;
}

bool
args_value(struct args *a, const char *name, const char **value)
{
    size_t n = strlen(name);
    if (!a->n || strncmp(a->at[0], name, n) != 0)
        return false;
    char after = a->at[0][n];
    if (after != 0 && after != '=')
        return false;
    *value = "";
    if (after == '=') {
        *value = a->at[0] + n + 1;
    } else if (a->n > 1) {
        advance(a);
        *value = a->at[0];
    } else {
        args_fail(a, "%s needs a value", name);
    }
    advance(a);
    return true;
}

bool
args_list(struct args *a, const char *name, word_list *values)
{
    const char *value;
    if (!args_value(a, name, &value))
        return false;
    vec_push(values, value);
    return true;
}

const char *
args_word(struct args *a)
{
    if (!a->n || (a->at[0][0] == '-' && a->at[0][1]))
        return NULL;
    const char *word = a->at[0];
    advance(a);
    return word;
}

bool
args_number(struct args *a, const char *name, const char *text, int64_t least, int64_t most,
            int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && *value >= least && *value <= most)
        return true;
    args_fail(a, "%s: '%s' was found, a number from %" PRId64 " to %" PRId64 " was expected", name,
              text, least, most);
    return false;
}

int
args_fail(struct args *a, const char *fmt, ...)
{
    va_list list;
    va_start(list, fmt);
    if (!a->failed) {
        fprintf(stderr, "fusec %s: ", a->command);
        vfprintf(stderr, fmt, list);
        fputs(" (fusec --help shows what there is)\n", stderr);
    }
    va_end(list);
    a->failed = true;
    return CLI_USAGE;
}

int
args_unknown(struct args *a)
{
    return args_fail(a, "unknown argument '%s'", a->at[0]);
}

int
cli_fail(const struct args *a, const struct diag *d)
{
    fprintf(stderr, "fusec %s: %s\n", a->command, d->text);
    bool input = d->code == DIAG_INVALID || d->code == DIAG_IO || d->code == DIAG_INDEX;
    return input ? CLI_REFUSED : CLI_FAILED;
}

int
cli_write(const struct args *a, const struct str *s)
{
    struct diag d = {0};
    if (fwrite(str_text(s), 1, s->n, stdout) == s->n && !fflush(stdout))
        return CLI_OK;
    diag_set(&d, DIAG_IO, "standard output cannot be written: %s", strerror(errno));
    cli_fail(a, &d);
    return CLI_FAILED;
}

bool
cli_colour(void)
{
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no && *no);
}

bool
split_pair(const char *pair, size_t *name, const char **value)
{
    *name = strcspn(pair, "=");
    *value = pair + *name + 1;
    return *name && pair[*name] && **value;
}
