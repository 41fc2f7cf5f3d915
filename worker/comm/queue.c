/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

#define ROOM 64 /* collectives on their way */

struct wk_comm_queue {
    struct wk_comm *comm;
    wk_request_run *run;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* something was pushed, is over, or the end has come */
    struct wk_request ring[ROOM];
    size_t pushed, ran, popped; /* counts; number i lies at i % ROOM */
    bool closing;
    _Atomic bool waited;
};

static void *work(void *context)
{
    struct wk_comm_queue *q = context;

    pthread_mutex_lock(&q->lock);
    for (;;) {
        struct wk_request r;

        while (q->ran == q->pushed && !q->closing)
            pthread_cond_wait(&q->news, &q->lock);
        if (q->ran == q->pushed)
            break;
        r = q->ring[q->ran % ROOM];
        pthread_mutex_unlock(&q->lock);
        q->run(q->comm, &r, &q->waited);
        pthread_mutex_lock(&q->lock);
        q->ring[q->ran++ % ROOM] = r;
        pthread_cond_broadcast(&q->news);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

struct wk_comm_queue *wk_queue_open(struct wk_comm *comm, wk_request_run *run, struct hg_err *err)
{
    struct wk_comm_queue *q = hg_alloc_zeroed(1, sizeof *q);

    q->comm = comm;
    q->run = run;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->news, NULL);
    if (pthread_create(&q->thread, NULL, work, q) != 0) {
        hg_err_set(err, HG_E_ENV, "no thread for communication");
        free(q);
        return NULL;
    }
    return q;
}

void wk_queue_close(struct wk_comm_queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_broadcast(&q->news);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->news);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

bool wk_queue_full(struct wk_comm_queue *q)
{
    return q->pushed - q->popped == ROOM; /* both are the rank's own */
}

bool wk_queue_idle(struct wk_comm_queue *q)
{
    return q->pushed == q->popped;
}

void wk_queue_push(struct wk_comm_queue *q, const struct wk_request *r)
{
    pthread_mutex_lock(&q->lock);
    q->ring[q->pushed++ % ROOM] = *r;
    pthread_cond_broadcast(&q->news);
    pthread_mutex_unlock(&q->lock);
}

void wk_queue_pop(struct wk_comm_queue *q, struct wk_request *out)
{
    double start = hg_clock_mono_s();

    pthread_mutex_lock(&q->lock);
    atomic_store(&q->waited, true);
    while (q->ran == q->popped)
        pthread_cond_wait(&q->news, &q->lock);
    atomic_store(&q->waited, false);
    *out = q->ring[q->popped++ % ROOM];
    pthread_mutex_unlock(&q->lock);
    out->exposed_s = hg_clock_mono_s() - start;
    if (out->exposed_s > out->end_s - out->start_s)
        out->exposed_s = out->end_s - out->start_s; /* the rest was another's, or waking up */
}
