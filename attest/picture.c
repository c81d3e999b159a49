/* attest show: a case for the eye - tensors, what a score is, who sees whom, how large scores are.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_row.h"
#include "program.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 64, HIGH = 32 };         /* the largest picture */
#define SCORES_MOST ((int64_t)1 << 28) /* products that the range of scores may cost */

static void print_tensors(const struct at_case *x)
{
    for (int64_t t = 0; t < x->file.n; t++) {
        const struct at_tensor *y = &x->file.tensor[t];
        printf("  %-18s %-8s (", y->name, y->boolean ? "BOOL" : at_dtype_stored(y->dtype));
        for (int d = 0; d < y->rank; d++)
            printf(d ? ",%lld" : "%lld", (long long)y->dim[d]);
        printf(")\n");
    }
}

/* "s = (8.5*tanh(0.125*q.k/8.5) + bias) - slope*|p-j|" */
static void print_formula(const struct at_attention *a)
{
    const struct at_score *s = &a->score;
    const char *q = s->qscale.data ? "(q*q_descale)" : "q";
    const char *k = s->kscale.data ? "(k*k_descale)" : "k";
    printf("a score        s = ");
    if (s->softcap > 0)
        printf("%.17g*tanh(%.17g*%s.%s/%.17g)", s->softcap, s->scale, q, k, s->softcap);
    else
        printf("%.17g*%s.%s", s->scale, q, k);
    printf("%s%s\n", s->bias.data ? " + bias" : "", s->alibi.data ? " - slope*|p-j|" : "");
}

static void print_visibility(const struct at_attention *a)
{
    const struct at_score *s = &a->score;
    printf("row i sees j   j < key length");
    if (s->left != AT_UNBOUNDED)
        printf(", j >= p-%lld", (long long)s->left);
    if (s->right != AT_UNBOUNDED)
        printf(", j <= p+%lld", (long long)s->right);
    printf("%s%s", s->mask.data ? ", mask != 0" : "", s->bias.data ? ", bias != -inf" : "");
    printf("; p = i%s\n", s->offset ? " + offset of its sequence" : "");
    if (s->sink.data)
        printf("sink           one more score a head, of value 0\n");
    if (at_drops(a))
        printf("dropout        p %.17g, %s\n", a->dropout.p,
               a->dropout.keep.data ? "the kept by mask" : "drawn by Philox4x32-10");
}

static void print_sequences(const struct at_attention *a, const struct at_sizes *z)
{
    printf("sequences      %lld, query heads %lld on key heads %lld, D %lld, Dv %lld%s\n",
           (long long)z->B, (long long)z->Hq, (long long)z->Hkv, (long long)z->D, (long long)z->Dv,
           a->pages.table     ? ", paged"
           : a->score.q_start ? ", packed"
                              : "");
    for (int64_t b = 0; b < z->B && b < 16; b++)
        printf("  %-4lld         rows %lld, keys %lld, offset %lld\n", (long long)b,
               (long long)at_rows_of(a, z, b), (long long)at_keys_of(a, z, b),
               (long long)at_position(a, b, 0));
    if (z->B > 16)
        printf("  ...\n");
}

static void print_picture(const struct at_attention *a, const struct at_sizes *z)
{
    int64_t rows = at_rows_of(a, z, 0), keys = at_keys_of(a, z, 0);
    if (z->B == 0 || z->Hq == 0 || rows > HIGH || keys > WIDE)
        return;
    printf("sequence 0, head 0: rows down, keys across, # is seen\n");
    for (int64_t i = 0; i < rows; i++) {
        struct at_span seen = at_keys(a, z, 0, i);
        printf("  %4lld  ", (long long)i);
        for (int64_t j = 0; j < keys; j++)
            putchar(j >= seen.lo && j < seen.hi && at_shown(a, 0, 0, i, j) ? '#' : '.');
        printf("\n");
    }
}

/* -- Scores ---------------------------------------------------------------------------------- */

struct range {
    double least, most;
    int64_t pairs, empty, strange; /* strange: NaN or infinite */
};

static void row_scores(const struct at_attention *a, const struct at_sizes *z, struct at_place p,
                       double *space, struct range *r)
{
    struct at_span seen = at_keys(a, z, p.b, p.i);
    double *q = space, *k = space + z->D;
    int64_t g = p.h / z->group, before = r->pairs;
    if (seen.lo < seen.hi)
        at_load_row(&a->q, at_row_offset(a, &a->q, p.b, p.h, p.i), &a->score.qscale, p.b, p.h, p.i,
                    z->D, q);
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(a, p.b, p.h, p.i, j))
            continue;
        at_load_row(&a->k, at_key_offset(a, &a->k, p.b, g, j), &a->score.kscale, p.b, g, j, z->D,
                    k);
        double s = at_scored(a, at_dot(q, k, z->D, 1), p.b, p.h, p.i, j);
        r->pairs++;
        r->strange += !isfinite(s);
        r->least = s < r->least ? s : r->least;
        r->most = s > r->most ? s : r->most;
    }
    r->empty += r->pairs == before;
}

static void print_range(const struct at_attention *a, const struct at_sizes *z)
{
    struct range r = {INFINITY, -INFINITY, 0, 0, 0};
    int64_t rows = 0;
    double *space = malloc((size_t)(2 * z->D) * sizeof *space);
    if (!space || at_rows_cost(a) > SCORES_MOST) {
        printf("scores         not computed: too many\n");
        free(space);
        return;
    }
    for (int64_t b = 0; b < z->B; b++)
        for (int64_t h = 0; h < z->Hq; h++)
            for (int64_t i = 0; i < at_rows_of(a, z, b); i++, rows++)
                row_scores(a, z, (struct at_place){b, h, i}, space, &r);
    free(space);
    printf("empty rows     %lld of %lld see no key\n", (long long)r.empty, (long long)rows);
    if (r.pairs > 0)
        printf("scores         %.6g .. %.6g over %lld visible pairs", r.least, r.most,
               (long long)r.pairs);
    else
        printf("scores         none");
    printf(r.strange ? ", %lld of them NaN or infinite\n" : "\n", (long long)r.strange);
}

void print_case(const struct at_case *x)
{
    struct at_sizes z = at_sizes(&x->a);
    printf("%s (%s), layout %s\n", x->name, x->path, x->layout);
    print_tensors(x);
    print_sequences(&x->a, &z);
    print_formula(&x->a);
    print_visibility(&x->a);
    print_range(&x->a, &z);
    for (int64_t k = 0; k < x->results; k++)
        printf("result         %s, held to %s%s%s\n", x->result[k].name,
               *x->result[k].arith ? x->result[k].arith : "nothing stated",
               *x->result[k].from ? "; " : "", x->result[k].from);
    print_picture(&x->a, &z);
}
