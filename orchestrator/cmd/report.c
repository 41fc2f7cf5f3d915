/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/many.h"
#include "cmd/pictures.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "cmd/results.h"
#include "analysis/build.h"
#include "render/kinds.h"
#include "render/profile.h"
#include "render/ranks.h"
#include "render/renderers.h"
#include "render/save.h"
#include "render/view.h"
#include "rundir/identity.h"

static const char *format, *rows, *columns, *group, *work, *metric, *better, *where, *baseline,
    *out_path, *reports, *numbers, *plot, *template_path, *caption, *label, *csv_kind;
static bool pivot, ranks, profile, strict, cost, traffic;
static long width;

static const struct hg_opt opts[] = {
    HG_OPTION_FORM(&format, HG_RENDERER_NAMES),
    { HG_OPT_STRING, 0, "rows", &rows, "KEYS", "keys whose values are rows: nodes,gpus_per_node", 0,
      0 },
    { HG_OPT_STRING, 0, "columns", &columns, "KEYS", "keys whose values are columns", 0, 0 },
    { HG_OPT_STRING, 'm', "metric", &metric, "KEY", "result to tabulate: train_s, eval.accuracy", 0,
      0 },
    HG_OPTION_WHERE(&where),
    { HG_OPT_STRING, 'b', "baseline", &baseline, "MEMBERS",
      "overrides that select a cell's baseline", 0, 0 },
    { HG_OPT_FLAG, 0, "strict", &strict, NULL, "no speedup if cell and baseline are not comparable",
      0, 0 },
    { HG_OPT_FLAG, HG_OPT_RARE, "pivot", &pivot, NULL, "csv: a line for each row of the tables", 0,
      0 },
    { HG_OPT_FLAG, 0, "ranks", &ranks, NULL, "one line per rank: real, user, sys, host, device", 0,
      0 },
    { HG_OPT_STRING, 0, "plot", &plot, "KINDS",
      "all or speedup,efficiency,time,memory,loss,cost,runs", 0, 0 },
    { HG_OPT_STRING, 0, "template", &template_path, "FILE",
      "fill in a template: templates/reports/README.md", 0, 0 },
    { HG_OPT_STRING, 'o', "out", &out_path, "FILE",
      "write to it; pictures: FOLDER, FILE.svg, .png, .pdf", 0, 0 },
    { HG_OPT_FLAG, HG_OPT_RARE, "profile", &profile, NULL,
      "operators of one cell, or the difference of two", 0, 0 },
    { HG_OPT_FLAG, HG_OPT_RARE, "cost", &cost, NULL,
      "device-hours, energy and money, with failed attempts", 0, 0 },
    { HG_OPT_FLAG, HG_OPT_RARE, "traffic", &traffic, NULL,
      "bytes sent, exposed communication, peak memory", 0, 0 },
    { HG_OPT_STRING, HG_OPT_RARE, "group", &group, "KEYS", "keys that give a table each", 0, 0 },
    { HG_OPT_STRING, HG_OPT_RARE, "work", &work, "KEYS", "keys whose product is the work of a cell",
      0, 0 },
    { HG_OPT_STRING, HG_OPT_RARE, "csv", &csv_kind, "KIND",
      "one of steps epochs pgfplots: tidy csv", 0, 0 },
    { HG_OPT_STRING, HG_OPT_RARE, "caption", &caption, "LATEX", "latex: caption of the table", 0,
      0 },
    { HG_OPT_STRING, HG_OPT_RARE, "label", &label, "LABEL", "latex: label of the table", 0, 0 },
    HG_OPTION_NUMBERS(&numbers),
    { HG_OPT_STRING, HG_OPT_RARE, "better", &better, "WAY",
      "one of higher lower: which way is better", 0, 0 },
    { HG_OPT_INT, HG_OPT_RARE, "width", &width, "COLUMNS", "columns of text (the terminal's)", 40,
      10000 },
    { HG_OPT_STRING, HG_OPT_RARE, "reports", &reports, "DIR", HG_OPTION_REPORTS_HELP, 0, 0 },
    { 0 },
};

/* ---- What the options say ---- */

/* "a,b" as a list that ends with NULL, in one block; NULL stays NULL. */
static char **split_words(const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0, n = 0;
    char **items;

    if (!text)
        return NULL;
    items = hg_alloc((size / 2 + 2) * sizeof *items + size);
    for (char *p = strtok(memcpy(items + size / 2 + 2, text, size), ","); p; p = strtok(NULL, ","))
        items[n++] = p;
    items[n] = NULL;
    return items;
}

