/* A case with its truth and the interval of a stated arithmetic, and the two files they go to.
 *
 * CASE.safetensors: the inputs, truth_out + truth_out_lo and truth_lse + truth_lse_lo in fp64,
 * `kind` and `kind_lse`. CASE.ARITH.safetensors: out_lo, out_hi, lse_lo, lse_hi, and kinds with
 * open and no claim added. Past 1 MB: a recipe instead of the inputs, and `rows` (n,3) that have an
 * answer. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "vector.h"
#include "at_math.h"
#include "case.h"
#include "ref.h"
#include <math.h>
#include <stdlib.h>

/* -- Which rows ------------------------------------------------------------------------------ */

/* A file of inputs and truth up to here holds both; past it neither whole. */
#define WHOLE ((int64_t)1 << 20)
/* Visible keys times (D + Dv) that the truth of one case may take: some seconds of one core. */
#define BUDGET ((double)((int64_t)1 << 23))
enum { LEAST = 32 };

int64_t at_vector_rows(const struct at_canvas *c, bool *stored, bool *sampled)
{
    int64_t all = at_canvas_height(c) * c->Hq, want = c->want->rows;
    int64_t bytes = at_canvas_bytes(c) + all * (17 * c->Dv + 17);
    *stored = bytes <= WHOLE;
    if (!*stored && want == 0)
        want = at_max(LEAST, (int64_t)(BUDGET / ((double)c->Skv * (double)(c->D + c->Dv))));
    *sampled = !*stored && want < all;
    return *sampled ? want : all;
}

/* -- Making ---------------------------------------------------------------------------------- */

static void *from_case(void *with, int64_t bytes) { return at_case_alloc(with, bytes); }

/* The case as a file would give it. */
static bool read_back(struct at_vector *v, struct at_said *said)
{
    struct at_tensors file = {0};
    json_t *meta = at_canvas_meta(&v->canvas);
    file.attest = json_dumps(meta, JSON_COMPACT | JSON_REAL_PRECISION(17));
    file.tensor = calloc(AT_INPUTS, sizeof *file.tensor);
    json_decref(meta);
    if (!file.attest || !file.tensor) {
        at_tensors_free(&file);
        return at_say(said, "%s: no memory", v->canvas.name);
    }
    v->x = (struct at_case){0};
    file.n = at_canvas_tensors(&v->canvas, file.tensor, from_case, &v->x);
    v->x.file = file;
    if (file.n < 0) {
        v->x.file.n = 0;
        return at_say(said, "%s: no memory", v->canvas.name);
    }
    return at_case_take(&v->x, v->canvas.name, said);
}

bool at_vector_make(struct at_vector *v, const struct at_request *want, const struct at_plot *plot,
                    int64_t tile, struct at_progress progress, struct at_said *said)
{
    *v = (struct at_vector){.out = at_request_output(want)};
    bool done = at_canvas_plan(&v->canvas, want, plot, tile) && at_canvas_paint(&v->canvas);
    if (!done)
        return at_say(said, "%s: no memory for the inputs", v->canvas.name);
    int64_t n = at_vector_rows(&v->canvas, &v->stored, &v->sampled);
    done = read_back(v, said);
    at_canvas_free(&v->canvas); /* its doubles; sizes stay */
    if (done && !at_arith_read(&v->arith, want->arith, NULL))
        done = at_say(said, "arithmetic %.100s: unknown", want->arith);
    v->lse = v->arith.compute == AT_F64 ? AT_F64 : AT_F32;
    if (done && !at_rows_choose(&v->x.a, v->sampled ? n : -1, want->seed, &v->rows))
        done = at_say(said, "%s: no memory", v->canvas.name);
    if (done)
        done = at_judge_truth(&v->x.a, v->rows, false, progress, &v->y, said) &&
               at_judge_bound(&v->x.a, v->rows, &v->arith, &v->y, said);
    if (done)
        at_exact_claim(plot->exact, &v->arith, want->dtype, &v->y);
    else
        at_vector_free(v);
    return done;
}

