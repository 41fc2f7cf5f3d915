/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/seal.h"
#include "base/tar.h"
#include "cmd/commands.h"
#include "fuzz.h"
#include "matrix/cell.h"
#include "matrix/matrix.h"
#include "results/results.h"
#include "matrix/select.h"
#include "matrix/site.h"
#include "plan/plan.h"
#include "plan/template.h"
#include "analysis/build.h"
#include "render/mustache.h"
#include "render/renderers.h"
#include "render/view.h"
#include "typeset/escape.h"
#include "rundir/events.h"
#include "rundir/resultfile.h"

/* ---- JSON ---- */

/* What is written reads back as the same, but for numbers beyond 15 digits. */
static void expect_round_trip(const json_t *value)
{
    struct hg_buf first = HG_BUF_INIT, second = HG_BUF_INIT;
    json_t *again;

    hg_json_dump(value, HG_JSON_INDENT, &first);
    again = json_loadb(first.data, first.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    hg_fuzz_expect(again, "what is written is JSON");
    hg_json_dump(again, HG_JSON_INDENT, &second);
    hg_fuzz_expect(strcmp(first.data, second.data) == 0, "it is written the same again");
    json_decref(again);
    hg_buf_done(&first);
    hg_buf_done(&second);
}

static void run_json(const char *text, size_t len)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;

    if (hg_json_parse("fuzz", text, len, &doc, &err) == 0) {
        expect_round_trip(doc.root);
        hg_json_error(&doc, "/a/0/b", &errs, "a place");
        hg_json_error_key(&doc, "/a/1", &errs, "a place");
    }
    hg_json_doc_done(&doc);
    hg_fuzz_errors(&errs, &err);
}

/* ---- Matrices and what belongs to them ---- */

#define CELLS_MAX 200

static int count_cell(const struct hg_cell *cell, void *context)
{
    int *n = context;

    hg_fuzz_expect(cell->id[0] && cell->members, "a cell has an id and members");
    return ++*n == CELLS_MAX;
}

static void run_matrix(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_matrix *m = hg_matrix_load(hg_fuzz_file(text, len), NULL, &errs);
    struct hg_cells_count count = { 0 };
    int n = 0;

    if (m &&
        hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_ALL | HG_CELLS_ORIGINS, count_cell, &n, &count,
                      &errs) == 0 &&
        n < CELLS_MAX)
        hg_plan_free(hg_plan_make(m, NULL, NULL, &errs));
    hg_cells_count_done(&count);
    hg_matrix_free(m);
    hg_fuzz_errors(&errs, NULL);
}

static void run_site(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;

    hg_site_free(hg_site_load(hg_fuzz_file(text, len), &errs));
    hg_fuzz_errors(&errs, NULL);
}

static json_t *some_cell(void)
{
    return json_pack("{s:i, s:s, s:f, s:b, s:n, s:[i, s]}", "nodes", 2, "strategy", "ddp", "lr",
                     0.5, "amp", 1, "absent", "list", 1, "x y");
}

static void run_selector(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_selector *s = hg_selector_parse(text, &err);
    json_t *cell = some_cell();

    (void)len;
    if (s)
        hg_selector_match(s, "bert-ddp-0123456789ab", cell, &err);
    hg_selector_free(s);
    json_decref(cell);
    hg_fuzz_errors(&errs, &err);
}

static void run_placeholders(const char *text, size_t len)
{
    struct hg_buf out = HG_BUF_INIT;
    json_t *cell = some_cell();
    const struct hg_template_vars vars = { .cell = cell, .dir = "/d", .head = "h", .id = "c" };
    bool absent = false;

    (void)len;
    hg_template_text(text, &vars, &out, &absent);
    hg_template_lines(text, &vars, &out);
    json_decref(cell);
    hg_buf_done(&out);
}

/* ---- Runs and reports ---- */

