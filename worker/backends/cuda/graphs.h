/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps are known as graphs: a step is run once as it is, recorded the second time, and launched as a whole from then on. Steps
 * are told apart by a key, which holds all sizes that a launch depends on; the graphs that were not used for the longest time make
 * room for others. Independent of CUDA. */
#ifndef WK_BACKENDS_CUDA_GRAPHS_H
#define WK_BACKENDS_CUDA_GRAPHS_H

#include <stdint.h>

#define WK_GRAPHS_MOST 64
#define WK_GRAPH_KEY 4

enum wk_graph_state {
    WK_GRAPH_NEW,    /* never seen */
    WK_GRAPH_SEEN,   /* ran once: what it needs is there */
    WK_GRAPH_READY,  /* recorded */
    WK_GRAPH_REFUSED /* cannot be recorded */
};

struct wk_graph_entry {
    uint64_t key[WK_GRAPH_KEY];
    enum wk_graph_state state;
    void *graph; /* of READY */
    uint64_t used;
};

struct wk_graphs {
    struct wk_graph_entry entries[WK_GRAPHS_MOST];
    int n;
    uint64_t clock;
    void (*destroy)(void *graph);
    long launched, recorded, dropped;
};

/* The entry of a key, made when there is none. Lent until the next call. */
struct wk_graph_entry *wk_graphs_get(struct wk_graphs *g, const uint64_t key[WK_GRAPH_KEY]);
/* Drop all graphs, for example because an address in them is gone; keys that were refused stay so. */
void wk_graphs_clear(struct wk_graphs *g);
void wk_graphs_done(struct wk_graphs *g);

#endif