void at_vector_free(struct at_vector *v)
{
    at_canvas_free(&v->canvas);
    free((void *)v->rows.at);
    at_answer_free(&v->y);
    at_case_free(&v->x);
    *v = (struct at_vector){.rows = {0, NULL}};
}

/* -- Elements -------------------------------------------------------------------------------- */

static unsigned char kind_of(double truth)
{
    return isnan(truth)   ? KIND_NAN
           : isinf(truth) ? (truth > 0 ? KIND_PLUS : KIND_MINUS)
                          : KIND_FINITE;
}

unsigned char at_vector_element(const struct at_vector *v, int64_t row, int64_t column, double *lo,
                                double *hi)
{
    const struct at_answer *y = &v->y;
    int64_t at = row * y->Dv + column;
    double truth = column < 0 ? y->lse[row] : y->out[at];
    at_interval(&v->arith, column < 0 ? v->lse : v->out, y, row, column, lo, hi);
    switch (column < 0 ? y->lse_kind[row] : y->out_kind[at]) {
    case AT_OPEN: return isfinite(truth) ? KIND_OPEN : kind_of(truth);
    case AT_OPEN_INF: return truth > 0 ? KIND_OPEN_PLUS : truth < 0 ? KIND_OPEN_MINUS : KIND_OPEN;
    case AT_OVERFLOW:
    case AT_LOOSE: *lo = -INFINITY, *hi = INFINITY; return KIND_NONE;
    default: return kind_of(truth);
    }
}

/* -- Tensors --------------------------------------------------------------------------------- */

/* A file in the making: tensors over one block of memory. */
struct making {
    const struct at_vector *v;
    struct at_tensor tensor[AT_INPUTS + 8];
    struct at_tensors all;
    struct at_case memory; /* owns what is allocated */
    bool good;
};

/* out: rows of Dv columns, placed like q or compact; lse: one. */
static void *add(struct making *m, const char *name, enum at_dtype dtype, bool out)
{
    const struct at_canvas *c = &m->v->canvas;
    int64_t T = at_canvas_height(c), Dv = c->Dv;
    int64_t whole[4] = {c->B, c->Hq, c->Sq, Dv}, some[2] = {m->v->y.n, Dv};
    int64_t packed[3] = {out ? T : c->Hq, out ? c->Hq : T, Dv};
    const int64_t *d = m->v->sampled ? some : c->packed ? packed : whole;
    int rank = (m->v->sampled ? 1 : c->packed ? 2 : 3) + out;
    void *data = at_case_alloc(&m->memory, m->v->y.n * (out ? Dv : 1) * at_dtype_size(dtype));
    m->good = m->good && data;
    m->all.tensor = m->tensor;
    m->tensor[m->all.n++] = at_tensor_of(name, dtype, rank, d, data);
    return data;
}

int64_t at_vector_row(const struct at_vector *v, int64_t k)
{
    const struct at_canvas *c = &v->canvas;
    if (!c->packed || v->sampled)
        return k;
    return k % c->Hq * at_canvas_height(c) + k / c->Hq;
}

/* The sign of a NaN is the compiler's; files have one NaN. */
static double one_nan(double x) { return isnan(x) ? (double)NAN : x; }

static void add_numbers(struct making *m, const char *name, const double *from, bool out)
{
    double *to = add(m, name, AT_F64, out);
    int64_t C = out ? m->v->y.Dv : 1;
    for (int64_t k = 0; to && k < m->v->y.n * C; k++)
        to[k] = one_nan(from[(out ? at_vector_row(m->v, k / C) : k / C) * C + k % C]);
}

