/* Operand sets and what at_row.h and at_math.h make of them, for twin_check.ml to repeat over
 * Flocq's numbers: random bits, special values, and states and scores as rows have them.
 *
 *     twin SEED SETS rows|exp     one set: operation, 7 operands, 3 results, 64 bits each
 *
 * SPDX-License-Identifier: MIT */
#include "at_row.h"
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t bits_of(at_real x)
{
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    return bits;
}

static at_real of_bits(uint64_t bits)
{
    at_real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Zeros, the least and the largest of each kind, where the exponential changes its course. */
static at_real special(void)
{
    const at_real tiny = of_bits(1), huge = of_bits(bits_of((at_real)INFINITY) - 1);
    const at_real normal = AT_BITS == 32 ? (at_real)0x1p-126f : (at_real)0x1p-1022;
    const at_real list[] = {0,
                            1,
                            2,
                            (at_real)INFINITY,
                            (at_real)NAN,
                            tiny,
                            huge,
                            normal,
                            normal - tiny,
                            of_bits(bits_of(1) - 1),
                            (at_real)87.5,
                            (at_real)103.5,
                            104,
                            (at_real)104.5,
                            708,
                            745,
                            746,
                            747,
                            (at_real)0.34657359,
                            (at_real)0.5};
    at_real x = list[draw() % (sizeof list / sizeof *list)];
    return draw() % 2 ? x : -x;
}

/* A number with an exponent in [-range, range]. */
static at_real plain(int range)
{
    at_real x =
        (at_real)ldexp((double)(draw() >> 11), (int)(draw() % (unsigned)(2 * range)) - range - 52);
    return draw() % 2 ? x : -x;
}

static at_real operand(int range)
{
    unsigned kind = (unsigned)(draw() % 8);
    return kind == 0 ? special() : kind == 1 ? of_bits(draw()) : plain(range);
}

int main(int n, char **arg)
{
    if (n != 4)
        return 2;
    bool all = strcmp(arg[3], "exp") != 0; /* or the exponential alone */
    state = strtoull(arg[1], NULL, 0);
    for (long k = strtol(arg[2], NULL, 0); k > 0; k--) {
        uint64_t op = all ? draw() % 5 : 0;
        at_real x[7], u[3][1], y[3] = {0, 0, 0};
        for (int i = 0; i < 7; i++)
            x[i] = operand(i % 2 ? 4 : 8);
        if (draw() % 4 == 0)
            x[3] = x[0]; /* equal scores; one reference on both sides of a merge */
        if (draw() % 8 == 0)
            x[1] = 0;
        u[0][0] = x[2], u[1][0] = x[5], u[2][0] = 0;
        struct at_row row = {x[0], x[1], u[0]}, other = {x[3], x[4], u[1]}, tile = {0, 0, u[2]};
        switch (op) {
        case 0: /* exp */
            x[0] = x[0] > 0 ? -x[0] : x[0];
            y[0] = at_exp(x[0]);
            break;
        case 1: /* push (s, v) */ at_row_push(&row, x[3], &x[4], 1); break;
        case 2: /* a tile of two keys */
            at_row_clear(&tile, at_larger(at_larger(x[0], x[3]), x[5]) + 0, 1);
            at_row_add(&tile, x[3], &x[4], 1);
            at_row_add(&tile, x[5], &x[6], 1);
            at_row_take(&row, &tile, 1);
            break;
        case 3: at_row_merge(&row, &other, 1); break;
        default: y[0] = at_out(x[2], x[1], 1);
        }
        if (op >= 1 && op <= 3)
            y[0] = row.m, y[1] = row.l, y[2] = row.u[0];
        uint64_t set[11] = {op};
        for (int i = 0; i < 7; i++)
            set[1 + i] = bits_of(x[i]);
        for (int i = 0; i < 3; i++)
            set[8 + i] = y[i] == y[i] ? bits_of(y[i]) : UINT64_MAX; /* any NaN is any NaN */
        if (fwrite(set, sizeof set, 1, stdout) != 1)
            return 1;
    }
    return 0;
}
