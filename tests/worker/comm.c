/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective against its definition: over threads of this process, and (with the word mpi) over the ranks that mpirun
 * started. */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "comm/tcp.h"
#include "team.h"

/* What rank r's element i is before a collective: sums of these are exact in both precisions. */
static wk_real before(int rank, size_t i)
{
    return (wk_real)((double)((i * 7 + (size_t)rank * 13) % 101) / 8);
}

static double sum_of(int world, size_t i)
{
    double sum = 0;

    for (int k = 0; k < world; k++)
        sum += (double)before(k, i);
    return sum;
}

struct trial {
    struct wk_comm *comm;
    struct wk_dev *dev;
    enum wk_coll coll;
    size_t n; /* of the whole */
    bool apart;
    struct wk_span whole, part;
};

/* What element i of a whole is afterwards; negative: anything. */
static double wanted_whole(const struct trial *t, size_t i)
{
    size_t part = t->n / (size_t)t->comm->world;

    switch (t->coll) {
    case WK_COLL_ALL_REDUCE:
        return sum_of(t->comm->world, i);
    case WK_COLL_REDUCE:
        return t->comm->rank == 0 ? sum_of(t->comm->world, i) : (double)before(t->comm->rank, i);
    case WK_COLL_BROADCAST:
        return (double)before(0, i);
    case WK_COLL_ALL_GATHER:
        return (double)before((int)(i / part), i);
    case WK_COLL_GATHER:
        return t->comm->rank == 0 ? (double)before((int)(i / part), i) : -1;
    default:
        return -1;
    }
}

static double wanted_part(const struct trial *t, size_t i)
{
    size_t first = t->n / (size_t)t->comm->world * (size_t)t->comm->rank;

    switch (t->coll) {
    case WK_COLL_REDUCE_SCATTER:
        return sum_of(t->comm->world, first + i);
    case WK_COLL_SCATTER:
        return (double)before(0, first + i);
    default:
        return -1;
    }
}

static int hold(const struct trial *t, const char *what, struct wk_span s, size_t i, double wanted,
                struct hg_err *err)
{
    double found = (double)((wk_real *)s.data)[i];

    if (wanted < 0 || found == wanted)
        return 0;
    return hg_err_set(err, HG_E_BUG, "%s of %zu over %d, rank %d%s: %s[%zu] is %g, not %g",
                      wk_coll_names[t->coll], t->n, t->comm->world, t->comm->rank,
                      t->apart ? ", parts apart" : "", what, i, found, wanted);
}

static int try_once(struct trial *t, struct hg_err *err)
{
    size_t part = t->n / (size_t)t->comm->world, first = part * (size_t)t->comm->rank;
    bool parts =
        t->coll != WK_COLL_ALL_REDUCE && t->coll != WK_COLL_REDUCE && t->coll != WK_COLL_BROADCAST;
    struct wk_span own = t->apart && parts ? wk_span_part(t->part, 0, part) : WK_NONE;
    long ticket;

    for (size_t i = 0; i < t->n; i++)
        ((wk_real *)t->whole.data)[i] = before(t->comm->rank, i);
    for (size_t i = 0; i < part; i++)
        ((wk_real *)t->part.data)[i] = before(t->comm->rank, first + i);
    if (wk_comm_start(t->comm, WK_PLANE_TRAIN, t->coll, wk_span_part(t->whole, 0, t->n), own,
                      &ticket, err) < 0 ||
        wk_comm_wait(t->comm, ticket, err) < 0)
        return -1;
    for (size_t i = 0; i < t->n; i++)
        if (hold(t, "whole", t->whole, i, wanted_whole(t, i), err) < 0)
            return -1;
    own = own.data ? own : wk_span_part(t->whole, first, part);
    for (size_t i = 0; parts && i < part; i++)
        if (hold(t, "part", own, i, wanted_part(t, i), err) < 0)
            return -1;
    return 0;
}