/* "nodes=1,strategy=single,wrap=null" as an object; values that are JSON mean it, others are text. */
static json_t *parse_pairs(const char *text, struct hg_err *err)
{
    json_t *object = json_object();
    char **words = split_words(text);

    for (char **word = words; *word; word++) {
        char *value = strchr(*word, '=');
        json_t *parsed;

        if (!value || value == *word || value[-1] == '!') {
            hg_err_set(err, HG_E_USAGE, "--baseline: \"%s\" is not KEY=VALUE", *word);
            hg_err_hint(err, "for example --baseline nodes=1,gpus_per_node=1,strategy=single");
            goto fail;
        }
        *value++ = '\0';
        parsed = json_loads(value, JSON_DECODE_ANY, NULL);
        json_object_set_new(object, *word, parsed ? parsed : hg_json_text(value));
    }
    free(words);
    return object;
fail:
    free(words);
    json_decref(object);
    return NULL;
}

static json_t *parse_baseline(const char *text, struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    json_t *object;

    if (text[0] != '{')
        return parse_pairs(text, err);
    if (hg_json_parse("--baseline", text, strlen(text), &doc, err) < 0)
        return NULL;
    object = json_incref(doc.root);
    hg_json_doc_done(&doc);
    return object;
}

/* Pictures and templates have formats of their own. */
static int check_pictures(struct hg_errs *errs)
{
    const char *what = plot ? "--plot" : "--template";

    if (ranks || profile || pivot || (plot && template_path))
        hg_err_set(hg_errs_next(errs), HG_E_USAGE, "%s cannot be combined with %s", what,
                   plot && template_path ? "--template" : "--ranks, --profile or --pivot");
    return errs->n ? -1 : 0;
}

static bool has_pivot(const struct hg_renderer *form)
{
    return form->tidy;
}

static bool has_ranks(const struct hg_renderer *form)
{
    return form->sheet != NULL;
}

static bool has_profile(const struct hg_renderer *form)
{
    return form->sheet || form == &hg_renderer_json;
}

static bool is_typeset(const struct hg_renderer *form)
{
    return form->typeset;
}

static bool has_numbers(const struct hg_renderer *form)
{
    return !form->fixed_numbers;
}

/* An option that is given must go with the format; else the error names the formats that it goes with. */
static void check_form(const char *option, bool given, bool (*has)(const struct hg_renderer *form),
                       struct hg_errs *errs)
{
    const char *names[16];
    size_t n = 0;

    if (!given || has(hg_renderer_find(format)))
        return;
    for (const struct hg_renderer *const *r = hg_renderers; *r && n < 16; r++)
        if (has(*r))
            names[n++] = (*r)->name;
    hg_err_set(hg_errs_next(errs), HG_E_USAGE, "%s does not go with --format %s", option, format);
    hg_text_suggest(&errs->items[errs->n - 1], "", names, n);
}

static int check_words(struct hg_errs *errs)
{
    static const char *const ways[] = { "lower", "higher" };

    if (plot || template_path)
        return check_pictures(errs);
    format = format ? format : csv_kind ? hg_renderer_csv.name : hg_renderers[0]->name;
    if (!hg_renderer_find(format))
        return hg_renderer_unknown(format, hg_errs_next(errs));
    check_form("--pivot", pivot, has_pivot, errs);
    check_form("--ranks", ranks, has_ranks, errs);
    check_form("--profile", profile, has_profile, errs);
    check_form("--csv", csv_kind, has_pivot, errs);
    if ((csv_kind != NULL) + pivot + ranks + profile > 1)
        hg_err_set(hg_errs_next(errs), HG_E_USAGE,
                   "--csv, --pivot, --ranks and --profile exclude each other");
    check_form("--caption", caption, is_typeset, errs);
    check_form("--label", label, is_typeset, errs);
    check_form("--numbers", numbers, has_numbers, errs);
    if (better && strcmp(better, ways[0]) != 0 && strcmp(better, ways[1]) != 0) {
        struct hg_err *err = hg_errs_next(errs);

        hg_err_set(err, HG_E_USAGE, "--better: \"%s\" is neither lower nor higher", better);
        hg_text_suggest(err, better, ways, 2);
    }
    return errs->n ? -1 : 0;
}

/* ---- Reading ---- */

struct input {
    struct hg_results *items; /* one for each operand */
    size_t n, cap;
    char *tables; /* folder for the saved forms, if the only operand is a run */
    struct hg_page page;
};

/* Where a run's page finds its logs. Returns whether the run is at home there: only then it is written to. */
static bool place_run(struct input *in, size_t set, const char *tables)
{
    char *run = hg_fs_dirname(tables);
    bool home = hg_identity_warn(run);

    hg_page_set_run(&in->page, set, run, out_path);
    free(run);
    return home;
}

