// npy.c: .npy files: what NumPy writes is read, what is written reads back, and what is malformed
// is refused with words that say where.
#include "frontend/cli/npy.h"

#include "ir/base/str.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A file of one version from a header and data, without padding.
static struct str
file_of(int version, const char *header, const void *data, size_t n)
{
    struct str s = {0};
    size_t length = strlen(header);
    str_addn(&s, "\x93NUMPY", 6);
    str_addc(&s, (char)version);
    str_addc(&s, 0);
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        str_addc(&s, (char)(length >> 8 * i));
    str_addn(&s, header, length);
    str_addn(&s, data, n);
    return s;
}

static bool
parse(struct str *s, struct tensor *t, struct diag *d)
{
    // A copy that ends at the last byte, so that sanitizers see any read beyond.
    char *exact = malloc(s->n ? s->n : 1);
    memcpy(exact, str_text(s), s->n);
    *d = (struct diag){0};
    bool ok = npy_parse(exact, s->n, t, d);
    ptrdiff_t at = ok ? (char *)t->data - exact : 0;
    t->data = ok ? s->at + at : NULL;
    free(exact);
    return ok;
}

static void
accepts(int line, int version, const char *header, size_t bytes, struct tensor *t)
{
    static const char data[256] = "0123456789";
    struct diag d;
    struct str s = file_of(version, header, data, bytes);
    cr_assert(parse(&s, t, &d), "line %d: %s", line, d.text);
    cr_assert(!memcmp(t->data, data, bytes), "line %d: other data", line);
    str_free(&s);
}

static void
refuses(int line, const char *header, size_t bytes, const char *words)
{
    static const char data[256];
    struct tensor t;
    struct diag d;
    struct str s = file_of(1, header, data, bytes);
    cr_expect(!parse(&s, &t, &d), "line %d was accepted", line);
    cr_expect(strstr(d.text, words), "line %d: '%s' lacks '%s'", line, d.text, words);
    cr_expect_eq(d.code, DIAG_INVALID);
    str_free(&s);
}
#define REFUSES(...) refuses(__LINE__, __VA_ARGS__)

Test(npy, reads_what_numpy_writes)
{
    struct tensor t;
    for (int version = 1; version <= 3; version++) {
        accepts(__LINE__, version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } \n",
                24, &t);
        cr_expect(t.dtype == DT_f32 && t.rank == 2 && t.dim[0] == 2 && t.dim[1] == 3);
        cr_expect(t.stride[0] == 3 && t.stride[1] == 1);
    }
    accepts(__LINE__, 1, "{\"shape\":(2,3,4),'fortran_order':True,'descr':'|u1'}", 24, &t);
    cr_expect(t.stride[0] == 1 && t.stride[1] == 2 && t.stride[2] == 6);
    accepts(__LINE__, 1, "{'descr': '=i8', 'fortran_order': False, 'shape': (2L,)}", 16, &t);
    cr_expect(t.dtype == DT_i64 && t.rank == 1);
    accepts(__LINE__, 1, "{'descr': '|V2', 'fortran_order': False, 'shape': ()}\n", 2, &t);
    cr_expect(t.dtype == DT_bf16 && t.rank == 0);
    accepts(__LINE__, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5)}\n", 0, &t);
    cr_expect(t.dim[0] == 0 && t.dim[1] == 5);
}

Test(npy, every_dtype_and_rank_reads_back)
{
    const int64_t dim[MAX_RANK] = {2, 1, 3, 1, 1, 2, 1, 1};
    for (uint8_t dtype = 1; dtype < DT_COUNT; dtype++)
        for (uint8_t rank = 0; rank <= MAX_RANK; rank++) {
            struct str s = {0};
            struct tensor t, want = {.dtype = dtype, .rank = rank};
            struct diag d;
            memcpy(want.dim, dim, sizeof dim);
            npy_header(dtype, rank, dim, &s);
            cr_expect_eq(s.n % 64, 0);
            for (int64_t i = 0; i < tensor_count(&want) * dtype_size(dtype); i++)
                str_addc(&s, (char)i);
            cr_assert(parse(&s, &t, &d), "%s rank %d: %s", dtype_name(dtype), rank, d.text);
            cr_expect(t.dtype == dtype && t.rank == rank);
            cr_expect(!memcmp(t.dim, dim, rank * sizeof *dim));
            str_free(&s);
        }
}

#define HEAD "{'descr': '<f4', 'fortran_order': False, "