static int all_collectives(struct wk_comm *comm, void *context, struct hg_err *err)
{
    /* times the number of ranks: around what is sent at once, and what is one piece */
    static const size_t lengths[] = { 1, 5, 2047, 2049, 300001 };
    struct trial t = { .comm = comm, .dev = open_cpu(1) };
    int rc = 0;

    (void)context;
    comm->dev = t.dev;
    if (wk_dev_alloc(t.dev, WK_MEM_COMM, WK_REAL, 300001 * (size_t)comm->world, &t.whole, err) <
            0 ||
        wk_dev_alloc(t.dev, WK_MEM_COMM, WK_REAL, 300001, &t.part, err) < 0)
        return -1;
    for (t.coll = 0; t.coll < WK_COLLS && rc == 0; t.coll++)
        for (size_t i = 0; i < 2 * N_OF(lengths) && rc == 0; i++) {
            t.n = lengths[i / 2] * (size_t)comm->world;
            t.apart = i % 2;
            rc = try_once(&t, err);
        }
    wk_dev_free(t.dev, WK_MEM_COMM, &t.whole);
    wk_dev_free(t.dev, WK_MEM_COMM, &t.part);
    t.dev->backend->close(t.dev);
    return rc;
}

/* More on their way than there is room for; the rank goes on meanwhile and takes them back at the end. */
static int many_at_once(struct wk_comm *comm, void *context, struct hg_err *err)
{
    enum { CALLS = 200, N = 100 };
    struct wk_dev *dev = open_cpu(1);
    struct wk_span all;
    long ticket = 0;
    int rc = 0;

    (void)context;
    if (wk_dev_alloc(dev, WK_MEM_COMM, WK_REAL, CALLS * N, &all, err) < 0)
        return -1;
    comm->recording = true;
    for (size_t i = 0; i < CALLS * N; i++)
        ((wk_real *)all.data)[i] = before(comm->rank, i);
    for (int k = 0; k < CALLS && rc == 0; k++) {
        comm->step = k;
        rc = wk_comm_start(comm, WK_PLANE_TRAIN, WK_COLL_ALL_REDUCE,
                           wk_span_part(all, (size_t)k * N, N), WK_NONE, &ticket, err);
    }
    if (rc == 0)
        rc = wk_comm_wait(comm, ticket, err);
    for (size_t i = 0; i < CALLS * N && rc == 0; i++)
        if ((double)((wk_real *)all.data)[i] != sum_of(comm->world, i))
            rc = hg_err_set(err, HG_E_BUG, "element %zu is wrong", i);
    if (rc == 0 && comm->records.n != CALLS)
        rc = hg_err_set(err, HG_E_BUG, "%zu records of %d calls", comm->records.n, CALLS);
    for (size_t k = 0; k < comm->records.n && rc == 0; k++) {
        const struct wk_comm_record *r = &comm->records.items[k];

        if (r->step != (long)k || r->coll != WK_COLL_ALL_REDUCE || r->n != N ||
            r->type != WK_WIRE_REAL || r->end_s < r->start_s || r->exposed_s < 0 ||
            r->exposed_s > r->end_s - r->start_s ||
            (k > 0 && r->start_s < comm->records.items[k - 1].end_s))
            rc = hg_err_set(err, HG_E_BUG, "record %zu is wrong", k);
    }
    wk_dev_free(dev, WK_MEM_COMM, &all);
    dev->backend->close(dev);
    return rc;
}

