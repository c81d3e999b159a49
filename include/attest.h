/* attest: exact blocked attention, its truth, and the judge of other people's kernels.
 *
 * For a query row over its visible keys, with scores s and values v (docs/semantics.md, spec 1):
 *     m = max s,   l = sum e^(s-m),   u = sum e^(s-m) v,   out = u/l,   lse = m + log l.
 * Contents: 1 status and storage - 2 the descriptor - 3 states and results - 4 engines and their
 * arithmetic - 5 truth, bound, verdict. A descriptor is data alone: it owns nothing, holds no
 * callback, and any part of it that is zero is absent - except scale, left and right (at_plain).
 *
 * SPDX-License-Identifier: MIT */
#ifndef ATTEST_H
#define ATTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define AT_CHECKED __attribute__((warn_unused_result))
#else
#define AT_CHECKED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -- 1. Status and storage ----------------------------------------------------------------- */

enum at_status {
    AT_OK,
    AT_ERR_MISSING,     /* a tensor or array that the descriptor needs is absent */
    AT_ERR_SHAPE,       /* extents disagree, or a product of extents overflows */
    AT_ERR_STRIDE,      /* an output whose elements share memory */
    AT_ERR_DTYPE,       /* a dtype that this tensor cannot have */
    AT_ERR_HEADS,       /* Hq is not a multiple of Hkv */
    AT_ERR_DIM,         /* D or Dv below 1 */
    AT_ERR_SCALE,       /* scale NaN or infinite */
    AT_ERR_SOFTCAP,     /* softcap negative, NaN or infinite */
    AT_ERR_WINDOW,      /* left or right negative and not AT_UNBOUNDED */
    AT_ERR_LENGTH,      /* a length negative or beyond its tensor */
    AT_ERR_START,       /* ragged starts negative, not ascending, or beyond the tensor */
    AT_ERR_PAGE,        /* page size below 1, a page that a key needs absent or out of range */
    AT_ERR_DROPOUT,     /* p NaN or outside [0,1) */
    AT_ERR_PLAN,        /* a plan that is none: negative tile, cut points that do not ascend, ... */
    AT_ERR_UNSUPPORTED, /* legal, but not served by this engine or this release */
    AT_ERR_MEMORY
};

/* One sentence, without a full stop, in English; never NULL. */
const char *at_strstatus(enum at_status status);

/* Every stored value is exactly a double. AT_DEFAULT means "not narrowed" or "the narrowest that
 * does" where a dtype is asked for, and is no dtype of a view. */
enum at_dtype {
    AT_DEFAULT,
    AT_F64,
    AT_F32,
    AT_F16,
    AT_BF16,
    AT_F8_E4M3, /* the "fn" kind: no infinity, largest 448; past 464 it stores NaN */
    AT_F8_E5M2,
    AT_U8, /* boolean: 0 or not 0 */
    AT_I32,
    AT_I64
};

/* Four extents and strides (in elements) over somebody's memory. data == NULL: absent.
 * Element (b,h,s,c) lies at b*stride[0] + ... + c*stride[3]; stride 0 repeats (inputs only). */
struct at_view {
    void *data;
    enum at_dtype dtype;
    int64_t dim[4], stride[4];
};

/* Contiguous tensors, named by the order in memory; dim is (B,H,S,D) whatever the order. */
struct at_view at_bhsd(void *data, enum at_dtype dtype, int64_t B, int64_t H, int64_t S, int64_t D);
struct at_view at_bshd(void *data, enum at_dtype dtype, int64_t B, int64_t S, int64_t H, int64_t D);
/* Packed rows of all sequences: dim (1,H,T,D). */
struct at_view at_thd(void *data, enum at_dtype dtype, int64_t T, int64_t H, int64_t D);
/* Pages of `size` keys: dim (pages,H,size,D). */
struct at_view at_pages_hnd(void *data, enum at_dtype dtype, int64_t pages, int64_t H, int64_t size,
                            int64_t D);
struct at_view at_pages_nhd(void *data, enum at_dtype dtype, int64_t pages, int64_t size, int64_t H,
                            int64_t D);
/* x with extents of 1 repeated up to (B,H,S,D): its strides there become 0. */
struct at_view at_repeated(struct at_view x, int64_t B, int64_t H, int64_t S, int64_t D);

/* -- 2. The descriptor --------------------------------------------------------------------- */

#define AT_UNBOUNDED (-1) /* left, right: no bound on that side */