/* Indices into out: (b, h, i), or of packed rows (t, h). */
static void add_rows(struct making *m)
{
    const struct at_attention *a = &m->v->x.a;
    int64_t wide = a->score.q_start ? 2 : 3, dim[2] = {m->v->rows.n, wide};
    int64_t *to = at_case_alloc(&m->memory, 8 * wide * m->v->rows.n);
    m->good = m->good && to;
    for (int64_t t = 0; to && t < m->v->rows.n; t++) {
        struct at_place p = m->v->rows.at[t];
        int64_t *at = to + wide * t;
        at[0] = wide == 3 ? p.b : p.i + (p.b < 0 ? 0 : a->score.q_start[p.b]);
        at[1] = p.h;
        at[wide - 1] = wide == 3 ? p.i : p.h;
    }
    m->tensor[m->all.n++] = at_tensor_of("rows", AT_I64, 2, dim, to);
}

static bool write(struct making *m, const char *path, json_t *meta, struct at_said *said)
{
    if (m->v->sampled)
        add_rows(m);
    m->all.attest = json_dumps(meta, JSON_COMPACT | JSON_REAL_PRECISION(17));
    bool done = m->good && m->all.attest ? at_tensors_write(path, &m->all, said)
                                         : at_say(said, "%s: no memory", path);
    free(m->all.attest);
    json_decref(meta);
    at_case_free(&m->memory);
    return done;
}

static bool write_truth(const struct at_vector *v, const char *path, struct at_said *said)
{
    struct making m = {.v = v, .good = true};
    const struct at_answer *y = &v->y;
    add_numbers(&m, "truth_out", y->out, true);
    add_numbers(&m, "truth_out_lo", y->out_lo, true);
    add_numbers(&m, "truth_lse", y->lse, false);
    add_numbers(&m, "truth_lse_lo", y->lse_lo, false);
    unsigned char *kind = add(&m, "kind", AT_U8, true), *lse = add(&m, "kind_lse", AT_U8, false);
    for (int64_t t = 0; m.good && t < y->n * y->Dv; t++)
        kind[t] = kind_of(y->out[at_vector_row(v, t / y->Dv) * y->Dv + t % y->Dv]);
    for (int64_t t = 0; m.good && t < y->n; t++)
        lse[t] = kind_of(y->lse[t]);
    for (int64_t t = 0; v->stored && t < v->x.file.n; t++)
        m.tensor[m.all.n++] = v->x.file.tensor[t];
    return write(&m, path, at_canvas_meta(&v->canvas), said);
}

static bool write_interval(const struct at_vector *v, const char *path, struct at_said *said)
{
    struct making m = {.v = v, .good = true};
    struct at_view lo = {0}, hi = {0}, low = {0}, high = {0};
    lo.dtype = hi.dtype = v->out, low.dtype = high.dtype = v->lse;
    lo.data = add(&m, "out_lo", v->out, true), hi.data = add(&m, "out_hi", v->out, true);
    low.data = add(&m, "lse_lo", v->lse, false), high.data = add(&m, "lse_hi", v->lse, false);
    unsigned char *kind = add(&m, "kind", AT_U8, true), *lse = add(&m, "kind_lse", AT_U8, false);
    int64_t Dv = v->y.Dv;
    for (int64_t t = 0; m.good && t < v->y.n; t++)
        for (int64_t c = -1; c < Dv; c++) {
            double x, y;
            unsigned char k = at_vector_element(v, c < 0 ? t : at_vector_row(v, t), c, &x, &y);
            *(c < 0 ? &lse[t] : &kind[t * Dv + c]) = k;
            at_store(c < 0 ? &low : &lo, c < 0 ? t : t * Dv + c, one_nan(x));
            at_store(c < 0 ? &high : &hi, c < 0 ? t : t * Dv + c, one_nan(y));
        }
    json_t *meta =
        json_pack("{s:i, s:{s:s, s:s, s:i, s:b}}", "spec", AT_SPEC, "interval", "case",
                  v->canvas.name, "arith", v->canvas.want->arith, "bound", AT_BOUND, "exact",
                  at_exact_for(v->canvas.plot->exact, &v->arith, v->canvas.want->dtype));
    return write(&m, path, meta, said);
}

bool at_vector_write(const struct at_vector *v, const char *truth, const char *interval,
                     struct at_said *said)
{
    return write_truth(v, truth, said) && write_interval(v, interval, said);
}
