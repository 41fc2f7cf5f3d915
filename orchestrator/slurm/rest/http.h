/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_HTTP_H
#define HG_SLURM_REST_HTTP_H

#include "base/buf.h"
#include "base/err.h"

struct hg_http_target {
    const char *base;             /* "https://host:6820" without a slash at its end */
    const char *socket, *ca_file; /* NULL: none */
    const char *user, *token;     /* NULL: not sent */
    double timeout_s;             /* of an exchange */
};

struct hg_http_answer {
    long status;  /* of HTTP */
    int os_errno; /* the system's, of a connection that failed; 0: none */
    struct hg_buf body;
};

/* Send a request and take its answer, whatever its status. body NULL: none. 0; or -1 with ENV: no connection, nothing was sent;
 * AMBIGUOUS: something was sent, the answer is missing or incomplete.
 *
 * Every exchange has a connection of its own: libcurl repeats a request on its own if a connection it kept is dead, and a
 * submission must not be sent twice. Redirects are not followed and proxies of the environment not used: the token goes to
 * the host of the URL and to no other. */
int hg_http_exchange(const struct hg_http_target *target, const char *method, const char *path,
                     const char *body, struct hg_http_answer *answer, struct hg_err *err);
void hg_http_answer_done(struct hg_http_answer *answer);

#endif
