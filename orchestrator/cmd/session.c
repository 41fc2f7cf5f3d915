/* SPDX-License-Identifier: Apache-2.0 */
/* A session from its first step to its last; the steps are in runplan.c, scheduler.c, runbox.c and drive/. */
#include "cmd/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/auto_limits.h"
#include "cmd/cells.h"
#include "cmd/options.h"
#include "cmd/picks.h"
#include "cmd/runbox.h"
#include "cmd/runplan.h"
#include "cmd/scheduler.h"
#include "cmd/signals.h"
#include "drive/again.h"
#include "drive/check.h"
#include "matrix/rehearse.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/identity.h"
#include "rundir/lock.h"

static char *join_words(int argc, char **argv)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_puts(&text, "hpcgrid run");
    for (int i = 0; i < argc; i++)
        hg_buf_printf(&text, " %.80s", argv[i]);
    return hg_buf_detach(&text);
}

static int open_drive(struct hg_session *s, struct hg_err *err)
{
    struct hg_drive_options options = {
        .executor = s->scheduler.executor,
        .session = s->scheduler.session,
        .deadline_s = HG_SCHEDULER_DEADLINE_S,
        .running = s->running,
        .retry = s->retry,
        .repeats = s->repeats,
        .metric = s->metric,
        .gpu_hours = s->gpu_hours,
        .max_queued = s->max_queued,
        .visible_s = -1,
        .near = hg_scheduler_is_private(&s->scheduler),
        .send_nothing = s->send_nothing,
        .steal = s->steal,
        .command = s->command,
        .cluster = s->scheduler.cluster,
        .lock = s->lock,
        .stop = &hg_signals_stop,
    };

    s->lock = NULL;
    s->drive = hg_drive_open(&s->rd, s->plan, &options, err);
    return s->drive ? 0 : -1;
}

/* What a matrix says about how it is driven. */
static void take_rules(struct hg_session *s, const json_t *matrix)
{
    const json_t *limits = json_object_get(matrix, "limits");
    const char *metric =
        json_string_value(json_object_get(json_object_get(matrix, "report"), "metric"));

    s->running = json_integer_value(json_object_get(limits, "running"));
    s->gpu_hours = json_number_value(json_object_get(limits, "gpu_hours"));
    s->retry = hg_retry_of(json_object_get(matrix, "retry"));
    s->repeats = hg_repeats_of(json_object_get(matrix, "repeats"));
    s->metric = metric ? hg_strdup(metric) : NULL;
}

/* ---- From a matrix ---- */

static bool is_for_box(const struct hg_matrix *m)
{
    return strcmp(m->site->name, "box") == 0;
}

/* A matrix that is shrunk, or of another site, is rehearsed in a box; one of the site "box" is at home there. */
static struct hg_matrix *load_matrix(const struct hg_begin_options *o, struct hg_errs *errs)
{
    bool alone = o->box && !getenv("SBATCH_ACCOUNT");
    struct hg_matrix *m;

    if (alone) /* a site that wants an account takes this one, and nobody is charged */
        setenv("SBATCH_ACCOUNT", HG_REHEARSAL_ACCOUNT, 1);
    m = hg_matrix_load(o->matrix, o->site, errs);
    if (alone)
        unsetenv("SBATCH_ACCOUNT");
    if (m && o->box && (o->shrink || !is_for_box(m)))
        hg_matrix_rehearse(m, o->shrink);
    return m;
}

/* Real results, rehearsals and tiny rehearsals are not of one run. */
static bool is_rehearsed_alike(const struct hg_rundir *rd, const struct hg_matrix *m)
{
    json_t *plan = hg_plan_read(rd->path, &(struct hg_err)HG_ERR_INIT);
    const json_t *then = json_object_get(json_object_get(plan, "site"), "rehearsal");
    const json_t *now = m->site->rehearsal;
    bool alike = !plan || (!then == !now && json_is_true(json_object_get(then, "shrink")) ==
                                                json_is_true(json_object_get(now, "shrink")));

    json_decref(plan);
    return alike;
}

