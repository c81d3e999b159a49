/* Lane loops: plain C that compilers vectorise. Where GCC and glibc choose at run time, a function
 * marked AT_CLONES is compiled once more for x86-64-v3 (AVX2, FMA); every version gives the same
 * bits, since fma is fma and nothing else is contracted. SPDX-License-Identifier: MIT */
#ifndef LANES_H
#define LANES_H

/* Unsafe optimisations make every enclosure a lie. */
#ifdef __FAST_MATH__
#error "truth and bound need IEEE arithmetic: no -ffast-math"
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) &&       \
    !defined(__SANITIZE_ADDRESS__)
#define AT_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define AT_CLONES
#endif

/* Into the loop that calls it, whichever version that is. */
#if defined(__GNUC__)
#define AT_INLINE static inline __attribute__((always_inline))
#else
#define AT_INLINE static inline
#endif

#endif
