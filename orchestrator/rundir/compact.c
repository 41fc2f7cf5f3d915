/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/compact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bar.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/attempt.h"
#include "rundir/attempts.h"
#include "rundir/pack.h"
#include "rundir/resultfile.h"

/* After TERM a result is written at once and perhaps again, as long as Slurm lets the workload end. */
#define RECENT_S 300.0

const char *const hg_compact_reasons[HG_COMPACT_REASONS] = {
    [HG_COMPACT_OPEN] = "of cells that are not over",
    [HG_COMPACT_RESULT] = "without a result that counts",
    [HG_COMPACT_RECENT] = "that failed less than 5 minutes ago",
    [HG_COMPACT_FILES] = "with other files than hpcgrid's own",
    [HG_COMPACT_CHANGED] = "that changed meanwhile, or are packed with other content",
};

/* The group whose cells are being looked at. */
struct packer {
    const struct hg_run_state *state;
    const char *run_key;
    struct hg_attempt_group group;
    int batch;
    size_t number; /* of the group */
    bool *wanted;  /* by attempt of the group: it goes into the pack */
    size_t n_wanted;
    bool all_over; /* no cell of it will run again */
    struct hg_compact_count *count;
    struct hg_err *err;
};

/* ---- Which attempts ---- */

/* May this result still be replaced? */
static bool is_recent(const struct packer *p, const struct hg_attempt_files *f, const char *status)
{
    char *path = hg_attempt_path(&p->group, f, "result.json");
    struct stat st;
    bool recent = strcmp(status, "ok") != 0 &&
                  (stat(path, &st) < 0 || hg_clock_wall_s() - (double)st.st_mtim.tv_sec < RECENT_S);

    free(path);
    return recent;
}

/* HG_COMPACT_REASONS: nothing keeps it. */
static enum hg_compact_kept why_kept(struct packer *p, struct hg_attempt_files *f,
                                     const json_t *cell, bool over)
{
    json_t *result;
    char *dir;
    bool recent, can;

    if (!over)
        return HG_COMPACT_OPEN;
    result = hg_resultfile_read(&p->group, f, p->run_key, cell, false, NULL);
    if (!result)
        return HG_COMPACT_RESULT;
    recent = is_recent(p, f, json_string_value(json_object_get(result, "status")));
    json_decref(result);
    if (recent)
        return HG_COMPACT_RECENT;
    dir = hg_attempt_path(&p->group, f, "");
    can = hg_pack_can_take(dir);
    free(dir);
    return can ? HG_COMPACT_REASONS : HG_COMPACT_FILES;
}

static bool has_good(struct packer *p, const struct hg_attempt_list *list, const json_t *cell)
{
    bool good = false;

    for (size_t i = 0; i < list->n && !good; i++) {
        json_t *result =
            hg_resultfile_read(&p->group, &list->items[i], p->run_key, cell, false, NULL);
        const char *status = json_string_value(json_object_get(result, "status"));

        good = status && strcmp(status, "ok") == 0;
        json_decref(result);
    }
    return good;
}

static bool is_over(struct packer *p, size_t line, const struct hg_attempt_list *list,
                    const json_t *cell)
{
    const struct hg_run_cell *known =
        p->state ? hg_run_cell_find(p->state, p->batch, (uint32_t)line) : NULL;

    return p->state ? known && hg_cell_is_over(known) : has_good(p, list, cell);
}

static int flush(struct packer *p);

/* The first cell of the next group ends the one before. */
static int enter_group(struct packer *p, size_t line, const char *id, struct hg_attempt_list *list)
{
    bool same = p->wanted && p->number == line / HG_GROUP_LINES;

    if (!same && flush(p) < 0)
        return -1;
    if (hg_attempt_list(&p->group, p->batch, line, id, list, p->err) < 0)
        return -1;
    if (same)
        return 0;
    p->number = line / HG_GROUP_LINES;
    p->all_over = true;
    p->wanted = hg_alloc_zeroed(p->group.n, sizeof *p->wanted);
    return 0;
}

