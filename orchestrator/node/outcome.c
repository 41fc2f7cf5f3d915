/* SPDX-License-Identifier: Apache-2.0 */
#include "node/outcome.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/pattern.h"
#include "base/proc.h"
#include "results/result_keys.h"
#include "rundir/resultfile.h"

#define EXIT_CHECKPOINT 75 /* a checkpoint is written, run me again */
#define LOG_READ_MAX ((long)64 << 20)
#define TAIL_MAX 2000
#define SAID_MAX 16384

/* ---- What the workload wrote ---- */

/* Put the workload's members into the result. */
static int take_members(const json_t *from, json_t *result, struct hg_err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)from, key, value) {
        if (hg_result_key_is_own(key))
            continue;
        if (hg_result_key_check(key, value, err) < 0)
            return -1;
        if (strcmp(key, "env") != 0 && strcmp(key, "ranks") != 0) /* these are merged */
            json_object_set(result, key, value);
    }
    return 0;
}

/* workload.json; *from is NULL when there is none. */
static int read_workload(const char *dir, json_t **from, bool *diverged, struct hg_err *err)
{
    char *path = hg_fs_join(dir, "workload.json");
    struct hg_buf text = HG_BUF_INIT;
    bool there = hg_fs_exists(path);

    if (there && hg_fs_read_file(path, HG_RESULT_MAX, &text, err) == 0)
        *from = hg_resultfile_parse("the workload's result", hg_buf_str(&text), text.len, diverged,
                                    err);
    hg_buf_done(&text);
    free(path);
    return there && !*from ? -1 : 0;
}

/* ---- What the workload printed ---- */

/* The end of a log, at most max bytes. */
static void read_tail(const char *dir, const char *name, long max, struct hg_buf *out)
{
    char *path = hg_fs_join(dir, name);
    int fd = hg_fs_open_file(path, NULL);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    char chunk[65536];
    size_t n;

    if (f && fseek(f, 0, SEEK_END) == 0 && ftell(f) > max)
        fseek(f, -max, SEEK_END);
    else if (f)
        rewind(f);
    while (f && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        hg_buf_append(out, chunk, n);
    if (f)
        fclose(f);
    free(path);
}

static int take_number(const char *key, const char *text, size_t n, json_t *result, bool *diverged,
                       struct hg_err *err)
{
    char number[64], *end;
    double v;

    snprintf(number, sizeof number, "%.*s", (int)(n < 63 ? n : 63), text);
    v = strtod(number, &end);
    end += strspn(end, " \t");
    if (end == number || *end || n > 63)
        return hg_err_set(err, HG_E_INPUT, "results/%s found \"%s\", which is not a number", key,
                          number);
    *diverged |= !isfinite(v);
    json_object_set_new(result, key, hg_json_number(v));
    return hg_result_key_check(key, json_object_get(result, key), err);
}

/* workload.results: numbers read from the output. */
static int take_output(const struct hg_outcome *o, json_t *result, bool *diverged,
                       struct hg_err *err)
{
    const json_t *wanted = json_object_get(o->workload, "results");
    struct hg_buf out = HG_BUF_INIT, errors = HG_BUF_INIT;
    const char *key, *group;
    json_t *text;
    size_t n;
    int rc = 0;

    if (!json_object_size(wanted))
        return 0;
    read_tail(o->dir, "out.log", LOG_READ_MAX, &out);
    read_tail(o->dir, "err.log", LOG_READ_MAX, &errors);
    json_object_foreach((json_t *)wanted, key, text) {
        struct hg_pattern *p = hg_pattern_compile(json_string_value(text), err);

        if (!p)
            rc = -1;
        else if (hg_pattern_last(p, hg_buf_str(&out), out.len, &group, &n) ||
                 hg_pattern_last(p, hg_buf_str(&errors), errors.len, &group, &n))
            rc = take_number(key, group, n, result, diverged, err);
        else
            rc = hg_err_set(err, HG_E_INPUT, "nothing in the output matches results/%s", key);
        hg_pattern_free(p);
        if (rc < 0)
            break;
    }
    hg_buf_done(&out);
    hg_buf_done(&errors);
    return rc;
}

/* ---- Ranks ---- */

/* Ranks of one cell have the clocks of several nodes: where one is wrong, its times are brought to the file server's, so that they
 * can be compared. */
static void correct_clock(json_t *rank, const char *path)
{
    double end_s = json_number_value(json_object_get(rank, "end_s"));
    double start_s = json_number_value(json_object_get(rank, "start_s"));
    double ahead_s = end_s > 0 ? hg_clock_ahead_s(end_s, path) : 0;

    if (ahead_s == 0)
        return;
    json_object_set_new(rank, "start_s", hg_json_number(start_s - ahead_s));
    json_object_set_new(rank, "end_s", hg_json_number(end_s - ahead_s));
    json_object_set_new(rank, "clock_ahead_s", hg_json_number(round(ahead_s)));
}

static json_t *read_rank(const char *dir, const char *name)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    char *path = hg_fs_join(dir, name);
    json_t *root = NULL;

    if (hg_json_load(path, &doc, NULL) == 0 && json_is_object(doc.root))
        root = json_incref(doc.root);
    correct_clock(root, path);
    hg_json_doc_done(&doc);
    free(path);
    return root;
}

