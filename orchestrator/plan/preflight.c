/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/preflight.h"

#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "matrix/cell.h"
#include "matrix/names.h"
#include "plan/rehearse.h"
#include "plan/template.h"
#include "plan/worker.h"

#define COMBINATIONS_MAX 16
#define LIMIT_S 30.0 /* for one of them */

/* ---- The environment that a job would have ---- */

/* Placeholders need a cell; such a variable is left out. */
static void push_env(struct hg_words *list, const json_t *env)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)env, name, value) {
        char *text = hg_str_printf("%s=%s", name, json_string_value(value));

        if (!strstr(text, "{{"))
            hg_words_push(list, text);
        free(text);
    }
}

/* HPCGRID_DATA of this shell does not reach a job. Variables of the site and the workload stand in front: the
 * first of a name counts. */
static void make_env(const struct hg_matrix *m, struct hg_words *list)
{
    push_env(list, m->workload.env);
    push_env(list, m->site->env);
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "HPCGRID_DATA=", 13) != 0)
            hg_words_push(list, *e);
}

/* ---- Asking ---- */

struct preflight {
    const struct hg_matrix *m;
    const struct hg_selector *select;
    char *worker, *folder; /* where the cells run */
    struct hg_words env;
    struct hg_words seen; /* combinations, as text */
    json_t *paths;        /* that are checked */
    bool absent;          /* there is no worker to ask */
    struct hg_errs *errs;
    struct hg_names *names; /* of the cells, once one is named */
    struct hg_buf name;     /* of one */
};

/* What people call a cell; lent until the next one. */
static const char *name_of(struct preflight *p, const struct hg_cell *cell)
{
    if (!p->names)
        p->names = hg_names_of_matrix(p->m, HG_CELLS_SKIPPED, p->errs);
    if (!p->names)
        return cell->id;
    hg_buf_clear(&p->name);
    hg_names_append_cell(p->names, cell->members, &p->name);
    return hg_buf_str(&p->name);
}

static void add_values(const json_t *cell, const char *const *keys, struct hg_buf *text)
{
    for (; *keys; keys++) {
        const json_t *value = json_object_get(cell, *keys);

        if (value)
            hg_json_dump(value, HG_JSON_COMPACT, text);
        hg_buf_puts(text, "\n");
    }
}

/* The part of a cell that its data, its initial weights and the steps of its trace depend on. */
static char *combination_of(const json_t *cell)
{
    static const char *const data[] = {
        "model", "dataset", "data", "vocab", "init", "trace", NULL
    };
    static const char *const sizes[] = { "hidden",     "layers",    "heads", "intermediate",
                                         "vocab_size", "positions", NULL };
    static const char *const steps[] = {
        "steps",        "epochs",         "samples",      "batch_size", "accumulate",
        "nodes",        "tasks_per_node", "dp_devices",   "trace_skip", "trace_wait",
        "trace_warmup", "trace_active",   "trace_repeat", NULL
    };
    struct hg_buf text = HG_BUF_INIT;

    add_values(cell, data, &text);
    if (json_object_get(cell, "init"))
        add_values(cell, sizes, &text);
    if (json_is_true(json_object_get(cell, "trace")))
        add_values(cell, steps, &text);
    return hg_buf_detach(&text);
}

static bool was_seen(const struct preflight *p, const char *combination)
{
    for (size_t i = 0; i < p->seen.n; i++)
        if (strcmp(p->seen.items[i], combination) == 0)
            return true;
    return false;
}

static bool has_variable(const struct hg_words *env, const char *variable)
{
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->items[i], variable, strlen(variable)) == 0)
            return true;
    return false;
}

/* What the worker said, without who said it. */
static void add_problem(struct preflight *p, const struct hg_cell *cell, const char *said,
                        int status)
{
    static const char *const prefixes[] = { "hpcgrid-worker: ", "error: " };
    const char *name = name_of(p, cell);
    struct hg_err *err = hg_errs_next(p->errs);
    char ended[64];

    hg_proc_status_format(status, ended);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(said, prefixes[i], strlen(prefixes[i])) == 0)
            said += strlen(prefixes[i]);
    hg_err_set(err, HG_E_INPUT, "cell %s: %.*s", name, (int)strcspn(said, "\n"),
               *said ? said : ended);
    hg_err_hint(err, "%s--no-data-check, if only the nodes see the data",
                getenv("HPCGRID_DATA") && !has_variable(&p->env, "HPCGRID_DATA=")
                    ? "HPCGRID_DATA of this shell does not reach jobs: put it into \"env\" of the "
                      "workload or of the site; or "
                    : "");
}

/* The warnings among what the worker said. */
static void pass_warnings(struct preflight *p, const struct hg_cell *cell, const char *said)
{
    static const char prefix[] = "hpcgrid-worker: warning: ";

    for (; *said; said += strcspn(said, "\n"), said += *said == '\n')
        if (strncmp(said, prefix, strlen(prefix)) == 0)
            hg_warn("cell %s: %.*s", name_of(p, cell), (int)strcspn(said + strlen(prefix), "\n"),
                    said + strlen(prefix));
}

/* Read what it prints until it ends. 1: time is up. */
static int read_all(struct hg_proc *proc, struct hg_buf *said, int *status, struct hg_err *err)
{
    char chunk[4096];
    int rc = hg_proc_wait(proc->pid, LIMIT_S, status, err);
    ssize_t n;

    if (rc == 1) {
        kill(proc->pid, SIGKILL);
        hg_proc_wait(proc->pid, -1, status, NULL);
    }
    while ((n = read(proc->err, chunk, sizeof chunk)) > 0) /* a message fits the pipe */
        hg_buf_append(said, chunk, (size_t)n);
    close(proc->err);
    return rc;
}

