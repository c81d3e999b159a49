/* The two products of attention.cu, as rank-1 updates of what a thread keeps in registers: RM rows
 * x KM keys of S, RM rows x 4 CM columns of u. Each number is one chain, in column or in key order,
 * so the bits are those of a loop over one number at a time. Differs from scalar.c in nothing but
 * which numbers are at work side by side. SPDX-License-Identifier: MIT */
#ifndef MICRO_CUH
#define MICRO_CUH

#include "tile.cuh"

#ifndef TUNE_DOT
#define TUNE_DOT 2
#endif
constexpr int DOT_UNROLL = TUNE_DOT; /* measuring */

/* s[i][k] += sum of W columns of q and k, one chain. |err| <= ((1+eps)^D - 1) sum|q k| */
template <class S>
static __device__ inline void products(at_real (&s)[S::RM][S::KM], shared<at_real> Q,
                                       shared<at_real> K, int tx, int ty)
{
#pragma unroll DOT_UNROLL
    for (int c = 0; c < S::W; c += 4) {
        at_real q[S::RM][4], k[S::KM][4];
#pragma unroll
        for (int i = 0; i < S::RM; i++)
            load4(q[i], Q + ((ty + S::TY * i) * S::LD + c));
#pragma unroll
        for (int x = 0; x < S::KM; x++)
            load4(k[x], K + ((tx + S::TX * x) * S::LD + c));
#pragma unroll
        for (int x = 0; x < 4 * S::RM * S::KM; x++) {
            int e = x / (S::RM * S::KM), i = x / S::KM % S::RM, y = x % S::KM;
            s[i][y] = at_fma(q[i][e], k[y][e], s[i][y]);
        }
    }
}

/* u[i][c] = sum of p v, and l = the sum of p over row tx % RM, both in key order. MARKED: obey the
 * signs. |err| <= ((1+eps)^n - 1) sum p|v| */
template <class S, bool MARKED>
static __device__ inline void weigh(at_real (&u)[S::RM][S::CM * 4], at_real &l, shared<at_real> P,
                                    shared<at_real> V, int tx, int ty)
{
#pragma unroll 1
    for (int j = 0; j < S::BC; j += 4) {
        at_real p[S::RM][4], mine[4];
        load4(mine, P + ((ty + S::TY * (tx % S::RM)) * S::LP + j));
#pragma unroll
        for (int e = 0; e < 4; e++)
            l += MARKED && mine[e] < 0 ? -mine[e] : mine[e];
#pragma unroll
        for (int i = 0; i < S::RM; i++)
            load4(p[i], P + ((ty + S::TY * i) * S::LP + j));
#pragma unroll
        for (int x = 0; x < 4 * S::CM; x++) {
            int e = x / S::CM, g = x % S::CM;
            at_real v[4];
            load4(v, V + ((j + e) * S::LD + 4 * (tx + S::TX * g)));
#pragma unroll
            for (int i = 0; i < S::RM; i++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    if (!MARKED || !has_sign(p[i][e]))
                        u[i][4 * g + c] = at_fma(p[i][e], v[c], u[i][4 * g + c]);
        }
    }
}

#endif
