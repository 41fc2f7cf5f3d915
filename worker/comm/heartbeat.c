/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/heartbeat.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/fault.h"

#define TICK_MAX_S 1.0
#define TICK_MIN_S 0.05
#define TICK_SOON_S 0.01  /* while a verdict waits for its last detail */
#define GONE_SETTLE_S 0.3 /* how long: launchers kill the others after a second or two */
#define LAST_WORDS_S 10.0 /* for a rank that fails to write down why */
#define FAREWELL_S 1.0

const char *const wk_phase_names[WK_PHASES] = { "start", "step", "evaluation", "end" };
const char *const wk_how_names[WK_HOWS] = { "gone", "silent", "late" };

enum message_kind { MESSAGE_PULSE, MESSAGE_BYE, MESSAGE_FAILING, MESSAGE_QUIT };

struct message {
    int32_t kind, unused;
    struct wk_at at;
};

/* The other end of a connection. */
struct peer {
    int rank, fd; /* -1: closed */
    bool bye, failing, gone, clogged;
    struct wk_at at;
    double seen_s; /* last heard of, on the heartbeat's clock */
    size_t got;    /* bytes of the next message */
    struct message in;
};

struct wk_heartbeat {
    struct wk_rendezvous *rv;
    int rank, world;
    double limit_s, tick_s;
    struct wk_heartbeat_ends ends;
    struct wk_fault fault;
    long calls; /* of this step */

    pthread_t thread;
    int wake; /* eventfd */
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct wk_at at; /* under lock, as all that follows */
    bool stopping, failing, announced, judged;

    /* of the thread */
    struct peer *peers;
    struct pollfd *polls;
    int n_peers;
    double clock_s, real_s; /* time that counts, and when it was set */
    double pulse_s;         /* when the next pulse is due */
    double gone_s;          /* when a rank was found gone; 0: never */
    double quiet_s;         /* when a rank said that it fails; 0: never */
    uint64_t front;         /* latest collective in which a rank waits; 0: none */
    double front_s;         /* since when */
};

/* ---- Where this rank is ---- */

void wk_heartbeat_phase(struct wk_heartbeat *h, enum wk_phase phase, long step)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->at.phase = phase;
    h->at.step = step;
    h->calls = 0;
    pthread_mutex_unlock(&h->lock);
}

void wk_heartbeat_enter(struct wk_heartbeat *h, const char *coll)
{
    long step, call;

    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    step = (long)h->at.step;
    call = ++h->calls;
    pthread_mutex_unlock(&h->lock);
    wk_fault_at(&h->fault, h->rank, step, call);
    pthread_mutex_lock(&h->lock);
    h->at.begun++;
    h->at.inside = 1;
    snprintf(h->at.coll, sizeof h->at.coll, "%s", coll);
    pthread_mutex_unlock(&h->lock);
}

bool wk_heartbeat_inside(struct wk_heartbeat *h, bool inside)
{
    bool before;

    if (!h)
        return false;
    pthread_mutex_lock(&h->lock);
    before = h->at.inside;
    h->at.inside = inside;
    pthread_mutex_unlock(&h->lock);
    return before;
}

void wk_heartbeat_leave(struct wk_heartbeat *h)
{
    wk_heartbeat_inside(h, false);
}

static struct wk_at own_place(struct wk_heartbeat *h)
{
    struct wk_at at;

    pthread_mutex_lock(&h->lock);
    at = h->at;
    pthread_mutex_unlock(&h->lock);
    return at;
}

/* ---- Messages over the connections ---- */

static void say(struct wk_heartbeat *h, struct peer *p, enum message_kind kind)
{
    struct message m = { .kind = kind, .at = own_place(h) };

    if (p->fd < 0 || p->clogged)
        return;
    /* what does not fit is not worth waiting for: that rank does not read */
    if (send(p->fd, &m, sizeof m, MSG_NOSIGNAL) != (ssize_t)sizeof m)
        p->clogged = true;
}

static void say_all(struct wk_heartbeat *h, enum message_kind kind)
{
    for (int i = 0; i < h->n_peers; i++)
        say(h, &h->peers[i], kind);
}