static int look_at_cell(size_t line, const json_t *record, void *context)
{
    struct packer *p = context;
    const char *id = json_string_value(json_object_get(record, "id"));
    const json_t *cell = json_object_get(record, "cell");
    struct hg_attempt_list list;
    bool over;

    if (enter_group(p, line, id ? id : "", &list) < 0)
        return -1;
    over = is_over(p, line, &list, cell);
    p->all_over &= over;
    for (size_t i = 0; i < list.n; i++) {
        struct hg_attempt_files *f = &list.items[i];
        enum hg_compact_kept kept;

        p->count->before += f->parts > 0;
        if (f->parts)
            continue;
        kept = why_kept(p, f, cell, over);
        if (kept < HG_COMPACT_REASONS) {
            p->count->kept[kept]++;
            continue;
        }
        p->wanted[f - p->group.items] = true;
        p->n_wanted++;
    }
    return 0;
}

/* ---- One group ---- */

static int write_pack(struct packer *p, const char *path)
{
    size_t packed;

    if (p->group.walk.damaged)
        return hg_err_set(p->err, HG_E_INPUT, "%s is damaged at byte %llu: restore it first", path,
                          (unsigned long long)p->group.walk.where);
    if (hg_pack_write(&p->group, p->wanted, path, &packed, p->err) < 0)
        return -1;
    p->count->kept[HG_COMPACT_CHANGED] += p->n_wanted - packed;
    p->count->packed += packed;
    p->count->packs += packed > 0;
    return 0;
}

/* Remove the folders of attempts that are in the pack. */
static int remove_folders(struct packer *p, const char *dir)
{
    bool empty = p->all_over;

    for (size_t i = 0; i < p->group.n; i++) {
        const struct hg_attempt_files *f = &p->group.items[i];
        int removed = f->folder && f->parts ? hg_pack_remove_folder(&p->group, f, p->err) : 1;

        if (removed < 0)
            return -1;
        p->count->kept[HG_COMPACT_CHANGED] += !removed;
        empty &= f->parts > 0;
    }
    if (empty) /* no job makes a folder in it any more */
        rmdir(dir);
    return 0;
}

static int flush_group(struct packer *p, const char *group)
{
    char *dir = hg_rundir_path(p->group.rd, "%s", group), *pack = hg_str_printf("%s.tar", dir);
    int rc = 0;
    struct stat st;

    if (lstat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) /* a link may lead out of the run */
        rc = hg_err_set(p->err, HG_E_INPUT, "%s is not a folder", dir);
    if (rc == 0 && p->n_wanted) {
        rc = write_pack(p, pack);
        hg_attempt_group_forget(&p->group);
    }
    if (rc == 0)
        rc = hg_attempt_group_read(&p->group, group, p->err);
    if (rc == 0 && p->group.n)
        rc = remove_folders(p, dir);
    free(dir);
    free(pack);
    return rc;
}

/* Pack the group, whose cells have all been looked at. */
static int flush(struct packer *p)
{
    char group[HG_GROUP_NAME_MAX];
    int rc = 0;

    hg_attempt_group_name(p->batch, p->number * HG_GROUP_LINES, group);
    if (p->wanted)
        rc = flush_group(p, group);
    free(p->wanted);
    p->wanted = NULL;
    p->n_wanted = 0;
    return rc;
}

/* ---- All of them ---- */

/* Unfinished packs of a process that was killed. No other process writes packs: the lock is ours. */
static int remove_unfinished(const struct hg_rundir *rd, struct hg_err *err)
{
    char *dir = hg_rundir_path(rd, "cells");
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = d || errno == ENOENT ? 0 : hg_err_sys(err, "cannot read folder %s", dir);

    while (d && (entry = readdir(d)))
        if (strstr(entry->d_name, ".tar.tmp."))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    free(dir);
    return rc;
}

int hg_compact_run(const struct hg_rundir *rd, const struct hg_run_state *state,
                   struct hg_compact_count *count, struct hg_err *err)
{
    struct packer p = { .state = state, .group = { .rd = rd }, .count = count, .err = err };
    json_t *plan = hg_plan_read(rd->path, err);
    const json_t *batch;
    int rc = plan ? remove_unfinished(rd, err) : -1;
    size_t i;

    *count = (struct hg_compact_count){ 0 };
    hg_bar_begin("cells", hg_plan_count_cells(plan));
    p.run_key = json_string_value(json_object_get(plan, "run_key"));
    json_array_foreach(json_object_get(plan, "batches"), i, batch) {
        p.batch = (int)i + 1;
        if (rc == 0 && hg_plan_each_cell(rd->path, p.batch, look_at_cell, &p, err) != 0)
            rc = -1;
        if (rc == 0)
            rc = flush(&p);
    }
    hg_bar_end();
    free(p.wanted);
    hg_attempt_group_forget(&p.group);
    json_decref(plan);
    return rc;
}