/* A new run follows the one that was looked at: where another process has made one meanwhile, that is the run, unless --new. */
static int find_run(struct hg_session *s, const struct hg_begin_options *o,
                    const struct hg_matrix *m, struct hg_err *err)
{
    const char *root = hg_options_reports(o->reports);
    int after = -1, rc;

    do {
        struct hg_err why = HG_ERR_INIT;

        if (!o->fresh) {
            after = 0;
            if (hg_rundir_newest(root, m->name, &s->rd, &why) == 0) {
                if (is_rehearsed_alike(&s->rd, m))
                    return 0;
                after = s->rd.number;
                hg_rundir_done(&s->rd);
            } else if (why.code != HG_E_NOTFOUND) {
                *err = why;
                return -1;
            }
        }
        rc = hg_rundir_create(root, m->name, after, &s->rd, err);
    } while (rc > 0);
    return rc;
}

static int reach(struct hg_session *s, const struct hg_matrix *m, struct hg_err *err)
{
    return hg_scheduler_reach(&s->scheduler, m->site->json, is_for_box(m), err);
}

static int start_box(struct hg_session *s, const struct hg_matrix *m, struct hg_err *err)
{
    return hg_runbox_start(&s->rd, s->plan, m->site, s->scheduler.box, &s->box_is_new, err);
}

/* The scheduler is asked before the run's folder is created; a box is started only once the plan says which nodes it needs. */
static int take_steps(struct hg_session *s, const struct hg_begin_options *o,
                      const struct hg_matrix *m, const struct hg_selector *select,
                      struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;

    if (hg_runplan_check(m, select, o->data_check, errs) < 0)
        return -1;
    if ((!o->box && reach(s, m, &err) < 0) || find_run(s, o, m, &err) < 0 ||
        hg_runplan_check_past(&s->rd, s->scheduler.cluster, &err) < 0)
        return hg_errs_add(errs, &err);
    s->lock = hg_drive_lock(&s->rd, s->command, s->steal, &err);
    if (!s->lock)
        return hg_errs_add(errs, &err);
    s->plan = hg_runplan_make(&s->rd, m, select, errs);
    if (!s->plan)
        return -1;
    if ((o->box && (start_box(s, m, &err) < 0 || reach(s, m, &err) < 0)) || open_drive(s, &err) < 0)
        return hg_errs_add(errs, &err);
    return 0;
}

int hg_session_begin(struct hg_session *s, const struct hg_begin_options *o, int argc, char **argv,
                     struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_selector *select = NULL;
    struct hg_matrix *m = NULL;
    int rc = -1;

    *s = (struct hg_session){ .command = join_words(argc, argv), .steal = o->steal };
    if (o->select && !(select = hg_selector_parse(o->select, &err)))
        goto out;
    m = load_matrix(o, errs);
    if (!m || (select && hg_selector_check(select, m->grid, &err) < 0))
        goto out;
    hg_auto_limits_set(m, o->reports);
    take_rules(s, m->doc.root);
    s->max_queued = m->site->max_queued;
    if (o->box)
        unsetenv("SLURM_CONF"); /* a plan looks there for what a box has; this box is not up yet */
    hg_signals_catch();
    rc = take_steps(s, o, m, select, errs);
    if (rc == 0)
        hg_cells_list_elsewhere(m, &s->plan->count, o->select, &s->elsewhere);
out:
    hg_errs_add(errs, &err);
    hg_selector_free(select);
    hg_matrix_free(m);
    if (rc < 0)
        hg_session_done(s);
    return rc;
}

/* ---- From a run ---- */

/* What the run's own matrix and site say about how it is driven. */
static void read_limits(struct hg_session *s)
{
    char *matrix = hg_rundir_path(&s->rd, "matrix.json"),
         *site = hg_rundir_path(&s->rd, "site.json");
    struct hg_json_doc doc = HG_JSON_DOC_INIT;

    if (hg_json_load(matrix, &doc, NULL) == 0)
        take_rules(s, doc.root);
    hg_json_doc_done(&doc);
    if (hg_json_load(site, &doc, NULL) == 0)
        s->max_queued = json_integer_value(json_object_get(doc.root, "max_queued"));
    hg_json_doc_done(&doc);
    free(matrix);
    free(site);
}

/* Does the scheduler answer? Jobs of a run that has submissions continue while it is away. */
static int reach_again(struct hg_session *s, bool wait, struct hg_err *err)
{
    long submitted = hg_runplan_submissions(&s->rd, err);

    if (submitted < 0 || hg_scheduler_open(&s->scheduler, &s->rd, err) < 0)
        return -1;
    hg_signals_catch();
    return wait && submitted > 0 ? hg_scheduler_wait(&s->scheduler, &s->rd, err)
                                 : hg_scheduler_ask(&s->scheduler, err);
}

