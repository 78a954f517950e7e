// npy.c: reading and writing NumPy's .npy format, versions 1.0, 2.0 and 3.0.
//
//   \x93NUMPY  major minor  length (u16; from 2.0 on u32)  header  data
//
// The header is a Python dict literal with the keys descr, fortran_order and shape, padded with
// blanks and ended by a newline. We read the subset of Python that NumPy writes, in any order and
// spacing, and nothing else: no byte string makes the reader read outside of it, and each mistake
// is told with its place in the file. bf16, which NumPy does not know, is a void of two bytes, as
// ml_dtypes writes it. Source: NumPy Enhancement Proposal 1 and numpy.lib.format's documentation.
#include "frontend/cli/npy.h"

#include "ir/base/mem.h"
#include "ir/base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, MAGIC = 6 };
static const char magic[MAGIC + 1] = "\x93NUMPY";

struct reader {
    const char *start, *at, *end; // of the file; of the header
    struct diag *d;
};

// ---- errors

static bool
fail(struct reader *r, const char *found, const char *expected)
{
    return diag_set(r->d, DIAG_INVALID, "byte %td: found %s, expected %s", r->at - r->start, found,
                    expected);
}

// What stands at the cursor, in words.
static const char *
here(const struct reader *r, char words[32])
{
    unsigned char c = r->at < r->end ? (unsigned char)*r->at : 0;
    if (r->at >= r->end)
        strcpy(words, "the end of the header");
    else if (c >= 32 && c < 127)
        snprintf(words, 32, "'%c'", c);
    else
        snprintf(words, 32, "the byte 0x%02x", c);
    return words;
}

static bool
expected(struct reader *r, const char *what)
{
    char words[32];
    return fail(r, here(r, words), what);
}

// ---- the pieces of Python that a header is made of

static void
skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool
accept(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->at >= r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool
need(struct reader *r, char c, const char *what)
{
    return accept(r, c) || expected(r, what);
}

struct text {
    const char *at;
    size_t n;
};

static bool
text_is(struct text t, const char *s)
{
    return strlen(s) == t.n && !memcmp(t.at, s, t.n);
}

static bool
read_string(struct reader *r, const char *what, struct text *t)
{
    skip_blanks(r);
    char quote = r->at < r->end ? *r->at : 0;
    if (quote != '\'' && quote != '"')
        return expected(r, what);
    const char *first = r->at + 1, *last = first;
    while (last < r->end && *last != quote && *last != '\\' && *last != '\n')
        last++;
    if (last == r->end || *last != quote) {
        r->at = last;
        return expected(r, "the closing quote of a string");
    }
    *t = (struct text){first, (size_t)(last - first)};
    r->at = last + 1;
    return true;
}

static bool
read_bool(struct reader *r, bool *value)
{
    skip_blanks(r);
    size_t left = (size_t)(r->end - r->at);
    *value = left >= 4 && !memcmp(r->at, "True", 4);
    if (!*value && (left < 5 || memcmp(r->at, "False", 5)))
        return expected(r, "True or False");
    r->at += *value ? 4 : 5;
    return true;
}

static bool
read_dim(struct reader *r, int64_t *value)
{
    skip_blanks(r);
    const char *first = r->at;
    *value = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *r->at - '0', value) || *value >= SYM_HUGE)
            return fail(r, "a size of 2^62 or more", "a smaller one");
    if (r->at == first)
        return expected(r, "a size (a number of at least 0)");
    accept(r, 'L'); // Python 2 wrote long numbers so
    return true;
}

static bool
read_shape(struct reader *r, struct tensor *t)
{
    t->rank = 0;
    if (!need(r, '(', "'(' of a shape"))
        return false;
    bool comma = true;
    while (!accept(r, ')')) {
        if (!comma)
            return expected(r, "',' or ')' in the shape");
        if (t->rank == MAX_RANK)
            return fail(r, "more than 8 axes", "a shape of rank 0 to 8");
        if (!read_dim(r, &t->dim[t->rank++]))
            return false;
        comma = accept(r, ',');
    }
    // (3) is a number in Python; only (3,) is a shape.
    return t->rank != 1 || comma || fail(r, "a number in brackets", "a shape such as (3,)");
}

// ---- the three fields

static void
list_dtypes(char *words, size_t size)
{
    size_t n = 0;
    for (int i = 1; i < DT_COUNT && n < size; i++)
        n += (size_t)snprintf(words + n, size - n, "%s%s (%s)", i > 1 ? ", " : "",
                              dtype_table[i].npy, dtype_table[i].name);
}

