/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/failures.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/names.h"
#include "plan/cells.h"
#include "rundir/attempts.h"

#define TAIL 4096     /* bytes at the end of a log */
#define LINE_MAX_ 160 /* bytes of a line that is shown */
#define LOOKED_AT 200 /* cells whose logs are read */
#define CAUSES_SHOWN 5
#define CELLS_SHOWN 3

/* ---- The last line ---- */

/* What launchers say when a rank fails is not the reason. (slurmstepd may have the node behind its name.) */
static bool is_noise(const char *line, size_t n)
{
    static const char *const starts[] = { "srun: ", "slurmstepd", "mpirun: ", "prterun: " };

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (n >= strlen(starts[i]) && memcmp(line, starts[i], strlen(starts[i])) == 0)
            return true;
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r-=", line[i]))
            return false;
    return true;
}

static void put_line(const char *line, size_t n, struct hg_buf *out)
{
    size_t shown = n < LINE_MAX_ ? n : LINE_MAX_;

    while (shown && shown < n && ((unsigned char)line[shown] & 0xc0) == 0x80)
        shown--; /* not within a character */
    for (size_t i = 0, n_bytes; i < shown; i += n_bytes) {
        uint32_t cp;

        n_bytes = hg_text_utf8_next(line + i, &cp);
        if (hg_text_control(line + i))
            hg_buf_puts(out, " ");
        else
            hg_buf_append(out, line + i, n_bytes < shown - i ? n_bytes : shown - i);
    }
    hg_buf_puts(out, shown < n ? "..." : "");
}

/* Returns whether there was one. */
static bool last_line_of(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                         const char *name, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t n;
    bool found = false;

    hg_attempt_read_tail(g, f, name, TAIL, &text);
    for (n = text.len; n > 0 && !found;) {
        const char *nl = memrchr(text.data, '\n', n - 1), *line = nl ? nl + 1 : text.data;
        size_t len = (size_t)(text.data + n - line);

        len -= text.data[n - 1] == '\n';
        found = !is_noise(line, len);
        if (found)
            put_line(line, len, out);
        n = nl ? (size_t)(nl + 1 - text.data) : 0;
    }
    hg_buf_done(&text);
    return found;
}

static void find_last_line(struct hg_attempt_group *g, int batch, size_t line, const char *id,
                           struct hg_buf *out)
{
    struct hg_attempt_list list;

    if (hg_attempt_list(g, batch, line, id, &list, NULL) == 0 && list.n &&
        !last_line_of(g, &list.items[list.n - 1], "err.log", out))
        last_line_of(g, &list.items[list.n - 1], "out.log", out);
}

void hg_failures_last_line(const struct hg_rundir *rd, int batch, size_t line, const char *id,
                           struct hg_buf *out)
{
    struct hg_attempt_group group = { .rd = rd };

    find_last_line(&group, batch, line, id, out);
    hg_attempt_group_forget(&group);
}

/* ---- Causes ---- */

struct failed {
    int batch;
    size_t line;
    const char *id; /* borrowed */
};

struct cause {
    const char *status, *text; /* borrowed */
    char *said;                /* the last line of the first cell; "": none */
    struct failed cells[CELLS_SHOWN];
    size_t n;
};

struct causes {
    const struct hg_run_state *state;
    struct hg_attempt_group group;
    struct hg_map index;
    struct {
        struct cause *items;
        size_t n, cap;
    } list;
    size_t seen; /* cells */
};

/* Lines that differ in numbers only (a rank, a time, an address) are the same cause. */
static void put_key(const char *said, struct hg_buf *key)
{
    for (const char *p = said; *p; p++)
        if (!isxdigit((unsigned char)*p))
            hg_buf_append(key, p, 1);
}

