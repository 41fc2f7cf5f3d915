/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLIENT_PIPE_H
#define HG_SLURM_CLIENT_PIPE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/proc.h"

#define HG_PIPE_STDERR_KEEP 2048

/* hpcgrid's end of the pipe to an agent (slurm/README.md): one JSON line there, one back.
 *
 * The agent is started by the first question, and again after it has died. Each question has a deadline. An agent that has
 * not answered by then is killed, because its answer would come between the next question and its own. */
struct hg_pipe {
    const char *program;   /* for messages; lent */
    char *path, *argument; /* of the agent; argument NULL: none. Yours */
    double deadline_s;     /* of each question */

    struct hg_proc proc; /* pid 0: not running */
    struct hg_buf in;    /* bytes of the answer read so far */
    char last_words[HG_PIPE_STDERR_KEEP];
    size_t n_last_words;
    json_int_t next_id;
};

/* Ask one question. The request gets its members "id" and "op". Returns the answer, a new reference, or NULL with err set:
 * ENV if the agent cannot be started, else as hg_pipe_no_answer; *silent: it did not answer in time. */
json_t *hg_pipe_ask(struct hg_pipe *p, const char *op, json_t *request, bool *silent,
                    struct hg_err *err);

/* Kill the agent because there is no usable answer; silent: none came in time. Sets err and returns -1: after "submit"
 * nobody knows (AMBIGUOUS), after anything else nothing happened (AGAIN). */
int hg_pipe_no_answer(struct hg_pipe *p, const char *op, bool silent, struct hg_err *err);

/* End the agent; the next question starts another one. */
void hg_pipe_stop(struct hg_pipe *p);

#endif
