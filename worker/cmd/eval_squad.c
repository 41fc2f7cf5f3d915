/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker eval-squad: EM and F1 of a file of predictions. */
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "data/squad_eval.h"

static const char *data, *predictions, *na_prob;
static double na_threshold = 1;
static bool json;

static json_t *encode_figures(const struct wk_squad_figures *f)
{
    return json_pack("{s:f, s:f, s:I}", "em", f->exact, "f1", f->f1, "questions", (json_int_t)f->n);
}

/* What was scored, and with what. */
struct scored {
    const struct wk_squad *squad;
    const struct wk_squad_predictions *predictions;
    const struct wk_squad_na *na; /* NULL: none */
    struct wk_squad_score score;
    struct wk_squad_best best; /* with na */
};

static void add_best(const struct wk_squad_best *b, json_t *root)
{
    json_object_set_new(root, "best_em", json_real(b->exact));
    json_object_set_new(root, "best_em_threshold", json_real(b->exact_threshold));
    json_object_set_new(root, "best_f1", json_real(b->f1));
    json_object_set_new(root, "best_f1_threshold", json_real(b->f1_threshold));
}

static json_t *encode(const struct scored *scored)
{
    const struct wk_squad *squad = scored->squad;
    const struct wk_squad_score *s = &scored->score;
    json_t *root = encode_figures(&s->all);

    json_object_set_new(root, "missing", json_integer((json_int_t)s->missing));
    json_object_set_new(root, "foreign", json_integer((json_int_t)scored->predictions->foreign));
    json_object_set_new(root, "rules", json_string(squad->v2 ? "2.0" : "1.1"));
    if (squad->v2) {
        json_object_set_new(root, "has_answer", encode_figures(&s->has_answer));
        json_object_set_new(root, "no_answer", encode_figures(&s->no_answer));
    }
    if (scored->na)
        add_best(&scored->best, root);
    return root;
}

static void print_figures(const char *what, const struct wk_squad_figures *f, struct hg_buf *out)
{
    hg_buf_printf(out, "%-12s %9zu %9.4f %9.4f\n", what, f->n, f->exact, f->f1);
}

static void print_best(const char *what, double best, double threshold, struct hg_buf *out)
{
    char number[32];

    hg_text_number_format(threshold, number);
    hg_buf_printf(out, "%-12s %9.4f  with threshold %s\n", what, best, number);
}

static void print_table(const struct scored *scored, struct hg_buf *out)
{
    const struct wk_squad *squad = scored->squad;
    const struct wk_squad_score *s = &scored->score;

    hg_buf_printf(out, "%-12s %9s %9s %9s\n", squad->v2 ? "rules 2.0" : "rules 1.1", "questions",
                  "EM", "F1");
    print_figures("all", &s->all, out);
    if (squad->v2) {
        print_figures("has answer", &s->has_answer, out);
        print_figures("no answer", &s->no_answer, out);
    }
    if (scored->na) {
        print_best("best EM", scored->best.exact, scored->best.exact_threshold, out);
        print_best("best F1", scored->best.f1, scored->best.f1_threshold, out);
    }
}

/* Numbers that look fine although half of the predictions are not there mislead. */
static void warn_of_gaps(const struct scored *scored)
{
    const struct wk_squad *squad = scored->squad;
    size_t missing = scored->score.missing, foreign = scored->predictions->foreign;

    if (missing)
        hg_warn("%zu of %zu questions have no prediction: they %s", missing, squad->n_questions,
                squad->v2 ? "do not count" : "count 0");
    if (foreign)
        hg_warn("%zu predictions have ids that are not in the data: ignored", foreign);
    if (scored->na && scored->na->foreign)
        hg_warn("%zu numbers of --na-prob have ids that are not in the data: ignored",
                scored->na->foreign);
}

static int print_score(struct scored *s, struct hg_err *err)
{
    struct hg_buf out = HG_BUF_INIT;

    if (!s->na)
        wk_squad_score(s->squad, s->predictions->texts, &s->score);
    else if (wk_squad_score_na(s->squad, s->predictions->texts, s->na, na_threshold, &s->score,
                               &s->best, err) < 0)
        return -1;
    warn_of_gaps(s);
    if (json)
        return wk_cmd_print_json(encode(s), HG_JSON_INDENT, err);
    print_table(s, &out);
    return wk_cmd_print(&out, err);
}

static int load_na(const struct wk_squad *squad, struct wk_squad_na *na, struct hg_errs *errs)
{
    if (!na_prob || squad->v2)
        return na_prob ? wk_squad_na_load(na_prob, squad, na, errs) : 0;
    return hg_err_set(hg_errs_next(errs), HG_E_INPUT,
                      "--na-prob is for v2.0: in %s every question has an answer", data);
}

static int score(struct hg_errs *errs)
{
    const struct wk_squad_options lenient = { .answers_only = true };
    struct wk_squad_predictions p = { 0 };
    struct hg_err err = HG_ERR_INIT;
    struct wk_squad_na na = { 0 };
    struct wk_squad squad = { 0 };
    int rc = -1;

    if (wk_squad_load(data, &lenient, &squad, errs) == 0 &&
        wk_squad_predictions_load(predictions, &squad, &p, errs) == 0 &&
        load_na(&squad, &na, errs) == 0) {
        struct scored s = { .squad = &squad, .predictions = &p, .na = na_prob ? &na : NULL };

        rc = print_score(&s, &err);
        hg_errs_add(errs, &err);
    }
    wk_squad_na_done(&na);
    wk_squad_predictions_done(&p);
    wk_squad_done(&squad);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    (void)argc;
    (void)argv;
    if (!data || !predictions)
        return wk_cmd_misused(&wk_cmd_eval_squad, "--data and --predictions are needed", errs);
    if (!na_prob && na_threshold != 1)
        return wk_cmd_misused(&wk_cmd_eval_squad, "--na-prob-threshold needs --na-prob", errs);
    return score(errs);
}

const struct wk_cmd wk_cmd_eval_squad = {
    .name = "eval-squad",
    .summary = "EM and F1 of predicted answers",
    .usage = "--data FILE --predictions FILE [--na-prob FILE] [--json]",
    .about = "Score predicted answers as SQuAD's official scripts do: exact match and F1 in\n"
             "percent, the best over a question's answers. v1.1: a missing prediction counts 0.\n"
             "v2.0: \"\" says that the text has no answer, and questions without a prediction do\n"
             "not count; with --na-prob also the best EM and F1 that a threshold of these\n"
             "numbers would give, and which.\n",
    .opts =
        (const struct hg_opt[]){
            { HG_OPT_STRING, 0, "data", &data, "FILE", "SQuAD v1.1 or v2.0, plain or .gz", 0, 0 },
            { HG_OPT_STRING, 0, "predictions", &predictions, "FILE",
              "JSON object: question id to text; plain or .gz", 0, 0 },
            { HG_OPT_STRING, 0, "na-prob", &na_prob, "FILE",
              "v2.0: JSON object: question id to a number, high if no answer is likely", 0, 0 },
            { HG_OPT_REAL, 0, "na-prob-threshold", &na_threshold, "X",
              "numbers above X count as no answer (1)", -1e300, 1e300 },
            { HG_OPT_FLAG, 0, "json", &json, NULL, "print the scores as JSON", 0, 0 },
            { 0 },
        },
    .run = run,
};
