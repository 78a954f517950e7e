// sym.c: the arithmetic of dims: normal forms, answers about equality, and no overflow.
#include "ir/base/str.h"
#include "ir/sym.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define EXPECT_PRINT(t, s, text)                                                                   \
    do {                                                                                           \
        struct str out = {0};                                                                      \
        sym_print(t, s, &out);                                                                     \
        cr_expect_str_eq(str_text(&out), text);                                                    \
        str_free(&out);                                                                            \
    } while (0)

Test(sym, numbers_stay_in_place)
{
    struct symtab *t = symtab_new();
    cr_expect_eq(sym_add(t, sym_num(3), sym_num(-5)).v, -2);
    cr_expect_eq(sym_sub(t, sym_num(3), sym_num(-5)).v, 8);
    cr_expect_eq(sym_mul(t, sym_num(1 << 20), sym_num(1 << 20)).v, (int64_t)1 << 40);
    cr_expect(sym_is_num(sym_num(-7)));
    EXPECT_PRINT(t, sym_num(0), "0");
    EXPECT_PRINT(t, sym_num(-12), "-12");
    symtab_free(t);
}

Test(sym, equal_polynomials_are_one_sym)
{
    struct symtab *t = symtab_new();
    sym n = sym_named(t, "N", 4), m = sym_named(t, "M", 7);
    cr_expect_eq(sym_named(t, "N", 99).v, n.v);
    cr_expect_eq(sym_hint(t, n), 4, "the first hint stays");
    sym a = sym_mul(t, sym_add(t, n, m), sym_sub(t, n, m)); // N^2 - M^2
    sym b = sym_sub(t, sym_mul(t, n, n), sym_mul(t, m, m));
    cr_expect_eq(a.v, b.v);
    EXPECT_PRINT(t, a, "N*N-M*M");
    cr_expect_eq(sym_hint(t, a), 16 - 49);
    sym c = sym_add(t, sym_num(1), sym_mul(t, m, sym_mul(t, sym_num(2), n)));
    EXPECT_PRINT(t, c, "2*N*M+1");
    EXPECT_PRINT(t, sym_sub(t, sym_num(1), n), "-N+1");
    cr_expect_eq(sym_sub(t, a, b).v, 0, "what cancels is a number again");
    cr_expect_eq(sym_sub(t, sym_add(t, n, sym_num(3)), n).v, 3);
    cr_expect_eq(sym_mul(t, n, sym_num(0)).v, 0);
    cr_expect_eq(sym_mul(t, sym_num(1), n).v, n.v);
    symtab_free(t);
}

Test(sym, hints_can_change)
{
    struct symtab *t = symtab_new();
    sym n = sym_named(t, "N", 4), twice = sym_add(t, n, n);
    cr_expect(sym_set_hint(t, "N", 10));
    cr_expect_not(sym_set_hint(t, "K", 10));
    cr_expect_eq(sym_hint(t, twice), 20);
    int64_t hint = 0;
    cr_expect_eq(symtab_names(t), 1);
    cr_expect_str_eq(symtab_name(t, 0, &hint), "N");
    cr_expect_eq(hint, 10);
    symtab_free(t);
}

Test(sym, equality_has_three_answers)
{
    struct symtab *t = symtab_new();
    sym n = sym_named(t, "N", 4), m = sym_named(t, "M", 4), k = sym_named(t, "K", 5);
    cr_expect_eq(sym_eq(t, n, n), SYM_YES);
    cr_expect_eq(sym_eq(t, sym_num(4), sym_num(4)), SYM_YES);
    cr_expect_eq(sym_eq(t, sym_num(4), sym_num(5)), SYM_NO);
    cr_expect_eq(sym_eq(t, n, m), SYM_ASK);
    cr_expect_eq(sym_eq(t, n, sym_num(4)), SYM_ASK);
    cr_expect_eq(sym_eq(t, n, k), SYM_NO);
    cr_expect_eq(sym_eq(t, n, sym_add(t, n, sym_num(1))), SYM_NO);
    sym_set_hint(t, "M", -1); // hints are dims; an impossible one must not turn a proof around
    cr_expect_eq(sym_eq(t, n, sym_add(t, sym_add(t, n, m), sym_num(1))), SYM_NO);
    symtab_free(t);
}

