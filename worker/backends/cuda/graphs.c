/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/graphs.h"

#include <string.h>

static void drop(struct wk_graphs *g, struct wk_graph_entry *e)
{
    if (e->state == WK_GRAPH_READY) {
        g->destroy(e->graph);
        g->dropped++;
    }
    e->graph = NULL;
}

static struct wk_graph_entry *oldest(struct wk_graphs *g)
{
    struct wk_graph_entry *found = &g->entries[0];

    for (int i = 1; i < g->n; i++)
        if (g->entries[i].used < found->used)
            found = &g->entries[i];
    return found;
}

struct wk_graph_entry *wk_graphs_get(struct wk_graphs *g, const uint64_t key[WK_GRAPH_KEY])
{
    struct wk_graph_entry *e = NULL;

    for (int i = 0; i < g->n && !e; i++)
        if (memcmp(g->entries[i].key, key, sizeof g->entries[i].key) == 0)
            e = &g->entries[i];
    if (!e) {
        e = g->n < WK_GRAPHS_MOST ? &g->entries[g->n++] : oldest(g);
        drop(g, e);
        *e = (struct wk_graph_entry){ .state = WK_GRAPH_NEW };
        memcpy(e->key, key, sizeof e->key);
    }
    e->used = ++g->clock;
    return e;
}

void wk_graphs_clear(struct wk_graphs *g)
{
    for (int i = 0; i < g->n; i++) {
        drop(g, &g->entries[i]);
        if (g->entries[i].state != WK_GRAPH_REFUSED)
            g->entries[i].state = WK_GRAPH_NEW;
    }
}

void wk_graphs_done(struct wk_graphs *g)
{
    wk_graphs_clear(g);
    g->n = 0;
}
