/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/many.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bar.h"
#include "base/fs.h"
#include "base/jsonlist.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "drive/overlay.h"
#include "plan/batch.h"
#include "plan/files.h"
#include "rundir/collect.h"
#include "rundir/events.h"

#define FILE_MIN ((off_t)8 << 20) /* bytes: of the shortest results some HG_MANY_MIN */

/* All were added (rc 0), or not. As often as they have to be added again, add_all does it. */
static struct hg_many *settle(struct hg_many *m, int rc,
                              int (*add_all)(struct hg_many *m, void *context), void *context,
                              struct hg_err *err)
{
    while (rc == 0 && (rc = hg_many_end(m, err)) == 1)
        rc = add_all(m, context);
    if (rc == 0)
        return m;
    hg_many_free(m);
    return NULL;
}

/* ---- A run ---- */

struct run {
    const struct hg_rundir *rd;
    const struct hg_run_state *state;
    struct hg_many *many;
    struct hg_err *err;
};

/* A loss curve is not part of a line. */
static int add_entry(void *context, json_t *entry, char *file, struct hg_err *err)
{
    struct run *run = context;
    int rc;

    json_object_del(entry, "loss");
    rc = hg_many_add(run->many, entry, err);
    free(file);
    json_decref(entry);
    return rc;
}

static int add_run(struct hg_many *m, void *context)
{
    struct run *run = context;
    union {
        const struct hg_run_state *in;
        void *out; /* hg_drive_verdict only reads it */
    } state = { .in = run->state };

    run->many = m;
    return hg_collect_each(run->rd, run->state ? hg_drive_verdict : NULL, state.out, add_entry, run,
                           false, NULL, run->err);
}

struct hg_many *hg_cmd_many_run(const struct hg_rundir *rd, const struct hg_run_state *state,
                                const struct hg_report_options *options, bool digest,
                                struct hg_err *err)
{
    struct run run = { .rd = rd, .state = state, .err = err };
    struct hg_json_doc head = { .root = hg_collect_head(rd, err), .file = hg_strdup(rd->path) };
    struct hg_many *m = NULL;

    if (head.root)
        m = hg_many_create(&head, HG_RESULTS_TOLERANT, options, digest);
    else
        hg_json_doc_done(&head);
    return settle(m, m ? add_run(m, &run) : -1, add_run, &run, err);
}

static size_t count_cells(const struct hg_rundir *rd)
{
    json_t *plan = hg_plan_read(rd->path, NULL);
    size_t n = hg_plan_count_cells(plan);

    json_decref(plan);
    return n;
}

static struct hg_many *read_run(const char *word, const char *reports,
                                const struct hg_report_options *options, bool digest,
                                struct hg_err *err)
{
    struct hg_rundir rd = { 0 };
    struct hg_run_state *state;
    struct hg_err why = HG_ERR_INIT;
    struct hg_many *m = NULL;

    if (hg_rundir_find(hg_options_reports(reports), word, &rd, NULL) < 0)
        return NULL;
    if (count_cells(&rd) > (digest ? HG_TABLES_MAX : HG_MANY_MIN)) {
        state = hg_run_state_load(rd.path, &why);
        if (state || why.code == HG_E_NOTFOUND)
            m = hg_cmd_many_run(&rd, state, options, digest, err);
        hg_run_state_free(state);
    }
    hg_rundir_done(&rd);
    return m;
}

/* ---- A file ---- */

struct file {
    FILE *file;
    const char *name;
    const struct hg_report_options *options;
    bool digest;
    json_t *head;  /* all its members but the results, as far as they are known */
    size_t n_head; /* how many there were when the first result came */
    struct hg_many *many;
    struct hg_err *err;
};

static void begin_file(struct file *f)
{
    struct hg_json_doc head = { .root = json_copy(f->head), .file = hg_strdup(f->name) };

    f->n_head = json_object_size(f->head);
    f->many = hg_many_create(&head, 0, f->options, f->digest);
}

