/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/options.h"
#include "cmd/session.h"
#include "cmd/state.h"
#include "drive/drive.h"
#include "drive/overlay.h"
#include "rundir/collect.h"
#include "rundir/compact.h"
#include "rundir/identity.h"
#include "rundir/lock.h"
#include "rundir/events.h"

#define PIECE 65536 /* bytes that are written, or copied, at a time */

static bool as_json, compact;
static const char *reports;

static const struct hg_opt opts[] = {
    HG_OPTION_JSON(&as_json),
    { HG_OPT_FLAG, 0, "compact", &compact, NULL, "pack the files of attempts that have ended", 0,
      0 },
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

/* The document on its way to its file. */
struct saving {
    struct hg_fs_part part;
    struct hg_buf text; /* what has not been written yet */
    size_t n;           /* entries so far */
};

static int write_text(struct saving *s, struct hg_err *err)
{
    if (hg_fs_write_all(s->part.fd, s->text.data, s->text.len) < 0)
        return hg_err_sys(err, "cannot write %s", s->part.path);
    hg_buf_clear(&s->text);
    return 0;
}

/* Print why a file does not count. */
static void tell_invalid(const json_t *entry)
{
    const json_t *error = json_object_get(entry, "error");

    if (strcmp(json_string_value(json_object_get(entry, "status")), "invalid") == 0)
        hg_warn("%s", json_string_value(json_object_get(error, "message")));
}

static int save_entry(void *context, json_t *entry, char *file, struct hg_err *err)
{
    struct saving *s = context;

    free(file);
    tell_invalid(entry);
    hg_buf_puts(&s->text, s->n++ ? ",\n    " : "\n    ");
    hg_json_dump_piece(entry, 2, &s->text);
    json_decref(entry);
    return s->text.len < PIECE ? 0 : write_text(s, err);
}

/* All but the end, which is a member more than the head has. */
static int save_head(const struct hg_rundir *rd, struct saving *s, struct hg_err *err)
{
    json_t *head = hg_collect_head(rd, err);

    if (!head)
        return -1;
    hg_json_dump(head, HG_JSON_INDENT, &s->text);
    json_decref(head);
    s->text.len -= strlen("\n}");
    hg_buf_puts(&s->text, ",\n  \"results\": [");
    return 0;
}

/* Without its journal (a plan that was submitted by hand) a run still has its results. */
static int save_entries(const struct hg_rundir *rd, struct saving *s,
                        struct hg_collect_count *count, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    struct hg_run_state *state = hg_run_state_load(rd->path, &why);
    int rc;

    if (!state && why.code != HG_E_NOTFOUND)
        hg_warn("%s: %s", rd->path, why.text);
    rc = hg_collect_each(rd, state ? hg_drive_verdict : NULL, state, save_entry, s, true, count,
                         err);
    hg_run_state_free(state);
    return rc;
}

static int save(const struct hg_rundir *rd, const char *path, struct hg_collect_count *count,
                struct hg_err *err)
{
    struct saving s = { .part = HG_FS_PART_INIT, .text = HG_BUF_INIT };
    char *tables = hg_rundir_path(rd, "tables");
    int rc = hg_fs_mkdirs(tables, 0700, err);

    if (rc == 0)
        rc = hg_fs_part_begin(path, 0600, &s.part, err);
    if (rc == 0 && (save_head(rd, &s, err) < 0 || save_entries(rd, &s, count, err) < 0))
        rc = -1;
    hg_buf_puts(&s.text, s.n ? "\n  ]\n}\n" : "]\n}\n");
    if (rc == 0 && (write_text(&s, err) < 0 || hg_fs_part_end(&s.part, err) < 0))
        rc = -1;
    hg_fs_part_done(&s.part);
    hg_buf_done(&s.text);
    free(tables);
    return rc;
}

/* What was packed, and what was not. */
static void tell_packed(const struct hg_compact_count *n)
{
    size_t kept = 0;

    for (size_t i = 0; i < HG_COMPACT_REASONS; i++)
        kept += n->kept[i];
    hg_info("packed %zu attempt%s into %zu file%s; %zu packed before, %zu not packed", n->packed,
            hg_text_s(n->packed), n->packs, hg_text_s(n->packs), n->before, kept);
    for (size_t i = 0; i < HG_COMPACT_REASONS; i++)
        if (n->kept[i])
            hg_info("  %zu %s", n->kept[i], hg_compact_reasons[i]);
}

/* Under the lock: a driver would look for what is on its way into a pack. */
static int pack(const struct hg_rundir *rd, struct hg_err *err)
{
    struct hg_lock *lock = hg_lock_take(rd->path, "hpcgrid collect --compact", false, 0, err);
    struct hg_run_state *state = NULL;
    struct hg_compact_count count;
    int rc = lock ? hg_state_load(rd->path, &state, err) : -1;

    if (rc == 0)
        rc = hg_compact_run(rd, state, &count, err);
    if (rc == 0)
        tell_packed(&count);
    hg_run_state_free(state);
    hg_lock_release(lock);
    return rc;
}

static int print_file(const char *path, struct hg_err *err)
{
    static char piece[PIECE];
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        return hg_err_sys(err, "cannot read %s", path);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0 && fwrite(piece, 1, n, stdout) == n)
        ;
    if (ferror(f))
        hg_err_sys(err, "cannot read %s", path);
    fclose(f);
    return err->code ? -1 : 0;
}

static void print_counts(const struct hg_rundir *rd, const struct hg_collect_count *n)
{
    if (rd->number)
        printf("%s/%03d", rd->name, rd->number);
    else
        printf("%s", rd->path);
    printf(": %zu of %zu %s a good result", n->ok, n->cells,
           n->cells == 1 ? "cell has" : "cells have");
    if (n->failed)
        printf(", %zu failed", n->failed);
    if (n->open)
        printf(", %zu not ended", n->open);
    putchar('\n');
    if (n->invalid)
        printf("%zu result file%s not count\n", n->invalid, n->invalid == 1 ? " does" : "s do");
    printf("saved in %s/tables/results.json\n", rd->path);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_collect_count count;
    struct hg_rundir rd = { 0 };
    char *path = NULL;
    int rc = -1;

    (void)argc;
    if (hg_rundir_find(hg_options_reports(reports), argv[0], &rd, &err) < 0 ||
        hg_identity_check(rd.path, &err) < 0)
        goto out;
    path = hg_rundir_path(&rd, "tables/results.json");
    if (save(&rd, path, &count, &err) < 0 || (as_json && print_file(path, &err) < 0))
        goto out;
    if (!as_json)
        print_counts(&rd, &count);
    if (compact && pack(&rd, &err) < 0)
        goto out;
    rc = count.ok == count.cells ? 0 : 1;
out:
    hg_errs_add(errs, &err);
    free(path);
    hg_rundir_done(&rd);
    return rc;
}

const struct hg_cmd hg_cmd_collect = {
    .name = "collect",
    .args = "RUN",
    .summary = "Read the results of a run and save them in one file.",
    .details = "Results that are truncated, changed or of another run are reported and never\n"
               "counted. A folder that was copied or moved is not written to (`report` reads\n"
               "it). --compact packs the files of attempts that have ended into tar files, one\n"
               "for 250 cells; all commands read them as before. Exit code 1: some cells have no\n"
               "good result.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
