/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/state.h"

#include "base/colour.h"

int hg_state_load(const char *run_dir, struct hg_run_state **state, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;

    *state = hg_run_state_load(run_dir, &why);
    if (*state || why.code == HG_E_NOTFOUND)
        return 0;
    *err = why;
    return -1;
}

static size_t count(const struct hg_run_state *state, int first, int end)
{
    size_t n = 0;

    for (int s = first; s < end; s++)
        n += state->counts[s];
    return n;
}

size_t hg_state_live(const struct hg_run_state *state)
{
    return count(state, HG_CELL_INTENDED, HG_CELL_ENDED + 1);
}

size_t hg_state_open(const struct hg_run_state *state)
{
    return count(state, HG_CELL_WAITING, HG_CELL_OK);
}

size_t hg_state_bad(const struct hg_run_state *state)
{
    return state->cells - state->counts[HG_CELL_OK] - state->counts[HG_CELL_UNNEEDED] -
           state->counts[HG_CELL_REMOVED];
}

const char *hg_state_start(int fd, enum hg_cell_state state)
{
    static const char kinds[HG_CELL_STATES + 1] = {
        /* 1 + colour; 0: none */
        [HG_CELL_OK] = 1 + HG_COLOUR_GOOD,           [HG_CELL_RUNNING] = 1 + HG_COLOUR_ACTIVE,
        [HG_CELL_AMBIGUOUS] = 1 + HG_COLOUR_WARNING, [HG_CELL_FAILED] = 1 + HG_COLOUR_BAD,
        [HG_CELL_TIMEOUT] = 1 + HG_COLOUR_BAD,       [HG_CELL_OOM] = 1 + HG_COLOUR_BAD,
        [HG_CELL_NODE_FAIL] = 1 + HG_COLOUR_BAD,     [HG_CELL_CANCELLED] = 1 + HG_COLOUR_WARNING,
        [HG_CELL_LOST] = 1 + HG_COLOUR_BAD,          [HG_CELL_REFUSED] = 1 + HG_COLOUR_BAD,
    };

    return kinds[state] ? hg_colour_start(fd, kinds[state] - 1) : "";
}

const char *hg_state_stop(int fd, enum hg_cell_state state)
{
    return *hg_state_start(fd, state) ? hg_colour_stop(fd) : "";
}

void hg_state_format_counts(const size_t counts[HG_CELL_STATES], int fd, struct hg_buf *out)
{
    static const enum hg_cell_state order[] = {
        HG_CELL_OK,       HG_CELL_RUNNING,   HG_CELL_ENDED,     HG_CELL_PENDING,
        HG_CELL_INTENDED, HG_CELL_AMBIGUOUS, HG_CELL_WAITING,   HG_CELL_FAILED,
        HG_CELL_TIMEOUT,  HG_CELL_OOM,       HG_CELL_NODE_FAIL, HG_CELL_CANCELLED,
        HG_CELL_LOST,     HG_CELL_REFUSED,   HG_CELL_UNNEEDED,  HG_CELL_REMOVED,
    };
    const char *before = "";

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (counts[order[i]]) {
            hg_buf_printf(out, "%s%s%s %zu%s", before, hg_state_start(fd, order[i]),
                          hg_cell_state_names[order[i]], counts[order[i]],
                          hg_state_stop(fd, order[i]));
            before = " · ";
        }
}

json_t *hg_state_counts_json(const size_t counts[HG_CELL_STATES])
{
    json_t *object = json_object();

    for (int s = 0; s < HG_CELL_STATES; s++)
        if (counts[s])
            json_object_set_new(object, hg_cell_state_names[s],
                                json_integer((json_int_t)counts[s]));
    return object;
}

void hg_state_format(const struct hg_run_state *state, int fd, struct hg_buf *out)
{
    size_t held = hg_run_count_held(state);

    hg_state_format_counts(state->counts, fd, out);
    if (held)
        hg_buf_printf(out, " (%zu held)", held);
}
