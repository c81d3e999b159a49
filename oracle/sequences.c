/* Which rows and keys a case's sequences have: lengths, ragged starts, pages, positions.
 *
 * cu_seqlens become starts and lengths, a page list becomes pages and key lengths, a causal corner
 * becomes an offset of each sequence. SPDX-License-Identifier: MIT */
#include "case.h"
#include <string.h>

/* -- Whole numbers --------------------------------------------------------------------------- */

/* Tensor of n whole numbers (n < 0: any number of them) as int64. *to stays NULL where absent. */
static bool read_whole(struct reading *r, const char *name, int64_t n, int64_t *count,
                       const int64_t **to)
{
    const struct at_tensor *t = at_tensors_find(&r->x->file, name);
    if (!t)
        return true;
    if (t->dtype != AT_I32 && t->dtype != AT_I64)
        return at_say(r->said, "%s: tensor %s: dtype %s found, expected I32 or I64", r->path, name,
                      at_dtype_stored(t->dtype));
    if (t->rank != 1 || (n >= 0 && t->dim[0] != n))
        return at_say(r->said, "%s: tensor %s: found rank %d and extent %lld, expected one of %lld",
                      r->path, name, t->rank, (long long)(t->rank ? t->dim[0] : 1), (long long)n);
    int64_t *list = at_case_alloc(r->x, 8 * t->dim[0]);
    if (!list)
        return at_say(r->said, "%s: no memory", r->path);
    for (int64_t k = 0; k < t->dim[0]; k++)
        list[k] = t->dtype == AT_I64 ? ((int64_t *)t->data)[k] : ((int32_t *)t->data)[k];
    if (count)
        *count = t->dim[0];
    *to = list;
    return true;
}

/* Lengths of B sequences; their upper ends are at_validate's. */
static bool read_lengths(struct reading *r, const char *name, int64_t B, const int64_t **to)
{
    if (!read_whole(r, name, B, NULL, to))
        return false;
    for (int64_t b = 0; *to && b < B; b++)
        if ((*to)[b] < 0)
            return at_say(r->said, "%s: tensor %s: element %lld is %lld, expected at least 0",
                          r->path, name, (long long)b, (long long)(*to)[b]);
    return true;
}

/* cu_seqlens: B+1 ascending places within `rows`. len: given (then at most so much), or made. */
static bool read_starts(struct reading *r, const char *name, int64_t B, int64_t rows,
                        const int64_t **start, const int64_t **len)
{
    const int64_t *cu = NULL;
    if (!read_whole(r, name, B + 1, NULL, &cu))
        return false;
    if (!cu)
        return at_say(r->said, "%s: tensor %s: absent, expected with layout thd", r->path, name);
    int64_t *made = at_case_alloc(r->x, 8 * B);
    if (!made)
        return at_say(r->said, "%s: no memory", r->path);
    for (int64_t b = 0; b <= B; b++) {
        int64_t least = b > 0 ? cu[b - 1] : 0;
        if (cu[b] < least || cu[b] > rows)
            return at_say(r->said, "%s: tensor %s: element %lld is %lld, expected %lld..%lld",
                          r->path, name, (long long)b, (long long)cu[b], (long long)least,
                          (long long)rows);
    }
    for (int64_t b = 0; b < B; b++) {
        made[b] = cu[b + 1] - cu[b];
        if (*len && (*len)[b] > made[b])
            return at_say(r->said,
                          "%s: length %lld of sequence %lld found, expected at most the "
                          "%lld rows of %s",
                          r->path, (long long)(*len)[b], (long long)b, (long long)made[b], name);
    }
    *start = cu;
    *len = *len ? *len : made;
    return true;
}

/* -- Pages ----------------------------------------------------------------------------------- */

static bool read_table(struct reading *r, const struct at_tensor *t, const int32_t **to)
{
    int64_t n = t->bytes / (t->dtype == AT_I64 ? 8 : 4);
    int32_t *table = at_case_alloc(r->x, 4 * n);
    if (t->dtype != AT_I32 && t->dtype != AT_I64)
        return at_say(r->said, "%s: tensor %s: dtype %s found, expected I32 or I64", r->path,
                      t->name, at_dtype_stored(t->dtype));
    if (!table)
        return at_say(r->said, "%s: no memory", r->path);
    for (int64_t k = 0; k < n; k++) {
        int64_t x = t->dtype == AT_I64 ? ((int64_t *)t->data)[k] : ((int32_t *)t->data)[k];
        if (x < INT32_MIN || x > INT32_MAX)
            return at_say(r->said, "%s: tensor %s: element %lld is %lld, expected 32 bits", r->path,
                          t->name, (long long)k, (long long)x);
        table[k] = (int32_t)x;
    }
    *to = table;
    return true;
}

