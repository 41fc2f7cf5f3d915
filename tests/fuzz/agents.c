/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the pipe to Slurm. The agents hpcgrid-sbatch and hpcgrid-rest get requests, and their commands or slurmrestd the
 * answers; hpcgrid's client gets the answers of an agent. An input has parts with a line "%%" between them. The linker puts the
 * functions called __wrap_ in the place of those that start programs (tests.cmake). */
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/proc.h"
#include "fuzz.h"
#include "slurm/client/executor.h"
#include "slurm/client/pipe.h"
#include "slurm/common/serve.h"
#ifdef HPCGRID_FUZZ_REST
#include "slurm/rest/http.h"
#include "slurm/rest/server.h"
#endif

#define KEY "0123456789abcdef0123456789abcdef"
#define SCRIPT_FD 199   /* the seeds' script is /proc/self/fd/199 */
#define TASKS_MAX 20000 /* of an index set: not a question of memory here */

int hpcgrid_sbatch_main(int argc, char **argv);
int hpcgrid_rest_main(int argc, char **argv);
int __real_hg_agent_main(const struct hg_agent *agent, int argc, char **argv);
int __wrap_hg_agent_main(const struct hg_agent *agent, int argc, char **argv);
int __wrap_hg_proc_watch(struct hg_proc_spec *spec, struct hg_proc_watching *watching,
                         struct hg_buf *out, struct hg_buf *errout, int *status,
                         struct hg_err *err);
json_t *__wrap_hg_pipe_ask(struct hg_pipe *p, const char *op, json_t *request, bool *silent,
                           struct hg_err *err);

/* ---- Parts of the input ---- */

static const char *rest, *end;

/* The next part, "" behind the last. */
static struct hg_buf next_part(void)
{
    const char *at = rest, *mark = rest;
    struct hg_buf part = HG_BUF_INIT;

    for (;; mark++) {
        mark = memchr(mark, '%', (size_t)(end - mark));
        if (!mark || (end - mark >= 3 && memcmp(mark, "%%\n", 3) == 0))
            break;
    }
    hg_buf_append(&part, at, (size_t)((mark ? mark : end) - at));
    rest = mark ? mark + 3 : end;
    return part;
}

/* Index sets of many thousands take only time and memory here. */
static bool is_long(const char *text)
{
    for (; (text = strchr(text, '-')); text++) {
        size_t digits = strspn(text + 1, "0123456789");

        if (digits < 8 && strtol(text + 1, NULL, 10) > TASKS_MAX)
            return true;
    }
    return false;
}

/* ---- Agents ---- */

static const struct hg_agent *given; /* by the agent's main */
static int answers = -1;

int __wrap_hg_agent_main(const struct hg_agent *agent, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    given = agent;
    return 0;
}

static int begin(const char *argument, struct hg_err *err)
{
    (void)argument;
    (void)err;
    return answers;
}

static int has_slurm(struct hg_agent_call *call)
{
    (void)call;
    return 0;
}

/* Each line is JSON with either an answer or an error. */
static void expect_answers(const char *text, size_t len)
{
    const char *stop = text + len;

    for (const char *newline; text < stop; text = newline + 1) {
        json_t *answer, *ok, *error;

        newline = memchr(text, '\n', (size_t)(stop - text));
        hg_fuzz_expect(newline, "an answer is a line");
        answer = json_loadb(text, (size_t)(newline - text), JSON_REJECT_DUPLICATES, NULL);
        ok = json_object_get(answer, "ok");
        error = json_object_get(answer, "error");
        hg_fuzz_expect(json_object_get(answer, "id"), "an answer is JSON and has an id");
        hg_fuzz_expect(!ok != !error, "an answer is either an answer or an error");
        if (error)
            hg_fuzz_expect(*json_string_value(json_object_get(error, "message")),
                           "an error says something");
        if (json_object_get(ok, "job_id"))
            hg_fuzz_expect(json_integer_value(json_object_get(ok, "job_id")) > 0 &&
                               json_integer_value(json_object_get(ok, "job_id")) <= UINT32_MAX,
                           "a submitted job has a number");
        for (size_t i = 0; i < json_array_size(json_object_get(ok, "jobs")); i++)
            hg_fuzz_expect(json_integer_value(json_object_get(
                               json_array_get(json_object_get(ok, "jobs"), i), "job_id")) > 0,
                           "a job that is listed has a number");
        json_decref(answer);
    }
}