/* What a score is, and who sees whom. Arrays by sequence have B elements or are NULL (absent).
 * Sq and Skv are the tensors' extents; of ragged or paged batches the longest length. */
struct at_score {
    double scale;                  /* the very number used; never implied */
    double softcap;                /* y = softcap*tanh(x/softcap); 0: none */
    struct at_view bias;           /* (B,Hq,Sq,Skv) any float, added to y; -inf hides */
    struct at_view mask;           /* (B,Hq,Sq,Skv) U8; 0 hides */
    struct at_view alibi;          /* (1,Hq,1,1) slopes; s = (y + bias) - slope*|p-j| */
    struct at_view sink;           /* (1,Hq,1,1) one more score whose value is 0; -inf: absent */
    struct at_view qscale;         /* (B,Hq,Sq,1) descale: q is multiplied by it; k, v alike */
    struct at_view kscale;         /* (B,Hkv,Skv,1) */
    struct at_view vscale;         /* (B,Hkv,Skv,1) */
    int64_t left, right;           /* p-left <= j <= p+right, inclusive, p = i + offset[b] */
    const int64_t *offset;         /* causal bottom-right: Skv - Sq with right 0; top-left: NULL */
    const int64_t *q_len, *kv_len; /* rows, keys at or past them are absent */
    /* Ragged: q is (1,Hq,T,D) and sequence b owns its rows q_start[b] .. q_start[b]+q_len[b]-1;
     * k, v alike with kv_start, kv_len. With a start the lengths must be given. */
    const int64_t *q_start, *kv_start;
    int64_t sequences; /* B where q is ragged; ignored elsewhere */
};

/* Which weights are dropped: Philox4x32-10 as docs/semantics.md says, or a mask of the kept.
 * Kept weights count 1/(1-p) in out; lse has no dropout. p == 0 and no mask: none. */
struct at_dropout {
    double p;
    uint64_t seed, offset;
    struct at_view keep; /* (B,Hq,Sq,Skv) U8, instead of the draw */
};

/* A paged cache: k, v are (pages,Hkv,size,D), size their dim[2], and keys n*size .. of sequence b
 * lie in page table[b*width + n], or with indptr (a page list) in page table[indptr[b] + n].
 * kv_len must be given; entries that no key needs may be anything. table == NULL: not paged. */
struct at_pages {
    const int32_t *table;
    const int32_t *indptr; /* B+1, or NULL */
    int64_t width;         /* entries a sequence has in the table; ignored with indptr */
};

enum at_order { AT_IN_ORDER, AT_REVERSED, AT_TREE, AT_RANDOM };

/* How the same problem is computed: changes rounding, never meaning. 0: the engine's choice, one
 * pure function of the descriptor (at_resolve). */
struct at_plan {
    enum at_dtype compute; /* AT_F32 or AT_F64; AT_DEFAULT: the narrowest that holds every tensor */
    int64_t br, bc;        /* query and key rows in a tile; key tiles start at key 0 */
    int64_t lanes;         /* chains that a score's dot product runs in: 1, 2, 4 .. 64 */
    int64_t splits;        /* parts of the keys, each a state of its own; 1: none */
    const int64_t *cut;    /* splits-1 ascending split points; NULL: equal parts of whole tiles */
    enum at_order merge;   /* how the splits' states join */
    uint64_t merge_seed;   /* AT_RANDOM */
    int threads;           /* never changes a bit; 0: as many as OpenMP gives */
};

/* The one descriptor. Dense: q (B,Hq,Sq,D), k (B,Hkv,Skv,D), v (B,Hkv,Skv,Dv), Hkv divides Hq. */
struct at_attention {
    struct at_view q, k, v;
    struct at_score score;
    struct at_dropout dropout;
    struct at_pages pages;
    struct at_plan plan;
};

/* The plain problem: every key visible. Start here, then say what differs.
 * (left and right are the two numbers whose zero would hide keys.) */
struct at_attention at_plain(struct at_view q, struct at_view k, struct at_view v, double scale);

/* The plan with every choice made, so that another engine can repeat it. a is valid. */
struct at_plan at_resolve(const struct at_attention *a);

/* First key of split k of a resolved plan, k = 0..splits; the last is Skv. */
int64_t at_split(const struct at_attention *a, int64_t k);

/* What is wrong: "score.mask: extents (1,3,512,64), expected (1,9,512,512)". */
struct at_why {
    char text[200];
};

/* AT_OK, or the first thing that is wrong; why may be NULL. Reads lengths, starts and tables,
 * never q, k, v. Errors  every status above. */
