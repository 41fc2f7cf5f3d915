/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/together.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/together.h"

/* ---- Who with whom ---- */

/* The shape without the time: mates agree on all else. */
static void key_of(const struct hg_shape *shape, struct hg_buf *out)
{
    struct hg_shape timeless = *shape;

    timeless.time_s = 0;
    timeless.auto_time = false;
    hg_shape_key(&timeless, out);
}

/* The job that a cell joins; NULL: a new one. *first: the first job of its kind, which knows the newest. */
static struct hg_party *find_party(struct hg_parties *p, const struct hg_cell *cell,
                                   const struct hg_buf *rest, size_t *first)
{
    bool keys = json_is_array(p->m->together);
    struct hg_buf key = HG_BUF_INIT;
    struct hg_party *party = NULL;

    if (keys)
        hg_together_key(p->m, cell->members, cell->origins, &key);
    else
        hg_buf_append(&key, rest->data, rest->len);
    *first = hg_map_put(&p->by_key, key.data, key.len, p->n);
    if (*first < p->n)
        party = &p->items[p->items[*first].newest];
    hg_buf_done(&key);
    return party && !keys && party->n == (size_t)json_number_value(p->m->together) ? NULL : party;
}

static int differ(const struct hg_parties *p, const struct hg_party *party,
                  const struct hg_cell *cell, const char *rest, struct hg_errs *errs)
{
    const char *own = hg_buf_str(&party->rest);
    size_t same = hg_shape_key_same(own, rest);

    return hg_err_hint(
        hg_json_error(&p->m->doc, "/together", errs,
                      "cells that would share a job request different resources: %s%s, %s%s",
                      party->items[0].id, own[same] ? own + same : " no more", cell->id,
                      rest[same] ? rest + same : " no more"),
        "only \"time\" may differ: give them the same resources, or jobs of their own");
}

int hg_parties_add(struct hg_parties *p, const struct hg_cell *cell, double time_s, char *line,
                   struct hg_errs *errs)
{
    struct hg_shape shape;
    struct hg_buf rest = HG_BUF_INIT;
    struct hg_party *party;
    size_t first;
    int rc = 0;

    hg_shape_make(p->m->site, cell->members, &shape);
    key_of(&shape, &rest);
    shape.time_s = time_s;
    party = find_party(p, cell, &rest, &first);
    if (!party) {
        party = HG_VEC_PUSH(p);
        *party = (struct hg_party){ .shape = shape, .rest = rest };
        p->items[first].newest = p->n - 1;
    } else {
        if (strcmp(hg_buf_str(&party->rest), hg_buf_str(&rest)) != 0)
            rc = differ(p, party, cell, hg_buf_str(&rest), errs);
        party->shape.time_s =
            time_s > 0 && party->shape.time_s > 0 ? party->shape.time_s + time_s : 0;
        party->shape.auto_time = party->shape.auto_time || shape.auto_time;
        hg_shape_done(&shape);
        hg_buf_done(&rest);
    }
    *HG_VEC_PUSH(party) = (struct hg_mate){
        .id = hg_strdup(cell->id),
        .line = line,
        .repeat = json_number_value(json_object_get(cell->members, "repeat")),
    };
    return rc;
}

/* ---- In which order ---- */

static void turn(struct hg_mate *items, size_t n, size_t by)
{
    struct hg_mate *old = hg_alloc(n * sizeof *old);

    memcpy(old, items, n * sizeof *old);
    for (size_t i = 0; i < n; i++)
        items[i] = old[(i + by) % n];
    free(old);
}

/* ABC, BCA, CAB by repeat; from job to job if nothing is repeated. */
static void order(struct hg_party *party, size_t number, bool repeated)
{
    for (size_t i = 0, n; i < party->n; i += n) {
        double repeat = party->items[i].repeat;

        for (n = 1; i + n < party->n && party->items[i + n].repeat == repeat;)
            n++;
        turn(party->items + i, n, repeated ? (size_t)(repeat > 1 ? repeat - 1 : 0) : number);
    }
}

static int check_time(const struct hg_parties *p, const struct hg_party *party,
                      struct hg_errs *errs)
{
    const struct hg_hardware *hw = party->shape.hw;
    char asked[32];

    if (party->n < 2 || party->shape.auto_time || !hw->max_time ||
        party->shape.time_s <= hw->max_time_s)
        return 0;
    hg_text_duration_slurm(party->shape.time_s, asked);
    return hg_err_hint(
        hg_json_error(&p->m->doc, "/together", errs,
                      "%zu cells that share a job request %s in all, a job on %s may have %s",
                      party->n, asked, hw->name, hw->max_time),
        "put fewer cells into a job, or give them a shorter \"time\"");
}

int hg_parties_order(struct hg_parties *p, struct hg_errs *errs)
{
    for (size_t i = 0; i < p->n; i++) {
        if (check_time(p, &p->items[i], errs) < 0)
            return -1;
        if (json_is_array(p->m->together))
            order(&p->items[i], i, p->m->repeats.max > 1);
    }
    return 0;
}

void hg_parties_done(struct hg_parties *p)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->items[i].n; k++) {
            free(p->items[i].items[k].id);
            free(p->items[i].items[k].line);
        }
        HG_VEC_DONE(&p->items[i]);
        hg_shape_done(&p->items[i].shape);
        hg_buf_done(&p->items[i].rest);
    }
    HG_VEC_DONE(p);
    hg_map_done(&p->by_key);
}
