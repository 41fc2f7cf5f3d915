/* SPDX-License-Identifier: Apache-2.0 */
#include "train/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define LINES_MAX 64

static void fill_own(struct wk_place *p, const struct wk_comm *comm, const struct wk_dev *dev)
{
    const char *node = getenv("SLURMD_NODENAME");

    *p = (struct wk_place){ .rank = comm->rank, .pid = (int)getpid(), .threads = dev->threads };
    gethostname(p->host, sizeof p->host - 1);
    snprintf(p->node, sizeof p->node, "%.63s", node && *node ? node : p->host);
    snprintf(p->device, sizeof p->device, "%s", dev->name);
    snprintf(p->pci, sizeof p->pci, "%s", dev->pci);
    snprintf(p->uuid, sizeof p->uuid, "%s", dev->uuid);
}

/* Ranks on the same node as rank i. */
static int ranks_beside(const struct wk_place *places, int world, int i)
{
    int n = 0;

    for (int k = 0; k < world; k++)
        n += strcmp(places[k].node, places[i].node) == 0;
    return n;
}

static bool is_first_of_node(const struct wk_place *places, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(places[k].node, places[i].node) == 0)
            return false;
    return true;
}

int wk_places_nodes(const struct wk_place *places, int world)
{
    int n = 0;

    for (int i = 0; i < world; i++)
        n += is_first_of_node(places, i);
    return n;
}

/* "3 on n1, 1 on n2" */
static void list_nodes(const struct wk_place *places, int world, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < world && used + 96 < size; i++)
        if (is_first_of_node(places, i))
            used += (size_t)snprintf(out + used, size - used, "%s%d on %s", used ? ", " : "",
                                     ranks_beside(places, world, i), places[i].node);
}

static int wrong_nodes(const struct wk_place *places, int world, const struct wk_config *c,
                       struct hg_err *err)
{
    char found[400];

    list_nodes(places, world, found, sizeof found);
    hg_err_set(err, HG_E_ENV, "the cell requests %lld rank%s on each of %lld node%s; found %s",
               c->tasks_per_node, c->tasks_per_node == 1 ? "" : "s", c->nodes,
               c->nodes == 1 ? "" : "s", found);
    return hg_err_hint(err, "give the launcher --nodes and --ntasks-per-node, or leave nodes and "
                            "tasks_per_node out of the cell");
}

static int check_nodes(const struct wk_place *places, int world, const struct wk_config *c,
                       struct hg_err *err)
{
    if (!c->nodes || !c->tasks_per_node || wk_config_devices(c) > 1) /* dp: one task, checked */
        return 0;
    if (wk_places_nodes(places, world) != c->nodes)
        return wrong_nodes(places, world, c, err);
    for (int i = 0; i < world; i++)
        if (ranks_beside(places, world, i) != c->tasks_per_node)
            return wrong_nodes(places, world, c, err);
    return 0;
}

static int check_devices(const struct wk_place *places, int world, struct hg_err *err)
{
    if (getenv("HPCGRID_SHARE_GPU")) /* a test of correctness; the result says so */
        return 0;
    for (int i = 0; i < world; i++)
        for (int k = 0; k < i; k++)
            if (places[i].uuid[0] && strcmp(places[i].uuid, places[k].uuid) == 0) {
                hg_err_set(err, HG_E_ENV, "ranks %d and %d both have GPU %s (%s) of %s", k, i,
                           places[i].uuid, places[i].pci, places[i].node);
                return hg_err_hint(err, "the job has fewer GPUs than ranks on that node: request "
                                        "one GPU per task");
            }
    return 0;
}

struct wk_place *wk_places_gather(struct wk_comm *comm, const struct wk_dev *dev,
                                  const struct wk_config *c, struct hg_err *err)
{
    struct wk_place *places = hg_alloc_zeroed((size_t)comm->world, sizeof *places);

    fill_own(&places[comm->rank], comm, dev);
    if (wk_comm_gather(comm, places, sizeof *places, err) == 0 &&
        check_nodes(places, comm->world, c, err) == 0 &&
        check_devices(places, comm->world, err) == 0)
        return places;
    free(places);
    return NULL;
}

json_t *wk_places_encode(const struct wk_place *places, int world)
{
    json_t *list = json_array();

    for (int i = 0; i < world; i++) {
        const struct wk_place *p = &places[i];

        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:i, s:i, s:s, s:s*, s:s*}", "rank",
                                              p->rank, "host", p->host, "node", p->node, "pid",
                                              p->pid, "threads", p->threads, "device", p->device,
                                              "pci", p->pci[0] ? p->pci : NULL, "uuid",
                                              p->uuid[0] ? p->uuid : NULL));
    }
    return list;
}

void wk_places_format(const struct wk_place *places, int world, struct hg_buf *out)
{
    for (int i = 0; i < world && i < LINES_MAX; i++) {
        const struct wk_place *p = &places[i];

        hg_buf_printf(out, "  rank %d: %s, pid %d, %s", p->rank, p->host, p->pid, p->device);
        if (strcmp(p->host, p->node) != 0)
            hg_buf_printf(out, ", node %s", p->node);
        if (p->pci[0])
            hg_buf_printf(out, ", PCI %s, %s", p->pci, p->uuid);
        hg_buf_puts(out, "\n");
    }
    if (world > LINES_MAX)
        hg_buf_printf(out, "  and %d more\n", world - LINES_MAX);
}