/* What makes the same bytes again: every option that was given but --out. */
static char *format_command(int argc, char **argv)
{
    struct hg_buf line = HG_BUF_INIT;

    hg_buf_puts(&line, "hpcgrid report");
    for (const struct hg_opt *o = opts; o->kind != HG_OPT_END; o++) {
        char number[24];
        const char *value = o->kind == HG_OPT_STRING ? *(const char **)o->target : NULL;

        if (o->kind == HG_OPT_INT && *(long *)o->target) {
            snprintf(number, sizeof number, "%ld", *(long *)o->target);
            value = number;
        }
        if (o->target == &out_path || (!value && !(o->kind == HG_OPT_FLAG && *(bool *)o->target)))
            continue;
        hg_buf_printf(&line, " --%s", o->name);
        if (value) {
            hg_buf_puts(&line, " ");
            hg_text_quote_if_needed(value, &line);
        }
    }
    for (int i = 0; i < argc; i++) {
        hg_buf_puts(&line, " ");
        hg_text_quote_if_needed(argv[i], &line);
    }
    return hg_buf_detach(&line);
}

static int read_all(int argc, char **argv, struct input *in, struct hg_errs *errs)
{
    bool home = true;
    int rc = 0;

    hg_page_init(&in->page, (size_t)argc);
    in->page.command = format_command(argc, argv);
    for (int i = 0; i < argc; i++) {
        struct hg_results *set = HG_VEC_PUSH(in);

        *set = (struct hg_results)HG_RESULTS_INIT;
        free(in->tables);
        in->tables = NULL;
        if (hg_cmd_results(argv[i], reports, set, &in->tables, errs) < 0)
            rc = -1;
        else if (in->tables)
            home = place_run(in, (size_t)i, in->tables);
    }
    if (in->n != 1 || !home || rows || columns || group || strict || cost || traffic || metric ||
        better || where || baseline || numbers) {
        free(in->tables); /* saved forms are those that the matrix asks for */
        in->tables = NULL;
    }
    return rc;
}

/* ---- Writing ---- */

static size_t table_width(void)
{
    if (width)
        return (size_t)width;
    return out_path ? 0 : hg_print_width(STDOUT_FILENO);
}

/* The report in the form that the options ask for. */
static int render(const struct hg_report *r, const struct input *in, struct hg_buf *out,
                  struct hg_errs *errs)
{
    const struct hg_render_options o = { .width = table_width(),
                                         .screen = !out_path,
                                         .pivot = pivot,
                                         .caption = caption,
                                         .label = label,
                                         .points = (size_t)width,
                                         .page = &in->page };
    struct hg_err err = HG_ERR_INIT;

    if (template_path)
        return hg_view_render(r, &in->page, template_path, format, out, errs);
    if (csv_kind)
        hg_csv_kind_render(r, csv_kind, out, &err);
    else if (profile)
        hg_profile_render(r, hg_renderer_find(format), out, &err);
    else if (ranks)
        hg_ranks_render(r, hg_renderer_find(format), out, &err);
    else
        hg_renderer_find(format)->render(r, &o, out);
    return hg_errs_add(errs, &err);
}

static void print_form(const struct hg_buf *text)
{
    bool coloured = !template_path && !csv_kind && strcmp(format, "text") == 0;

    if (coloured) /* clean but for its colours */
        fwrite(hg_buf_str(text), 1, text->len, stdout);
    else
        hg_print_raw(hg_buf_str(text), text->len);
}

static int write_form(const struct hg_report *r, const struct input *in, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc = render(r, in, &text, errs);

    if (rc == 0 && out_path)
        rc = hg_fs_replace(out_path, hg_buf_str(&text), text.len, 0644, &err);
    else if (rc == 0)
        print_form(&text);
    hg_buf_done(&text);
    if (in->tables && hg_report_save(r, in->tables, &(struct hg_err)HG_ERR_INIT) < 0)
        hg_warn("cannot write to %s: the report is not saved there", in->tables);
    hg_errs_add(errs, &err);
    return rc;
}

/* ---- The command ---- */

/* Everything read from options and operands. */
struct request {
    json_t *baseline;
    struct hg_report_options o; /* borrows the above */
    struct input in;
};

static int read_options(struct request *q, struct hg_err *err)
{
    struct hg_report_options *o = &q->o;

    *o = (struct hg_report_options){ .rows = split_words(rows),
                                     .columns = split_words(columns),
                                     .group = split_words(group),
                                     .work = split_words(work),
                                     .metric = metric,
                                     .better = better,
                                     .where = where,
                                     .strict = strict,
                                     .has_style = numbers != NULL,
                                     .cost = cost,
                                     .traffic = traffic };
    if (numbers && hg_style_parse(numbers, &o->style, err) < 0)
        return -1;
    if (baseline && !(q->baseline = parse_baseline(baseline, err)))
        return -1;
    o->baseline = q->baseline;
    return 0;
}