/* Numbers whose sum depends on the order of adding: every collective takes the same order. */
static int same_bits(struct wk_comm *comm, void *context, struct hg_err *err)
{
    enum { PART = 4001 };
    size_t n = PART * (size_t)comm->world, first = PART * (size_t)comm->rank;
    struct wk_dev *dev = open_cpu(1);
    struct wk_span a, b;
    int rc = 0;

    (void)context;
    if (wk_dev_alloc(dev, WK_MEM_COMM, WK_REAL, n, &a, err) < 0 ||
        wk_dev_alloc(dev, WK_MEM_COMM, WK_REAL, n, &b, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        ((wk_real *)a.data)[i] = ((wk_real *)b.data)[i] = noise((uint32_t)comm->rank, i);
    if (wk_comm_run(comm, WK_PLANE_TRAIN, WK_COLL_ALL_REDUCE, a, err) < 0 ||
        wk_comm_run(comm, WK_PLANE_TRAIN, WK_COLL_REDUCE_SCATTER, b, err) < 0)
        rc = -1;
    for (size_t i = first; i < first + PART && rc == 0; i++)
        if (((wk_real *)a.data)[i] != ((wk_real *)b.data)[i])
            rc = hg_err_set(err, HG_E_BUG, "element %zu differs", i);
    wk_dev_free(dev, WK_MEM_COMM, &a);
    wk_dev_free(dev, WK_MEM_COMM, &b);
    dev->backend->close(dev);
    return rc;
}

/* Where the results of a sum lie for this rank: its part, or the whole. */
static bool same_sum(const struct wk_comm *comm, enum wk_coll coll, const wk_real *want,
                     const wk_real *whole, const wk_real *part, size_t n)
{
    size_t n_part = n / (size_t)comm->world;

    if (coll == WK_COLL_REDUCE_SCATTER)
        return memcmp(part, want + n_part * (size_t)comm->rank, n_part * sizeof *part) == 0;
    return memcmp(whole, want, n * sizeof *whole) == 0;
}

/* A transport of devices that sums on the host gives the bits of one that works in host memory. */
static int host_sums(struct wk_comm *comm, void *context, struct hg_err *err)
{
    static const enum wk_coll colls[] = { WK_COLL_ALL_REDUCE, WK_COLL_REDUCE_SCATTER,
                                          WK_COLL_REDUCE };
    enum { PART = 1001 };
    size_t n = PART * (size_t)comm->world;
    struct wk_dev *dev = open_cpu(1);
    wk_real *want = malloc(n * sizeof *want), *whole = malloc(n * sizeof *whole), part[PART];
    struct wk_comm_op op = { .device = true, .whole = whole, .part = part, .n = n };
    int rc = 0;

    (void)context;
    comm->dev = dev;
    for (size_t c = 0; c < N_OF(colls) && rc == 0; c++) {
        op.coll = colls[c];
        for (size_t i = 0; i < n; i++)
            want[i] = whole[i] = noise((uint32_t)comm->rank, i);
        if (wk_comm_run(comm, WK_PLANE_TRAIN, op.coll, (struct wk_span){ want, n, WK_REAL }, err) <
                0 ||
            wk_comm_sum_on_host(comm, comm->kind, &op, err) < 0)
            rc = -1;
        else if (!same_sum(comm, op.coll, want, whole, part, n))
            rc = hg_err_set(err, HG_E_BUG, "%s on the host, rank %d of %d: other bits",
                            wk_coll_names[op.coll], comm->rank, comm->world);
    }
    comm->dev = NULL;
    free(want);
    free(whole);
    dev->backend->close(dev);
    return rc;
}

/* ---- Over threads ---- */

static const int worlds[] = { 1, 2, 3, 4, 8 };

static void test_threads_do_what_collectives_mean(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(worlds); i++)
        team_run(worlds[i], all_collectives, NULL);
}

static void test_many_collectives_are_on_their_way_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(worlds); i++)
        team_run(worlds[i], many_at_once, NULL);
}

static void test_sums_have_the_same_bits_in_every_collective(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(worlds); i++)
        team_run(worlds[i], same_bits, NULL);
}

static int one_ends(struct wk_comm *comm, void *context, struct hg_err *err)
{
    double value = 1;
    struct hg_err own = HG_ERR_INIT;

    (void)context;
    if (comm->rank == 1)
        return hg_err_set(err, HG_E_BUG, "had enough");
    if (wk_comm_sum(comm, &value, 1, &own) == 0 || !strstr(own.text, "rank 1 ended"))
        return hg_err_set(err, HG_E_BUG, "rank %d: \"%s\"", comm->rank, own.text);
    return 0;
}

static void test_sums_on_the_host_have_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(worlds); i++)
        team_run(worlds[i], host_sums, NULL);
}