static bool
read_descr(struct reader *r, uint8_t *dtype)
{
    char words[300], found[80];
    list_dtypes(words, sizeof words);
    skip_blanks(r);
    if (r->at < r->end && *r->at == '[')
        return fail(r, "a structured dtype", words);
    const char *at = r->at;
    struct text t;
    if (!read_string(r, "the quoted name of a dtype", &t))
        return false;
    bool marked = t.n && strchr("<>|=", *t.at);
    struct text kind = {t.at + marked, t.n - marked};
    r->at = at;
    for (uint8_t i = 1; i < DT_COUNT; i++) {
        if (!text_is(kind, dtype_table[i].npy + 1))
            continue;
        // One byte has no order, and a void's bytes are its own affair.
        bool any_order = dtype_size(i) == 1 || i == DT_bf16;
        snprintf(found, sizeof found, "'%.*s', which is big-endian", (int)t.n, t.at);
        if (*t.at == '>' && !any_order)
            return fail(r, found, "little-endian elements ('<')");
        r->at = t.at + t.n + 1;
        *dtype = i;
        return true;
    }
    snprintf(found, sizeof found, "the dtype '%.*s'", t.n > 40 ? 40 : (int)t.n, t.at);
    return fail(r, found, words);
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static bool
read_field(struct reader *r, struct tensor *t, bool *fortran, unsigned *has)
{
    struct text key;
    skip_blanks(r);
    const char *at = r->at;
    if (!read_string(r, "'}' or a quoted key", &key))
        return false;
    unsigned which = text_is(key, "descr")           ? HAS_DESCR
                     : text_is(key, "fortran_order") ? HAS_ORDER
                     : text_is(key, "shape")         ? HAS_SHAPE
                                                     : 0;
    if (!which || (*has & which)) {
        r->at = at;
        return fail(r, which ? "a key for the second time" : "an unknown key",
                    "descr, fortran_order and shape, once each");
    }
    *has |= which;
    if (!need(r, ':', "':' after a key"))
        return false;
    return which == HAS_DESCR   ? read_descr(r, &t->dtype)
           : which == HAS_ORDER ? read_bool(r, fortran)
                                : read_shape(r, t);
}

static bool
read_dict(struct reader *r, struct tensor *t, bool *fortran)
{
    unsigned has = 0;
    if (!need(r, '{', "'{' of the header"))
        return false;
    bool comma = true;
    while (!accept(r, '}')) {
        if (!comma)
            return expected(r, "',' or '}' after a value");
        if (!read_field(r, t, fortran, &has))
            return false;
        comma = accept(r, ',');
    }
    if (!(has & HAS_DESCR))
        return fail(r, "no descr", "a header with descr, fortran_order and shape");
    if (!(has & HAS_ORDER))
        return fail(r, "no fortran_order", "a header with descr, fortran_order and shape");
    if (!(has & HAS_SHAPE))
        return fail(r, "no shape", "a header with descr, fortran_order and shape");
    skip_blanks(r);
    return r->at == r->end || expected(r, "blanks to the end of the header");
}

// ---- the whole file

// Moves the cursor behind the preamble; r->end becomes the header's end.
static bool
read_preamble(struct reader *r, size_t n)
{
    static const char want[] = "the six bytes \\x93NUMPY and a version";
    if (n < MAGIC + 2)
        return fail(r, n ? "fewer than 8 bytes" : "an empty file", want);
    if (memcmp(r->start, magic, MAGIC))
        return fail(r, "other bytes", want);
    const unsigned char *b = (const unsigned char *)r->start + MAGIC;
    char found[40];
    snprintf(found, sizeof found, "version %d.%d", b[0], b[1]);
    r->at = r->start + MAGIC;
    if (b[0] < 1 || b[0] > 3 || b[1])
        return fail(r, found, "1.0, 2.0 or 3.0");
    size_t bytes = b[0] == 1 ? 2 : 4, length = 0;
    r->at += 2;
    if (n < MAGIC + 2 + bytes)
        return fail(r, "the end of the file", "the length of the header");
    for (size_t i = 0; i < bytes; i++)
        length |= (size_t)b[2 + i] << 8 * i;
    snprintf(found, sizeof found, "a header of %zu bytes", length);
    if (length > n - (MAGIC + 2 + bytes))
        return fail(r, found, "one that ends within the file");
    r->at += bytes;
    r->end = r->at + length;
    return true;
}

static bool
set_strides(struct reader *r, struct tensor *t, bool fortran, int64_t *bytes)
{
    int64_t step = 1, count = 1;
    for (uint8_t i = 0; i < t->rank; i++) {
        uint8_t axis = fortran ? i : (uint8_t)(t->rank - 1 - i);
        int64_t n = t->dim[axis];
        t->stride[axis] = step;
        count *= n ? 1 : 0;
        if (__builtin_mul_overflow(step, n ? n : 1, &step) || step >= SYM_HUGE)
            return fail(r, "a shape of 2^62 elements or more", "fewer");
    }
    if (__builtin_mul_overflow(step * count, (int64_t)dtype_size(t->dtype), bytes))
        return fail(r, "an array of 2^63 bytes or more", "fewer");
    return true;
}

bool
npy_parse(const void *bytes, size_t n, struct tensor *t, struct diag *d)
{
    const char *start = bytes;
    struct reader r = {start, start, start + n, d};
    bool fortran = false;
    int64_t size = 0;
    *t = (struct tensor){0};
    if (!read_preamble(&r, n) || !read_dict(&r, t, &fortran) || !set_strides(&r, t, fortran, &size))
        return false;
    int64_t left = (int64_t)(start + n - r.end);
    if (left != size) {
        char found[64], want[128];
        struct str shape = {0};
        for (uint8_t i = 0; i < t->rank; i++)
            str_printf(&shape, "%s%" PRId64, i ? "," : "", t->dim[i]);
        snprintf(found, sizeof found, "%" PRId64 " bytes of data", left);
        snprintf(want, sizeof want, "%" PRId64 " bytes for %s[%.60s]", size, dtype_name(t->dtype),
                 str_text(&shape));
        str_free(&shape);
        return fail(&r, found, want);
    }
    t->data = (void *)(uintptr_t)r.end;
    return true;
}

void
npy_header(uint8_t dtype, uint8_t rank, const int64_t *dim, struct str *out)
{
    struct str dict = {0};
    str_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype_table[dtype].npy);
    for (uint8_t i = 0; i < rank; i++)
        str_printf(&dict, "%s%" PRId64, i ? ", " : "", dim[i]);
    str_add(&dict, rank == 1 ? ",), }" : "), }");
    while ((MAGIC + 4 + dict.n + 1) % ALIGN)
        str_addc(&dict, ' ');
    str_addc(&dict, '\n');
    str_addn(out, magic, MAGIC);
    char fixed[4] = {1, 0, (char)(dict.n & 0xff), (char)(dict.n >> 8)};
    str_addn(out, fixed, sizeof fixed);
    str_addn(out, dict.at, dict.n);
    str_free(&dict);
}