/* Serve the requests of the first part. */
static void serve(struct hg_agent *agent, const char *text, size_t len)
{
    struct hg_buf requests, out = HG_BUF_INIT;
    FILE *was = stdin;
    off_t size;

    if (answers < 0) {
        int fd = memfd_create("script", MFD_CLOEXEC);

        hg_fuzz_expect(write(fd, "#!/bin/sh\n", 10) == 10 && dup2(fd, SCRIPT_FD) == SCRIPT_FD,
                       "there is a script");
        close(fd);
        answers = memfd_create("answers", MFD_CLOEXEC);
    }
    if (is_long(text))
        return;
    rest = text;
    end = text + len;
    requests = next_part();
    hg_fuzz_expect(ftruncate(answers, 0) == 0 && lseek(answers, 0, SEEK_SET) == 0,
                   "answers have a place");
    if (requests.len) {
        agent->begin = begin;
        stdin = fmemopen(requests.data, requests.len, "r");
        __real_hg_agent_main(agent, 1, NULL);
        fclose(stdin);
        stdin = was;
    }
    size = lseek(answers, 0, SEEK_END);
    hg_buf_reserve(&out, (size_t)size);
    hg_fuzz_expect(pread(answers, out.data, (size_t)size, 0) == size, "answers can be read");
    expect_answers(out.data, (size_t)size);
    hg_buf_done(&out);
    hg_buf_done(&requests);
}

/* ---- hpcgrid-sbatch ---- */

/* The delimiter that squeue and sacct were given; NULL: none. */
static const char *delimiter_of(const char *const *argv, char out[static 19])
{
    const char *last = NULL;

    for (; *argv; argv++)
        for (const char *p = *argv; (p = strchr(p, '@')); p++)
            if (strlen(p) >= 18 && p[17] == '@')
                last = p;
    if (last)
        snprintf(out, 19, "%s", last);
    return last ? out : NULL;
}

/* A part: exit status and what is printed on stdout; behind a line "%" on stderr. "|" is the delimiter. */
int __wrap_hg_proc_watch(struct hg_proc_spec *spec, struct hg_proc_watching *watching,
                         struct hg_buf *out, struct hg_buf *errout, int *status, struct hg_err *err)
{
    struct hg_buf part = next_part();
    const char *text = hg_buf_str(&part), *newline = strchr(text, '\n');
    const char *said = newline ? strstr(newline, "\n%\n") : NULL;
    const char *out_end = said ? said + 1 : text + part.len;
    char delimiter[19];

    *status = (int)(strtol(text, NULL, 10) & 0xffff);
    watching->late = text[0] == 'l';
    watching->alone = true;
    if (text[0] == 'n') {
        hg_buf_done(&part);
        return hg_err_set(err, HG_E_NOTFOUND, "%s: no such program", spec->argv[0]);
    }
    if (newline && !delimiter_of(spec->argv, delimiter)) {
        hg_buf_append(out, newline + 1, (size_t)(out_end - newline - 1));
    } else if (newline) {
        for (const char *p = newline + 1; p < out_end; p++)
            if (*p == '|')
                hg_buf_puts(out, delimiter);
            else
                hg_buf_append(out, p, 1);
    }
    if (said)
        hg_buf_puts(errout, said + 3);
    if (watching->enough)
        watching->enough(errout, watching->context);
    hg_buf_done(&part);
    return 0;
}

static void run_sbatch(const char *text, size_t len)
{
    static struct hg_agent agent;

    if (!agent.program) {
        hpcgrid_sbatch_main(1, NULL);
        agent = *given;
        agent.need_slurm = has_slurm;
        agent.hello = has_slurm; /* it starts sbatch in another way */
    }
    serve(&agent, text, len);
}

/* ---- hpcgrid-rest ---- */