static void take_message(struct wk_heartbeat *h, struct peer *p)
{
    p->at = p->in.at;
    p->seen_s = h->clock_s;
    if (p->in.kind == MESSAGE_BYE)
        p->bye = true;
    if (p->in.kind == MESSAGE_FAILING) {
        p->failing = true;
        h->quiet_s = h->clock_s;
    }
    if (p->in.kind == MESSAGE_QUIT) {
        p->failing = p->gone = true; /* rank 0 has the reason */
        h->quiet_s = h->clock_s;
    }
}

/* Read what there is. */
static void listen_to(struct wk_heartbeat *h, struct peer *p)
{
    for (;;) {
        ssize_t n = recv(p->fd, (char *)&p->in + p->got, sizeof p->in - p->got, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n <= 0) {
            p->fd = -1; /* the rendezvous closes it */
            p->gone = !p->bye;
            return;
        }
        p->got += (size_t)n;
        if (p->got == sizeof p->in) {
            p->got = 0;
            take_message(h, p);
        }
    }
}

/* ---- Verdicts ---- */

static void format_place(const struct wk_at *at, char *out, size_t size)
{
    if (at->phase == WK_PHASE_STEP)
        snprintf(out, size, "step %lld", (long long)at->step);
    else
        snprintf(out, size, "the %s", wk_phase_names[at->phase % WK_PHASES]);
}

static void describe_missing(const struct wk_heartbeat *h, const struct peer *p, enum wk_how how,
                             struct wk_verdict *v)
{
    struct wk_missing *m = &v->missing[v->n_missing];

    if (v->n_missing++ >= WK_MISSING_MAX)
        return;
    *m = (struct wk_missing){ .rank = p->rank, .how = how, .at = p->at };
    snprintf(m->host, sizeof m->host, "%s", wk_rendezvous_host(h->rv, p->rank, &m->pid));
}

/* "rank 2 on n7 (pid 4711), rank 3 on n8 (pid 99) and 5 more" */
static void list_missing(const struct wk_verdict *v, char *out, size_t size)
{
    int shown = v->n_missing < 4 ? v->n_missing : 4;
    size_t used = 0;

    for (int i = 0; i < shown; i++)
        used += (size_t)snprintf(out + used, size - used, "%srank %d on %s (pid %d)", i ? ", " : "",
                                 v->missing[i].rank, v->missing[i].host, v->missing[i].pid);
    if (v->n_missing > shown)
        snprintf(out + used, size - used, " and %d more", v->n_missing - shown);
}

static void word_gone(const struct wk_verdict *v, const char *who, const char *place,
                      const char *last, struct hg_err *err)
{
    const char *is = v->n_missing == 1 ? "is" : "are";

    if (v->at.coll[0])
        hg_err_set(err, HG_E_ENV, "%s %s gone, waited for in %s of %s", who, is, v->at.coll, place);
    else
        hg_err_set(err, HG_E_ENV, "%s %s gone, last seen in %s", who, is, last);
    hg_err_hint(err, "it was killed or crashed: its own output or `dmesg` there may say why");
}

static void word_late(const struct wk_verdict *v, const char *who, const char *place,
                      const char *last, struct hg_err *err)
{
    bool silent = v->missing[0].how == WK_HOW_SILENT;

    if (!v->at.coll[0])
        hg_err_set(err, HG_E_ENV, "%s did not answer for %g s, last seen in %s", who, v->limit_s,
                   last);
    else
        hg_err_set(err, HG_E_ENV, "%s did not reach %s of %s within %g s; %s %s", who, v->at.coll,
                   place, v->limit_s,
                   silent ? "it no longer answers, last seen in" : "it answers and is in", last);
    hg_err_hint(err, silent ? "it or its machine is stopped, or the network between them is gone"
                            : "is its node slower than the others? comm_timeout is how long ranks "
                              "wait for each other");
}

