/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of a test. What a rank finds wrong it says in its error: assertions are for the
 * test's own thread. */
#ifndef HG_TESTS_WORKER_TEAM_H
#define HG_TESTS_WORKER_TEAM_H

#include <pthread.h>

#include "comm/threads.h"
#include "worker.h"

typedef int team_work(struct wk_comm *comm, void *context, struct hg_err *err);

struct teammate {
    pthread_t thread;
    struct wk_hub *hub;
    int rank;
    team_work *work;
    void *context;
    struct hg_err err;
};

static inline void *teammate_run(void *context)
{
    struct teammate *t = context;
    struct wk_comm *comm = wk_hub_join(t->hub, t->rank);

    if (t->work(comm, t->context, &t->err) < 0)
        wk_hub_break(t->hub, t->rank);
    wk_comm_close(comm);
    return NULL;
}

/* Let so many ranks do their work; fails the test with what the first of them says that had a reason of its
 * own. */
static inline void team_run(int world, team_work *work, void *context)
{
    struct teammate mates[WK_HUB_MAX] = { 0 };
    struct wk_hub *hub = wk_hub_create(world, NULL);
    const char *said = NULL;

    assert_non_null(hub);
    for (int i = 0; i < world; i++) {
        mates[i] = (struct teammate){ .hub = hub, .rank = i, .work = work, .context = context };
        assert_int_equal(pthread_create(&mates[i].thread, NULL, teammate_run, &mates[i]), 0);
    }
    for (int i = 0; i < world; i++)
        pthread_join(mates[i].thread, NULL);
    for (int i = 0; i < world; i++)
        if (mates[i].err.code && (!said || strstr(said, " ended")))
            said = mates[i].err.text;
    wk_hub_free(hub);
    if (said)
        fail_msg("%d ranks: %s", world, said);
}

#endif
