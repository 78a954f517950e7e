// format.c: figures for people.
#include "frontend/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>

const char *
bytes_text(int64_t bytes, char text[32])
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double x = (double)bytes;
    unsigned u = 0;
    while (x >= 999.5 && u + 1 < sizeof unit / sizeof *unit) {
        x /= 1000;
        u++;
    }
    snprintf(text, 32, "%.*f %s", !u || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, unit[u]);
    return text;
}

const char *
plural(int64_t n, const char *one, const char *many, char text[64])
{
    snprintf(text, 64, "%" PRId64 " %s", n, n == 1 ? one : many);
    return text;
}