static void put_in_words(struct wk_verdict *v)
{
    char who[400] = "", place[48], last[48];

    list_missing(v, who, sizeof who);
    format_place(&v->at, place, sizeof place);
    format_place(&v->missing[0].at, last, sizeof last);
    v->err = (struct hg_err)HG_ERR_INIT;
    if (v->n_missing == 0) {
        hg_err_set(&v->err, HG_E_ENV, "all ranks are in %s of %s, and nothing has moved for %g s",
                   v->at.coll, place, v->limit_s);
        hg_err_hint(&v->err, "the network between them may be gone");
    } else if (v->missing[0].how == WK_HOW_GONE) {
        word_gone(v, who, place, last, &v->err);
    } else {
        word_late(v, who, place, last, &v->err);
    }
}

/* The end: write it down first, the launcher may kill this rank as soon as another one ends. */
static void judge(struct wk_heartbeat *h, struct wk_verdict *v)
{
    bool first;

    pthread_mutex_lock(&h->lock);
    first = !h->judged && !h->failing;
    h->judged |= first;
    h->stopping = true;
    pthread_cond_broadcast(&h->news);
    pthread_mutex_unlock(&h->lock);
    if (!first)
        return;
    v->limit_s = h->limit_s;
    if (v->own) {
        put_in_words(v);
        h->ends.write(h->ends.context, v);
    }
    if (h->rank == 0)
        say_all(h, MESSAGE_QUIT);
    h->ends.end(h->ends.context);
}

/* The latest collective in which a rank waits, as that rank sees it. */
static void find_front(struct wk_heartbeat *h, struct wk_at *at)
{
    struct wk_at own = own_place(h);

    *at = (struct wk_at){ 0 };
    if (own.inside)
        *at = own;
    for (int i = 0; i < h->n_peers; i++) {
        const struct peer *p = &h->peers[i];

        if (!p->gone && !p->bye && p->at.inside && p->at.begun > at->begun)
            *at = p->at;
    }
}

static enum wk_how how_late(const struct wk_heartbeat *h, const struct peer *p)
{
    double quiet_s = h->limit_s / 2 > 5 * h->tick_s ? h->limit_s / 2 : 5 * h->tick_s;

    return h->clock_s - p->seen_s > quiet_s ? WK_HOW_SILENT : WK_HOW_LATE;
}

/* Rank 0 itself may be the one that others wait for. */
static struct peer own_peer(struct wk_heartbeat *h)
{
    return (struct peer){ .rank = h->rank, .at = own_place(h), .seen_s = h->clock_s };
}

/* Who keeps the others waiting: one that no longer speaks, or is not in a collective while others are in one that it has not
 * begun. One that waits in an earlier collective waits itself. */
static bool is_missing(const struct wk_heartbeat *h, const struct peer *p, const struct wk_at *at)
{
    return !p->bye &&
           (how_late(h, p) == WK_HOW_SILENT || (p->at.begun < at->begun && !p->at.inside));
}

static void judge_late(struct wk_heartbeat *h, const struct wk_at *at)
{
    struct wk_verdict v = { .own = true, .at = *at };
    struct peer own = own_peer(h);

    if (is_missing(h, &own, at))
        describe_missing(h, &own, WK_HOW_LATE, &v);
    for (int i = 0; i < h->n_peers; i++)
        if (is_missing(h, &h->peers[i], at))
            describe_missing(h, &h->peers[i], how_late(h, &h->peers[i]), &v);
    judge(h, &v);
}

static void judge_gone(struct wk_heartbeat *h, const struct wk_at *at)
{
    struct wk_verdict v = { .own = true, .at = *at };

    for (int i = 0; i < h->n_peers; i++)
        if (h->peers[i].gone && !h->peers[i].failing)
            describe_missing(h, &h->peers[i], WK_HOW_GONE, &v);
    judge(h, &v);
}

/* A rank has said that it fails, and is gone now or takes too long. */
static bool is_over(const struct wk_heartbeat *h)
{
    for (int i = 0; i < h->n_peers; i++)
        if (h->peers[i].failing &&
            (h->peers[i].gone || h->peers[i].fd < 0 || h->clock_s - h->quiet_s > LAST_WORDS_S))
            return true;
    return false;
}