static bool is_rank_file(const char *name)
{
    size_t digits = strncmp(name, "rank.", 5) == 0 ? strspn(name + 5, "0123456789") : 0;

    return digits && strcmp(name + 5 + digits, ".json") == 0;
}

static json_int_t rank_number(const json_t *rank)
{
    return json_integer_value(json_object_get(rank, "rank"));
}

/* rank.<r>.json in the order of ranks. */
static json_t *read_ranks(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    json_t *list = json_array();

    while (d && (entry = readdir(d))) {
        json_t *rank = is_rank_file(entry->d_name) ? read_rank(dir, entry->d_name) : NULL;
        size_t at = json_array_size(list);

        while (at && rank_number(json_array_get(list, at - 1)) > rank_number(rank))
            at--;
        if (rank)
            json_array_insert_new(list, at, rank);
    }
    if (d)
        closedir(d);
    return list;
}

/* Add what the workload says of a rank to what exec measured; exec's members win, except the device, which only the
 * workload really knows. */
static void merge_ranks(json_t *ranks, const json_t *theirs)
{
    size_t i, j;
    json_t *mine, *other;

    json_array_foreach((json_t *)theirs, i, other) {
        const json_t *number = json_object_get(other, "rank");
        json_int_t rank = json_is_integer(number) ? json_integer_value(number) : (json_int_t)i;

        if (!json_is_object(other))
            continue;
        json_array_foreach(ranks, j, mine)
            if (rank_number(mine) == rank)
                json_object_update_missing(mine, other);
    }
}

/* Ranks x CPUs against the cores of each host: virtual nodes of one machine share them. */
static bool is_oversubscribed(const json_t *ranks, long long cpus_per_task)
{
    size_t i, j;
    json_t *a, *b;

    json_array_foreach((json_t *)ranks, i, a) {
        const char *host = json_string_value(json_object_get(a, "host"));
        const char *uuid = json_string_value(json_object_get(a, "uuid"));
        long long wanted = 0;

        json_array_foreach((json_t *)ranks, j, b) {
            const char *other = json_string_value(json_object_get(b, "host"));
            const char *gpu = json_string_value(json_object_get(b, "uuid"));

            wanted += host && other && strcmp(host, other) == 0 ? cpus_per_task : 0;
            if (j > i && uuid && gpu && strcmp(uuid, gpu) == 0)
                return true; /* they share a GPU */
        }
        if (wanted > json_integer_value(json_object_get(a, "cores")))
            return true;
    }
    return false;
}