AT_CHECKED enum at_status at_validate(const struct at_attention *a, struct at_why *why);

/* -- 3. States and results ------------------------------------------------------------------ */

/* What a row knows about the keys it has met; (-inf, 0, 0) knows nothing. All three of the compute
 * type, rows placed like q's: m, l (.,Hq,.,1), u (.,Hq,.,Dv). */
struct at_state {
    struct at_view m, l, u;
};

struct at_result {
    struct at_view out; /* placed like q, Dv columns; any float dtype */
    struct at_view lse; /* placed like q, one column; natural; or absent */
};

/* x = x (+) y, row by row: commutative to the bit, the empty state neutral to the bit.
 * Errors  AT_ERR_SHAPE, AT_ERR_DTYPE; then x is untouched. */
AT_CHECKED enum at_status at_merge(const struct at_state *x, const struct at_state *y);

/* out = u/l, lse = m + log l; an empty row is (0, -inf). gain: 1, or 1/(1-p) of dropout, which
 * multiplies u first. Errors  AT_ERR_SHAPE, AT_ERR_DTYPE; then nothing has been written. */
AT_CHECKED enum at_status at_finish(const struct at_state *x, double gain,
                                    const struct at_result *to);

/* The same knowledge as other libraries hand it over. */
enum at_form {
    AT_OUT_LSE,  /* out = u/l and lse = m + log l */
    AT_OUT_LSE2, /* out and lse in base 2: lse/ln 2 */
    AT_OUT_M_L,  /* out, m, l */
    AT_U_M_L     /* u, m, l: ours, with another's marks */
};

/* out (or u), lse (or m) and l (AT_OUT_M_L, AT_U_M_L) placed like a state's u, m, l, of any float
 * dtype; and how a row that sees nothing is marked there: its lse (or m), and out NaN or 0. */
struct at_foreign {
    enum at_form form;
    struct at_view out, lse, l;
    double empty_lse;
    bool empty_nan;
};

/* To: each number rounded once or twice; from (out, lse): m = lse, l = 1, u = out, whose rounding
 * is the lse's. Out, lse, l may not be x's own memory.
 * Errors  AT_ERR_SHAPE, AT_ERR_DTYPE, AT_ERR_MISSING; then nothing has been written. */
AT_CHECKED enum at_status at_to_foreign(const struct at_state *x, const struct at_foreign *to);
AT_CHECKED enum at_status at_from_foreign(const struct at_foreign *from, const struct at_state *x);

/* Log-sum-exp as packed batches hold it: (H,T) and (T,H), as views placed like a packed q. */
struct at_view at_lse_ht(void *data, enum at_dtype dtype, int64_t T, int64_t H);
struct at_view at_lse_th(void *data, enum at_dtype dtype, int64_t T, int64_t H);

/* Between rows placed like the ragged q of a, and padded (B,H,longest,C) rows of the same dtype;
 * padding and packed rows of no sequence are left alone. Errors  AT_ERR_SHAPE, AT_ERR_DTYPE. */
AT_CHECKED enum at_status at_pad(const struct at_attention *a, const struct at_view *packed,
                                 const struct at_view *padded);
AT_CHECKED enum at_status at_unpad(const struct at_attention *a, const struct at_view *padded,
                                   const struct at_view *packed);

/* -- 4. Engines and their arithmetic -------------------------------------------------------- */

enum at_rounding { AT_NEAREST, AT_TOWARD_ZERO, AT_STOCHASTIC };

/* A binary format: p significand bits (1..24), smallest normal 2^emin, every finite number below
 * 2^(emax+1). p == 0: no rounding of its own. */
struct at_float {
    int p, emin, emax;
    bool flush; /* subnormal results become 0 */
    enum at_rounding rounding;
};

/* What a kernel states about its rounding, and is held to (docs/bounds.md, table 1; presets in
 * ref/arith.c). Zero fields are the strictest: everything in the compute type, to nearest. */