static bool is_any_gone(const struct wk_heartbeat *h)
{
    for (int i = 0; i < h->n_peers; i++)
        if (h->peers[i].gone && !h->peers[i].failing)
            return true;
    return false;
}

static void look_for_gone(struct wk_heartbeat *h, const struct wk_at *at)
{
    if (!h->gone_s)
        h->gone_s = h->clock_s;
    if (own_place(h).inside || h->clock_s - h->gone_s > GONE_SETTLE_S)
        judge_gone(h, at);
}

static void look_for_silent(struct wk_heartbeat *h, const struct wk_at *at)
{
    for (int i = 0; i < h->n_peers; i++) {
        const struct peer *p = &h->peers[i];

        if (!p->bye && h->clock_s - p->seen_s > h->limit_s + 2 * h->tick_s) {
            struct wk_verdict v = { .own = true, .at = *at };

            describe_missing(h, p, WK_HOW_SILENT, &v);
            judge(h, &v);
            return;
        }
    }
}

/* Only rank 0 hears from all. */
static void look_for_late(struct wk_heartbeat *h, const struct wk_at *at)
{
    if (at->begun != h->front) {
        h->front = at->begun;
        h->front_s = h->clock_s;
    } else if (h->front && h->clock_s - h->front_s > h->limit_s) {
        judge_late(h, at);
        return;
    }
    look_for_silent(h, at);
}

static void look(struct wk_heartbeat *h)
{
    struct wk_at at;

    find_front(h, &at);
    if (h->quiet_s > 0) {
        if (is_over(h))
            judge(h, &(struct wk_verdict){ 0 });
    } else if (is_any_gone(h)) {
        look_for_gone(h, &at);
    } else if (h->rank == 0) {
        look_for_late(h, &at);
    } else {
        look_for_silent(h, &at);
    }
}

/* ---- The thread ---- */

/* Only time in which this process ran counts: after a suspended machine wakes up no rank is late. */
static void advance_clock(struct wk_heartbeat *h)
{
    double now = hg_clock_mono_s(), passed = now - h->real_s;

    h->clock_s += passed < 3 * h->tick_s ? passed : 3 * h->tick_s;
    h->real_s = now;
}

static void wait_for_news(struct wk_heartbeat *h)
{
    double tick_s = h->gone_s > 0 ? TICK_SOON_S : h->tick_s;
    uint64_t count;

    h->polls[0] = (struct pollfd){ .fd = h->wake, .events = POLLIN };
    for (int i = 0; i < h->n_peers; i++)
        h->polls[i + 1] = (struct pollfd){ .fd = h->peers[i].fd, .events = POLLIN };
    if (poll(h->polls, (nfds_t)h->n_peers + 1, (int)(tick_s * 1000)) < 0)
        return;
    if ((h->polls[0].revents & POLLIN) && read(h->wake, &count, sizeof count) < 0)
        return;
    advance_clock(h);
    for (int i = 0; i < h->n_peers; i++)
        if (h->peers[i].fd >= 0 && h->polls[i + 1].revents)
            listen_to(h, &h->peers[i]);
}

/* What this rank's own threads have requested. True when the heartbeat is over. */
static bool take_requests(struct wk_heartbeat *h)
{
    bool stopping, failing;

    pthread_mutex_lock(&h->lock);
    stopping = h->stopping;
    failing = h->failing && !h->announced;
    pthread_mutex_unlock(&h->lock);
    if (failing) {
        say_all(h, MESSAGE_FAILING);
        pthread_mutex_lock(&h->lock);
        h->announced = true;
        pthread_cond_broadcast(&h->news);
        pthread_mutex_unlock(&h->lock);
    }
    return stopping;
}

static void *beat(void *context)
{
    struct wk_heartbeat *h = context;

    h->real_s = hg_clock_mono_s();
    h->clock_s = 1; /* 0 means never */
    for (int i = 0; i < h->n_peers; i++)
        h->peers[i].seen_s = h->clock_s;
    while (!take_requests(h)) {
        if (h->clock_s >= h->pulse_s) {
            say_all(h, MESSAGE_PULSE);
            h->pulse_s = h->clock_s + h->tick_s;
        }
        wait_for_news(h);
        advance_clock(h);
        look(h);
    }
    return NULL;
}