static void add_failure(struct causes *c, int batch, size_t line, const char *id,
                        const struct hg_run_cell *cell)
{
    const char *status = hg_cell_state_names[cell->state], *text = hg_run_text(c->state, cell);
    struct hg_buf key = HG_BUF_INIT, said = HG_BUF_INIT;
    struct cause *cause;
    size_t at;

    if (c->seen++ < LOOKED_AT)
        find_last_line(&c->group, batch, line, id, &said);
    hg_buf_printf(&key, "%s\n%s\n", status, text);
    at = hg_map_find(&c->index, key.data, key.len); /* of a cell that is not looked at */
    if (c->seen <= LOOKED_AT || at == HG_MAP_NONE) {
        size_t n = key.len;

        put_key(hg_buf_str(&said), &key);
        at = hg_map_put(&c->index, key.data, key.len, c->list.n);
        hg_map_put(&c->index, key.data, n, at);
    }
    if (at == c->list.n)
        *HG_VEC_PUSH(&c->list) =
            (struct cause){ .status = status, .text = text, .said = hg_strdup(hg_buf_str(&said)) };
    cause = &c->list.items[at];
    if (cause->n < CELLS_SHOWN)
        cause->cells[cause->n] = (struct failed){ batch, line, id };
    cause->n++;
    hg_buf_done(&key);
    hg_buf_done(&said);
}

static int compare_causes(const void *pa, const void *pb)
{
    const struct cause *a = pa, *b = pb;

    return (a->n < b->n) - (a->n > b->n);
}

static void tell_cause(const struct cause *c, const char *run, struct hg_names **names)
{
    struct hg_buf cells = HG_BUF_INIT;

    for (size_t i = 0; i < c->n && i < CELLS_SHOWN; i++) {
        const struct failed *f = &c->cells[i];

        hg_buf_puts(&cells, i ? "; " : "");
        hg_plan_append_name(run, names, f->batch, f->line, f->id, &cells);
    }
    if (c->n > CELLS_SHOWN)
        hg_buf_printf(&cells, " and %zu more", c->n - CELLS_SHOWN);
    hg_info("%zu cell%s %s%s%s: %s", c->n, hg_text_s(c->n), c->status, *c->text ? ": " : "",
            c->text, hg_buf_str(&cells));
    if (*c->said)
        hg_info("  it printed last: %s", c->said);
    if (*c->said)
        hg_info("  more: hpcgrid logs %s %s", run, c->cells[0].id);
    hg_buf_done(&cells);
}

static void tell_causes(struct causes *c, const char *run)
{
    struct hg_names *names = NULL;
    size_t rest = 0;

    if (c->list.n)
        qsort(c->list.items, c->list.n, sizeof *c->list.items, compare_causes);
    for (size_t i = 0; i < c->list.n; i++)
        if (i < CAUSES_SHOWN)
            tell_cause(&c->list.items[i], run, &names);
        else
            rest += c->list.items[i].n;
    if (rest)
        hg_info("%zu more cell%s for %zu other reasons: hpcgrid logs %s", rest, hg_text_s(rest),
                c->list.n - CAUSES_SHOWN, run);
    hg_names_free(names);
}

/* ---- The end of a run ---- */

static void tell_absent(const struct hg_plan *plan, const struct hg_run_state *state,
                        const char *run)
{
    size_t skipped = (size_t)json_integer_value(json_object_get(plan->skipped, "n")), removed = 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++)
            removed += state->batches.items[b].cells[i].removed;
    if (skipped)
        hg_info("skipped, cannot run: %zu; hpcgrid report %s names them", skipped, run);
    if (removed)
        hg_info("no longer in the matrix: %zu; their results stay in hpcgrid report %s", removed,
                run);
}

void hg_failures_tell(const struct hg_rundir *rd, const struct hg_plan *plan,
                      const struct hg_run_state *state, struct hg_failures_options options)
{
    struct causes c = { .state = state, .group = { .rd = rd } };

    for (size_t b = 0; b < state->batches.n && b < plan->n; b++)
        for (size_t i = 0; i < state->batches.items[b].n && i < plan->items[b].n; i++)
            if (hg_cell_is_bad(&state->batches.items[b].cells[i]))
                add_failure(&c, (int)b + 1, i, plan->items[b].ids[i],
                            &state->batches.items[b].cells[i]);
    tell_causes(&c, rd->path);
    if (!options.tables)
        tell_absent(plan, state, rd->path);
    if (c.seen && !options.no_retry)
        hg_info("run %s again with: hpcgrid retry %s", c.seen == 1 ? "it" : "them", rd->path);
    for (size_t i = 0; i < c.list.n; i++)
        free(c.list.items[i].said);
    HG_VEC_DONE(&c.list);
    hg_map_done(&c.index);
    hg_attempt_group_forget(&c.group);
}
