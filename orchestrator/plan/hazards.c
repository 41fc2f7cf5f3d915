/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/hazards.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/grid.h"
#include "matrix/pointer.h"
#include "matrix/together.h"
#include "plan/plan.h"

/* The files that a cell of hpcgrid-worker writes outside its own folder. */
static const struct {
    const char *key, *suffix, *what;
} files[] = {
    { "predictions", "",
      "each replaces the answers of another; \"derive\" can give every cell its own file" },
    { "checkpoint", ".safetensors",
      "one would resume the training of another; a folder has a file for each" },
};
#define N_FILES (sizeof files / sizeof *files)

/* Cells that want USR1 before a time limit that may be too short for it. */
struct late {
    const char *hardware;
    double time_s;
    long long lead_s;
    size_t cells;
};

struct hg_hazards {
    const struct hg_matrix *m;
    json_t *writers[N_FILES]; /* path: how many cells */
    json_t *longest;          /* hardware: longest time requested, in seconds */
    struct {
        struct late *items;
        size_t n, cap;
    } late;
};

struct hg_hazards *hg_hazards_create(const struct hg_matrix *m)
{
    struct hg_hazards *h = hg_alloc_zeroed(1, sizeof *h);

    h->m = m;
    for (size_t i = 0; i < N_FILES; i++)
        h->writers[i] = json_object();
    h->longest = json_object();
    return h;
}

void hg_hazards_free(struct hg_hazards *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < N_FILES; i++)
        json_decref(h->writers[i]);
    json_decref(h->longest);
    HG_VEC_DONE(&h->late);
    free(h);
}

static void see_file(struct hg_hazards *h, size_t i, const json_t *members)
{
    const char *path = json_string_value(json_object_get(members, files[i].key));
    json_int_t cells;

    if (!path || !hg_text_ends_with(path, files[i].suffix))
        return;
    cells = json_integer_value(json_object_get(h->writers[i], path)) + 1;
    json_object_set_new(h->writers[i], path, json_integer(cells));
}

static void see_limit(struct hg_hazards *h, const struct hg_shape *s, long long lead_s)
{
    struct late *l;

    if (s->time_s > json_real_value(json_object_get(h->longest, s->hw->name)))
        json_object_set_new(h->longest, s->hw->name, json_real(s->time_s));
    if (!lead_s || s->time_s <= 0 || hg_shape_has_time(s->time_s, lead_s) ||
        (hg_matrix_has_together(h->m) && s->time_s > (double)lead_s)) /* exec is not early */
        return;
    for (size_t i = 0; i < h->late.n; i++) {
        l = &h->late.items[i];
        if (l->hardware == s->hw->name && l->time_s == s->time_s && l->lead_s == lead_s) {
            l->cells++;
            return;
        }
    }
    l = HG_VEC_PUSH(&h->late);
    *l = (struct late){ s->hw->name, s->time_s, lead_s, 1 };
}

void hg_hazards_see(struct hg_hazards *h, const struct hg_cell *cell, const struct hg_shape *shape)
{
    bool worker = h->m->grid->worker;
    bool saves = worker && json_is_string(json_object_get(cell->members, "checkpoint"));

    for (size_t i = 0; worker && i < N_FILES; i++)
        see_file(h, i, cell->members);
    see_limit(h, shape, hg_shape_lead_s(shape, h->m->site, saves));
}

static void list(const struct hg_hazards *h, const char *key, const char *value, const char *text,
                 struct hg_cells_count *out)
{
    struct hg_buf pointer = HG_BUF_INIT;
    char *place =
        hg_pointer_place(&h->m->doc, hg_matrix_pointer(h->m, key, value, &pointer), "warning");

    hg_cells_count_warn(out, hg_str_printf("%s%s%s", place, pointer.len ? ": " : "", text));
    free(place);
    hg_buf_done(&pointer);
}

static void list_files(const struct hg_hazards *h, size_t i, struct hg_cells_count *out)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t shared = 0;
    const char *path, *first = NULL;
    json_t *cells;

    json_object_foreach(h->writers[i], path, cells) {
        if (json_integer_value(cells) < 2 || shared++)
            continue;
        first = path;
        hg_buf_printf(&text, "%lld cells write %s: %s", (long long)json_integer_value(cells), path,
                      files[i].what);
    }
    if (shared > 1)
        hg_buf_printf(&text, " (and %zu more file%s)", shared - 1, hg_text_s(shared - 1));
    if (shared)
        list(h, files[i].key, first, hg_buf_str(&text), out);
    hg_buf_done(&text);
}

static void list_late(const struct hg_hazards *h, struct hg_cells_count *out)
{
    const struct late *first = NULL;
    struct hg_buf text = HG_BUF_INIT;
    size_t cells = 0;

    for (size_t i = 0; i < h->late.n; i++) {
        const struct late *l = &h->late.items[i];
        double longest = json_real_value(json_object_get(h->longest, l->hardware));

        if (hg_shape_has_time(hg_plan_round_time(l->time_s, longest), l->lead_s))
            continue;
        cells += l->cells;
        if (!first || l->time_s < first->time_s)
            first = l;
    }
    if (!cells)
        return;
    hg_buf_printf(&text,
                  "%zu cell%s without USR1 before the time limit: %lld s of warning, and %d s that "
                  "Slurm may be early, leave nothing of %.0f s; \"sbatch\": \"--signal=USR1@30\" "
                  "warns later",
                  cells, cells == 1 ? " runs" : "s run", first->lead_s, HG_SHAPE_EARLY_S,
                  first->time_s);
    list(h, "time", NULL, hg_buf_str(&text), out);
    hg_buf_done(&text);
}

void hg_hazards_list(const struct hg_hazards *h, struct hg_cells_count *out)
{
    for (size_t i = 0; i < N_FILES; i++)
        list_files(h, i, out);
    list_late(h, out);
}
