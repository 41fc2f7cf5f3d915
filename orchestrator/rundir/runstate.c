/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/runstate.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

const char *const hg_cell_state_names[HG_CELL_STATES] = {
    "waiting", "intended", "ambiguous", "pending",   "running", "ended",   "ok",         "failed",
    "timeout", "oom",      "node_fail", "cancelled", "lost",    "refused", "not_needed", "removed",
};

bool hg_cell_is_over(const struct hg_run_cell *cell)
{
    return cell->state >= HG_CELL_OK;
}

bool hg_cell_is_bad(const struct hg_run_cell *cell)
{
    return cell->state > HG_CELL_OK && cell->state < HG_CELL_REFUSED;
}

bool hg_run_is_outdated(const struct hg_run_state *state, const struct hg_run_cell *cell,
                        const char *request)
{
    const char *was = cell->submission && cell->submission <= state->submissions.n
                          ? state->submissions.items[cell->submission - 1].request
                          : "";

    return *was && strcmp(was, request) != 0;
}

bool hg_cell_is_held(const struct hg_run_cell *cell)
{
    return cell->held && cell->state <= HG_CELL_PENDING;
}

size_t hg_run_count_held(const struct hg_run_state *state)
{
    size_t n = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++)
            n += hg_cell_is_held(&state->batches.items[b].cells[i]);
    return n;
}

size_t hg_run_whys(const struct hg_run_state *state,
                   bool (*picks)(void *context, int batch, uint32_t line), void *context,
                   struct hg_run_why *out, size_t max)
{
    size_t n = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];
            size_t k = 0;

            if ((cell->state != HG_CELL_PENDING && cell->state != HG_CELL_REFUSED) || !cell->text ||
                (picks && !picks(context, (int)b + 1, (uint32_t)i)))
                continue;
            while (k < n && strcmp(out[k].text, hg_run_text(state, cell)) != 0)
                k++;
            if (k < n)
                out[k].n++;
            else if (n < max)
                out[n++] = (struct hg_run_why){ hg_run_text(state, cell), 1 };
        }
    return n;
}

struct hg_run_state *hg_run_state_create(void)
{
    struct hg_run_state *state = hg_alloc_zeroed(1, sizeof *state);

    *HG_VEC_PUSH(&state->texts) = hg_strdup("");
    return state;
}

void hg_run_state_free(struct hg_run_state *state)
{
    if (!state)
        return;
    for (size_t i = 0; i < state->batches.n; i++)
        free(state->batches.items[i].cells);
    for (size_t i = 0; i < state->submissions.n; i++)
        free(state->submissions.items[i].tasks);
    for (size_t i = 0; i < state->texts.n; i++)
        free(state->texts.items[i]);
    HG_VEC_DONE(&state->batches);
    HG_VEC_DONE(&state->submissions);
    HG_VEC_DONE(&state->texts);
    free(state);
}

struct hg_run_cell *hg_run_cell_find(const struct hg_run_state *state, int batch, uint32_t line)
{
    if (batch < 1 || (size_t)batch > state->batches.n || line >= state->batches.items[batch - 1].n)
        return NULL;
    return &state->batches.items[batch - 1].cells[line];
}

const struct hg_submission *hg_run_submission_find(const struct hg_run_state *state,
                                                   const char *key)
{
    for (size_t i = state->submissions.n; i > 0; i--) /* the newest are searched for most */
        if (strcmp(state->submissions.items[i - 1].key, key) == 0)
            return &state->submissions.items[i - 1];
    return NULL;
}

const char *hg_run_text(const struct hg_run_state *state, const struct hg_run_cell *cell)
{
    return cell->text < state->texts.n ? state->texts.items[cell->text] : "";
}
