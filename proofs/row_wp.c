/* at_row.h for Frama-C's WP: memory, assigned places and loops, for rows of any length. What WP
 * cannot read, bits moved by memcpy, is in at_math.h; of those functions only that they change no
 * memory is taken here, and EVA (row_eva.c) runs them. SPDX-License-Identifier: MIT */
#include "at_math.h"
/* A row of n columns; two rows that share nothing; a value to add to a row, or none. In ACSL:
 * clang-format would write 0..n. */
/* clang-format off */
#define ROW(x, n) (n >= 0 && \valid(x) && \valid(x->u + (0 .. n - 1)) && \
                   \separated(x, x->u + (0 .. n - 1)))
#define APART(x, y, n) \separated(x, x->u + (0 .. n - 1), y, y->u + (0 .. n - 1))
#define VALUE(x, v, n) (v == \null || (\valid_read(v + (0 .. n - 1)) && \
                        \separated(v + (0 .. n - 1), x, x->u + (0 .. n - 1))))
/* clang-format on */
/*@ assigns \nothing; */
AT_FN float at_exp32(float x);
/*@ assigns \nothing; */
AT_FN double at_exp64(double x);
/*@ assigns \nothing; */
AT_FN float at_log32(float x);
/*@ assigns \nothing; */
AT_FN double at_log64(double x);
/*@ assigns \nothing; */
AT_FN at_real at_canonical(at_real x);
/*@ assigns \nothing; */
extern float fmaf(float x, float y, float z);
/*@ assigns \nothing; */
extern double fma(double x, double y, double z);
#include "at_row.h"