/* A cell for a GPU that was computed on something else. The workload knows best, then the ranks. */
static bool is_rehearsal(bool gpu, const json_t *result, const json_t *ranks)
{
    const char *backend = json_string_value(json_object_get(result, "backend"));
    size_t i;
    json_t *rank;

    if (!gpu)
        return false;
    if (backend && strcmp(backend, "cpu") == 0)
        return true;
    json_array_foreach((json_t *)ranks, i, rank) {
        const char *kind = json_string_value(json_object_get(rank, "device_kind"));

        if (kind && strcmp(kind, "cpu") == 0)
            return true;
    }
    return false;
}

/* ---- What went wrong ---- */

static bool rank_failed(const json_t *rank)
{
    return json_object_get(rank, "signal") ||
           json_integer_value(json_object_get(rank, "exit_code")) != 0;
}

/* The rank that failed first: the launcher ends the others for its sake. */
static const json_t *first_failed(const json_t *ranks)
{
    const json_t *first = NULL;
    size_t i;
    json_t *rank;

    json_array_foreach((json_t *)ranks, i, rank)
        if (rank_failed(rank) && (!first || json_number_value(json_object_get(rank, "end_s")) <
                                                json_number_value(json_object_get(first, "end_s"))))
            first = rank;
    return first;
}

static bool is_term(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGTERM : WEXITSTATUS(status) == 128 + SIGTERM;
}

static int rank_status(const json_t *rank)
{
    const json_t *signal = json_object_get(rank, "signal");

    return signal ? (int)json_integer_value(signal)
                  : (int)json_integer_value(json_object_get(rank, "exit_code")) << 8;
}

bool hg_outcome_died_of_term(const struct hg_outcome *o)
{
    json_t *ranks, *rank;
    bool all = o->ended && is_term(o->status);
    size_t i;

    if (!all)
        return false;
    ranks = read_ranks(o->dir);
    json_array_foreach(ranks, i, rank)
        all = all && (!rank_failed(rank) || is_term(rank_status(rank)));
    json_decref(ranks);
    return all;
}

static void describe_rank(const json_t *rank, char *out, size_t size)
{
    const char *error = json_string_value(json_object_get(rank, "error"));
    char text[64];

    if (error) {
        snprintf(out, size, "%s", error);
        return;
    }
    hg_proc_status_format(rank_status(rank), text);
    snprintf(out, size, "%s%s", text,
             json_is_true(json_object_get(rank, "oom")) ? ", out of memory" : "");
}

/* The last lines of stderr, with control characters replaced. */
static json_t *log_tail(const char *dir)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *tail;

    read_tail(dir, "err.log", TAIL_MAX, &text);
    for (size_t i = 0; i < text.len; i++)
        if (iscntrl((unsigned char)text.data[i]) && text.data[i] != '\n' && text.data[i] != '\t')
            text.data[i] = '?';
    while (text.len && text.data[text.len - 1] == '\n')
        text.data[--text.len] = '\0';
    tail = text.len ? hg_json_text(text.data) : NULL;
    hg_buf_done(&text);
    return tail;
}

static json_t *make_error(const struct hg_outcome *o, const char *message, const json_t *rank)
{
    json_t *error = json_object();
    json_t *tail = log_tail(o->dir);

    json_object_set_new(error, "message", hg_json_text(message));
    if (rank) {
        json_object_set(error, "rank", json_object_get(rank, "rank"));
        json_object_set(error, "host", json_object_get(rank, "host"));
    }
    if (tail)
        json_object_set_new(error, "tail", tail);
    return error;
}

/* The workload's own error if it reported one, else this message. */
static json_t *get_error(const struct hg_outcome *o, const json_t *theirs, const char *message,
                         const json_t *rank)
{
    json_t *error = json_object_get(theirs, "error");

    if (json_is_object(error) && json_is_string(json_object_get(error, "message")))
        return json_deep_copy(error);
    if (json_is_string(error))
        return json_pack("{s: O}", "message", error);
    return make_error(o, message, rank);
}

struct verdict {
    const char *status;
    json_t *error; /* NULL: none */
};

