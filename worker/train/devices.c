/* SPDX-License-Identifier: Apache-2.0 */
#include "train/devices.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/threads.h"
#include "comm/transports.h"
#include "train/train.h"

struct device {
    pthread_t thread;
    bool started;
    struct wk_hub *hub;
    int rank, threads, rc;
    const struct wk_config *config;
    struct wk_result *result, scratch;
    struct hg_err err;
};

static void *drive(void *context)
{
    struct device *d = context;
    struct wk_comm *comm = wk_hub_join(d->hub, d->rank);

    d->rc = wk_train_all(d->config, comm, d->threads, d->result, &d->err);
    if (d->rc < 0) {
        wk_hub_break(d->hub, d->rank);
        wk_comm_give_up();
    }
    wk_comm_close(comm);
    return NULL;
}

static int start(struct device *all, int n, struct hg_err *err)
{
    for (int i = 1; i < n; i++) {
        if (pthread_create(&all[i].thread, NULL, drive, &all[i]) != 0) {
            wk_hub_break(all[0].hub, 0);
            return hg_err_set(err, HG_E_ENV, "cannot start a thread for device %d of %d", i + 1, n);
        }
        all[i].started = true;
    }
    return 0;
}

/* The failure that was not another's end. */
static int first_failure(const struct device *all, int n, struct hg_err *err)
{
    const struct device *first = NULL;

    for (int i = 0; i < n; i++)
        if (all[i].rc < 0 && (!first || strstr(first->err.text, " ended")))
            first = &all[i];
    if (!first)
        return 0;
    if (err && !err->code)
        *err = first->err;
    return -1;
}

int wk_train_devices(const struct wk_config *c, int n, int threads, struct wk_result *result,
                     struct hg_err *err)
{
    struct wk_hub *hub = wk_hub_create(n, err);
    struct device *all;
    int rc;

    if (!hub)
        return -1;
    all = hg_alloc_zeroed((size_t)n, sizeof *all);
    for (int i = 0; i < n; i++) {
        all[i] = (struct device){ .hub = hub, .rank = i, .threads = threads, .config = c };
        all[i].result = i ? &all[i].scratch : result;
        all[i].scratch.start_mono_s = result->start_mono_s;
    }
    rc = start(all, n, err);
    if (rc == 0)
        drive(&all[0]);
    for (int i = 1; i < n; i++)
        if (all[i].started)
            pthread_join(all[i].thread, NULL);
    if (rc == 0)
        rc = first_failure(all, n, err);
    for (int i = 1; i < n; i++)
        wk_result_done(&all[i].scratch);
    wk_hub_free(hub);
    free(all);
    return rc;
}
