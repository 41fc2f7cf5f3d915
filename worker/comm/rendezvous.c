/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/vec.h"

#define CONNECT_LIMIT_S 3.0  /* for one address; others may be right */
#define CONNECT_PAUSE_S 0.05 /* rank 0 may not listen yet */
#define PENDING_MAX 4096     /* connections that have not said who they are */

static const char magic[8] = { 'h', 'p', 'c', 'g', 'r', 'i', 'd', '1' };

/* What a rank says of itself, and how rank 0 answers. Sent as they are: one job's ranks are of one kind of machine. */
struct card {
    char magic[8];
    uint64_t token;
    int32_t rank, world, pid, unused;
    char host[64];
};

struct answer {
    int32_t ok, unused;
    struct card hub;
    char text[512]; /* why not */
};

struct wk_rendezvous {
    int rank, world;
    double limit_s;
    int *fds;           /* per rank, -1: none */
    struct card *cards; /* per rank */
};

static struct card own_card(const struct wk_rendezvous_place *p)
{
    struct card c = {
        .token = p->token, .rank = p->rank, .world = p->world, .pid = (int32_t)getpid()
    };

    memcpy(c.magic, magic, sizeof magic);
    gethostname(c.host, sizeof c.host - 1);
    return c;
}

/* ---- Bytes over a socket that does not block ---- */

static int wait_for(int fd, short events, double deadline_s)
{
    struct pollfd p = { .fd = fd, .events = events };
    double left = deadline_s - hg_clock_mono_s();
    int n;

    if (left <= 0)
        return 0;
    n = poll(&p, 1, left > 3600 ? 3600000 : (int)(left * 1000) + 1);
    return n < 0 && errno == EINTR ? 1 : n;
}

/* 0, or -1 with errno; ETIMEDOUT when the deadline passes, ECONNRESET when the other end is gone. */
static int transfer(int fd, void *data, size_t n, bool sending, double deadline_s)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = sending ? send(fd, (char *)data + done, n - done, MSG_NOSIGNAL)
                              : recv(fd, (char *)data + done, n - done, 0);

        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            errno = got == 0 ? ECONNRESET : errno;
            return -1;
        }
        if (errno != EINTR && wait_for(fd, sending ? POLLOUT : POLLIN, deadline_s) <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

static void set_up(int fd)
{
    int on = 1;

    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* ---- Rank 0: who connects ---- */

/* This machine's own name for itself comes last: elsewhere it is another machine, where a process may listen on the same port. */
static void list_addresses(char *out, size_t size)
{
    struct ifaddrs *all = NULL;
    size_t used = 0;

    if (getifaddrs(&all) < 0)
        all = NULL;
    for (struct ifaddrs *i = all; i; i = i->ifa_next) {
        char text[INET_ADDRSTRLEN];

        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
            (i->ifa_flags & IFF_LOOPBACK) || used + 2 * sizeof text >= size)
            continue;
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, text,
                  sizeof text);
        used += (size_t)snprintf(out + used, size - used, "%s,", text);
    }
    snprintf(out + used, size - used, "127.0.0.1");
    freeifaddrs(all);
}

int wk_rendezvous_listen(int port, struct wk_rendezvous_place *place, struct hg_err *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    if (fd < 0)
        return hg_err_sys(err, "no socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0) {
        hg_err_sys(err, "rank 0 cannot listen on port %d", port);
        hg_err_hint(err, "set MASTER_PORT to another port");
        close(fd);
        return -1;
    }
    place->port = ntohs(at.sin_port);
    list_addresses(place->addresses, sizeof place->addresses);
    if (getrandom(&place->token, sizeof place->token, 0) != sizeof place->token)
        place->token = (uint64_t)(hg_clock_mono_s() * 1e9) ^ (uint64_t)getpid() << 40;
    return fd;
}

/* A connection of which not all is known. */
struct candidate {
    int fd;
    size_t got;
    struct card card;
};

struct candidates {
    struct candidate *items;
    size_t n, cap;
};

struct lobby {
    struct wk_rendezvous *rv;
    const struct wk_rendezvous_place *place;
    int listener, here;
    struct candidates pending;
    struct hg_err *err;
};