#ifdef HPCGRID_FUZZ_REST
/* A part: HTTP's status, 0: no connection, 1: no answer; then the body. */
int hg_http_exchange(const struct hg_http_target *target, const char *method, const char *path,
                     const char *body, struct hg_http_answer *answer, struct hg_err *err)
{
    struct hg_buf part = next_part();
    const char *text = hg_buf_str(&part), *newline = memchr(text, '\n', part.len);

    (void)method;
    (void)path;
    (void)body;
    answer->status = strtol(text, NULL, 10);
    if (newline)
        hg_buf_append(&answer->body, newline + 1, (size_t)(text + part.len - newline - 1));
    hg_buf_done(&part);
    if (answer->status > 1)
        return 0;
    return hg_err_set(err, answer->status ? HG_E_AMBIGUOUS : HG_E_ENV, "%s does not answer",
                      target->base);
}

void hg_http_answer_done(struct hg_http_answer *answer)
{
    hg_buf_done(&answer->body);
}

static void run_rest(const char *text, size_t len)
{
    static struct hg_agent agent;
    struct hg_err err = HG_ERR_INIT;

    if (!agent.program) {
        setenv("SLURM_JWT", "e30.eyJzdW4iOiJ1In0.x", 1);
        hpcgrid_rest_main(1, NULL);
        agent = *given;
        hg_fuzz_expect(hg_rest_configure("{\"url\": \"http://h:1\"}", &err) == 0, "it has a URL");
    }
    hg_rest.known = false;
    serve(&agent, text, len);
}
#endif

/* ---- The client ---- */

json_t *__wrap_hg_pipe_ask(struct hg_pipe *p, const char *op, json_t *request, bool *silent,
                           struct hg_err *err)
{
    struct hg_buf part = next_part();
    json_t *answer = json_loadb(hg_buf_str(&part), part.len, JSON_REJECT_DUPLICATES, NULL);

    (void)request;
    *silent = part.len == 0;
    if (!answer)
        hg_pipe_no_answer(p, op, *silent, err);
    hg_buf_done(&part);
    return answer;
}

static void expect_jobs(struct hg_executor_jobs *jobs, int rc)
{
    for (size_t i = 0; rc == 0 && i < jobs->n; i++) {
        hg_fuzz_expect(jobs->items[i].job_id, "a job has a number");
        hg_fuzz_expect(jobs->items[i].state[0], "a job has a state");
    }
    hg_executor_jobs_done(jobs);
}

static void run_answers(const char *text, size_t len)
{
    const struct hg_executor *x = &hg_executor_slurm;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_executor_session *s;
    struct hg_executor_limits limits;
    struct hg_executor_jobs jobs;
    struct hg_err err[7] = { HG_ERR_INIT };
    json_t *job = json_pack("{s:s}", "partition", "cpu");
    const char *const keys[] = { KEY };
    uint32_t id = 0;

    setenv("HPCGRID_TRANSPORT", "cli", 1);
    setenv("HPCGRID_CLI_AGENT", "/bin/false", 1);
    rest = text;
    end = text + len;
    s = x->open(NULL, 1, &err[0]);
    hg_fuzz_expect(s, "an agent is there");
    while (rest < end) {
        if (x->limits(s, &limits, &err[0]) == 0)
            hg_fuzz_expect(limits.max_array_size, "an array has a size");
        if (x->submit(s, job, &id, &err[1]) == 0)
            hg_fuzz_expect(id, "a job that is submitted has a number");
        x->probe(s, job, &err[2]);
        expect_jobs(&jobs, x->poll(s, &jobs, &err[3]));
        expect_jobs(&jobs, x->history(s, keys, 1, 1, &jobs, &err[4]));
        x->cancel(s, 17, "0", &err[5]);
        x->hold(s, 17, NULL, true, &err[6]);
        for (size_t i = 0; i < sizeof err / sizeof *err; i++) {
            hg_errs_add(&errs, &err[i]);
            err[i] = (struct hg_err)HG_ERR_INIT;
        }
    }
    x->close(s);
    json_decref(job);
    hg_fuzz_errors(&errs, NULL);
}

const struct hg_fuzz_target hg_fuzz_agents[] = {
    { "sbatch", run_sbatch },
#ifdef HPCGRID_FUZZ_REST
    { "rest", run_rest },
#endif
    { "answers", run_answers },
    { NULL, NULL },
};