static void request_done(struct request *q)
{
    for (size_t i = 0; i < q->in.n; i++)
        hg_results_done(&q->in.items[i]);
    HG_VEC_DONE(&q->in);
    free(q->in.tables);
    hg_page_done(&q->in.page);
    json_decref(q->baseline);
    free(q->o.rows);
    free(q->o.columns);
    free(q->o.group);
    free(q->o.work);
}

/* One set, and nothing asked for but a form of it: very many results are written line by line, or as a digest. */
static bool is_plain(int argc)
{
    return argc == 1 && !plot && !template_path && !ranks && !profile && !pivot && !csv_kind &&
           !strict && !rows && !columns && !group && !work && !better && !baseline && !cost &&
           !traffic;
}

static int write_digest(struct hg_many *m, int argc, char **argv, struct hg_err *err)
{
    struct hg_page page;
    const struct hg_render_options o = { .width = table_width(), .page = &page };
    struct hg_buf text = HG_BUF_INIT;
    int rc = 0;

    hg_page_init(&page, 0);
    page.command = format_command(argc, argv);
    hg_renderer_find(format)->render(hg_many_report(m), &o, &text);
    if (out_path)
        rc = hg_fs_replace(out_path, hg_buf_str(&text), text.len, 0644, err);
    else
        print_form(&text);
    hg_page_done(&page);
    hg_buf_done(&text);
    return rc;
}

/* Of very many results no tables are made, and none are saved. 0 or 1; 2: they are not so many; -1 with err set. */
static int write_many(int argc, char **argv, const struct hg_report_options *o, struct hg_err *err)
{
    bool tidy = hg_renderer_find(format)->tidy;
    struct hg_many *m = hg_cmd_many(argv[0], reports, o, !tidy, err);
    int rc;

    if (!m)
        return err->code ? -1 : 2;
    if (!tidy && hg_many_fits_tables(m)) {
        hg_many_free(m);
        return 2;
    }
    rc = tidy ? hg_cmd_many_write(m, out_path, err) : write_digest(m, argc, argv, err);
    if (rc == 0)
        rc = !hg_many_is_complete(m);
    hg_many_free(m);
    return rc;
}

#define MATRIX_MAX ((off_t)1 << 20) /* bytes: a longer file holds results */

/* A matrix with several sites stands for the run at each. */
static void list_operands(int argc, char **argv, struct hg_words *all)
{
    for (int i = 0; i < argc; i++) {
        struct hg_words parts = HG_WORDS_INIT;
        char *plain = NULL;
        struct stat st;

        if (stat(argv[i], &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MATRIX_MAX)
            hg_rundir_parts(hg_options_reports(reports), argv[i], &parts, &plain, NULL);
        if (plain)
            hg_warn("%s is of the matrix without several sites, and not in this report", plain);
        free(plain);
        for (size_t k = 0; k < parts.n; k++)
            hg_words_push(all, parts.items[k]);
        if (!parts.n)
            hg_words_push(all, argv[i]);
        hg_words_done(&parts);
    }
}

static int tabulate(int argc, char **argv, struct hg_errs *errs)
{
    struct request q = { 0 };
    struct hg_err err = HG_ERR_INIT;
    struct hg_report *r = NULL;
    int rc;

    if (check_words(errs) < 0)
        return -1;
    rc = read_options(&q, &err);
    if (rc == 0 && is_plain(argc))
        rc = write_many(argc, argv, &q.o, &err);
    else if (rc == 0)
        rc = 2;
    if (rc != 2) {
        request_done(&q);
        return hg_errs_add(errs, &err) < 0 ? -1 : rc;
    }
    rc = -1;
    if (read_all(argc, argv, &q.in, errs) == 0)
        r = hg_report_build(q.in.items, q.in.n, &q.o, errs);
    if (r)
        rc = plot ? hg_pictures_draw(r, plot, format, out_path, errs) : write_form(r, &q.in, errs);
    if (r && rc == 0)
        rc = !hg_report_is_complete(r) || r->refused;
    hg_report_free(r);
    request_done(&q);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_words all = HG_WORDS_INIT;
    int rc;

    list_operands(argc, argv, &all);
    rc = tabulate((int)all.n, all.items, errs);
    hg_words_done(&all);
    return rc;
}

const struct hg_cmd hg_cmd_report = {
    .name = "report",
    .args = "RUN|FILE...",
    .summary = "Tabulate times, speedup and efficiency of runs and result sets.",
    .details =
        "FILE is a set of results (\"schema\": \"hpcgrid-results/1\"); - is standard input.\n"
        "Exit code 1: a cell has no good result. Reference: reports/README.md.",
    .opts = opts,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