/* slurmstepd writes to the step's stderr why it ends a step. */
static bool slurm_said(const struct hg_outcome *o, const char *words)
{
    struct hg_buf text = HG_BUF_INIT;
    bool said;

    read_tail(o->dir, "err.log", SAID_MAX, &text);
    said = text.len && memmem(text.data, text.len, words, strlen(words));
    hg_buf_done(&text);
    return said;
}

static struct verdict judge_stop(const struct hg_outcome *o, const json_t *theirs)
{
    bool late = o->stop == HG_STOP_TIMEOUT || slurm_said(o, "DUE TO TIME LIMIT");
    const char *why =
        late ? "the time limit was reached"
        : o->stop == HG_STOP_SUPERSEDED
            ? "another copy of the job took the cell over: this one's heartbeat had stopped"
        : slurm_said(o, "DUE TO PREEMPTION")   ? "preempted by another job"
        : slurm_said(o, "DUE TO JOB REQUEUE")  ? "requeued"
        : slurm_said(o, "DUE TO NODE FAILURE") ? "a node failed"
                                               : "the job received SIGTERM";

    return (struct verdict){ late ? "timeout" : "cancelled", get_error(o, theirs, why, NULL) };
}

/* Status of a program that ended with something other than 0, not because of TERM. */
static struct verdict judge_failure(const struct hg_outcome *o, const json_t *ranks,
                                    const json_t *theirs)
{
    const json_t *rank = first_failed(ranks);
    const char *said = json_string_value(json_object_get(theirs, "status"));
    bool oom = json_is_true(json_object_get(rank, "oom")) || (said && strcmp(said, "oom") == 0);
    char text[600], how[64];

    hg_proc_status_format(o->status, how);
    if (rank)
        describe_rank(rank, text, sizeof text);
    else
        snprintf(text, sizeof text, "the launcher ended with %s", how);
    return (struct verdict){ oom ? "oom" : "failed", get_error(o, theirs, text, rank) };
}

static bool has_checkpoint(const struct hg_outcome *o)
{
    return o->ended && WIFEXITED(o->status) && WEXITSTATUS(o->status) == EXIT_CHECKPOINT;
}

static struct verdict judge(const struct hg_outcome *o, const json_t *ranks, const json_t *theirs,
                            const struct hg_err *bad)
{
    const char *said = json_string_value(json_object_get(theirs, "status"));

    if (o->problem)
        return (struct verdict){ "failed", make_error(o, o->problem->text, NULL) };
    if (o->stop != HG_STOP_NONE)
        return judge_stop(o, theirs);
    if (has_checkpoint(o))
        return (struct verdict){
            "timeout", make_error(o, "stopped before the time limit with a checkpoint", NULL)
        };
    if (o->status != 0)
        return judge_failure(o, ranks, theirs);
    if (bad->code)
        return (struct verdict){ "failed", make_error(o, bad->text, NULL) };
    if (said && (strcmp(said, "failed") == 0 || strcmp(said, "oom") == 0))
        return (struct verdict){ strcmp(said, "oom") == 0 ? "oom" : "failed",
                                 get_error(o, theirs, "the workload reported a failure", NULL) };
    return (struct verdict){ "ok", NULL };
}

/* ---- Putting it together ---- */

static void set_time(json_t *result, const char *key, double wall_s)
{
    char text[21];

    hg_clock_format_utc(wall_s, text);
    json_object_set_new(result, key, json_string(text));
}

static json_t *merged_env(const struct hg_outcome *o, const json_t *theirs)
{
    json_t *env = o->env ? json_deep_copy(o->env) : json_object();
    json_t *other = json_object_get(theirs, "env");

    if (json_is_object(other))
        json_object_update_missing(env, other);
    return env;
}

/* Take what the workload wrote and printed. Problems go to err; members found before stay. */
static void gather(const struct hg_outcome *o, json_t *result, json_t **theirs, struct hg_err *err)
{
    bool diverged = false;

    if (read_workload(o->dir, theirs, &diverged, err) < 0) {
        if (err->line)
            hg_err_wrap(err, "the workload's result, line %d, column %d", err->line, err->column);
        return;
    }
    if (!*theirs && json_object_get(o->workload, "program")) {
        hg_err_set(err, HG_E_INPUT, "hpcgrid-worker wrote no result");
        return;
    }
    if (take_members(*theirs, result, err) < 0 || take_output(o, result, &diverged, err) < 0)
        return;
    if (diverged)
        json_object_set_new(result, "diverged", json_true());
}