Test(npy, malformed_headers_are_refused_in_words)
{
    REFUSES(HEAD "'shape': (2, 3), ", 24, "the end of the header, expected '}' or a quoted key");
    REFUSES(HEAD "'shape': (2 3)}", 24, "found '3', expected ',' or ')'");
    REFUSES(HEAD "'shape': (4)}", 16, "a number in brackets");
    REFUSES(HEAD "'shape': (-1,)}", 4, "found '-', expected a size");
    REFUSES(HEAD "'shape': (1.5,)}", 4, "found '.'");
    REFUSES(HEAD "'shape': 4}", 16, "found '4', expected '('");
    REFUSES(HEAD "'shape': (1,1,1,1,1,1,1,1,1)}", 4, "more than 8 axes");
    REFUSES(HEAD "}", 4, "no shape");
    REFUSES("{'descr': '<f4', 'shape': (1,)}", 4, "no fortran_order");
    REFUSES("{'fortran_order': False, 'shape': (1,)}", 4, "no descr");
    REFUSES(HEAD "'shape': (1,), 'shape': (1,)}", 4, "a key for the second time");
    REFUSES(HEAD "'shape': (1,), 'colour': (1,)}", 4, "an unknown key");
    REFUSES(HEAD "'shape': (1,)} x", 4, "found 'x', expected blanks");
    REFUSES("{'descr: ", 4, "the closing quote");
    REFUSES("{'descr': '<f4', 'fortran_order': Maybe", 4, "True or False");
    REFUSES("{'descr' '<f4'", 4, "':' after a key");
    REFUSES("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4, "big-endian");
    REFUSES("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8, "the dtype '<c8'");
    REFUSES("{'descr': '', 'fortran_order': False, 'shape': (1,)}", 8, "the dtype ''");
    REFUSES("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "structured");
    REFUSES("", 0, "found the end of the header, expected '{'");
    REFUSES("\x01", 0, "the byte 0x01");
}

Test(npy, sizes_are_checked)
{
    REFUSES(HEAD "'shape': (2, 3)}", 23, "found 23 bytes of data, expected 24 bytes for f32[2,3]");
    REFUSES(HEAD "'shape': (2, 3)}", 25, "25 bytes of data");
    REFUSES(HEAD "'shape': (4611686018427387904,)}", 4, "2^62 or more");
    REFUSES(HEAD "'shape': (99999999999999999999,)}", 4, "2^62 or more");
    REFUSES(HEAD "'shape': (4294967296, 4294967296)}", 4, "2^62 elements or more");
    REFUSES(HEAD "'shape': (0, 4294967296, 4294967296)}", 0, "2^62 elements or more");
    REFUSES(HEAD "'shape': (4000000000000000000,)}", 4, "2^63 bytes or more");
}

Test(npy, every_prefix_and_every_changed_byte_is_handled)
{
    struct str s = {0};
    struct tensor t;
    struct diag d;
    npy_header(DT_f32, 2, (const int64_t[]){1, 2}, &s);
    str_addn(&s, "abcdefgh", 8);
    for (size_t n = 0; n < s.n; n++) {
        struct str part = {0};
        str_addn(&part, s.at, n);
        cr_expect(!parse(&part, &t, &d) && d.text[0], "%zu bytes", n);
        str_free(&part);
    }
    for (size_t i = 0; i < s.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            s.at[i] = (char)(s.at[i] ^ 1 << bit);
            if (!parse(&s, &t, &d))
                cr_expect(d.text[0]);
            s.at[i] = (char)(s.at[i] ^ 1 << bit);
        }
    str_free(&s);
}

Test(npy, files)
{
    char path[] = "/tmp/fusec_npy_XXXXXX";
    float x[6] = {0, 1, 2, 3, 4, 5};
    struct tensor t = {.dtype = DT_f32, .rank = 2, .dim = {2, 3}, .data = x}, back;
    struct diag d = {0};
    close(mkstemp(path));
    cr_assert(npy_write(path, &t, &d), "%s", d.text);
    cr_assert(npy_read(path, &back, &d), "%s", d.text);
    cr_expect(!memcmp(back.data, x, sizeof x) && back.rank == 2 && (uintptr_t)back.data % 64 == 0);
    free(back.data);
    cr_assert_eq(truncate(path, 100), 0);
    cr_expect(!npy_read(path, &back, &d) && !strncmp(d.text, path, strlen(path)), "%s", d.text);
    unlink(path);
    d = (struct diag){0};
    cr_expect(!npy_read(path, &back, &d) && d.code == DIAG_IO);
    d = (struct diag){0};
    cr_expect(!npy_write("/nowhere/x.npy", &t, &d) && d.code == DIAG_IO);
}