/* ---- Starting and stopping ---- */

static struct wk_heartbeat *heartbeat_alloc(int world, int rank)
{
    struct wk_heartbeat *h = hg_alloc_zeroed(1, sizeof *h);

    h->n_peers = rank == 0 ? world - 1 : 1;
    h->peers = hg_alloc_zeroed((size_t)h->n_peers + 1, sizeof *h->peers);
    h->polls = hg_alloc_zeroed((size_t)h->n_peers + 1, sizeof *h->polls);
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->news, NULL);
    return h;
}

static void heartbeat_free(struct wk_heartbeat *h)
{
    if (h->wake >= 0)
        close(h->wake);
    pthread_cond_destroy(&h->news);
    pthread_mutex_destroy(&h->lock);
    wk_rendezvous_close(h->rv);
    free(h->peers);
    free(h->polls);
    free(h);
}

static double tick_of(double limit_s)
{
    double tick_s = limit_s / 20;

    return tick_s > TICK_MAX_S ? TICK_MAX_S : tick_s < TICK_MIN_S ? TICK_MIN_S : tick_s;
}

/* Signals are for the rank's own threads. */
static int start_thread(struct wk_heartbeat *h)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&h->thread, NULL, beat, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

struct wk_heartbeat *wk_heartbeat_start(struct wk_rendezvous *rv, int rank, int world,
                                        double limit_s, const struct wk_heartbeat_ends *ends,
                                        struct hg_err *err)
{
    struct wk_heartbeat *h = heartbeat_alloc(world, rank);

    h->rv = rv;
    h->rank = rank;
    h->world = world;
    h->limit_s = limit_s;
    h->tick_s = tick_of(limit_s);
    h->ends = *ends;
    if (h->wake < 0) {
        hg_err_sys(err, "cannot make an eventfd");
        goto fail;
    }
    for (int i = 0; i < h->n_peers; i++)
        h->peers[i] = (struct peer){ .rank = rank == 0 ? i + 1 : 0,
                                     .fd = wk_rendezvous_fd(rv, rank == 0 ? i + 1 : 0) };
    if (wk_fault_read(&h->fault, err) < 0)
        goto fail;
    if (start_thread(h) == 0)
        return h;
    hg_err_set(err, HG_E_ENV, "cannot start a thread");
fail:
    heartbeat_free(h);
    return NULL;
}

static void wake_up(struct wk_heartbeat *h)
{
    uint64_t one = 1;

    while (write(h->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

void wk_heartbeat_stop(struct wk_heartbeat *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    pthread_mutex_unlock(&h->lock);
    wake_up(h);
    pthread_join(h->thread, NULL);
    say_all(h, MESSAGE_BYE);
    heartbeat_free(h);
}

/* Until *flag or so many seconds; the lock is held. */
static void await_flag(struct wk_heartbeat *h, const bool *flag, double seconds)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!*flag && pthread_cond_timedwait(&h->news, &h->lock, &until) == 0)
        continue;
}

bool wk_heartbeat_failing(struct wk_heartbeat *h)
{
    bool ours;

    if (!h)
        return true;
    pthread_mutex_lock(&h->lock);
    ours = !h->judged;
    h->failing = ours;
    pthread_mutex_unlock(&h->lock);
    if (!ours)
        return false;
    wake_up(h);
    pthread_mutex_lock(&h->lock);
    await_flag(h, &h->announced, FAREWELL_S);
    pthread_mutex_unlock(&h->lock);
    return true;
}

bool wk_heartbeat_settle(struct wk_heartbeat *h, double seconds)
{
    bool judged;

    if (!h)
        return false;
    pthread_mutex_lock(&h->lock);
    await_flag(h, &h->judged, seconds);
    judged = h->judged;
    pthread_mutex_unlock(&h->lock);
    return judged;
}
