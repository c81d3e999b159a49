/* at_row.h for Frama-C's WP: memory, assigned places and loops, for rows of any length. What WP
 * cannot read, bits moved by memcpy, is in at_math.h; of those functions only that they change no
 * memory is taken here, and EVA (row_eva.c) runs them. SPDX-License-Identifier: MIT */
#include "at_math.h"
#if AT_BITS == 32
#define EQ \eq_float
#else
#define EQ \eq_double
#endif
/*@ assigns \nothing; */
AT_FN float at_exp32(float x);
/*@ assigns \nothing; */
AT_FN double at_exp64(double x);
/*@ assigns \nothing; */
AT_FN float at_log32(float x);
/*@ assigns \nothing; */
AT_FN double at_log64(double x);
/*@ assigns \nothing; */
extern float fmaf(float x, float y, float z);
/*@ assigns \nothing; */
extern double fma(double x, double y, double z);
#include "at_row.h"
