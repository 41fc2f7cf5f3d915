/* SPDX-License-Identifier: Apache-2.0 */
/* From logits to answers, as Hugging Face's post-processing for question answering: of every
 * feature the best starts and ends are paired, the pairs of all windows of a question compete, the
 * best one is cut out of the text. */
#include "data/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A span of the text that may be the answer, or "no answer". Scores are single precision, as in the
 * reference. */
struct candidate {
    float start, end;  /* logits */
    uint32_t from, to; /* code points of the text */
    uint32_t feature;  /* among equal scores the first feature's comes first */
};

struct question {
    struct candidate *best; /* [n_best], best first; NULL until a feature comes */
    unsigned n;
    bool has_null;
    float null_score; /* the smallest over the windows */
    uint32_t null_feature;
    char *answer;
};

struct wk_answers {
    const struct wk_squad *squad;
    const struct wk_features *features;
    struct wk_answer_options options;
    struct question *questions;
};

static int check(const struct wk_squad *squad, const struct wk_features *features,
                 const struct wk_answer_options *o, struct hg_err *err)
{
    if (o->n_best < 1 || o->n_best > WK_ANSWER_N_BEST_MAX || o->max_tokens < 1)
        return hg_err_set(err, HG_E_INPUT, "n_best must be 1 to %d, answers at least 1 token long",
                          WK_ANSWER_N_BEST_MAX);
    if ((features->n && !features->starts) || features->n_questions > squad->n_questions)
        return hg_err_set(err, HG_E_INPUT, "these features were not made from the data's texts");
    return 0;
}

struct wk_answers *wk_answers_create(const struct wk_squad *squad,
                                     const struct wk_features *features,
                                     const struct wk_answer_options *options, struct hg_err *err)
{
    struct wk_answers *a;

    if (check(squad, features, options, err) < 0)
        return NULL;
    a = hg_alloc(sizeof *a);
    *a = (struct wk_answers){ .squad = squad, .features = features, .options = *options };
    a->questions = hg_alloc_zeroed(features->n_questions + 1, sizeof *a->questions);
    return a;
}

void wk_answers_free(struct wk_answers *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->features->n_questions; i++) {
        free(a->questions[i].best);
        free(a->questions[i].answer);
    }
    free(a->questions);
    free(a);
}

/* Positions of the k largest values, largest first; of equal ones the later comes first. Returns
 * how many. */
static unsigned largest(const float *v, size_t n, unsigned k, uint32_t *at)
{
    unsigned have = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned place = have;

        if (v[i] != v[i] || (have == k && v[i] < v[at[k - 1]]))
            continue;
        while (place > 0 && v[i] >= v[at[place - 1]])
            place--;
        have += have < k;
        memmove(at + place + 1, at + place, (have - 1 - place) * sizeof *at);
        at[place] = (uint32_t)i;
    }
    return have;
}

static float score(const struct candidate *c)
{
    return c->start + c->end;
}

/* Keep the n_best best. Those of a feature come in the reference's order, so a later one of equal
 * score comes later. */
static void consider(struct question *q, unsigned n_best, const struct candidate *c)
{
    unsigned place = q->n;

    while (place > 0 &&
           (score(c) > score(&q->best[place - 1]) ||
            (score(c) == score(&q->best[place - 1]) && c->feature < q->best[place - 1].feature)))
        place--;
    if (place == n_best)
        return;
    q->n += q->n < n_best;
    memmove(q->best + place + 1, q->best + place, (q->n - 1 - place) * sizeof *q->best);
    q->best[place] = *c;
}

static void consider_null(struct question *q, float value, uint32_t feature)
{
    if (value != value || (q->has_null && value > q->null_score))
        return;
    if (q->has_null && value == q->null_score && feature > q->null_feature)
        return;
    q->has_null = true;
    q->null_score = value;
    q->null_feature = feature;
}

void wk_answers_add(struct wk_answers *a, size_t i, const float *starts, const float *ends,
                    size_t n)
{
    const struct wk_features *f = a->features;
    const struct wk_feature *item = &f->items[i];
    struct question *q = &a->questions[item->question];
    uint32_t best_starts[WK_ANSWER_N_BEST_MAX], best_ends[WK_ANSWER_N_BEST_MAX];
    uint32_t first = wk_feature_context(f, i),
             last = first + item->n; /* last is the one after the text */
    unsigned n_starts = largest(starts, n, a->options.n_best, best_starts);
    unsigned n_ends = largest(ends, n, a->options.n_best, best_ends);

    if (!q->best)
        q->best = hg_alloc(a->options.n_best * sizeof *q->best);
    consider_null(q, starts[0] + ends[0], (uint32_t)i);
    for (unsigned s = 0; s < n_starts; s++) {
        for (unsigned e = 0; e < n_ends; e++) {
            uint32_t from = best_starts[s], to = best_ends[e];
            struct candidate c = { starts[from], ends[to], 0, 0, (uint32_t)i };

            if (from < first || to >= last || to < from || to - from + 1 > a->options.max_tokens)
                continue;
            c.from = f->starts[item->at + (from - first)];
            c.to = f->ends[item->at + (to - first)];
            consider(q, a->options.n_best, &c);
        }
    }
}

/* Byte of the at-th code point, or the length where the text has fewer. */
static size_t byte_of(const struct wk_squad_paragraph *p, uint32_t at)
{
    size_t i = 0;

    for (; at > 0 && i < p->len; at--) {
        i++;
        while (i < p->len && ((unsigned char)p->context[i] & 0xc0) == 0x80)
            i++;
    }
    return i;
}

static char *cut(const struct wk_squad_paragraph *p, const struct candidate *c)
{
    size_t from = byte_of(p, c->from), to = byte_of(p, c->to);

    return hg_strndup(p->context + from, to > from ? to - from : 0);
}

/* v2.0: does "no answer" win? It does when its score passes the best span's by more than the
 * threshold. */
static bool is_null(const struct wk_answers *a, const struct question *q)
{
    float better;

    if (!a->squad->v2 || !q->has_null)
        return false;
    better = q->n ? q->null_score - q->best[0].start - q->best[0].end : q->null_score;
    return better > a->options.null_threshold;
}

const char *wk_answers_get(struct wk_answers *a, size_t i)
{
    struct question *q = &a->questions[i];

    if (i >= a->features->n_questions || !q->best)
        return NULL;
    if (q->answer)
        return q->answer;
    if (is_null(a, q))
        q->answer = hg_strdup("");
    else if (q->n == 0)
        q->answer = hg_strdup("empty");
    else
        q->answer = cut(&a->squad->paragraphs[a->squad->questions[i].paragraph], &q->best[0]);
    return q->answer;
}
