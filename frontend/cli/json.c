// json.c: a writer of JSON without a tree: what is called is what is written. Bytes of text that
// are no valid UTF-8 become U+FFFD, infinities and NaN null, so that every output can be read back.
// The outermost values, and the elements of lists among them, have lines of their own: people read
// JSON too, if only as a diff.
#include "frontend/cli/json.h"

#include <inttypes.h>
#include <math.h>

// The length of the UTF-8 sequence at s (RFC 3629); 0: none.
static int
sequence(const unsigned char *s)
{
    int n = s[0] < 0x80                       ? 1
            : s[0] >= 0xc2 && s[0] < 0xe0     ? 2
            : s[0] >= 0xe0 && s[0] < 0xf0     ? 3
            : s[0] >= 0xf0 && s[0] <= 0xf4    ? 4
                                              : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] > 0x9f, beyond = s[0] == 0xf4 && s[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : n;
}

static void
quote(struct str *out, const char *text)
{
    str_addc(out, '"');
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int n = sequence(s);
        if (!n)
            str_add(out, "\xef\xbf\xbd");
        else if (*s == '"' || *s == '\\')
            str_printf(out, "\\%c", *s);
        else if (*s == '\n')
            str_add(out, "\\n");
        else if (*s < 32)
            str_printf(out, "\\u%04x", *s);
        else
            str_addn(out, (const char *)s, (size_t)n);
        s += n ? n : 1;
    }
    str_addc(out, '"');
}

static bool
has_lines(const struct json *j)
{
    return j->depth == 1 || (j->depth == 2 && (j->arrays >> 2 & 1));
}

static void
begin(struct json *j, const char *key)
{
    bool line = has_lines(j);
    if (j->comma)
        str_add(j->out, line ? "," : ", ");
    if (line)
        str_printf(j->out, "\n%*s", 2 * (int)j->depth, "");
    j->comma = true;
    if (key) {
        quote(j->out, key);
        str_add(j->out, ": ");
    }
}

void
json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    str_addc(j->out, bracket);
    j->comma = false;
    j->depth++;
    j->arrays &= ~(1u << j->depth);
    j->arrays |= (uint32_t)(bracket == '[') << j->depth;
}

void
json_close(struct json *j, char bracket)
{
    if (j->comma && has_lines(j))
        str_printf(j->out, "\n%*s", 2 * (int)(j->depth - 1), "");
    str_addc(j->out, bracket);
    j->depth--;
    j->comma = true;
}

void
json_text(struct json *j, const char *key, const char *text)
{
    begin(j, key);
    if (text)
        quote(j->out, text);
    else
        str_add(j->out, "null");
}

void
json_int(struct json *j, const char *key, int64_t value)
{
    begin(j, key);
    str_printf(j->out, "%" PRId64, value);
}

void
json_number(struct json *j, const char *key, double value, int decimals)
{
    begin(j, key);
    if (isfinite(value))
        str_printf(j->out, "%.*f", decimals, value);
    else
        str_add(j->out, "null");
}

void
json_bool(struct json *j, const char *key, bool value)
{
    begin(j, key);
    str_add(j->out, value ? "true" : "false");
}
