/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker eval-squad: EM and F1 of a file of predictions. */
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "data/squad_eval.h"

static const char *data, *predictions;
static bool json;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "data", &data, "FILE", "SQuAD v1.1 or v2.0, plain or .gz", 0, 0 },
    { HG_OPT_STRING, 0, "predictions", &predictions, "FILE",
      "JSON object: question id to text; plain or .gz", 0, 0 },
    { HG_OPT_FLAG, 0, "json", &json, NULL, "print the scores as JSON", 0, 0 },
    { 0 },
};

static void help(struct hg_buf *out)
{
    hg_buf_puts(
        out,
        "usage: hpcgrid-worker eval-squad --data FILE --predictions FILE [--json]\n\n"
        "Score predicted answers as SQuAD's official scripts do: exact match and F1 in percent, the\n"
        "best over a question's answers. v1.1: a missing prediction counts 0. v2.0: \"\" says that the\n"
        "text has no answer, and questions without a prediction do not count.\n\n");
    hg_opt_help(opts, out);
}

static json_t *encode_figures(const struct wk_squad_figures *f)
{
    return json_pack("{s:f, s:f, s:I}", "em", f->exact, "f1", f->f1, "questions", (json_int_t)f->n);
}

static void print_json(const struct wk_squad *squad, const struct wk_squad_score *s, size_t foreign,
                       struct hg_buf *out)
{
    json_t *root = encode_figures(&s->all);

    json_object_set_new(root, "missing", json_integer((json_int_t)s->missing));
    json_object_set_new(root, "foreign", json_integer((json_int_t)foreign));
    json_object_set_new(root, "rules", json_string(squad->v2 ? "2.0" : "1.1"));
    if (squad->v2) {
        json_object_set_new(root, "has_answer", encode_figures(&s->has_answer));
        json_object_set_new(root, "no_answer", encode_figures(&s->no_answer));
    }
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}

static void print_figures(const char *what, const struct wk_squad_figures *f, struct hg_buf *out)
{
    hg_buf_printf(out, "%-12s %9zu %9.4f %9.4f\n", what, f->n, f->exact, f->f1);
}

static void print_table(const struct wk_squad *squad, const struct wk_squad_score *s,
                        struct hg_buf *out)
{
    hg_buf_printf(out, "%-12s %9s %9s %9s\n", squad->v2 ? "rules 2.0" : "rules 1.1", "questions",
                  "EM", "F1");
    print_figures("all", &s->all, out);
    if (squad->v2) {
        print_figures("has answer", &s->has_answer, out);
        print_figures("no answer", &s->no_answer, out);
    }
}

/* Numbers that look fine although half of the predictions are not there mislead. */
static void warn_of_gaps(const struct wk_squad *squad, const struct wk_squad_score *s,
                         size_t foreign)
{
    if (s->missing)
        hg_warn("%zu of %zu questions have no prediction: they %s", s->missing, squad->n_questions,
                squad->v2 ? "do not count" : "count 0");
    if (foreign)
        hg_warn("%zu predictions have ids that the data does not have: ignored", foreign);
}

static int print_score(const struct wk_squad *squad, const struct wk_squad_predictions *p,
                       struct hg_err *err)
{
    struct hg_buf out = HG_BUF_INIT;
    struct wk_squad_score score;
    int rc = -1;

    if (wk_squad_score(squad, p->texts, &score, err) < 0)
        return -1;
    warn_of_gaps(squad, &score, p->foreign);
    if (json)
        print_json(squad, &score, p->foreign, &out);
    else
        print_table(squad, &score, &out);
    if (out.failed)
        hg_err_oom(err);
    else if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
        hg_err_sys(err, "cannot write the output");
    else
        rc = 0;
    hg_buf_done(&out);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct wk_squad_predictions p = { 0 };
    struct hg_err err = HG_ERR_INIT;
    const struct wk_squad_options lenient = { .answers_only = true };
    struct wk_squad squad = { 0 };
    int rc = -1;

    if (hg_opt_parse(opts, &argc, argv, &err) < 0)
        return hg_errs_add(errs, &err);
    if (argc > 0 || !data || !predictions) {
        hg_err_set(&err, HG_E_USAGE,
                   argc > 0 ? "eval-squad: too many arguments"
                            : "eval-squad: --data and --predictions are needed");
        hg_err_hint(&err, "usage: hpcgrid-worker eval-squad --data FILE --predictions FILE");
        return hg_errs_add(errs, &err);
    }
    if (wk_squad_load(data, &lenient, &squad, errs) == 0 &&
        wk_squad_predictions_load(predictions, &squad, &p, errs) == 0) {
        rc = print_score(&squad, &p, &err);
        hg_errs_add(errs, &err);
    }
    wk_squad_predictions_done(&p);
    wk_squad_done(&squad);
    return rc;
}

const struct wk_cmd wk_cmd_eval_squad = {
    .name = "eval-squad",
    .summary = "EM and F1 of predicted answers",
    .run = run,
    .help = help,
};
