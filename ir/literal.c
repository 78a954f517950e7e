// literal.c: scalars as text. A float is printed with as few digits as read back to the same bits
// (tried from one digit on: literals are few, so the obvious way is fast enough). The quiet NaNs
// with an empty payload are nan and -nan; any other NaN carries its whole bit pattern, nan(0x…).
// f16 and bf16 are read as f64 and rounded once more, which is exact for whatever we print.
// Numbers are always in the C locale, whatever the host program has set.
#include "ir/literal.h"

#include "ir/base/half.h"
#include "ir/base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LITERAL_MAX = 400 };

static uint64_t
sign_bit(uint8_t dtype)
{
    return (uint64_t)1 << (dtype_table[dtype].bits - 1);
}

// Exponent all ones and the top bit of the mantissa.
static uint64_t
quiet_nan(uint8_t dtype)
{
    switch (dtype) {
    case DT_f64: return 0x7ff8000000000000u;
    case DT_f32: return 0x7fc00000u;
    case DT_f16: return 0x7e00u;
    default: return 0x7fc0u;
    }
}

// Decimal or hexadecimal digits, no sign, in the C locale.
static uint64_t
float_bits(const char *digits, uint8_t dtype)
{
    if (dtype == DT_f32) {
        float x = strtof(digits, NULL);
        uint32_t u;
        memcpy(&u, &x, 4);
        return u;
    }
    double x = strtod(digits, NULL);
    uint64_t u;
    memcpy(&u, &x, 8);
    if (dtype == DT_f64)
        return u;
    return dtype == DT_f16 ? f64_to_f16(x) : f64_to_bf16(x);
}

static locale_t
enter_c_locale(locale_t *c)
{
    *c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return *c ? uselocale(*c) : (locale_t)0;
}

static void
leave_c_locale(locale_t c, locale_t old)
{
    if (!c)
        return;
    uselocale(old);
    freelocale(c);
}

static void
print_finite(uint8_t dtype, uint64_t magnitude, struct str *out)
{
    double x = scalar_to_double(dtype, magnitude);
    char text[64];
    locale_t c, old = enter_c_locale(&c);
    bool whole = x == floor(x) && x < 1e7; // 100.0 rather than 1e+02
    snprintf(text, sizeof text, "%.1f", x);
    for (int digits = 1; !whole && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (float_bits(text, dtype) == magnitude)
            break;
    }
    leave_c_locale(c, old);
    str_add(out, text);
    if (!strpbrk(text, ".e"))
        str_add(out, ".0");
}

static void
print_float(uint8_t dtype, uint64_t bits, struct str *out)
{
    uint64_t sign = bits & sign_bit(dtype), magnitude = bits ^ sign;
    double x = scalar_to_double(dtype, magnitude);
    if (isnan(x) && magnitude != quiet_nan(dtype)) {
        str_printf(out, "nan(0x%" PRIx64 ")", bits);
        return;
    }
    if (sign)
        str_addc(out, '-');
    if (isnan(x))
        str_add(out, "nan");
    else if (isinf(x))
        str_add(out, "inf");
    else
        print_finite(dtype, magnitude, out);
}

void
literal_print(uint8_t dtype, uint64_t bits, struct str *out)
{
    switch (dtype_table[dtype].kind) {
    case DTK_FLOAT: print_float(dtype, bits, out); return;
    case DTK_SINT: str_printf(out, "%" PRId64, scalar_to_int(dtype, bits)); return;
    case DTK_UINT: str_printf(out, "%" PRIu64, bits); return;
    case DTK_BOOL: str_add(out, bits ? "true" : "false"); return;
    default: str_add(out, "?"); return;
    }
}

static bool
fail(const char **why, const char *words)
{
    *why = words;
    return false;
}

// nan(0x…) carries all bits of the value.
static bool
parse_nan_bits(const char *s, bool negative, uint8_t dtype, uint64_t *bits, const char **why)
{
    char *end;
    errno = 0;
    uint64_t u = strtoull(s + 4, &end, 16);
    if (errno || strcmp(end, ")") != 0 || negative)
        return fail(why, "is malformed; a NaN with payload is written nan(0x7fc00001)");
    if (dtype_table[dtype].bits < 64 && u >> dtype_table[dtype].bits)
        return fail(why, "has more bits than its dtype");
    if (!isnan(scalar_to_double(dtype, u)))
        return fail(why, "is not a NaN of its dtype");
    *bits = u;
    return true;
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
parse_float(const char *s, bool negative, uint8_t dtype, uint64_t *bits, const char **why)
{
    uint64_t sign = negative ? sign_bit(dtype) : 0;
    if (!strncmp(s, "nan(", 4))
        return parse_nan_bits(s, negative, dtype, bits, why);
    if (!strcmp(s, "nan")) {
        *bits = quiet_nan(dtype) | sign;
        return true;
    }
    if (!strcmp(s, "inf")) {
        *bits = scalar_from_double(dtype, INFINITY) | sign;
        return true;
    }
    if (!is_digit(s[0]) && !(s[0] == '.' && is_digit(s[1])))
        return fail(why, "is not a number");
    char *end;
    locale_t c, old = enter_c_locale(&c);
    (void)strtod(s, &end);
    *bits = float_bits(s, dtype) | sign;
    leave_c_locale(c, old);
    if (*end)
        return fail(why, "is not a number");
    if (isinf(scalar_to_double(dtype, *bits)))
        return fail(why, "is beyond the range of its dtype; infinity is written inf");
    return true;
}

static bool
parse_int(const char *s, bool negative, uint8_t dtype, uint64_t *bits, const char **why)
{
    if (!is_digit(s[0]))
        return fail(why, "is not an integer");
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    char *end;
    errno = 0;
    uint64_t u = strtoull(s, &end, hex ? 16 : 10);
    if (*end)
        return fail(why, "is not an integer");
    unsigned width = dtype_table[dtype].bits;
    bool is_signed = dtype_table[dtype].kind == DTK_SINT;
    uint64_t most = is_signed ? sign_bit(dtype) - 1 : UINT64_MAX >> (64 - width);
    uint64_t limit = !negative ? most : is_signed ? most + 1 : 0;
    if (errno || u > limit)
        return fail(why, "does not fit its dtype");
    uint64_t mask = UINT64_MAX >> (64 - width);
    *bits = (negative ? 0 - u : u) & mask;
    return true;
}

static bool
parse_bool(const char *s, bool negative, uint64_t *bits, const char **why)
{
    bool one = !strcmp(s, "true") || !strcmp(s, "1");
    if (negative || (!one && strcmp(s, "false") != 0 && strcmp(s, "0") != 0))
        return fail(why, "is not a bool; write true or false");
    *bits = one;
    return true;
}

bool
literal_parse(const char *text, size_t n, uint8_t dtype, uint64_t *bits, const char **why)
{
    char buf[LITERAL_MAX + 1];
    bool negative = n > 0 && text[0] == '-';
    text += negative;
    n -= negative;
    if (n == 0 || n > LITERAL_MAX)
        return fail(why, n ? "is too long" : "is not a number");
    memcpy(buf, text, n);
    buf[n] = 0;
    switch (dtype_table[dtype].kind) {
    case DTK_FLOAT: return parse_float(buf, negative, dtype, bits, why);
    case DTK_BOOL: return parse_bool(buf, negative, bits, why);
    case DTK_NONE: return fail(why, "has no dtype");
    default: return parse_int(buf, negative, dtype, bits, why);
    }
}