static void set_head(const struct hg_outcome *o, json_t *result)
{
    json_object_set_new(result, "schema", json_string(HG_RESULT_SCHEMA));
    json_object_set_new(result, "run_key", json_string(o->run_key));
    json_object_set(result, "id", json_object_get(o->line, "id"));
    json_object_set_new(result, "attempt", json_string(o->name));
    json_object_set_new(result, "status", json_null()); /* its place in the file */
}

static void set_end(const struct hg_outcome *o, json_t *result)
{
    if (o->ended && !o->problem && WIFEXITED(o->status))
        json_object_set_new(result, "exit_code", json_integer(WEXITSTATUS(o->status)));
    else if (o->ended && !o->problem)
        json_object_set_new(result, "signal", json_integer(WTERMSIG(o->status)));
    json_object_set_new(result, "wall_s", hg_json_number(round(o->wall_s * 1e6) / 1e6));
    if (o->suspended_s > 0)
        json_object_set_new(result, "suspended_s",
                            hg_json_number(round(o->suspended_s * 1e6) / 1e6));
    set_time(result, "started", o->start_s - o->clock_ahead_s);
    set_time(result, "ended", o->end_s - o->clock_ahead_s);
    if (o->clock_ahead_s != 0)
        json_object_set_new(result, "clock_ahead_s", hg_json_number(round(o->clock_ahead_s)));
}

json_t *hg_outcome_result(const struct hg_outcome *o)
{
    struct hg_err bad = HG_ERR_INIT;
    json_t *result = json_object(), *theirs = NULL;
    json_t *ranks = read_ranks(o->dir);
    struct verdict v;

    set_head(o, result);
    set_end(o, result);
    gather(o, result, &theirs, &bad);
    merge_ranks(ranks, json_object_get(theirs, "ranks"));
    v = judge(o, ranks, theirs, &bad);
    json_object_set_new(result, "status", json_string(v.status));
    if (o->ending)
        json_object_set_new(result, "ending", json_true());
    if (v.error)
        json_object_set_new(result, "error", v.error);
    if (has_checkpoint(o))
        json_object_set_new(result, "checkpoint", json_true());
    json_object_set_new(result, "rehearsal",
                        json_boolean(o->rehearsal || is_rehearsal(o->gpu, result, ranks)));
    json_object_set_new(result, "oversubscribed",
                        json_boolean(is_oversubscribed(ranks, o->cpus_per_task)));
    json_object_set_new(result, "ranks", ranks);
    json_object_set_new(result, "env", merged_env(o, theirs));
    if (o->slurm)
        json_object_set(result, "slurm", o->slurm);
    if (o->code)
        json_object_set(result, "code", o->code);
    json_object_set(result, "cell", json_object_get(o->line, "cell"));
    json_decref(theirs);
    return result;
}

json_t *hg_outcome_least(const struct hg_outcome *o, const char *reason)
{
    json_t *result = json_object();
    char text[1024];

    set_head(o, result);
    set_end(o, result);
    snprintf(text, sizeof text, "%s", reason);
    json_object_set_new(result, "status", json_string("failed"));
    json_object_set_new(result, "error", json_pack("{s:o}", "message", hg_json_text(text)));
    json_object_set(result, "cell", json_object_get(o->line, "cell"));
    return result;
}

int hg_outcome_exit_code(const struct hg_outcome *o, const json_t *result)
{
    const char *status = json_string_value(json_object_get(result, "status"));
    int code = o->problem               ? 4
               : !o->ended              ? 1
               : WIFSIGNALED(o->status) ? 128 + WTERMSIG(o->status)
                                        : WEXITSTATUS(o->status);

    return code == 0 && (!status || strcmp(status, "ok") != 0) ? 1 : code;
}
