/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "contract/keys.h"
#include "matrix/cell.h"
#include "matrix/seen.h"
#include "typeset/plain.h"

#define VALUE_MAX 40 /* columns of a key or a value */

/* One thing that a name may say: a key, or the shape, which takes two. */
struct unit {
    size_t key;    /* column of the frame, or SHAPE */
    unsigned rank; /* the highest are dropped first, and shown last */
    bool shown;
};

#define SHAPE (HG_MAP_NONE - 1)

struct hg_names {
    struct hg_frame own;
    const struct hg_frame *frame; /* own, or a lent one */
    const char *except;
    struct {
        struct unit *items;
        size_t n, cap;
    } units;                                     /* that vary; by rank, and as they are shown */
    size_t nodes, gpus, tasks, strategy, repeat; /* columns; HG_MAP_NONE */
    bool chosen;
    struct hg_map texts; /* of the values: text to number of the value */
    char **shown;        /* by number of the value; NULL: no name has it */
    size_t n_shown;
};

struct hg_names *hg_names_create(void)
{
    struct hg_names *names = hg_alloc_zeroed(1, sizeof *names);

    names->frame = &names->own;
    return names;
}

struct hg_names *hg_names_of_frame(const struct hg_frame *frame, const char *except)
{
    struct hg_names *names = hg_names_create();

    names->frame = frame;
    names->except = except;
    return names;
}

void hg_names_free(struct hg_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->n_shown; i++)
        free(names->shown[i]);
    free(names->shown);
    hg_map_done(&names->texts);
    HG_VEC_DONE(&names->units);
    hg_frame_done(&names->own);
    free(names);
}

size_t hg_names_add(struct hg_names *names, const json_t *cell)
{
    hg_frame_add(&names->own, cell);
    return names->own.n_rows - 1;
}

static int add_cell(const struct hg_cell *cell, void *context)
{
    hg_names_add(context, cell->members);
    return 0;
}

struct hg_names *hg_names_of_matrix(const struct hg_matrix *m, unsigned flags, struct hg_errs *errs)
{
    struct hg_names *names = hg_names_create();

    if (hg_cells_walk(m, flags | HG_CELLS_MEMBERS, add_cell, names, NULL, errs) == 0)
        return names;
    hg_names_free(names);
    return NULL;
}

/* ---- Which keys ---- */

static const struct hg_frame_value *value_at(const struct hg_names *names, const uint32_t *row,
                                             size_t key)
{
    return &names->frame->values.items[key == HG_MAP_NONE ? 0 : row[key]];
}

/* The second number of "2x4": GPUs, or tasks where there are none. */
static uint32_t width_of(const struct hg_names *names, const uint32_t *row)
{
    const struct hg_frame_value *gpus = value_at(names, row, names->gpus);

    if (gpus->is_number && gpus->number > 0)
        return row[names->gpus];
    return names->tasks == HG_MAP_NONE ? 0 : row[names->tasks];
}