struct at_arith {
    const char *name, *source;
    enum at_dtype compute; /* sums, exponents and the last division */
    enum at_dtype query;   /* q is scaled first and stored in it */
    enum at_dtype key;     /* with query: k too, and each of the two by sqrt(scale) */
    enum at_dtype score;   /* scores are stored in it */
    enum at_dtype weight;  /* P is rounded to it before P V */
    enum at_dtype sum;     /* l and u are summed in it; AT_DEFAULT: compute. Finer than compute:
                            * so are scores, and each sum is then rounded to compute */
    enum at_dtype total;   /* l alone is summed in it; AT_DEFAULT: sum */
    double product_eps;    /* relative error of a product by itself (3xTF32: 2^-21); 0: exact */
    int weight_shift;      /* P is scaled by 2^weight_shift before it is rounded */
    bool rounded_sum;      /* l sums the rounded P */
    bool normalised;       /* P is divided by l before P V: then no weight is exactly 1 */
    bool fused;            /* exp2 with scale and shift in one fma */
    bool inexact_one;      /* exp(0) need not be 1 */
    bool flush;            /* subnormal results become 0 */
    bool truncates;        /* sums are cut, not rounded: tensor cores */
    bool lse_merge;        /* splits join by (out, lse), not by (m, l, u) */
    bool dead_zero;        /* all visible scores -inf: (0, -inf) instead of NaN */
    bool ordered;          /* with tile: keys in ascending order, one by one; so tiles; no splits */
    int64_t dot;           /* roundings that a product q*k meets; 0: D, any order */
    int64_t tile;          /* keys are summed in aligned tiles of so many; 0: any order */
    int64_t joins;         /* sums joined above the tiles: splits, tree depth; 0: none */
    int64_t arguments;     /* roundings of the exponent's argument; 0: 1 */
    int64_t divisions;     /* final roundings of u/l; 0: 1 (a reciprocal: 2) */
    double exp_ulps, log_ulps, tanh_ulps; /* errors in units of 2 eps; 0: 1, 1, 3 */
    /* For evidence in small formats (tests/check_exhaustive.c): where p != 0 they stand in for
     * compute and weight. The tensors' numbers must then be numbers of `own`, and e^-F below its
     * smallest subnormal, F its largest number: a difference of scores may overflow. */
    struct at_float own, own_weight;
};

/* The presets, by name; NULL: none such. at_arith_at(k) for k = 0, 1, ... until NULL lists them. */
const struct at_arith *at_arith_find(const char *name);
const struct at_arith *at_arith_at(int64_t k);

/* State of every row over its visible keys among [j0,j1); rows of sequences are overwritten, packed
 * rows of none left alone. a is valid and its plan resolved (no zeros): at_forward sees to both.
 * Dropped keys count in l alone; sink and dropout's gain are at_forward's. */
typedef enum at_status at_attend(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x);

struct at_engine {
    const char *name;
    struct at_arith (*arith)(const struct at_attention *a); /* on this problem and plan */
    at_attend *attend_f32, *attend_f64;                     /* NULL: not served */
    /* The whole way at once, same bits, for splits that join in key order; or NULL. */
    enum at_status (*forward)(const struct at_attention *a, const struct at_result *to);
    /* Bytes of workspace that attend takes on this problem; NULL: a few rows. */
    int64_t (*workspace)(const struct at_attention *a);
};
extern const struct at_engine at_scalar;   /* the specification: a row at a time, a key at a time */
extern const struct at_engine at_standard; /* the textbook: all scores, then all weights */
/* CUDA (gpu/): the scalar engine's bits, prefill and split-KV decode, on the device and emulated on
 * a CPU; and tensor cores, by mma.sync and wgmma, with an arithmetic of their own. In a build
 * without nvcc those of the device refuse, with AT_ERR_UNSUPPORTED. */
extern const struct at_engine at_gpu, at_gpu_decode, at_gpu_mma, at_gpu_wgmma;
extern const struct at_engine at_gpu_emulated, at_gpu_decode_emulated;
/* One line: the device and what is built for it, or why there is none. */
void at_gpu_describe(char *text, size_t size);
extern const struct at_engine at_tiled; /* blocked, parallel, in vectors; bits as scalar's */
/* Strips of query rows times key tiles: computed, of these partly hidden, and never touched. */
struct at_tally {
    int64_t visited, partial, skipped;
};
/* at_tiled's forward, and what it did: a is valid, its plan resolved, in key order. */
AT_CHECKED enum at_status at_tiled_counted(const struct at_attention *a, const struct at_result *to,
                                           struct at_tally *tally);
/* The builds of at_tiled that this machine runs, widest first, at_tiled's own choice; else NULL. */
const struct at_engine *at_tiled_at(int64_t k);

/* Attend each split, merge as the plan says, take in the sink, finish. Packed rows of no sequence
 * and rows at or past q_len: out 0, lse -inf.
 * Errors  at_validate's, AT_ERR_UNSUPPORTED, AT_ERR_MEMORY; then nothing has been written. */
