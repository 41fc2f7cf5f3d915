/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/client/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

#define ANSWER_MAX ((size_t)256 << 20) /* a poll of a million tasks */

/* ---- The process ---- */

void hg_pipe_stop(struct hg_pipe *p)
{
    int status;

    if (p->proc.pid <= 0)
        return;
    close(p->proc.in); /* an idle agent exits when its input ends */
    if (hg_proc_wait(p->proc.pid, 2.0, &status, NULL) == 1) {
        kill(p->proc.pid, SIGKILL);
        hg_proc_wait(p->proc.pid, -1, &status, NULL);
    }
    close(p->proc.out);
    close(p->proc.err);
    p->proc.pid = 0;
    hg_buf_clear(&p->in);
}

static int start(struct hg_pipe *p, struct hg_err *err)
{
    const char *const argv[] = { p->path, p->argument, NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;

    if (p->proc.pid > 0)
        return 0;
    spec.argv = argv;
    spec.in = spec.out = spec.err = HG_PROC_PIPE;
    spec.new_session = true; /* Ctrl-C is ours: a submission under way is finished first */
    spec.death_signal = SIGKILL;
    if (hg_proc_start(&spec, &p->proc, err) < 0) {
        p->proc.pid = 0;
        if (err && err->code == HG_E_NOTFOUND)
            err->code = HG_E_ENV;
        return -1;
    }
    fcntl(p->proc.in, F_SETFL, O_NONBLOCK);
    fcntl(p->proc.out, F_SETFL, O_NONBLOCK);
    fcntl(p->proc.err, F_SETFL, O_NONBLOCK);
    p->n_last_words = 0;
    hg_buf_clear(&p->in);
    return 0;
}

/* Keep the end of what the agent prints on stderr. */
static void read_stderr(struct hg_pipe *p)
{
    char chunk[1024];
    ssize_t n;

    while ((n = read(p->proc.err, chunk, sizeof chunk)) > 0) {
        size_t len = (size_t)n, over;

        if (len + p->n_last_words >= HG_PIPE_STDERR_KEEP) {
            over = len + p->n_last_words - (HG_PIPE_STDERR_KEEP - 1);
            memmove(p->last_words, p->last_words + over, p->n_last_words - over);
            p->n_last_words -= over;
        }
        memcpy(p->last_words + p->n_last_words, chunk, len);
        p->n_last_words += len;
    }
    p->last_words[p->n_last_words] = '\0';
    while (p->n_last_words && p->last_words[p->n_last_words - 1] == '\n')
        p->last_words[--p->n_last_words] = '\0';
}

/* ---- One question, one answer ---- */

/* 1: ready, 0: time is up, -1: broken. events: POLLIN of the answer or POLLOUT of the question. */
static int wait_for(struct hg_pipe *p, short events, double end)
{
    for (;;) {
        bool reading = events == POLLIN;
        struct pollfd fds[2] = { { .fd = reading ? p->proc.out : p->proc.in, .events = events },
                                 { .fd = p->proc.err, .events = POLLIN } };
        int left_ms = (int)((end - hg_clock_mono_s()) * 1000);

        if (left_ms <= 0)
            return 0;
        if (poll(fds, 2, left_ms) < 0 && errno != EINTR)
            return -1;
        if (fds[1].revents & POLLIN)
            read_stderr(p);
        else if (fds[1].revents)
            hg_clock_sleep_s(0.001); /* its stderr is closed: stdout will show whether it ended */
        if (fds[0].revents & events)
            return 1;
        if (fds[0].revents)
            return -1;
    }
}

static int send_line(struct hg_pipe *p, const struct hg_buf *line, double end)
{
    size_t sent = 0;

    while (sent < line->len) {
        ssize_t n = write(p->proc.in, line->data + sent, line->len - sent);
        int rc;

        if (n > 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN) {
            rc = wait_for(p, POLLOUT, end);
            if (rc <= 0)
                return rc;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 1;
}

/* Read up to the end of a line; p->in holds it without the newline. */
static int read_line(struct hg_pipe *p, double end)
{
    hg_buf_clear(&p->in);
    for (;;) {
        ssize_t n;
        int rc = wait_for(p, POLLIN, end);

        if (rc <= 0)
            return rc;
        if (p->in.len > ANSWER_MAX)
            return -1;
        hg_buf_reserve(&p->in, 65536);
        n = read(p->proc.out, p->in.data + p->in.len, 65536);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return -1;
        if (n <= 0)
            continue;
        p->in.len += (size_t)n;
        p->in.data[p->in.len] = '\0';
        if (p->in.data[p->in.len - 1] == '\n') { /* one question at a time: nothing follows it */
            p->in.data[--p->in.len] = '\0';
            return 1;
        }
    }
}

int hg_pipe_no_answer(struct hg_pipe *p, const char *op, bool silent, struct hg_err *err)
{
    enum hg_err_code code = strcmp(op, "submit") == 0 ? HG_E_AMBIGUOUS : HG_E_AGAIN;

    read_stderr(p);
    if (p->proc.pid > 0)
        kill(p->proc.pid, SIGKILL);
    hg_pipe_stop(p);
    if (silent)
        hg_err_set(err, code, "no answer to \"%s\" from %s within %g s", op, p->program,
                   p->deadline_s);
    else
        hg_err_set(err, code, "%s ended without an answer to \"%s\"", p->program, op);
    if (p->n_last_words)
        hg_err_hint(err, "last output on stderr: %.400s", p->last_words);
    return -1;
}

json_t *hg_pipe_ask(struct hg_pipe *p, const char *op, json_t *request, bool *silent,
                    struct hg_err *err)
{
    double end = hg_clock_mono_s() + p->deadline_s;
    struct hg_buf line = HG_BUF_INIT;
    json_t *answer = NULL;
    int got;

    *silent = false;
    if (start(p, err) < 0)
        return NULL;
    json_object_set_new(request, "id", json_integer(++p->next_id));
    json_object_set_new(request, "op", json_string(op));
    hg_json_dump(request, HG_JSON_COMPACT, &line);
    hg_buf_puts(&line, "\n");
    got = send_line(p, &line, end);
    if (got == 1)
        got = read_line(p, end);
    hg_buf_done(&line);
    if (got == 1)
        answer = json_loadb(p->in.data, p->in.len, JSON_REJECT_DUPLICATES, NULL);
    if (answer && json_integer_value(json_object_get(answer, "id")) == p->next_id)
        return answer;
    *silent = got == 0;
    hg_pipe_no_answer(p, op, *silent, err);
    json_decref(answer);
    return NULL;
}
