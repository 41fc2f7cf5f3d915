/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "contract/keys.h"
#include "matrix/cell.h"
#include "matrix/params.h"
#include "plan/worker.h"

#define COMBINATIONS_MAX 4096
#define LIMIT_S 60.0

struct hg_fit {
    const struct hg_matrix *m;
    const struct hg_selector *select;
    struct hg_errs *errs;
    json_t *cells;   /* array: what the worker is asked about */
    json_t *places;  /* text of such a cell: its place in the arrays */
    json_t *answers; /* array */
    bool measured;   /* a cell's room is known: not to be able to ask is worth a warning */
    struct hg_buf why;
};

/* ---- What matters ---- */

/* Members that do not change what a training holds. */
static bool is_idle(const char *key)
{
    static const char *const idle[] = { "seed", "lr", "epochs", "data", "backend" };
    int known = hg_key_find(key);

    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (strcmp(idle[i], key) == 0)
            return true;
    return key[0] == '_' || (known >= 0 && hg_keys[known].role != HG_ROLE_SHAPE &&
                             hg_keys[known].role != HG_ROLE_WORK);
}

static json_t *essence_of(const json_t *members)
{
    json_t *o = json_object();
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)members, key, value) {
        if (!is_idle(key))
            json_object_set(o, key, value);
    }
    return o;
}

static const struct hg_hardware *hardware_of(const struct hg_fit *f, const json_t *members)
{
    const char *name = json_string_value(json_object_get(members, "hardware"));

    return name ? hg_site_find_hardware(f->m->site, name) : NULL;
}

static double size_of(const char *text)
{
    uint64_t bytes = 0;

    return text && hg_text_size_parse(text, &bytes, NULL) == 0 ? (double)bytes : 0;
}

/* Bytes that a rank of the cell may hold; 0: not said. On a CPU node its tasks share them. */
static double room_of(const struct hg_fit *f, const json_t *members)
{
    const struct hg_hardware *hw = hardware_of(f, members);
    double room = hw ? size_of(hw->device_mem) : 0, mem;
    json_int_t tasks = json_integer_value(json_object_get(members, "tasks_per_node"));

    if (!hw || hw->gpus_per_node || room <= 0)
        return room;
    mem = size_of(json_string_value(json_object_get(members, "mem")));
    if (mem > 0 && mem < room)
        room = mem;
    return tasks > 1 ? room / (double)tasks : room;
}

/* ---- Asking ---- */

static void add_combination(struct hg_fit *f, const json_t *members)
{
    json_t *essence = essence_of(members);
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(essence, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    if (!json_object_get(f->places, hg_buf_str(&text))) {
        json_object_set_new(f->places, hg_buf_str(&text),
                            json_integer((json_int_t)json_array_size(f->cells)));
        json_array_append(f->cells, essence);
    }
    hg_buf_done(&text);
    json_decref(essence);
}

/* Ranks that each need something of what the cell has only so much of. */
static bool shares_little(const json_t *members)
{
    const char *strategy = json_string_value(json_object_get(members, "strategy"));
    json_int_t tasks = json_integer_value(json_object_get(members, "nodes")) *
                       json_integer_value(json_object_get(members, "tasks_per_node"));

    if (json_object_get(members, "samples"))
        return true;
    return tasks > 1 && strategy && hg_strategy_has_option(strategy, "checkpoint_shards");
}

static int visit(const struct hg_cell *cell, void *context)
{
    struct hg_fit *f = context;
    struct hg_err err = HG_ERR_INIT;
    bool measured;
    int match;

    if (cell->fate != HG_CELL_RUNS)
        return 0;
    measured = room_of(f, cell->members) > 0;
    if (!measured && !shares_little(cell->members))
        return 0;
    f->measured |= measured;
    match = hg_selector_match(f->select, cell->id, cell->members, &err);
    if (match <= 0)
        return hg_errs_add(f->errs, &err);
    add_combination(f, cell->members);
    return json_array_size(f->cells) >= COMBINATIONS_MAX; /* 1 ends the walk */
}

/* One line of JSON for each cell. */
static void read_answers(struct hg_fit *f, const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        json_t *answer = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);

        json_array_append_new(f->answers, answer ? answer : json_null());
        line += n + (line[n] == '\n');
    }
}

