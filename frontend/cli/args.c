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

// The last of pairs: told unless it is NAME=VALUE, `form` in words, and of another name than those
// before it.
static bool
check_pair(struct args *a, const char *option, const word_list *pairs, const char *form)
{
    const char *pair = pairs->at[pairs->n - 1], *value;
    size_t n;
    if (!split_pair(pair, &n, &value)) {
        args_fail(a, "%s %s: %s was expected", option, pair, form);
        return false;
    }
    for (uint32_t i = 0; i + 1 < pairs->n; i++)
        if (!strncmp(pairs->at[i], pair, n + 1)) {
            args_fail(a, "%s %.*s is given twice", option, (int)n, pair);
            return false;
        }
    return true;
}

bool
args_pair(struct args *a, const char *name, const char *form, word_list *pairs)
{
    uint32_t before = pairs->n;
    if (!args_list(a, name, pairs))
        return false;
    if (pairs->n > before && !a->failed)
        check_pair(a, name, pairs, form);
    return true;
}

bool
args_dim(struct args *a, word_list *dims)
{
    static const char form[] = "NAME=SIZE, such as N=4096,";
    const char *value;
    char *end;
    size_t n;
    if (!args_pair(a, "--dim", form, dims))
        return false;
    if (a->failed)
        return true;
    const char *pair = dims->at[dims->n - 1];
    split_pair(pair, &n, &value);
    errno = 0;
    long long size = *value >= '0' && *value <= '9' ? strtoll(value, &end, 10) : -1;
    if (size < 0 || *end || errno || size >= SYM_HUGE)
        args_fail(a, "--dim %s: %s was expected", pair, form);
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
