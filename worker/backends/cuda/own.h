/* SPDX-License-Identifier: Apache-2.0 */
/* What an open GPU keeps of CUDA's own types. */
#ifndef WK_BACKENDS_CUDA_OWN_H
#define WK_BACKENDS_CUDA_OWN_H

#include <cuda_runtime_api.h>

#include "backends/cuda/cache.h"
#include "backends/cuda/device.h"
#include "backends/cuda/graphs.h"

#define WK_PINNED_PARTS 16
#define WK_PINNED_BYTES ((size_t)256 << 10)

/* A part of pinned memory, and when what was sent from it last has arrived. */
struct wk_pinned {
    char *data;
    cudaEvent_t arrived;
    bool sent;
};

#define WK_MARKS 64 /* how far the host may be ahead of the device; a step has three or more */

struct wk_cuda_own {
    struct wk_cache cache;
    void *scratch;
    size_t scratch_bytes,
        scratch_asked; /* of the cache's block; as an op requested, which is what is counted */
    void *pinned_memory;
    struct wk_pinned pinned[WK_PINNED_PARTS];
    int next_pinned;
    int processors;
    size_t memory_bytes;
    struct wk_graphs graphs;
    struct wk_graph_entry *running; /* the step that is recorded or run */
    /* A ring of events; what ended at the first was reported already, or is a beginning. */
    cudaEvent_t marks[WK_MARKS];
    enum wk_mark mark_kinds[WK_MARKS];
    int first_mark, n_marks;
    wk_stream main, aside;        /* the device's stream is one of them */
    cudaEvent_t forked, joined;   /* when the second may begin, and what the first waits for */
    struct wk_op_times *op_times; /* NULL unless requested */
};

/* Wait on the host until the event has happened, or, without one, all work of the stream is done. Returns CUDA's code; when the watch ends
 * the wait, the device's error is set and the code is cudaErrorUnknown. */
cudaError_t wk_cuda_await(struct wk_cuda *c, cudaEvent_t event, cudaStream_t stream);

#endif