static void accept_all(struct lobby *h)
{
    int fd;

    while ((fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (h->pending.n == PENDING_MAX) {
            close(fd);
            continue;
        }
        set_up(fd);
        *HG_VEC_PUSH(&h->pending) = (struct candidate){ .fd = fd };
    }
}

/* A rank has said who it is. Strangers are disconnected; a rank that contradicts the others ends the rendezvous. */
static int admit(struct lobby *h, struct candidate *g)
{
    struct wk_rendezvous *rv = h->rv;
    const struct card *c = &g->card;

    if (memcmp(c->magic, magic, sizeof magic) != 0 || c->token != h->place->token) {
        close(g->fd);
        g->fd = -1;
        return 0;
    }
    if (c->world != rv->world)
        return hg_err_set(h->err, HG_E_ENV,
                          "rank %d on %.63s (pid %d) expects %d ranks, rank 0 expects %d", c->rank,
                          c->host, c->pid, c->world, rv->world);
    if (c->rank < 1 || c->rank >= rv->world)
        return hg_err_set(h->err, HG_E_ENV,
                          "a process on %.63s (pid %d) claims to be rank %d of %d", c->host, c->pid,
                          c->rank, rv->world);
    if (rv->fds[c->rank] >= 0)
        return hg_err_set(
            h->err, HG_E_ENV, "two processes claim to be rank %d: pid %d on %.63s, pid %d on %.63s",
            c->rank, rv->cards[c->rank].pid, rv->cards[c->rank].host, c->pid, c->host);
    rv->cards[c->rank] = *c;
    rv->fds[c->rank] = g->fd;
    g->fd = -1;
    h->here++;
    return 0;
}

/* Read what a connection has sent so far. */
static int read_card(struct lobby *h, struct candidate *g)
{
    ssize_t n = recv(g->fd, (char *)&g->card + g->got, sizeof g->card - g->got, 0);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (n <= 0) {
        close(g->fd);
        g->fd = -1;
        return 0;
    }
    g->got += (size_t)n;
    return g->got == sizeof g->card ? admit(h, g) : 0;
}

static int read_cards(struct lobby *h)
{
    size_t kept = 0;
    int rc = 0;

    for (size_t i = 0; i < h->pending.n; i++) {
        if (rc == 0)
            rc = read_card(h, &h->pending.items[i]);
        if (h->pending.items[i].fd >= 0)
            h->pending.items[kept++] = h->pending.items[i];
    }
    h->pending.n = kept;
    return rc;
}

/* Wait for a new connection, or for data on one that is pending. */
static int wait_in_lobby(struct lobby *h, double deadline_s)
{
    double left = deadline_s - hg_clock_mono_s();
    struct pollfd *p = hg_alloc_zeroed(h->pending.n + 1, sizeof *p);
    int n;

    p[0] = (struct pollfd){ .fd = h->listener, .events = POLLIN };
    for (size_t i = 0; i < h->pending.n; i++)
        p[i + 1] = (struct pollfd){ .fd = h->pending.items[i].fd, .events = POLLIN };
    n = poll(p, h->pending.n + 1, left < 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1);
    free(p);
    return n < 0 && errno != EINTR ? hg_err_sys(h->err, "poll") : n;
}

/* "1, 3-5": those without a connection, a few of them. */
static void name_missing(const struct wk_rendezvous *rv, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int r = 1; r < rv->world && used + 32 < size; r++) {
        int last = r;

        if (rv->fds[r] >= 0)
            continue;
        while (last + 1 < rv->world && rv->fds[last + 1] < 0)
            last++;
        used += (size_t)snprintf(out + used, size - used, "%s%d", used ? ", " : "", r);
        if (last > r)
            used += (size_t)snprintf(out + used, size - used, "-%d", last);
        r = last;
    }
}

static int report_missing(struct lobby *h, double limit_s)
{
    char missing[200];
    int n = h->rv->world - 1 - h->here;

    name_missing(h->rv, missing, sizeof missing);
    hg_err_set(h->err, HG_E_ENV, "rank%s %s of %d did not arrive within %g s", n == 1 ? "" : "s",
               missing, h->rv->world, limit_s);
    return hg_err_hint(h->err, "were all processes started? rank 0 waits at %.200s, port %d",
                       h->place->addresses, h->place->port);
}