static bool
read_bytes(const char *path, struct str *out, struct diag *d)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return diag_set(d, DIAG_IO, "%s: cannot be opened: %s", path, strerror(errno));
    static const size_t step = 1 << 16;
    char *buffer = xmalloc(step);
    for (size_t n; (n = fread(buffer, 1, step, f)) > 0;)
        str_addn(out, buffer, n);
    bool ok = !ferror(f);
    if (!ok)
        diag_set(d, DIAG_IO, "%s: cannot be read: %s", path, strerror(errno));
    xfree(buffer);
    fclose(f);
    return ok;
}

bool
npy_read(const char *path, struct tensor *t, struct diag *d)
{
    struct str bytes = {0};
    struct diag inner = {0};
    bool ok = read_bytes(path, &bytes, d);
    if (ok && !npy_parse(str_text(&bytes), bytes.n, t, &inner))
        ok = diag_set(d, inner.code, "%s: %s", path, inner.text);
    if (ok) {
        size_t n = (size_t)(tensor_count(t) * dtype_size(t->dtype));
        void *data = aligned_alloc(ALIGN, (n + ALIGN) / ALIGN * ALIGN);
        if (data)
            memcpy(data, t->data, n);
        else
            ok = diag_set(d, DIAG_RESOURCE, "%s: no memory for %zu bytes", path, n);
        t->data = data;
    }
    str_free(&bytes);
    return ok;
}

bool
npy_write(const char *path, const struct tensor *t, struct diag *d)
{
    struct str header = {0};
    npy_header(t->dtype, t->rank, t->dim, &header);
    FILE *f = fopen(path, "wb");
    size_t n = (size_t)(tensor_count(t) * dtype_size(t->dtype));
    bool ok = f && fwrite(header.at, 1, header.n, f) == header.n && fwrite(t->data, 1, n, f) == n;
    if (f && fclose(f))
        ok = false;
    if (!ok)
        diag_set(d, DIAG_IO, "%s: cannot be written: %s", path, strerror(errno));
    str_free(&header);
    return ok;
}
