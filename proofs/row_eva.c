/* at_row.h and at_math.h themselves under Frama-C's EVA: no runtime error (bounds, shifts,
 * uninitialised reads, invalid pointers) on any run of a row over eight keys and four columns,
 * scores within 1e4, values within 1e6, hidden rows and sinks included.
 * SPDX-License-Identifier: MIT */
#include "__fc_builtin.h"
#include "at_row.h"

#define KEYS 8
#define DV 4

static at_real any(double range) { return (at_real)Frama_C_double_interval(-range, range); }

int main(void)
{
    at_real s[KEYS], v[KEYS][DV], ux[DV], uy[DV], ut[DV], out[DV];
    struct at_row x = {0, 0, ux}, y = {0, 0, uy}, tile = {0, 0, ut};
    for (int j = 0; j < KEYS; j++) {
        s[j] = any(1e4);
        for (int c = 0; c < DV; c++)
            v[j][c] = any(1e6);
    }
    at_row_clear(&x, -(at_real)INFINITY, DV);
    at_row_clear(&y, -(at_real)INFINITY, DV);
    int n = Frama_C_interval(0, KEYS);
    for (int j = 0; j < n; j++)
        at_row_push(j % 2 ? &x : &y, s[j], v[j], DV);
    at_row_clear(&tile, at_larger(at_larger(x.m, s[0]), s[1]) + 0, DV);
    at_row_add(&tile, s[0], v[0], DV);
    at_row_add(&tile, s[1], Frama_C_interval(0, 1) ? v[1] : NULL, DV);
    at_row_take(&x, &tile, DV);
    at_row_merge(&x, &y, DV);
    at_row_sink(&x, Frama_C_interval(0, 1) ? -(at_real)INFINITY : any(1e4), DV);
    for (int c = 0; c < DV; c++)
        out[c] = at_out(x.u[c], x.l, 1);
    at_real lse = at_lse(x.m, x.l);
    (void)out, (void)lse;
    return 0;
}