/* A journal's lines without their checksums, which would keep everything else out. */
static void run_events(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_run_state *state = hg_run_state_create();
    const char *end = text + len, *newline;

    for (; text < end; text = newline + 1) {
        struct hg_err bad = HG_ERR_INIT;
        json_t *record, *kind;

        newline = memchr(text, '\n', (size_t)(end - text));
        newline = newline ? newline : end;
        record = json_loadb(text, (size_t)(newline - text), JSON_REJECT_DUPLICATES, NULL);
        kind = json_incref(json_object_get(record, "kind"));
        if (json_is_string(kind))
            hg_run_state_apply(state, json_string_value(kind), json_incref(record), &bad);
        hg_errs_add(&errs, &bad);
        json_decref(kind);
        json_decref(record);
    }
    hg_run_state_free(state);
    hg_fuzz_errors(&errs, &err);
}

/* The lines again, those that are objects without a checksum with the right one. */
static void seal_lines(const char *text, size_t len, struct hg_buf *out)
{
    const char *end = text + len, *newline;

    for (; text < end; text = newline + 1) {
        json_t *record;

        newline = memchr(text, '\n', (size_t)(end - text));
        record = json_loadb(text, (size_t)((newline ? newline : end) - text), 0, NULL);
        if (newline && json_object_size(record) && !json_object_get(record, "crc"))
            hg_seal_dump(record, HG_JSON_COMPACT, out);
        else
            hg_buf_append(out, text, (size_t)((newline ? newline + 1 : end) - text));
        json_decref(record);
        if (!newline)
            break;
    }
}

static void run_journal(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_run_state *state = hg_run_state_create();
    struct hg_buf lines = HG_BUF_INIT;
    size_t used = 0;

    seal_lines(text, len, &lines);
    hg_run_state_fold(state, "fuzz", hg_buf_str(&lines), lines.len, &used, &err);
    hg_fuzz_expect(used <= lines.len, "no more is read than there is");
    hg_fuzz_expect(!used || lines.data[used - 1] == '\n', "whole lines are read");
    hg_buf_done(&lines);
    hg_run_state_free(state);
    hg_fuzz_errors(&errs, &err);
}

/* A result of a program that hpcgrid does not know. */
static void run_result(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    bool diverged = false;
    json_t *result = hg_resultfile_parse("fuzz", text, len, &diverged, &err);

    hg_fuzz_expect(result || err.code, "what is refused has a reason");
    if (result)
        expect_round_trip(result);
    json_decref(result);
    hg_fuzz_errors(&errs, &err);
}

#define PART_MAX 65536

struct archive {
    int fd;
    size_t size, files;
    char last[HG_TAR_NAME_MAX];
};

static int read_member(void *context, const struct hg_tar_file *file)
{
    struct archive *a = context;
    struct hg_buf content = HG_BUF_INIT;

    hg_fuzz_expect(file->at <= a->size && file->size <= a->size - file->at,
                   "a file is inside its archive");
    if (file->size < PART_MAX)
        hg_tar_read_part(a->fd, "fuzz", file->at, file->size, &content, NULL);
    hg_buf_done(&content);
    memcpy(a->last, file->name, sizeof a->last);
    a->files++;
    return 0;
}

/* A compacted group of attempts. */
static void run_tar(const char *text, size_t len)
{
    const char *path = hg_fuzz_file(text, len);
    struct archive a = { .fd = open(path, O_RDONLY | O_CLOEXEC), .size = len };
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf content = HG_BUF_INIT;
    struct hg_tar_walk walk;
    char named[HG_TAR_NAME_MAX + 64];

    hg_fuzz_expect(a.fd >= 0, "the archive can be opened");
    if (hg_tar_each(a.fd, path, read_member, &a, &walk, &err) == 0)
        hg_fuzz_expect(walk.files == a.files, "all files are visited");
    close(a.fd);
    hg_errs_add(&errs, &err);
    err = (struct hg_err)HG_ERR_INIT;
    snprintf(named, sizeof named, "%s:%s", path, a.last);
    hg_tar_read_named(named, PART_MAX, &content, &err);
    hg_buf_done(&content);
    hg_fuzz_errors(&errs, &err);
}