/* Does every cell have both numbers? */
static bool has_shape(const struct hg_names *names)
{
    const struct hg_frame *f = names->frame;

    for (size_t i = 0; i < f->n_rows; i++) {
        const uint32_t *row = hg_frame_row(f, i);

        if (!value_at(names, row, names->nodes)->is_number ||
            !f->values.items[width_of(names, row)].is_number)
            return false;
    }
    return true;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* What a unit adds to the fingerprint of a row. */
static uint64_t part_of(const struct hg_names *names, const struct unit *u, const uint32_t *row)
{
    if (u->key != SHAPE)
        return mix((uint64_t)(u->key + 1) << 32 | row[u->key]);
    return mix(mix((uint64_t)row[names->nodes] << 32 | width_of(names, row)) + 1);
}

static bool varies(const struct hg_names *names, const struct unit *u)
{
    const struct hg_frame *f = names->frame;

    for (size_t i = 1; i < f->n_rows; i++)
        if (part_of(names, u, hg_frame_row(f, i)) != part_of(names, u, hg_frame_row(f, 0)))
            return true;
    return false;
}

/* How readily a key is dropped: what was chosen for a cell says more than what follows from it. */
static unsigned rank_of(const struct hg_names *names, size_t key)
{
    static const unsigned ranks[] = {
        [HG_ROLE_WORK] = 3, [HG_ROLE_PLACE] = 4, [HG_ROLE_SHAPE] = 5, [HG_ROLE_REPEAT] = 6
    };
    int known = hg_key_find(names->frame->keys.items[key].name);

    if (key == names->strategy)
        return 0;
    return known < 0 ? 3 : known == HG_COLUMN_HARDWARE ? 2 : ranks[hg_keys[known].role];
}

static void add_unit(struct hg_names *names, size_t key, unsigned rank)
{
    struct unit u = { .key = key, .rank = rank, .shown = true };
    size_t at = names->units.n;

    if (!varies(names, &u))
        return;
    HG_VEC_PUSH(&names->units);
    for (; at > 0 && names->units.items[at - 1].rank > rank; at--)
        names->units.items[at] = names->units.items[at - 1];
    names->units.items[at] = u;
}

static void list_units(struct hg_names *names)
{
    const struct hg_frame *f = names->frame;

    if (has_shape(names))
        add_unit(names, SHAPE, 1);
    for (size_t key = 0; key < f->keys.n; key++)
        if (!(f->keys.items[key].flags & (HG_KEY_NOTE | HG_KEY_LOOSE)) &&
            !(names->except && strcmp(names->except, f->keys.items[key].name) == 0))
            add_unit(names, key, rank_of(names, key));
}

/* The different cells, while units are dropped. */
struct rows {
    size_t *items;
    uint64_t *sums;   /* of the parts of the shown units */
    unsigned *values; /* shown units, repeat not counted, for which the cell has a value */
    size_t n;
};

static bool has_value(const struct hg_names *names, const struct unit *u, size_t row)
{
    return u->key == SHAPE ||
           (u->key != names->repeat && hg_frame_row(names->frame, row)[u->key] != 0);
}

/* Are all cells still told apart without one more of the shown units, and has each something to be called by? */
static bool is_spare(const struct hg_names *names, const struct unit *u, const struct rows *rows)
{
    struct hg_seen seen = { 0 };
    bool spare = u->key != names->repeat;

    for (size_t i = 0; i < rows->n && spare; i++) {
        uint64_t part = part_of(names, u, hg_frame_row(names->frame, rows->items[i]));

        spare = hg_seen_add(&seen, mix(rows->sums[i] - part)) != HG_SEEN_AGAIN &&
                !(rows->values[i] == 1 && has_value(names, u, rows->items[i]));
    }
    hg_seen_done(&seen);
    return spare;
}

static void drop(const struct hg_names *names, struct unit *u, struct rows *rows)
{
    u->shown = false;
    for (size_t i = 0; i < rows->n; i++) {
        rows->sums[i] -= part_of(names, u, hg_frame_row(names->frame, rows->items[i]));
        rows->values[i] -= has_value(names, u, rows->items[i]);
    }
}

static void list_rows(const struct hg_names *names, struct rows *rows)
{
    struct hg_seen seen = { 0 };

    for (size_t i = 0; i < names->frame->n_rows; i++) {
        uint64_t sum = 0;
        unsigned values = 0;

        for (size_t k = 0; k < names->units.n; k++) {
            sum += part_of(names, &names->units.items[k], hg_frame_row(names->frame, i));
            values += has_value(names, &names->units.items[k], i);
        }
        if (hg_seen_add(&seen, mix(sum)) == HG_SEEN_AGAIN)
            continue;
        rows->items[rows->n] = i;
        rows->sums[rows->n] = sum;
        rows->values[rows->n++] = values;
    }
    hg_seen_done(&seen);
}

static void drop_spare(struct hg_names *names)
{
    size_t room = names->frame->n_rows + 1;
    struct rows rows = { .items = hg_alloc(room * sizeof *rows.items),
                         .sums = hg_alloc(room * sizeof *rows.sums),
                         .values = hg_alloc(room * sizeof *rows.values) };

    list_rows(names, &rows);
    for (size_t k = names->units.n; k-- > 0;)
        if (is_spare(names, &names->units.items[k], &rows))
            drop(names, &names->units.items[k], &rows);
    free(rows.items);
    free(rows.sums);
    free(rows.values);
}

/* ---- Values ---- */

/* Could a value be taken for something else in a name, or in a selector? */
static bool needs_quotes(const char *text)
{
    char *end;

    strtod(text, &end);
    return !*text || !*end || text[strcspn(text, " \t\n\",=|")] || strchr("[{", *text) ||
           strstr(text, "..") || strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

/* Two values that are cut to the same text are numbered. */
static void shorten(struct hg_names *names, uint32_t value)
{
    const struct hg_frame_value *v = &names->frame->values.items[value];
    struct hg_buf whole = HG_BUF_INIT, text = HG_BUF_INIT;

    if (!value || names->shown[value])
        return;
    if (json_is_string(v->json) && needs_quotes(v->text))
        hg_json_dump(v->json, HG_JSON_COMPACT, &whole);
    else
        hg_buf_puts(&whole, v->text);
    hg_clean_append(hg_buf_str(&whole), VALUE_MAX, &text);
    if (hg_map_put(&names->texts, text.data, text.len, value) != value)
        hg_buf_printf(&text, "#%u", (unsigned)value);
    names->shown[value] = hg_buf_detach(&text);
    hg_buf_done(&whole);
}

static void shorten_all(struct hg_names *names)
{
    const struct hg_frame *f = names->frame;

    names->n_shown = f->values.n;
    names->shown = hg_alloc_zeroed(names->n_shown + 1, sizeof *names->shown);
    for (size_t i = 0; i < f->n_rows; i++)
        for (size_t k = 0; k < names->units.n; k++)
            if (names->units.items[k].shown && names->units.items[k].key != SHAPE)
                shorten(names, hg_frame_row(f, i)[names->units.items[k].key]);
}

static void choose(struct hg_names *names)
{
    const struct hg_frame *f = names->frame;

    names->chosen = true;
    names->nodes = hg_frame_find_key(f, "nodes");
    names->gpus = hg_frame_find_key(f, "gpus_per_node");
    names->tasks = hg_frame_find_key(f, "tasks_per_node");
    names->strategy = hg_frame_find_key(f, "strategy");
    names->repeat = hg_frame_find_key(f, "repeat");
    list_units(names);
    drop_spare(names);
    shorten_all(names);
}

/* ---- Names ---- */

static void append_shape(const struct hg_names *names, const uint32_t *row, struct hg_buf *out)
{
    hg_buf_printf(out, "%sx%s", value_at(names, row, names->nodes)->text,
                  names->frame->values.items[width_of(names, row)].text);
}

/* A strategy is shown without its key, unless it would be read as something else. */
static bool is_bare(const char *text)
{
    return !strchr("0123456789\"", *text) && strcmp(text, "run") != 0 && strcmp(text, "no") != 0;
}

static void append_unit(const struct hg_names *names, const struct unit *u, const uint32_t *row,
                        const char *between, struct hg_buf *out)
{
    const char *text = u->key == SHAPE ? "" : names->shown[row[u->key]];

    if (!text)
        return;
    hg_buf_puts(out, between);
    if (u->key == SHAPE) {
        append_shape(names, row, out);
    } else if (u->key == names->repeat) {
        hg_buf_printf(out, "run %s", text);
    } else {
        if (u->key != names->strategy || !is_bare(text)) {
            hg_clean_append(names->frame->keys.items[u->key].name, VALUE_MAX, out);
            hg_buf_puts(out, "=");
        }
        hg_buf_puts(out, text);
    }
}

/* No key tells this cell apart by a value: it is the one without the first, or the only one there is. */
static void append_rest(const struct hg_names *names, const uint32_t *row, struct hg_buf *out)
{
    for (size_t k = 0; k < names->units.n; k++)
        if (names->units.items[k].shown) {
            hg_buf_puts(out, "no ");
            hg_clean_append(names->frame->keys.items[names->units.items[k].key].name, VALUE_MAX,
                            out);
            return;
        }
    hg_clean_append(value_at(names, row, names->strategy)->text, VALUE_MAX, out);
    if (has_shape(names)) {
        hg_buf_puts(out, *value_at(names, row, names->strategy)->text ? " " : "");
        append_shape(names, row, out);
    }
}

static void append_row(struct hg_names *names, const uint32_t *row, struct hg_buf *out)
{
    size_t start = out->len;

    for (size_t k = 0; k < names->units.n; k++) {
        const struct unit *u = &names->units.items[k];

        if (u->shown)
            append_unit(names, u, row,
                        out->len == start         ? ""
                        : u->key == names->repeat ? ", "
                                                  : " ",
                        out);
    }
    if (out->len == start)
        append_rest(names, row, out);
}

void hg_names_append(struct hg_names *names, size_t i, struct hg_buf *out)
{
    if (!names->chosen)
        choose(names);
    append_row(names, hg_frame_row(names->frame, i), out);
}

void hg_names_append_cell(struct hg_names *names, const json_t *cell, struct hg_buf *out)
{
    const struct hg_frame *f = names->frame;
    uint32_t *row = hg_alloc_zeroed(f->keys.n + 1, sizeof *row);

    if (!names->chosen)
        choose(names);
    for (size_t key = 0; key < f->keys.n; key++)
        row[key] = (uint32_t)hg_frame_find_value(f, json_object_get(cell, f->keys.items[key].name));
    append_row(names, row, out);
    free(row);
}

void hg_name_cut(const char *name, size_t columns, struct hg_buf *out)
{
    const char *run = strstr(name, ", run ");
    size_t kept = run ? hg_text_width(run) : 0;
    char *head = hg_strndup(name, run ? (size_t)(run - name) : strlen(name));

    if (columns <= kept || hg_text_width(name) <= columns) {
        hg_clean_append(name, columns, out);
    } else {
        hg_clean_append(head, columns - kept, out);
        hg_buf_puts(out, run ? run : "");
    }
    free(head);
}
