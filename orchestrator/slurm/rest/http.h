/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_HTTP_H
#define HG_SLURM_REST_HTTP_H

#include "base/buf.h"
#include "base/err.h"

/* One HTTP exchange at a time, by libcurl. Every exchange has a connection of its own: libcurl sends a
 * request again by itself where a connection it kept turns out to be dead, and a submission must not be
 * sent twice. Redirects are not followed and proxies of the environment not used: the token goes to the
 * host of the URL and to no other. */
struct hg_http;

struct hg_http_target {
    const char *base;             /* "https://host:6820" without a slash at its end */
    const char *socket, *ca_file; /* NULL: none */
    const char *user, *token;     /* NULL: not sent */
    double timeout_s;             /* of an exchange */
};

struct hg_http_answer {
    long status;  /* of HTTP */
    int os_errno; /* the system's, of a connection that did not come about; 0: none */
    struct hg_buf body;
};

/* What the target points to must live as long. */
struct hg_http *hg_http_create(const struct hg_http_target *target);
void hg_http_free(struct hg_http *http);

/* Send a request and take its answer, whatever its status. body NULL: none. 0; or -1 with ENV: nothing was sent,
 * no connection came about; AMBIGUOUS: something was sent, the answer is missing or incomplete. */
int hg_http_exchange(struct hg_http *http, const char *method, const char *path, const char *body,
                     struct hg_http_answer *answer, struct hg_err *err);
void hg_http_answer_done(struct hg_http_answer *answer);

#endif