static void test_a_rank_that_ends_ends_what_the_others_wait_for(void **state)
{
    struct teammate mates[3] = { 0 };
    struct wk_hub *hub = wk_hub_create(3, NULL);

    (void)state;
    for (int i = 0; i < 3; i++) {
        mates[i] = (struct teammate){ .hub = hub, .rank = i, .work = one_ends };
        assert_int_equal(pthread_create(&mates[i].thread, NULL, teammate_run, &mates[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(mates[i].thread, NULL);
    wk_hub_free(hub);
    assert_string_equal(mates[0].err.text, "");
    assert_string_equal(mates[1].err.text, "had enough");
    assert_string_equal(mates[2].err.text, "");
}

static int in_disorder(struct wk_comm *comm, void *context, struct hg_err *err)
{
    double values[2] = { 0 };

    (void)context;
    return wk_comm_sum(comm, values, comm->rank == 1 ? 2 : 1, err);
}

static int disorder_is_found(struct wk_comm *comm, void *context, struct hg_err *err)
{
    struct hg_err own = HG_ERR_INIT;

    if (in_disorder(comm, context, &own) == 0 || !strstr(own.text, "elements at the same time"))
        return hg_err_set(err, HG_E_BUG, "rank %d: \"%s\"", comm->rank, own.text);
    return 0;
}

static void test_ranks_that_mean_different_collectives_are_told(void **state)
{
    (void)state;
    team_run(2, disorder_is_found, NULL);
}

static void test_a_hub_has_a_limit(void **state)
{
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_null(wk_hub_create(65, &err));
    assert_string_equal(err.text, "65 devices in one process, allowed are 1 to 64");
}

/* ---- Over TCP ---- */

struct caller {
    pthread_t thread;
    struct wk_rendezvous_place place;
    int listener;
    team_work *work;
    struct hg_err err;
};

static void *caller_run(void *context)
{
    struct caller *c = context;
    struct wk_comm *comm = wk_tcp_open(&c->place, c->listener, 600, &c->err);

    if (comm)
        c->work(comm, NULL, &c->err);
    wk_comm_close(comm);
    return NULL;
}

static void over_tcp(int world, team_work *work)
{
    struct wk_rendezvous_place place = { .world = world };
    struct caller callers[4] = { 0 };
    struct hg_err err = HG_ERR_INIT;
    int listener = wk_rendezvous_listen(0, &place, &err);

    assert_true(listener >= 0);
    snprintf(place.addresses, sizeof place.addresses, "127.0.0.1");
    for (int i = 0; i < world; i++) {
        callers[i] = (struct caller){ .place = place, .listener = i ? -1 : listener, .work = work };
        callers[i].place.rank = i;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]), 0);
    }
    for (int i = 0; i < world; i++)
        pthread_join(callers[i].thread, NULL);
    for (int i = 0; i < world; i++)
        assert_string_equal(callers[i].err.text, "");
}

/* What the kernel sent over this rank's connections. All that was written has to be on its way: the others have read it, or will. */
static uint64_t sent_by_the_kernel(struct wk_comm *comm)
{
    uint64_t sum = 0;

    for (int k = 0; k < comm->world; k++) {
        struct tcp_info info = { 0 };
        socklen_t size = sizeof info;
        int fd = wk_tcp_fd(comm, k), waiting = 0;

        if (fd < 0)
            continue;
        while (ioctl(fd, SIOCOUTQNSD, &waiting) == 0 && waiting > 0)
            sched_yield();
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
        sum += info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
    }
    return sum;
}

/* Bytes written are those of a ring and those that the kernel counts. Of a broadcast the last rank sends nothing; what goes to
 * or from rank 0 alone goes there directly. */
static int counts_bytes(struct wk_comm *comm, void *context, struct hg_err *err)
{
    size_t n = 300001 * (size_t)comm->world; /* several pieces */
    struct wk_span all = { calloc(n, sizeof(wk_real)), n, WK_REAL };
    uint64_t written = comm->sent_bytes, sent = sent_by_the_kernel(comm);
    int rc = 0;

    (void)context;
    for (int c = 0; c < WK_COLLS && rc == 0; c++) {
        const struct wk_comm_count *count = &comm->counts[WK_PLANE_TRAIN][c];
        bool ring = c == WK_COLL_ALL_REDUCE || c == WK_COLL_ALL_GATHER ||
                    c == WK_COLL_REDUCE_SCATTER ||
                    (c == WK_COLL_BROADCAST && comm->rank + 1 < comm->world);

        rc = wk_comm_run(comm, WK_PLANE_TRAIN, c, all, err);
        if (rc == 0 && (ring ? fabs((double)count->sent_bytes - count->ring_bytes) > 0.5
                             : (double)count->sent_bytes > count->ring_bytes))
            rc = hg_err_set(err, HG_E_BUG, "%s, rank %d of %d: %llu bytes written, a ring's are %g",
                            wk_coll_names[c], comm->rank, comm->world,
                            (unsigned long long)count->sent_bytes, count->ring_bytes);
    }
    written = comm->sent_bytes - written;
    sent = sent_by_the_kernel(comm) - sent;
    if (rc == 0 && (written != sent || written < n))
        rc = hg_err_set(err, HG_E_BUG, "rank %d: %llu bytes written, the kernel sent %llu",
                        comm->rank, (unsigned long long)written, (unsigned long long)sent);
    free(all.data);
    return rc;
}

static void test_bytes_over_tcp_are_those_of_a_ring_and_of_the_kernel(void **state)
{
    (void)state;
    for (int world = 2; world <= 4; world++)
        over_tcp(world, counts_bytes);
}

static void test_tcp_does_what_collectives_mean(void **state)
{
    (void)state;
    over_tcp(2, all_collectives);
    over_tcp(4, all_collectives);
    over_tcp(3, many_at_once);
    over_tcp(3, same_bits);
}

/* ---- Over MPI ---- */

static struct wk_comm *mpi;

static void over_mpi(team_work *work)
{
    struct hg_err err = HG_ERR_INIT;

    if (work(mpi, NULL, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_mpi_does_what_collectives_mean(void **state)
{
    (void)state;
    over_mpi(all_collectives);
}

static void test_mpi_has_many_on_their_way(void **state)
{
    (void)state;
    over_mpi(many_at_once);
}

static void test_mpi_sums_have_the_same_bits(void **state)
{
    (void)state;
    over_mpi(same_bits);
}

static void test_mpi_sums_on_the_host_have_the_same_bits(void **state)
{
    (void)state;
    over_mpi(host_sums);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(test_threads_do_what_collectives_mean),
        cmocka_unit_test(test_many_collectives_are_on_their_way_at_once),
        cmocka_unit_test(test_sums_have_the_same_bits_in_every_collective),
        cmocka_unit_test(test_sums_on_the_host_have_the_same_bits),
        cmocka_unit_test(test_a_rank_that_ends_ends_what_the_others_wait_for),
        cmocka_unit_test(test_ranks_that_mean_different_collectives_are_told),
        cmocka_unit_test(test_a_hub_has_a_limit),
        cmocka_unit_test(test_tcp_does_what_collectives_mean),
        cmocka_unit_test(test_bytes_over_tcp_are_those_of_a_ring_and_of_the_kernel),
    };
    const struct CMUnitTest ranks[] = {
        cmocka_unit_test(test_mpi_does_what_collectives_mean),
        cmocka_unit_test(test_mpi_has_many_on_their_way),
        cmocka_unit_test(test_mpi_sums_have_the_same_bits),
        cmocka_unit_test(test_mpi_sums_on_the_host_have_the_same_bits),
    };
    struct hg_err err = HG_ERR_INIT;
    int failed;

    if (argc < 2 || strcmp(argv[1], "mpi") != 0)
        return cmocka_run_group_tests(threads, NULL, NULL);
    mpi = wk_comm_open(&err);
    if (!mpi) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    failed = cmocka_run_group_tests(ranks, NULL, NULL);
    if (failed)
        mpi->kind->abort(mpi, 1);
    wk_comm_close(mpi);
    return failed;
}