static void answer_all(struct lobby *h, bool ok)
{
    struct answer a = { .ok = ok, .hub = h->rv->cards[0] };
    double soon = hg_clock_mono_s() + 1;

    if (!ok)
        snprintf(a.text, sizeof a.text, "%.500s", h->err->text);
    for (int r = 1; r < h->rv->world; r++)
        if (h->rv->fds[r] >= 0)
            transfer(h->rv->fds[r], &a, sizeof a, true, soon);
    for (size_t i = 0; i < h->pending.n; i++) {
        if (!ok)
            transfer(h->pending.items[i].fd, &a, sizeof a, true, soon);
        close(h->pending.items[i].fd);
    }
    HG_VEC_DONE(&h->pending);
}

static int receive_ranks(struct wk_rendezvous *rv, const struct wk_rendezvous_place *place,
                         int listener, struct hg_err *err)
{
    struct wk_rendezvous_place own = *place;
    struct lobby h = { .rv = rv, .place = place, .err = err };
    double deadline_s = hg_clock_mono_s() + rv->limit_s;
    int rc = 0;

    h.listener = listener >= 0 ? listener : wk_rendezvous_listen(place->port, &own, err);
    if (h.listener < 0)
        return -1;
    while (rc == 0 && h.here + 1 < rv->world) {
        if (hg_clock_mono_s() >= deadline_s)
            rc = report_missing(&h, rv->limit_s);
        else if (wait_in_lobby(&h, deadline_s) < 0)
            rc = -1;
        else
            rc = read_cards(&h);
        if (rc == 0)
            accept_all(&h);
    }
    answer_all(&h, rc == 0);
    close(h.listener);
    return rc;
}

/* ---- The others: where rank 0 is ---- */

static int connect_to(const char *address, int port, double deadline_s)
{
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found = NULL;
    double now = hg_clock_mono_s(), soon = now + CONNECT_LIMIT_S;
    char service[16];
    int fd, failed = 0, rc;
    socklen_t size = sizeof failed;

    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(address, service, &hints, &found) != 0) {
        errno = EHOSTUNREACH;
        return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    rc = fd < 0 ? -1 : connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (rc < 0 && fd >= 0 && errno == EINPROGRESS) {
        rc = wait_for(fd, POLLOUT, soon < deadline_s ? soon : deadline_s) > 0 ? 0 : -1;
        failed = ETIMEDOUT;
        if (rc == 0)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
        errno = failed;
        rc = failed ? -1 : 0;
    }
    if (rc == 0)
        return fd;
    failed = errno;
    if (fd >= 0)
        close(fd);
    errno = failed;
    return -1;
}

/* 1: rank 0 has accepted, 0: try again, -1: it has refused. `why` is the last reason to try again. */
static int introduce(struct wk_rendezvous *rv, int fd, double deadline_s, const char **why,
                     struct hg_err *err)
{
    struct answer a;

    set_up(fd);
    if (transfer(fd, &rv->cards[rv->rank], sizeof *rv->cards, true, deadline_s) < 0 ||
        transfer(fd, &a, sizeof a, false, deadline_s) < 0) {
        *why = errno == ETIMEDOUT ? "not all ranks arrived"
                                  : "the process that listens there belongs to another job";
        return 0;
    }
    if (!a.ok)
        return hg_err_set(err, HG_E_ENV, "%.511s", a.text);
    rv->cards[0] = a.hub;
    rv->fds[0] = fd;
    return 1;
}

/* One round over the addresses. */
static int look_for_hub(struct wk_rendezvous *rv, const struct wk_rendezvous_place *place,
                        double deadline_s, const char **why, struct hg_err *err)
{
    char copy[sizeof place->addresses], *rest = NULL;
    int rc = 0;

    snprintf(copy, sizeof copy, "%s", place->addresses);
    for (char *at = strtok_r(copy, ",", &rest); at && rc == 0; at = strtok_r(NULL, ",", &rest)) {
        int fd = connect_to(at, place->port, deadline_s);

        if (fd < 0 && hg_clock_mono_s() < deadline_s)
            *why = strerror(errno);
        if (fd < 0)
            continue;
        rc = introduce(rv, fd, deadline_s, why, err);
        if (rc <= 0)
            close(fd);
    }
    return rc;
}