static int ask_worker(struct preflight *p, const struct hg_cell *cell, const char *path,
                      struct hg_err *err)
{
    const char *const argv[] = { p->worker, "check", "--cell", path, NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_buf said = HG_BUF_INIT;
    struct hg_err why = HG_ERR_INIT;
    struct hg_proc proc;
    int status = 0, rc;

    spec.argv = argv;
    spec.env = (const char *const *)p->env.items;
    spec.cwd = p->folder;
    spec.in = spec.out = HG_PROC_NULL;
    spec.err = HG_PROC_PIPE;
    spec.death_signal = SIGKILL; /* it may read for long */
    if (hg_proc_start(&spec, &proc, &why) < 0) {
        hg_warn("the data are not checked: %s", why.text);
        p->absent = true;
        return 0;
    }
    rc = read_all(&proc, &said, &status, err);
    if (rc == 1)
        hg_warn("the data are not checked: hpcgrid-worker did not end within %g s", LIMIT_S);
    else if (rc == 0 && status)
        add_problem(p, cell, hg_buf_str(&said), status);
    else if (rc == 0)
        pass_warnings(p, cell, hg_buf_str(&said));
    hg_buf_done(&said);
    return rc < 0 ? -1 : 0;
}

/* The cell without what is known in a job only: texts with placeholders. A new reference. */
static json_t *known_members(const struct hg_cell *cell)
{
    json_t *members = json_copy(cell->members), *value;
    const char *key;
    void *next;

    json_object_foreach_safe(members, next, key, value) {
        if (json_is_string(value) && strstr(json_string_value(value), "{{"))
            json_object_del(members, key);
    }
    return members;
}

static int check_cell(struct preflight *p, const struct hg_cell *cell)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *rehearsal = p->m->site->rehearsal, *known = known_members(cell);
    json_t *members = rehearsal ? hg_rehearse_cell(rehearsal, known, NULL) : json_incref(known);
    char *path = hg_worker_input(members, &err);
    int rc = path ? ask_worker(p, cell, path, &err) : -1;

    if (path)
        unlink(path);
    free(path);
    json_decref(members);
    json_decref(known);
    hg_errs_add(p->errs, &err);
    return rc;
}

/* ---- Files that cells write ---- */

/* Can the file, or one in the folder, be written? Said once for each path. */
static void check_path(struct preflight *p, const struct hg_cell *cell, const char *key,
                       const char *file)
{
    const char *text = json_string_value(json_object_get(cell->members, key));
    struct hg_buf pointer = HG_BUF_INIT;
    struct hg_err why = HG_ERR_INIT;
    const char *name;
    char *path, *known;

    if (!text || !*text || strstr(text, "{{"))
        return;
    path = hg_fs_join(p->folder, text);
    known = hg_str_printf("%s%s", path, file);
    if (json_object_get(p->paths, known))
        goto out;
    json_object_set_new(p->paths, known, json_true());
    if (hg_fs_check_creatable(known, &why) < 0) {
        name = name_of(p, cell);
        hg_err_hint(hg_json_error(&p->m->doc, hg_matrix_pointer(p->m, key, text, &pointer), p->errs,
                                  "cell %s: %s", name, why.text),
                    "--no-data-check, if only the nodes can write there");
    }
out:
    hg_buf_done(&pointer);
    free(known);
    free(path);
}

static void check_paths(struct preflight *p, const struct hg_cell *cell)
{
    const char *checkpoint = json_string_value(json_object_get(cell->members, "checkpoint"));

    check_path(p, cell, "predictions", "");
    check_path(p, cell, "checkpoint",
               checkpoint && hg_text_ends_with(checkpoint, ".safetensors") ? "" : "/*.safetensors");
}

static int visit(const struct hg_cell *cell, void *context)
{
    struct preflight *p = context;
    struct hg_err err = HG_ERR_INIT;
    char *combination;
    int rc = 0, match = hg_selector_match(p->select, cell->id, cell->members, &err);

    if (match <= 0)
        return hg_errs_add(p->errs, &err);
    check_paths(p, cell);
    combination = combination_of(cell->members);
    if (!p->absent && p->seen.n < COMBINATIONS_MAX && !was_seen(p, combination)) {
        hg_words_push(&p->seen, combination);
        rc = check_cell(p, cell);
    }
    free(combination);
    return rc;
}

int hg_preflight_data(const struct hg_matrix *m, const struct hg_selector *select,
                      struct hg_errs *errs)
{
    struct preflight p = { .m = m, .select = select, .errs = errs };
    size_t before = errs->n + errs->dropped;
    int rc;

    if (!m->workload.program || strcmp(m->workload.program, "hpcgrid-worker") != 0)
        return 0;
    p.worker = hg_worker_find();
    p.folder = hg_fs_join(m->dir, m->workload.cwd ? m->workload.cwd : "");
    p.paths = json_object();
    make_env(m, &p.env);
    rc = hg_cells_walk(m, HG_CELLS_MEMBERS, visit, &p, NULL, errs);
    hg_words_done(&p.env);
    hg_words_done(&p.seen);
    json_decref(p.paths);
    hg_names_free(p.names);
    hg_buf_done(&p.name);
    free(p.worker);
    free(p.folder);
    return rc < 0 || errs->n + errs->dropped > before ? -1 : 0;
}