/* Keys of sequence b fill whole pages but for the last. */
static bool list_lengths(struct reading *r, const int64_t *indptr, const int64_t *last, int64_t B)
{
    struct at_attention *a = &r->x->a;
    int64_t size = a->k.dim[2], *len = at_case_alloc(r->x, 8 * B);
    if (!len)
        return at_say(r->said, "%s: no memory", r->path);
    for (int64_t b = 0; b < B; b++) {
        int64_t n = indptr[b + 1] - indptr[b];
        if (n > 0 && (last[b] < 1 || last[b] > size))
            return at_say(r->said,
                          "%s: tensor kv_last_page_len: element %lld is %lld, expected "
                          "1..%lld",
                          r->path, (long long)b, (long long)last[b], (long long)size);
        len[b] = n > 0 ? (n - 1) * size + last[b] : 0;
    }
    a->score.kv_len = len;
    return true;
}

static bool read_page_list(struct reading *r, int64_t B)
{
    const struct at_tensor *t = at_tensors_find(&r->x->file, "kv_indices");
    const int64_t *indptr = NULL, *last = NULL;
    if (!read_whole(r, "kv_indptr", B + 1, NULL, &indptr) ||
        !read_whole(r, "kv_last_page_len", B, NULL, &last))
        return false;
    if (!indptr || !last || !t || t->rank != 1)
        return at_say(r->said,
                      "%s: tensor block_table, or kv_indptr, kv_indices (rank 1) and "
                      "kv_last_page_len: absent, expected with pages",
                      r->path);
    if (r->x->a.score.kv_len)
        return at_say(r->said, "%s: tensor kv_len found beside a page list, which says it",
                      r->path);
    int32_t *narrow = at_case_alloc(r->x, 4 * (B + 1));
    if (!narrow)
        return at_say(r->said, "%s: no memory", r->path);
    for (int64_t b = 0; b <= B; b++) {
        if (indptr[b] < (b ? indptr[b - 1] : 0) || indptr[b] > at_min(t->dim[0], INT32_MAX))
            return at_say(r->said,
                          "%s: tensor kv_indptr: element %lld is %lld, expected ascending "
                          "within the %lld of kv_indices",
                          r->path, (long long)b, (long long)indptr[b], (long long)t->dim[0]);
        narrow[b] = (int32_t)indptr[b];
    }
    r->x->a.pages.indptr = narrow;
    return read_table(r, t, &r->x->a.pages.table) && list_lengths(r, indptr, last, B);
}

static bool read_pages(struct reading *r, int64_t B)
{
    const struct at_tensor *t = at_tensors_find(&r->x->file, "block_table");
    if (!t)
        return read_page_list(r, B);
    if (at_tensors_find(&r->x->file, "kv_indptr"))
        return at_say(r->said,
                      "%s: tensor kv_indptr found beside block_table, expected one of them",
                      r->path);
    if (t->rank != 2 || t->dim[0] != B)
        return at_say(r->said,
                      "%s: tensor block_table: found rank %d and extent %lld, expected "
                      "(%lld,W)",
                      r->path, t->rank, (long long)(t->rank ? t->dim[0] : 1), (long long)B);
    if (!r->x->a.score.kv_len)
        return at_say(r->said, "%s: tensor kv_len: absent, expected with block_table", r->path);
    r->x->a.pages.width = t->dim[1];
    return read_table(r, t, &r->x->a.pages.table);
}

/* -- Sequences -------------------------------------------------------------------------------- */

/* Who sees whom: lengths, starts, pages, window. */
bool at_case_sequences(struct reading *r, const char *kv_layout)
{
    struct at_attention *a = &r->x->a;
    struct at_score *s = &a->score;
    bool packed = strcmp(r->x->layout, "thd") == 0;
    int64_t n = 0, B = a->q.dim[0];
    const int64_t *unused = NULL;
    if (packed) {
        if (!read_whole(r, "cu_seqlens_q", -1, &n, &unused))
            return false;
        s->sequences = B = at_max(n - 1, 0);
    }
    if (!read_lengths(r, "q_len", B, &s->q_len) || !read_lengths(r, "kv_len", B, &s->kv_len))
        return false;
    if (packed && !read_starts(r, "cu_seqlens_q", B, a->q.dim[2], &s->q_start, &s->q_len))
        return false;
    if (kv_layout)
        return read_pages(r, B);
    return !packed || read_starts(r, "cu_seqlens_k", B, a->k.dim[2], &s->kv_start, &s->kv_len);
}

/* Causal bottom-right: the last query row stands beside the last key. */
bool at_case_offset(struct reading *r)
{
    struct at_attention *a = &r->x->a;
    struct at_sizes z = at_sizes(a);
    const char *causal = at_meta_text(r->x->meta, "causal", NULL);
    bool corner = causal && strcmp(causal, "bottom-right") == 0;
    int64_t all = at_meta_integer(r->x->meta, "offset", 0), *offset;
    if (!read_whole(r, "offset", z.B, NULL, &a->score.offset))
        return false;
    if (a->score.offset && (causal || at_meta_get(r->x->meta, "offset")))
        return at_say(r->said,
                      "%s: tensor offset found beside the field causal or offset, expected "
                      "one of them",
                      r->path);
    if (!corner && all == 0)
        return true;
    offset = at_case_alloc(r->x, 8 * z.B);
    if (!offset)
        return at_say(r->said, "%s: no memory", r->path);
    for (int64_t b = 0; b < z.B; b++)
        offset[b] = corner ? at_keys_of(a, &z, b) - at_rows_of(a, &z, b) : all;
    a->score.offset = offset;
    return true;
}
