/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "plan/files.h"
#include "rundir/events.h"

#define SCRIPT_MAX ((size_t)1 << 20)
#define NEW_RUN "begin a new run: hpcgrid run MATRIX --new"
#define ONLY_READ "can only be read (status, report, logs)"

static char *parse_script(const char *script)
{
    const char *line = script, *p = script;
    struct hg_buf out = HG_BUF_INIT;
    bool quoted = false;

    while ((p = strstr(p, "\nexec "))) /* names in earlier lines may contain anything */
        line = p++;
    p = strstr(line, " exec --run ");
    if (!p)
        return NULL;
    for (p += strlen(" exec --run "); *p && (quoted || *p != ' '); p++) {
        if (*p == '\'')
            quoted = !quoted;
        else if (*p != '\\' || quoted || !p[1])
            hg_buf_append(&out, p, 1);
        else
            hg_buf_append(&out, ++p, 1);
    }
    return hg_buf_detach(&out);
}

char *hg_identity_script_folder(const char *run_dir, int batch)
{
    char *path = hg_str_printf("%s/batches/%d.sh", run_dir, batch), *folder = NULL;
    struct hg_buf text = HG_BUF_INIT;

    if (hg_fs_read_file(path, SCRIPT_MAX, &text, NULL) == 0)
        folder = parse_script(hg_buf_str(&text));
    hg_buf_done(&text);
    free(path);
    return folder;
}

/* ---- The other folder ---- */

static bool has_key(const char *folder, const char *key)
{
    json_t *plan = hg_plan_read(folder, NULL);
    const char *its = json_string_value(json_object_get(plan, "run_key"));
    bool has = its && key && strcmp(its, key) == 0;

    json_decref(plan);
    return has;
}

static void set_copy(struct hg_identity *id, const char *run_dir, const char *folder)
{
    id->home = HG_HOME_COPY;
    hg_err_set(&id->why, HG_E_ENV, "%s is a copy of %s, where its jobs would run", run_dir, folder);
    hg_err_hint(&id->why, "continue with that one, or " NEW_RUN "; a copy " ONLY_READ);
}

/* sys: errno of looking at the folder; 0: it exists, but is another one. */
static void set_gone(struct hg_identity *id, const char *run_dir, const char *folder, int sys)
{
    char reason[HG_ERR_REASON_MAX];
    const char *why = sys == 0                          ? "which is another folder now"
                      : sys == ENOENT || sys == ENOTDIR ? "which is not there"
                                                        : hg_err_reason(sys, reason);

    id->home = HG_HOME_GONE;
    hg_err_set(&id->why, HG_E_ENV, "%s was moved or copied: its jobs would run in %s (%s)", run_dir,
               folder, why);
    hg_err_hint(&id->why,
                "move it back and `hpcgrid resume` it, or " NEW_RUN "; here it " ONLY_READ);
}

/* The run's file names its home folder. Returns whether that is here. */
static bool look_at(struct hg_identity *id, const char *run_dir, const char *folder,
                    const char *key, const char *file)
{
    struct stat here, there;
    int sys = stat(folder, &there) < 0 ? errno : 0;

    if (!sys && stat(run_dir, &here) == 0 && here.st_dev == there.st_dev &&
        here.st_ino == there.st_ino)
        return true;
    snprintf(id->file, sizeof id->file, "%s", file);
    if (!sys && has_key(folder, key))
        set_copy(id, run_dir, folder);
    else
        set_gone(id, run_dir, folder, sys);
    return false;
}

static bool look_at_script(struct hg_identity *id, const char *run_dir, const char *key, int number)
{
    char *folder = hg_identity_script_folder(run_dir, number), file[40];
    bool here;

    snprintf(file, sizeof file, "batches/%d.sh", number);
    here = !folder || look_at(id, run_dir, folder, key, file);
    free(folder);
    return here;
}

void hg_identity_find(const char *run_dir, struct hg_identity *id)
{
    json_t *plan = hg_plan_read(run_dir, NULL);
    const char *key = json_string_value(json_object_get(plan, "run_key"));
    const char *folder = json_string_value(json_object_get(plan, "folder"));
    size_t n = json_array_size(json_object_get(plan, "batches"));
    bool here;

    *id = (struct hg_identity){ .home = HG_HOME_HERE };
    here = !folder || look_at(id, run_dir, folder, key, "plan.json");
    for (size_t i = 1; here && i <= n; i++)
        here = look_at_script(id, run_dir, key, (int)i);
    json_decref(plan);
}

/* ---- Who may do what ---- */

/* The jobs that will look for a folder which is not there. */
static void name_jobs(const char *run_dir, struct hg_err *why, struct hg_buf *out)
{
    struct hg_run_state *state = hg_run_state_load(run_dir, NULL);
    size_t pending = state ? state->counts[HG_CELL_INTENDED] + state->counts[HG_CELL_AMBIGUOUS] +
                                 state->counts[HG_CELL_PENDING]
                           : 0;
    size_t running = state ? state->counts[HG_CELL_RUNNING] : 0;

    hg_buf_puts(out, why->text);
    if (pending || running)
        hg_buf_printf(out,
                      "; by its journal %zu pending and %zu running: those that start or end "
                      "before it is back will fail",
                      pending, running);
    hg_run_state_free(state);
}

int hg_identity_check(const char *run_dir, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_identity id;

    hg_identity_find(run_dir, &id);
    if (id.home == HG_HOME_HERE)
        return 0;
    if (id.home == HG_HOME_GONE)
        name_jobs(run_dir, &id.why, &text);
    hg_err_set(err, id.why.code, "%s", text.len ? hg_buf_str(&text) : id.why.text);
    hg_err_hint(err, "%s", id.why.hint);
    hg_buf_done(&text);
    return -1;
}

bool hg_identity_warn(const char *run_dir)
{
    struct hg_identity id;

    hg_identity_find(run_dir, &id);
    if (id.home == HG_HOME_HERE)
        return true;
    hg_warn("%s; here it " ONLY_READ, id.why.text);
    return false;
}

int hg_identity_check_cluster(const char *run_dir, const struct hg_run_state *state,
                              const char *cluster, struct hg_err *err)
{
    if (!state->submissions.n || !*state->cluster || !cluster || !*cluster ||
        strcasecmp(state->cluster, cluster) == 0)
        return 0;
    hg_err_set(err, HG_E_ENV, "%s was submitted to cluster %s, and this is cluster %s", run_dir,
               state->cluster, cluster);
    return hg_err_hint(err, "continue where %s is the cluster (SLURM_CONF), or " NEW_RUN,
                       state->cluster);
}