static int find_hub(struct wk_rendezvous *rv, const struct wk_rendezvous_place *place,
                    struct hg_err *err)
{
    /* rank 0 gives up first, and says who is missing */
    double deadline_s = hg_clock_mono_s() + rv->limit_s + 1;
    const char *why = "no process listens";
    int rc;

    while ((rc = look_for_hub(rv, place, deadline_s, &why, err)) == 0) {
        if (hg_clock_mono_s() >= deadline_s)
            return hg_err_set(err, HG_E_ENV,
                              "rank 0 did not answer rank %d at %.200s, port %d, within %g s: %s",
                              rv->rank, place->addresses, place->port, rv->limit_s, why);
        hg_clock_sleep_s(CONNECT_PAUSE_S);
    }
    return rc < 0 ? -1 : 0;
}

/* ---- The rendezvous ---- */

struct wk_rendezvous *wk_rendezvous_open(const struct wk_rendezvous_place *place, int listener,
                                         double limit_s, struct hg_err *err)
{
    struct wk_rendezvous *rv = hg_alloc(sizeof *rv);
    size_t n = (size_t)place->world;
    int rc;

    *rv = (struct wk_rendezvous){ .rank = place->rank,
                                  .world = place->world,
                                  .limit_s = limit_s,
                                  .fds = hg_alloc(n * sizeof *rv->fds),
                                  .cards = hg_alloc_zeroed(n, sizeof *rv->cards) };
    for (size_t i = 0; i < n; i++)
        rv->fds[i] = -1;
    rv->cards[rv->rank] = own_card(place);
    rc = rv->rank == 0 ? receive_ranks(rv, place, listener, err) : find_hub(rv, place, err);
    if (rc == 0)
        return rv;
    wk_rendezvous_close(rv);
    return NULL;
}

void wk_rendezvous_close(struct wk_rendezvous *rv)
{
    if (!rv)
        return;
    for (int r = 0; r < rv->world; r++)
        if (rv->fds[r] >= 0)
            close(rv->fds[r]);
    free(rv->fds);
    free(rv->cards);
    free(rv);
}

int wk_rendezvous_fd(const struct wk_rendezvous *rv, int rank)
{
    return rv->fds[rank];
}

const char *wk_rendezvous_host(const struct wk_rendezvous *rv, int rank, int *pid)
{
    *pid = rv->cards[rank].pid;
    return rv->cards[rank].host;
}

void wk_rendezvous_who(const struct wk_rendezvous *rv, int rank, char *out, size_t size)
{
    const struct card *c = &rv->cards[rank];

    if (c->host[0])
        snprintf(out, size, "rank %d on %.63s (pid %d)", rank, c->host, c->pid);
    else
        snprintf(out, size, "rank %d", rank);
}

static int move(struct wk_rendezvous *rv, int other, void *data, size_t n, bool sending,
                struct hg_err *err)
{
    char who[128];

    if (transfer(rv->fds[other], data, n, sending, hg_clock_mono_s() + rv->limit_s) == 0)
        return 0;
    wk_rendezvous_who(rv, other, who, sizeof who);
    if (errno == ETIMEDOUT)
        return hg_err_set(err, HG_E_ENV, "%s did not answer within %g s", who, rv->limit_s);
    return hg_err_set(err, HG_E_ENV, "%s is gone: %s", who, strerror(errno));
}

int wk_rendezvous_broadcast(struct wk_rendezvous *rv, void *data, size_t bytes, struct hg_err *err)
{
    if (rv->rank != 0)
        return move(rv, 0, data, bytes, false, err);
    for (int r = 1; r < rv->world; r++)
        if (move(rv, r, data, bytes, true, err) < 0)
            return -1;
    return 0;
}

int wk_rendezvous_gather(struct wk_rendezvous *rv, void *all, size_t bytes, struct hg_err *err)
{
    char *data = all;

    if (rv->rank != 0 && move(rv, 0, data + (size_t)rv->rank * bytes, bytes, true, err) < 0)
        return -1;
    for (int r = 1; rv->rank == 0 && r < rv->world; r++)
        if (move(rv, r, data + (size_t)r * bytes, bytes, false, err) < 0)
            return -1;
    return wk_rendezvous_broadcast(rv, all, bytes * (size_t)rv->world, err);
}