int hg_session_resume(struct hg_session *s, const struct hg_resume_options *o, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    int rc = -1, corrected;

    *s = (struct hg_session){ .command = hg_str_printf("hpcgrid %s %.120s", o->command, o->run),
                              .steal = o->steal,
                              .send_nothing = o->send_nothing };
    if (hg_rundir_find(hg_options_reports(o->reports), o->run, &s->rd, &err) < 0 ||
        hg_identity_check(s->rd.path, &err) < 0)
        goto out;
    s->lock = hg_drive_lock(&s->rd, s->command, s->steal, &err);
    if (!s->lock)
        goto out;
    s->plan = hg_plan_load(s->rd.path, &err);
    corrected = s->plan && !o->send_nothing ? hg_runplan_correct(&s->rd, &s->plan, errs) : 0;
    if (!s->plan || corrected < 0)
        goto out;
    read_limits(s);
    rc = reach_again(s, o->wait, &err);
    if (rc == 0)
        rc = open_drive(s, &err);
    if (rc == 0 && corrected)
        rc = hg_drive_check(s->drive, errs);
out:
    if (rc != 0)
        hg_session_done(s);
    hg_errs_add(errs, &err);
    return rc;
}

/* ---- Cells again, and the end ---- */

int hg_session_again(struct hg_session *s, unsigned statuses, const char *select,
                     struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_picks picks;
    long n = -1;

    if (hg_picks_make(&picks, s->rd.path, hg_drive_state(s->drive), select, &err) == 0)
        n = hg_drive_again(s->drive, statuses, hg_picks_fits, &picks, &err);
    hg_picks_done(&picks);
    if (n < 0)
        return hg_errs_add(errs, &err);
    if (n > 0)
        hg_info("%ld cell%s again", n, n == 1 ? " runs" : "s run");
    else
        hg_info("no cell to run again");
    return 0;
}

void hg_session_append_name(struct hg_session *s, int batch, size_t line, struct hg_buf *out)
{
    hg_plan_append_name(s->rd.path, &s->names, batch, line, s->plan->items[batch - 1].ids[line],
                        out);
}

void hg_session_tell_elsewhere(const struct hg_session *s)
{
    for (size_t i = 0; i < s->elsewhere.n; i++)
        hg_info("%s", s->elsewhere.items[i]);
}

void hg_session_done(struct hg_session *s)
{
    hg_drive_close(s->drive);
    hg_scheduler_close(&s->scheduler);
    hg_lock_release(s->lock);
    if (*s->scheduler.box && (s->box_is_over || s->box_is_new))
        hg_runbox_end(&s->rd, s->scheduler.box);
    hg_plan_free(s->plan);
    hg_rundir_done(&s->rd);
    free(s->command);
    free(s->metric);
    hg_names_free(s->names);
    hg_words_done(&s->elsewhere);
    *s = (struct hg_session){ 0 };
}

int hg_reach_open(struct hg_reach *r, const char *reports, const char *run, struct hg_err *err)
{
    *r = (struct hg_reach){ 0 };
    if (hg_rundir_find(hg_options_reports(reports), run, &r->rd, err) < 0 ||
        hg_identity_check(r->rd.path, err) < 0 || hg_scheduler_open(&r->scheduler, &r->rd, err) < 0)
        return -1;
    r->state = hg_run_state_load(r->rd.path, err);
    return r->state ? hg_scheduler_check_cluster(&r->scheduler, &r->rd, r->state, err) : -1;
}

void hg_reach_done(struct hg_reach *r)
{
    hg_run_state_free(r->state);
    hg_scheduler_close(&r->scheduler);
    hg_rundir_done(&r->rd);
}

void hg_reach_settle(const char *reports, const char *run, const char *command,
                     bool (*settled)(const struct hg_run_state *state), double limit_s)
{
    struct hg_resume_options o = {
        .reports = reports, .run = run, .command = command, .send_nothing = true
    };
    double end = hg_clock_mono_s() + limit_s;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_drive_pass pass;
    struct hg_session s;

    if (hg_session_resume(&s, &o, &errs) == 0) {
        while (hg_drive_pass(s.drive, &pass, &err) == 0 && settled &&
               !settled(hg_drive_state(s.drive)) && !hg_signals_stop && hg_clock_mono_s() < end)
            hg_clock_sleep_s(pass.wait_s < 1 ? pass.wait_s : 1);
        hg_drive_finish(s.drive, &err);
        hg_session_done(&s);
    }
    hg_errs_done(&errs);
}
