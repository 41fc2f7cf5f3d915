/* SPDX-License-Identifier: Apache-2.0 */
/* Does munged work? libslurm tries for up to a minute before it says so, and then does not name it. */
#include "slurm/common/munge.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define LIMIT_S 10.0 /* munged answers in a millisecond */
#define FRESH_S 5.0  /* it has just answered */

/* libmunge's interface, as its munge.h has it: it comes with libslurm, its headers may not. */
#define MUNGE_OPT_SOCKET 8

struct munge {
    void *(*create)(void);
    int (*set)(void *ctx, int option, ...);
    int (*encode)(char **credential, void *ctx, const void *data, int len);
    void (*destroy)(void *ctx);
};

static bool load(struct munge *m)
{
    void *library = dlopen("libmunge.so.2", RTLD_NOW);

    if (!library)
        return false;
    *(void **)&m->create = dlsym(library, "munge_ctx_create");
    *(void **)&m->set = dlsym(library, "munge_ctx_set");
    *(void **)&m->encode = dlsym(library, "munge_encode");
    *(void **)&m->destroy = dlsym(library, "munge_ctx_destroy");
    return m->create && m->set && m->encode && m->destroy;
}

/* One question. It may hang with munged for ever, so the thread that asks owns it together with the one
 * that waits. */
struct question {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    char socket[sizeof((struct sockaddr_un *)0)->sun_path];
    bool done, abandoned;
};

static void free_question(struct question *q)
{
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->answered);
    free(q);
}

/* Any answer will do: what is wrong with a munged that answers, libslurm says itself. */
static void *ask(void *argument)
{
    struct question *q = argument;
    struct munge m = { 0 };
    char *credential = NULL;
    void *ctx;
    bool alone;

    if (load(&m) && (ctx = m.create())) {
        m.set(ctx, MUNGE_OPT_SOCKET, q->socket);
        m.encode(&credential, ctx, NULL, 0);
        free(credential);
        m.destroy(ctx);
    }
    pthread_mutex_lock(&q->lock);
    q->done = true;
    alone = q->abandoned;
    pthread_cond_signal(&q->answered);
    pthread_mutex_unlock(&q->lock);
    if (alone)
        free_question(q);
    return NULL;
}

static bool wait_answer(struct question *q)
{
    struct timespec end;
    bool done;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)LIMIT_S;
    pthread_mutex_lock(&q->lock);
    while (!q->done && pthread_cond_timedwait(&q->answered, &q->lock, &end) != ETIMEDOUT)
        ;
    done = q->done;
    q->abandoned = !done;
    pthread_mutex_unlock(&q->lock);
    return done;
}

/* False: it does not answer in time. */
static bool answers(const char *path)
{
    struct question *q = hg_alloc_zeroed(1, sizeof *q);
    pthread_t thread;
    bool done;

    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->answered, NULL);
    snprintf(q->socket, sizeof q->socket, "%s", path);
    if (pthread_create(&thread, NULL, ask, q) != 0) {
        free_question(q);
        return true;
    }
    pthread_detach(thread);
    done = wait_answer(q);
    if (done)
        free_question(q);
    return done;
}

/* 0, or the error of connecting. */
static int connects(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        rc = errno;
    if (fd >= 0)
        close(fd);
    return rc;
}

int hg_agent_check_munge(struct hg_agent_call *call, const char *path)
{
    static double answered_s;
    int rc = connects(path);

    if (rc == ECONNREFUSED || rc == ENOENT) {
        hg_err_set(&call->err, HG_E_ENV, "munge does not answer at %s: %s", path, strerror(rc));
        return hg_err_hint(&call->err, "is munged running?");
    }
    if (answered_s > 0 && hg_clock_mono_s() - answered_s < FRESH_S)
        return 0;
    if (!answers(path)) {
        hg_err_set(&call->err, HG_E_ENV, "munge does not answer at %s within %g s", path, LIMIT_S);
        return hg_err_hint(&call->err, "munged is there but does not work: has it been stopped?");
    }
    answered_s = hg_clock_mono_s();
    return 0;
}
