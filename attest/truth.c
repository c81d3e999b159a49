/* attest truth CASE -o OUT: the truth as fp64 (out, lse) and what is missing to it (out_lo,
 * lse_lo). All rows: placed like q, a result that judge reads. Some rows: (n,Dv) and (n), beside
 * `rows` (n,3) that says which b, h, i. SPDX-License-Identifier: MIT */
#include "program.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is written; space holds it. */
struct written {
    struct at_tensor tensor[5];
    struct at_tensors file;
    double *space;
};

static void compact(struct written *w, const struct at_answer *y)
{
    int64_t wide[2] = {y->n, y->Dv};
    w->tensor[0] = at_tensor_of("out", AT_F64, 2, wide, y->out);
    w->tensor[1] = at_tensor_of("out_lo", AT_F64, 2, wide, y->out_lo);
    w->tensor[2] = at_tensor_of("lse", AT_F64, 1, wide, y->lse);
    w->tensor[3] = at_tensor_of("lse_lo", AT_F64, 1, wide, y->lse_lo);
    w->file.n = 4;
}

static bool add_rows(struct written *w, struct at_rows rows)
{
    int64_t *at = malloc((size_t)(rows.n * 3 + 1) * sizeof *at), extents[2] = {rows.n, 3};
    for (int64_t t = 0; at && t < rows.n; t++) {
        at[3 * t] = rows.at[t].b;
        at[3 * t + 1] = rows.at[t].h;
        at[3 * t + 2] = rows.at[t].i;
    }
    w->space = (double *)(void *)at;
    w->tensor[4] = at_tensor_of("rows", AT_I64, 2, extents, at);
    w->file.n = 5;
    return at != NULL;
}

/* Row t of a compact answer to where q has it. */
static void place(const struct at_case *x, const struct at_view *to, const double *from, int64_t C,
                  int64_t t)
{
    struct at_rows all = {0, NULL};
    struct at_place p = at_place_of(&x->a, all, t);
    int64_t at = at_row_offset(&x->a, to, p.b, p.h, p.i);
    for (int64_t c = 0; c < C; c++)
        ((double *)to->data)[at + c * to->stride[3]] = from[t * C + c];
}

static bool add_placed(struct written *w, const struct at_case *x, const struct at_answer *y)
{
    const int64_t *q = x->a.q.dim;
    static const char *const name[4] = {"out", "out_lo", "lse", "lse_lo"};
    const double *const from[4] = {y->out, y->out_lo, y->lse, y->lse_lo};
    double *space = malloc((size_t)(2 * y->n * (y->Dv + 1) + 1) * sizeof *space);
    w->space = space;
    for (int k = 0; space && k < 4; k++) {
        int64_t C = k < 2 ? y->Dv : 1;
        struct at_view to = k < 2 ? at_case_like_q(x, space, AT_F64, C)
                                  : at_bhsd(space, AT_F64, q[0], q[1], q[2], 1);
        for (int64_t t = 0; t < y->n; t++)
            place(x, &to, from[k], C, t);
        w->tensor[k] =
            k < 2 ? at_case_out(x, name[k], AT_F64, space) : at_case_lse(x, name[k], AT_F64, space);
        space += y->n * C;
    }
    w->file.n = 4;
    return w->space != NULL;
}

static bool write_truth(const struct options *o, const struct at_case *x, struct at_rows rows,
                        const struct at_answer *y, struct at_said *said)
{
    struct written w = {.space = NULL};
    json_t *m = json_pack("{s:i, s:s, s:{s:{s:s, s:s}}}", "spec", 1, "layout", x->layout, "results",
                          "", "arith", "fp64", "from", "attest truth: out + out_lo, lse + lse_lo");
    w.file.tensor = w.tensor;
    w.file.attest = json_dumps(m, JSON_COMPACT);
    if (rows.at)
        compact(&w, y);
    bool done = w.file.attest && (rows.at ? add_rows(&w, rows) : add_placed(&w, x, y));
    done = done ? at_tensors_write(o->out, &w.file, said) : at_say(said, "%s: no memory", o->out);
    json_decref(m);
    free(w.file.attest);
    free(w.space);
    return done;
}

int run_truth(const struct options *o)
{
    struct at_case x;
    struct at_rows rows = {0, NULL};
    struct at_answer y;
    struct at_said said;
    if (o->files != 1 || !o->out) {
        at_say(&said, "truth: expected attest truth CASE -o OUT");
        return refuse(&said);
    }
    if (!open_case(o, o->file[0], &x, &said))
        return refuse(&said);
    bool done = choose_rows(o, &x.a, &rows, &said);
    if (done && (done = at_judge_truth(&x.a, rows, truth_fast(o, false), progress_of("truth"), &y,
                                       &said))) {
        progress_done();
        done = write_truth(o, &x, rows, &y, &said);
        if (done)
            fprintf(stderr, "%s: truth of %lld rows, %lld (%.3g %%) by MPFR\n", x.name,
                    (long long)y.n, (long long)y.by_mpfr,
                    y.n > 0 ? 100 * (double)y.by_mpfr / (double)y.n : 0);
        at_answer_free(&y);
    }
    free((void *)rows.at);
    at_case_free(&x);
    return done ? PASS : refuse(&said);
}
