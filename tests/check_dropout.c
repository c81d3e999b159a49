/* Suite dropout: Philox against Random123's known answers [Salmon11], the weight's index against
 * 128-bit arithmetic. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "paint.h"

enum { TIMES = 3000 };

START_TEST(philox_gives_the_known_answers)
{
    const uint32_t known[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (int t = 0; t < 3; t++) {
        const uint32_t *x = known[t];
        struct at_four y = at_philox((struct at_four){{x[0], x[1], x[2], x[3]}}, x[4], x[5]);
        ck_assert(memcmp(y.word, x + 6, sizeof y.word) == 0);
    }
}
END_TEST

/* semantics.md: e = ((b Hq + h) Sq + i) Skv + j; counter (e/4, offset), key seed, word e mod 4. */
START_TEST(the_dropout_index_counts_weights_in_64_bits)
{
    char x[1];
    const int64_t B = 3, Hq = 40, Sq = 1 << 16, Skv = 100003;
    struct at_attention a =
        at_plain(at_bhsd(x, AT_F32, B, Hq, Sq, 1), at_bhsd(x, AT_F32, B, 4, Skv, 1),
                 at_bhsd(x, AT_F32, B, 4, Skv, 1), 1);
    struct at_sizes z = at_sizes(&a);
    struct paint r = paint_from(paint_seed(), 1);
    for (int t = 0; t < TIMES; t++) {
        int64_t b = paint_int(&r, 0, B - 1), h = paint_int(&r, 0, Hq - 1);
        int64_t i = paint_int(&r, 0, Sq - 1), j = paint_int(&r, 0, Skv - 1);
        __int128 e = (((__int128)b * Hq + h) * Sq + i) * Skv + j;
        uint64_t n = (uint64_t)(e / 4), seed = paint_bits(&r), offset = paint_bits(&r);
        struct at_four y = {
            {(uint32_t)n, (uint32_t)(n >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)}};
        y = at_philox(y, (uint32_t)seed, (uint32_t)(seed >> 32));
        uint32_t word = y.word[(int)(e % 4)];
        a.dropout = (struct at_dropout){.seed = seed, .offset = offset};
        a.dropout.p = (double)word * 0x1p-32; /* kept iff word >= floor(p 2^32) */
        ck_assert(at_kept(&a, &z, b, h, i, j));
        a.dropout.p = ((double)word + 0.5) * 0x1p-32;
        ck_assert(at_kept(&a, &z, b, h, i, j));
        a.dropout.p = ((double)word + 1) * 0x1p-32;
        ck_assert(a.dropout.p == 1 || !at_kept(&a, &z, b, h, i, j));
    }
}
END_TEST

START_TEST(an_explicit_mask_of_the_kept_replaces_the_draw)
{
    uint8_t keep[] = {1, 0, 2};
    struct at_attention a = {.dropout = {.p = 0.999, .keep = at_bhsd(keep, AT_U8, 1, 1, 1, 3)}};
    struct at_sizes z = {1, 1, 1, 1, 1, 3, 1, 1};
    ck_assert(at_drops(&a) && at_kept(&a, &z, 0, 0, 0, 0) && !at_kept(&a, &z, 0, 0, 0, 1));
    ck_assert(at_kept(&a, &z, 0, 0, 0, 2));
    a.dropout.p = 0;
    ck_assert(at_drops(&a));
    a.dropout.keep.data = NULL;
    ck_assert(!at_drops(&a));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dropout");
    TCase *c = tcase_create("dropout");
    tcase_add_test(c, philox_gives_the_known_answers);
    tcase_add_test(c, the_dropout_index_counts_weights_in_64_bits);
    tcase_add_test(c, an_explicit_mask_of_the_kept_replaces_the_draw);
    suite_add_tcase(s, c);
    return paint_run(s);
}
