/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/fsck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/colour.h"
#include "base/json.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/print.h"

static const char *reports;
static bool as_json, repair;

static const struct hg_opt opts[] = {
    { HG_OPT_FLAG, 0, "repair", &repair, NULL, "remove what killed processes left behind", 0, 0 },
    HG_OPTION_JSON(&as_json),
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

static json_t *finding_json(const struct hg_finding *x)
{
    json_t *o = json_pack(
        "{s:s,s:s,s:o,s:o,s:o,s:b,s:b}", "severity", hg_severity_names[x->severity], "code",
        x->code, "file", hg_json_text(x->file), "text", hg_json_text(x->text), "next",
        hg_json_text(x->next), "can_repair", x->can_repair, "repaired", x->repaired);

    if (x->line)
        json_object_set_new(o, "line", json_integer((json_int_t)x->line));
    return o;
}

static void print_json(const struct hg_rundir *rd, const struct hg_fsck *f)
{
    json_t *list = json_array(), *answer;

    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, finding_json(&f->items[i]));
    answer = json_pack("{s:o,s:{s:I,s:I,s:I},s:I,s:I,s:I,s:I,s:o}", "run", hg_json_text(rd->path),
                       "checked", "cells", (json_int_t)f->cells, "attempts",
                       (json_int_t)f->attempts, "lines", (json_int_t)f->lines, "errors",
                       (json_int_t)f->by_severity[HG_FSCK_ERROR], "warnings",
                       (json_int_t)f->by_severity[HG_FSCK_WARNING], "notes",
                       (json_int_t)f->by_severity[HG_FSCK_NOTE], "not_listed", (json_int_t)f->more,
                       "findings", list);
    hg_print_json(answer);
}

/* Names of files may contain anything. */
static void print_escaped(const char *text)
{
    struct hg_buf out = HG_BUF_INIT;

    hg_text_escape(text, strlen(text), &out);
    fputs(hg_buf_str(&out), stdout);
    hg_buf_done(&out);
}

static const char *start_of(const struct hg_finding *x)
{
    if (x->repaired || x->severity == HG_FSCK_NOTE)
        return "";
    return hg_colour_start(STDOUT_FILENO,
                           x->severity == HG_FSCK_ERROR ? HG_COLOUR_BAD : HG_COLOUR_WARNING);
}

static void print_finding(const struct hg_rundir *rd, const struct hg_finding *x)
{
    print_escaped(*x->file ? x->file : rd->path);
    if (x->line)
        printf(":%zu", x->line);
    printf(": %s%s%s: ", start_of(x), x->repaired ? "repaired" : hg_severity_names[x->severity],
           *start_of(x) ? hg_colour_stop(STDOUT_FILENO) : "");
    print_escaped(x->text);
    putchar('\n');
    if (*x->next && !x->repaired)
        printf("  %s\n", x->next);
}

static void print_text(const struct hg_rundir *rd, const struct hg_fsck *f)
{
    const char *before = "";

    for (size_t i = 0; i < f->n; i++)
        print_finding(rd, &f->items[i]);
    if (f->more)
        printf("more of the same, not listed: %zu\n", f->more);
    printf("%s: %zu cell%s, %zu attempt%s, %zu line%s of journal: ", rd->path, f->cells,
           hg_text_s(f->cells), f->attempts, hg_text_s(f->attempts), f->lines, hg_text_s(f->lines));
    for (int s = HG_FSCK_ERROR; s >= HG_FSCK_NOTE; s--)
        if (f->by_severity[s]) {
            printf("%s%zu %s%s", before, f->by_severity[s], hg_severity_names[s],
                   hg_text_s(f->by_severity[s]));
            before = ", ";
        }
    puts(*before ? "" : "nothing wrong");
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd = { 0 };
    struct hg_fsck f = { 0 };
    int rc = -1;

    (void)argc;
    if (hg_rundir_find(hg_options_reports(reports), argv[0], &rd, &err) == 0 &&
        hg_fsck_run(&rd, repair, &f, &err) == 0) {
        (as_json ? print_json(&rd, &f) : print_text(&rd, &f));
        rc = f.by_severity[HG_FSCK_ERROR] || f.by_severity[HG_FSCK_WARNING];
    }
    hg_fsck_done(&f);
    hg_rundir_done(&rd);
    return rc < 0 ? hg_errs_add(errs, &err) : rc;
}

const struct hg_cmd hg_cmd_fsck = {
    .name = "fsck",
    .args = "RUN",
    .summary = "Check a run's folder: journal, plan, results and leftovers.",
    .details = "Verifies every checksum, size, cell id and place, and changes nothing. --repair\n"
               "needs the run's lock and changes neither results nor state. Exit code: 0 for\n"
               "nothing or only notes, 1 for warnings or errors.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