/* A worker that cannot be asked is not a mistake of the matrix: the nodes may know more. */
static void ask(struct hg_fit *f, const char *worker, const char *path)
{
    const char *const argv[] = { worker, "predict", "--no-data", "--cells", path, NULL };
    struct hg_buf out = HG_BUF_INIT, said = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int status = 0;

    if (hg_proc_capture(argv, LIMIT_S, &out, &said, &status, &err) == 0 && status == 0)
        read_answers(f, hg_buf_str(&out));
    else if (f->measured && err.code)
        hg_warn("memory is not checked: %s", err.text);
    else if (f->measured)
        hg_warn("memory is not checked: %.*s", (int)strcspn(hg_buf_str(&said), "\n"),
                hg_buf_str(&said));
    hg_buf_done(&out);
    hg_buf_done(&said);
}

static int ask_worker(struct hg_fit *f, struct hg_err *err)
{
    char *path = hg_worker_input(f->cells, err), *worker;

    if (!path)
        return -1;
    worker = hg_worker_find();
    ask(f, worker, path);
    unlink(path);
    free(worker);
    free(path);
    return 0;
}

struct hg_fit *hg_fit_make(const struct hg_matrix *m, const struct hg_selector *select,
                           struct hg_errs *errs)
{
    struct hg_fit *f = hg_alloc_zeroed(1, sizeof *f);
    struct hg_err err = HG_ERR_INIT;
    bool ours = m->workload.program && strcmp(m->workload.program, "hpcgrid-worker") == 0;
    int rc = 0;

    *f = (struct hg_fit){ .m = m, .select = select, .errs = errs, .why = HG_BUF_INIT };
    f->cells = json_array();
    f->places = json_object();
    f->answers = json_array();
    if (ours)
        rc = hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_SKIPPED, visit, f, NULL, errs);
    if (rc >= 0 && json_array_size(f->cells))
        rc = ask_worker(f, &err);
    hg_errs_add(errs, &err);
    if (rc >= 0)
        return f;
    hg_fit_free(f);
    return NULL;
}

void hg_fit_free(struct hg_fit *f)
{
    if (!f)
        return;
    json_decref(f->cells);
    json_decref(f->places);
    json_decref(f->answers);
    hg_buf_done(&f->why);
    free(f);
}

/* ---- Judging ---- */

static const json_t *answer_for(const struct hg_fit *f, const json_t *members)
{
    json_t *essence = essence_of(members);
    struct hg_buf text = HG_BUF_INIT;
    const json_t *place;

    hg_json_dump(essence, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    place = json_object_get(f->places, hg_buf_str(&text));
    hg_buf_done(&text);
    json_decref(essence);
    return place ? json_array_get(f->answers, (size_t)json_integer_value(place)) : NULL;
}

/* The member with the largest number, that is at most `most` (negative: any). */
static const char *largest(const json_t *numbers, double most, double *value)
{
    const char *name, *best = NULL;
    json_t *number;

    *value = 0;
    json_object_foreach((json_t *)numbers, name, number) {
        double v = json_number_value(number);

        if ((most < 0 || v <= most) && v > *value) {
            best = name;
            *value = v;
        }
    }
    return best;
}

static void explain(struct hg_fit *f, const json_t *answer, const char *hardware, double total,
                    double room)
{
    char need[32], have[32], part[32], other_size[32];
    double most, other_bytes;
    const char *what = largest(json_object_get(answer, "memory"), -1, &most);
    const char *other = largest(json_object_get(answer, "strategies"), room, &other_bytes);

    hg_text_size_format((uint64_t)total, need);
    hg_text_size_format((uint64_t)room, have);
    hg_text_size_format((uint64_t)most, part);
    hg_buf_printf(&f->why, "a rank would hold up to %s (%s: %s), %s has %s for it", need,
                  what ? what : "", part, hardware, have);
    if (other) {
        hg_text_size_format((uint64_t)other_bytes, other_size);
        hg_buf_printf(&f->why, "; strategy %s would fit (%s)", other, other_size);
    } else {
        hg_buf_puts(&f->why, "; no strategy would fit: a smaller batch_size or model");
    }
}

const char *hg_fit_why(struct hg_fit *f, const json_t *members)
{
    double room = f ? room_of(f, members) : 0, total;
    const json_t *answer = f && json_array_size(f->answers) ? answer_for(f, members) : NULL;
    const char *error;

    if (!answer)
        return "";
    error = json_string_value(json_object_get(answer, "error"));
    total = json_number_value(json_object_get(answer, "total_bytes"));
    hg_buf_clear(&f->why);
    if (error) /* it would fail so on the node */
        hg_buf_puts(&f->why, error);
    else if (room > 0 && total > room)
        explain(f, answer, hardware_of(f, members)->name, total, room);
    return hg_buf_str(&f->why);
}