static int add_item(void *context, json_t *item)
{
    struct file *f = context;

    hg_bar_step();
    if (!f->many && !json_object_get(f->head, "schema"))
        return 0; /* it comes after them */
    if (!f->many)
        begin_file(f);
    return f->many ? hg_many_add(f->many, item, f->err) : -1;
}

static int read_each(struct file *f)
{
    int rc;

    hg_bar_begin("results", 0);
    rc = hg_json_each_item(f->file, "results", f->head, add_item, f);
    hg_bar_end();
    return rc;
}

static int add_file(struct hg_many *m, void *context)
{
    struct file *f = context;
    int rc = -1;

    f->many = m;
    json_decref(f->head);
    f->head = json_object();
    if (fseek(f->file, 0, SEEK_SET) == 0)
        rc = read_each(f);
    return rc;
}

/* Members that control how results are read may come after the results. */
static struct hg_many *read_items(struct file *f)
{
    int rc = add_file(NULL, f);

    if (rc == 0 && json_object_size(f->head) != f->n_head) {
        hg_many_free(f->many);
        begin_file(f);
        rc = f->many ? add_file(f->many, f) : -1;
    }
    return settle(f->many, f->many ? rc : -1, add_file, f, f->err);
}

/* Are there so many results in it? Counted are their cells; a name or a value may say "cell", too. */
static bool is_long(FILE *file)
{
    static const char word[] = "\"cell\"";
    const size_t tail = sizeof word - 2, size = 1 << 16;
    char *text = hg_alloc(size + tail);
    size_t n = 0, got, kept = 0;

    while (n <= HG_TABLES_MAX && (got = fread(text + kept, 1, size, file)) > 0) {
        const char *end = text + kept + got, *at = text;

        while ((at = memmem(at, (size_t)(end - at), word, sizeof word - 1))) {
            at += sizeof word - 1;
            n++;
        }
        kept = kept + got < tail ? kept + got : tail;
        memmove(text, end - kept, kept);
    }
    free(text);
    return n > HG_TABLES_MAX;
}

static struct hg_many *read_file(const char *path, const struct hg_report_options *options,
                                 bool digest, struct hg_err *err)
{
    struct file f = { .name = path, .options = options, .digest = digest, .err = err };
    struct hg_many *m = NULL;
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < FILE_MIN ||
        !(f.file = fopen(path, "re")))
        return NULL;
    if (!digest || is_long(f.file))
        m = read_items(&f);
    json_decref(f.head);
    fclose(f.file);
    return m;
}

struct hg_many *hg_cmd_many(const char *word, const char *reports,
                            const struct hg_report_options *options, bool digest,
                            struct hg_err *err)
{
    bool run = !hg_fs_exists(word) || hg_fs_is_dir(word);
    struct hg_many *m =
        run ? read_run(word, reports, options, digest, err) : read_file(word, options, digest, err);

    if (!m || !digest || hg_many_cells(m) > HG_TABLES_MAX)
        return m;
    hg_many_free(m); /* of the few that are selected there are tables */
    return NULL;
}

/* ---- Writing ---- */

static int put_stdout(void *context, const char *text, size_t len, struct hg_err *err)
{
    (void)context;
    (void)err; /* main reports a failure when it closes it */
    hg_print_raw(text, len);
    return 0;
}

static int put_part(void *context, const char *text, size_t len, struct hg_err *err)
{
    const struct hg_fs_part *part = context;

    return hg_fs_write_all(part->fd, text, len) < 0 ? hg_err_sys(err, "cannot write %s", part->path)
                                                    : 0;
}

int hg_cmd_many_write(struct hg_many *m, const char *path, struct hg_err *err)
{
    struct hg_fs_part part = HG_FS_PART_INIT;
    int rc;

    if (!path)
        hg_bar_allow(!isatty(STDOUT_FILENO)); /* the lines are on the terminal */
    if (!path)
        return hg_many_write(m, put_stdout, NULL, err);
    rc = hg_fs_part_begin(path, 0644, &part, err);
    if (rc == 0)
        rc = hg_many_write(m, put_part, &part, err);
    if (rc == 0)
        rc = hg_fs_part_end(&part, err);
    hg_fs_part_done(&part);
    return rc;
}