Test(sym, divisibility_and_division)
{
    struct symtab *t = symtab_new();
    sym n = sym_named(t, "N", 6), q;
    sym four_n = sym_mul(t, sym_num(4), n);
    cr_expect_eq(sym_divisible(t, sym_num(12), 4), SYM_YES);
    cr_expect_eq(sym_divisible(t, sym_num(13), 4), SYM_NO);
    cr_expect_eq(sym_divisible(t, sym_num(13), 0), SYM_NO);
    cr_expect_eq(sym_divisible(t, four_n, 4), SYM_YES);
    cr_expect_eq(sym_divisible(t, sym_add(t, four_n, sym_num(2)), 4), SYM_NO);
    cr_expect_eq(sym_divisible(t, n, 3), SYM_ASK);
    cr_expect_eq(sym_divisible(t, n, 4), SYM_NO);
    cr_assert(sym_div(t, four_n, 4, &q));
    cr_expect_eq(q.v, n.v);
    cr_expect_not(sym_div(t, n, 3, &q), "true under the hints only");
    cr_expect_not(sym_div(t, n, 0, &q));
    cr_assert(sym_div(t, sym_num(12), 3, &q));
    cr_expect_eq(q.v, 4);
    symtab_free(t);
}

Test(sym, overflow_is_absorbing)
{
    struct symtab *t = symtab_new();
    sym big = sym_num((int64_t)1 << 61), n = sym_named(t, "N", (int64_t)1 << 40);
    sym huge = sym_num(SYM_HUGE);
    cr_expect_eq(sym_add(t, big, big).v, SYM_HUGE);
    cr_expect_eq(sym_mul(t, big, sym_num(-8)).v, SYM_HUGE);
    cr_expect_eq(sym_sub(t, huge, huge).v, SYM_HUGE);
    cr_expect_eq(sym_mul(t, huge, sym_num(0)).v, SYM_HUGE);
    cr_expect_eq(sym_eq(t, huge, huge), SYM_NO);
    cr_expect_eq(sym_add(t, sym_num(INT64_MIN), sym_num(-1)).v, SYM_HUGE);
    cr_expect_eq(sym_mul(t, sym_mul(t, big, n), sym_num(4)).v, SYM_HUGE, "coefficients count too");
    cr_expect_eq(sym_hint(t, sym_mul(t, n, n)), SYM_HUGE);
    sym p = n;
    for (int i = 0; i < 100; i++)
        p = sym_mul(t, p, n);
    cr_expect_eq(p.v, SYM_HUGE, "the degree is bounded");
    p = sym_num(0);
    for (int i = 0; i < 100; i++) {
        char name[8];
        snprintf(name, sizeof name, "D%d", i);
        p = sym_add(t, p, sym_named(t, name, 1));
    }
    cr_expect_eq(p.v, SYM_HUGE, "so is the number of terms");
    symtab_free(t);
}

// Random expressions, against the same arithmetic on the hints.
Test(sym, arithmetic_agrees_with_numbers)
{
    struct symtab *t = symtab_new();
    sym pool[16] = {sym_named(t, "A", 3), sym_named(t, "B", 5), sym_named(t, "C", 2), sym_num(1)};
    uint64_t state = 1;
    for (uint32_t i = 4; i < 16; i++)
        pool[i] = pool[i - 4];
    for (int step = 0; step < 20000; step++) {
        state = hash_mix(state, 1);
        sym a = pool[state % 16], b = pool[(state >> 8) % 16], r;
        int64_t x = sym_hint(t, a), y = sym_hint(t, b), want;
        switch ((state >> 16) % 3) {
        case 0:
            r = sym_add(t, a, b);
            want = x + y;
            break;
        case 1:
            r = sym_sub(t, a, b);
            want = x - y;
            break;
        default:
            r = sym_mul(t, a, b);
            want = x * y;
        }
        if (r.v == SYM_HUGE || want > 1000000 || want < -1000000) {
            pool[4 + (state >> 24) % 12] = pool[(state >> 32) % 4];
            continue;
        }
        cr_assert_eq(sym_hint(t, r), want);
        pool[4 + (state >> 24) % 12] = r;
    }
    symtab_free(t);
}