AT_CHECKED enum at_status at_forward(const struct at_engine *e, const struct at_attention *a,
                                     const struct at_result *to);

/* -- 5. Truth, bound, verdict ---------------------------------------------------------------- */

/* Row i of sequence b under query head h. b == -1: packed row i, which belongs to no sequence. */
struct at_place {
    int64_t b, h, i;
};

/* Rows to answer for. at == NULL: all n = dim[0]*Hq*dim[2] rows of q, in that order. */
struct at_rows {
    int64_t n;
    const struct at_place *at;
};

enum at_kind {
    AT_CLAIMED,  /* within the bound of the truth; a truth of NaN or infinity: that kind */
    AT_OPEN,     /* as claimed, or NaN */
    AT_OPEN_INF, /* NaN, the truth's infinity, or within the bound of `without` */
    AT_OVERFLOW, /* no claim: may overflow in the stated arithmetic */
    AT_LOOSE     /* no claim: the bound is infinite */
};

/* Compact answers for n rows: out_* (n,Dv), lse_* (n). The first six are at_truth's, the rest
 * at_bound's. at_answer_make allocates all of them in one block. */
struct at_answer {
    int64_t n, Dv;
    double *out, *lse;                  /* truth rounded to fp64 */
    double *out_lo, *lse_lo;            /* truth less that, rounded away from 0 */
    int16_t *out_bits, *lse_bits;       /* bits of hi + lo that are certain */
    double *out_bound, *lse_bound;      /* before the last rounding; +inf: no claim */
    unsigned char *out_kind, *lse_kind; /* enum at_kind */
    double *without;                    /* AT_OPEN_INF: the value without the infinite keys */
    int64_t by_mpfr;                    /* rows that MPFR decided: at_truth's all */
};

AT_CHECKED enum at_status at_answer_make(struct at_answer *x, int64_t n, int64_t Dv);
void at_answer_free(struct at_answer *x);

/* The meaning, decided: hi correctly rounded, hi + lo to 106 bits, or as many as *_bits says.
 * Errors  those of at_validate; AT_ERR_MEMORY.  Source  docs/semantics.md; ref/truth.c. */
AT_CHECKED enum at_status at_truth(const struct at_attention *a, struct at_rows rows,
                                   struct at_answer *x);

/* The same hi, to the bit, in double-words with a proved enclosure; what that leaves open, and what
 * it does not serve, by at_truth, row by row (by_mpfr counts them). hi + lo has as many bits as
 * *_bits says: 56 or more, 85 to 100 as a rule; lo need not have the sign of the rest.
 * Errors  those of at_truth.  Source  docs/fast-truth.md; ref/truth_fast.c. */
AT_CHECKED enum at_status at_truth_fast(const struct at_attention *a, struct at_rows rows,
                                        struct at_answer *x);

/* How far a kernel of this arithmetic may be from the truth before its last rounding; reads x's
 * truth. Errors  those of at_validate; AT_ERR_MEMORY.  Source  docs/bounds.md, (A*). */
AT_CHECKED enum at_status at_bound(const struct at_attention *a, const struct at_arith *arith,
                                   struct at_rows rows, struct at_answer *x);

/* The interval of numbers of `dtype` that element t (t = row*Dv + c; column -1: t = row, the lse)
 * of a kernel may hold: lo = RN_F(RN_T(o-B)), hi alike; -inf, +inf where there is no claim. */
void at_interval(const struct at_arith *arith, enum at_dtype dtype, const struct at_answer *x,
                 int64_t row, int64_t column, double *lo, double *hi);

struct at_verdict {
    int64_t judged, failed, open, unclaimed;
    double ratio;                       /* worst; <= 1 iff inside; 0: correctly rounded */
    int64_t worst, worst_c;             /* row of at_rows; column, -1: the lse */
    double got, truth, lo, hi, allowed; /* there */
    double max_value, max_error; /* largest |truth|; largest |got - truth| over finite elements */
};

/* Holds got against the interval of each element. NaN fails unless the truth is NaN or the element
 * open. ratios: NULL or (n*Dv + n), each element's, then each lse's (-1: got has none).
 * Errors  AT_ERR_SHAPE, AT_ERR_DTYPE, AT_ERR_MISSING (nothing to judge). */
AT_CHECKED enum at_status at_compare(const struct at_attention *a, const struct at_result *got,
                                     struct at_rows rows, const struct at_arith *arith,
                                     const struct at_answer *x, double *ratios,
                                     struct at_verdict *verdict);

#ifdef __cplusplus
}
#endif
#endif