static void render(const struct hg_report *r)
{
    const struct hg_render_options o = { .width = 80 };
    json_t *view = hg_view(r, NULL);

    for (size_t i = 0; hg_renderers[i]; i++) {
        struct hg_buf out = HG_BUF_INIT;

        hg_renderers[i]->render(r, &o, &out);
        if (hg_renderers[i] == &hg_renderer_json) {
            json_t *json = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);

            hg_fuzz_expect(json, "a report as JSON is JSON");
            json_decref(json);
        }
        hg_buf_done(&out);
    }
    json_decref(view);
}

static void report(const char *text, size_t len, unsigned flags)
{
    const struct hg_report_options o = { .cost = true, .traffic = true, .strict = flags == 0 };
    struct hg_results set = HG_RESULTS_INIT;
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_report *r = NULL;

    if (hg_json_parse("fuzz", text, len, &doc, &err) == 0 &&
        hg_results_decode(&doc, flags, &set, &errs) == 0)
        r = hg_report_build(&set, 1, &o, &errs);
    if (r)
        render(r);
    hg_report_free(r);
    hg_results_done(&set);
    hg_json_doc_done(&doc);
    hg_fuzz_errors(&errs, &err);
}

static void run_results(const char *text, size_t len)
{
    report(text, len, 0);
    report(text, len, HG_RESULTS_TOLERANT);
}

static void run_mustache(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf out = HG_BUF_INIT;
    json_t *data = json_pack("{s:s, s:s, s:[{s:i, s:[]}, {s:i, s:[{s:s}]}], s:{s:s}, s:[s, s]}",
                             "name", "<b>", "empty", "", "list", "n", 1, "in", "n", 2, "in", "x",
                             "y", "cell", "nodes", "4", "words", "u", "v");
    json_t *shape =
        json_pack("{s:s, s:s, s:[{s:i, s:[{s:s}]}], s:{s:s}, s:[s]}", "name", "", "empty", "",
                  "list", "n", 1, "in", "x", "", "cell", "*", "", "words", "");
    struct hg_mustache *m = hg_mustache_parse("fuzz", text, len, shape, &errs);

    hg_fuzz_expect(data && shape, "the data are made");
    if (m)
        hg_mustache_render(m, data, hg_html_append, &out, &err);
    hg_mustache_free(m);
    hg_buf_done(&out);
    json_decref(data);
    json_decref(shape);
    hg_fuzz_errors(&errs, &err);
}

/* ---- What a shell completes ---- */

#define WORDS_MAX 20

/* A word a line; the last is being typed. */
static void run_complete(const char *text, size_t len)
{
    const struct hg_cmd *complete = hg_commands_find("complete", NULL);
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_buf copy = HG_BUF_INIT;
    char *words[WORDS_MAX + 1] = { NULL }, *save = NULL;
    FILE *was = stdout, *null = fopen("/dev/null", "w");
    int n = 0;

    hg_fuzz_expect(complete && null, "the command is there");
    hg_buf_append(&copy, text, len);
    for (char *w = strtok_r((char *)hg_buf_str(&copy), "\n", &save); w && n < WORDS_MAX;
         w = strtok_r(NULL, "\n", &save))
        words[n++] = w;
    stdout = null;
    if (n)
        complete->run(n, words, &errs);
    stdout = was;
    fclose(null);
    hg_fuzz_expect(!errs.n, "nothing is wrong with a line that is being typed");
    hg_buf_done(&copy);
    hg_fuzz_errors(&errs, NULL);
}

const struct hg_fuzz_target hg_fuzz_orchestrator[] = {
    { "json", run_json },
    { "matrix", run_matrix },
    { "site", run_site },
    { "selector", run_selector },
    { "placeholders", run_placeholders },
    { "events", run_events },
    { "journal", run_journal },
    { "results", run_results },
    { "result", run_result },
    { "tar", run_tar },
    { "complete", run_complete },
    { "mustache", run_mustache },
    { NULL, NULL },
};
