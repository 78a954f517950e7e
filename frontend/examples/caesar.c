// caesar.c: a cipher broken by letter frequencies: u8 arithmetic, counts, argmin
//
// Letters are counted as a sum over comparisons with each; the checksum is Adler-32, in i64.
#include "example.h"

enum { LETTERS = 26, KEY = 11, LENGTH = 255 };

static const char secret[] =
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife. However little known the feelings or views of such a man may be on "
    "his first entering a neighbourhood, this truth is so well fixed there.";
_Static_assert(sizeof secret - 1 == LENGTH, "the shapes below");

// Percent of English text.
static const double usual[LETTERS] = {8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2.0, 6.1, 7.0,
                                      0.2, 0.8, 4.0, 2.4, 6.7,  7.5, 1.9, 0.1, 6.0,
                                      6.3, 9.1, 2.8, 1.0, 2.4,  0.2, 2.0, 0.1};

static fc_tensor
between(fc_tensor x, char low, char high)
{
    return fc_and(fc_ge_scalar(x, low), fc_le_scalar(x, high));
}

// Each letter moved on by key, a number or a tensor of u8; all else as it is.
static fc_tensor
shift(fc_tensor text, fc_tensor key)
{
    fc_tensor folded = fc_or_scalar(text, 0x20), upper = fc_and_scalar(fc_not(text), 0x20);
    fc_tensor moved = fc_mod_scalar(fc_add(fc_sub_scalar(folded, 'a'), key), LETTERS);
    moved = fc_sub(fc_add_scalar(moved, 'a'), upper);
    return fc_where(between(folded, 'a', 'z'), moved, text);
}

// How often each letter is in text: [LETTERS]
static fc_tensor
count_letters(fc_context *ctx, fc_tensor text)
{
    fc_tensor letters = fc_add_scalar(fc_iota(ctx, FC_SHAPE(LETTERS), 0), 'a');
    fc_tensor same = fc_eq(fc_unsqueeze(fc_or_scalar(text, 0x20), 1), letters);
    return fc_sum(same, FC_LIST(0), false);
}

// Chi-squared of the counts of the text, were it moved back by key, for every key: [LETTERS]
static fc_tensor
misfit(fc_context *ctx, fc_tensor counts)
{
    fc_tensor letter = fc_iota(ctx, FC_SHAPE(LETTERS), 0), key = fc_unsqueeze(letter, 1);
    fc_tensor moved = fc_take(counts, fc_mod_scalar(fc_add(letter, key), LETTERS), 0);
    fc_tensor expected = fc_from_host(ctx, FC_F64, usual, FC_SHAPE(LETTERS));
    expected = fc_mul(expected, fc_div_scalar(fc_sum(counts, FC_ALL, false), 100));
    fc_tensor off = fc_square(fc_sub(moved, expected));
    return fc_sum(fc_div(off, expected), FC_LIST(1), false);
}

// Adler-32: one plus the sum of bytes, and the sum of such sums.
static fc_tensor
adler32(fc_context *ctx, fc_tensor text)
{
    fc_tensor left = fc_sub(fc_scalar(ctx, LENGTH), fc_iota(ctx, FC_SHAPE(LENGTH), 0));
    text = fc_cast(text, FC_I64); // sums of u8 would be u64, which do not go with i64
    fc_tensor a = fc_add_scalar(fc_sum(text, FC_ALL, false), 1);
    fc_tensor b = fc_add_scalar(fc_sum(fc_mul(text, left), FC_ALL, false), LENGTH);
    return fc_or(fc_shl_scalar(fc_mod_scalar(b, 65521), 16), fc_mod_scalar(a, 65521));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    fc_tensor plain = fc_from_host(ctx, FC_U8, secret, FC_SHAPE(LENGTH));
    fc_tensor cipher = shift(plain, fc_scalar(ctx, KEY));
    fc_tensor misfits = misfit(ctx, count_letters(ctx, cipher));
    fc_tensor key = fc_cast(fc_argmin(misfits, FC_LIST(0), false), FC_U8);
    fc_tensor found = shift(cipher, fc_sub(fc_scalar(ctx, LETTERS), key));
    fc_tensor checksum = adler32(ctx, found);
    fc_tensor doubles =
        fc_sum(fc_eq(fc_slice_axis(found, 0, 1, FC_END, 1), fc_slice_axis(found, 0, 0, -1, 1)),
               FC_ALL, false);

    check(ctx, fc_eval(ctx, (fc_tensor[]){cipher, misfits, key, found, checksum, doubles}, 6));
    char text[LENGTH];
    double chi[LETTERS];
    int64_t number;
    check(ctx, fc_read(cipher, text, sizeof text));
    printf("%.70s\n", text);
    check(ctx, fc_read(misfits, chi, sizeof chi));
    check(ctx, fc_item_int(key, &number));
    printf("key %d, misfit %.3f, with the next key %.3f\n", (int)number, chi[number],
           chi[number + 1]);
    check(ctx, fc_read(found, text, sizeof text));
    printf("%.70s\n", text);
    check(ctx, fc_item_int(checksum, &number));
    printf("Adler-32 %08llx", (unsigned long long)number);
    check(ctx, fc_item_int(doubles, &number));
    printf(", doubled characters %d\n", (int)number);
    example_end(ctx);
    return 0;
}
