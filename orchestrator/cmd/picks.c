/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/picks.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "matrix/select.h"

#define CELLS_FILE_MAX ((size_t)1 << 30)

static int pick_line(struct hg_picks *picks, size_t batch, size_t line, const char *text,
                     size_t len, struct hg_selector *select, struct hg_err *err)
{
    json_t *record = json_loadb(text, len, 0, NULL);
    const char *id = json_string_value(json_object_get(record, "id"));
    int match = -1;

    if (!id) {
        hg_err_set(err, HG_E_INPUT, "batches/%zu.cells.jsonl: line %zu is damaged", batch + 1,
                   line + 1);
    } else {
        hg_selector_see(select, json_object_get(record, "cell"));
        match = hg_selector_match(select, id, json_object_get(record, "cell"), err);
        picks->batches[batch].picked[line] = match == 1;
        picks->batches[batch].ids[line] = hg_strdup(id);
        if (picks->names)
            picks->batches[batch].numbers[line] =
                hg_names_add(picks->names, json_object_get(record, "cell"));
    }
    json_decref(record);
    return match < 0 ? -1 : 0;
}

static int read_batch(struct hg_picks *picks, const char *run_dir, size_t batch,
                      struct hg_selector *select, struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%zu.cells.jsonl", run_dir, batch + 1);
    struct hg_buf text = HG_BUF_INIT;
    size_t line = 0;
    int rc = hg_fs_read(path, CELLS_FILE_MAX, &text, err);

    for (const char *p = hg_buf_str(&text); rc == 0 && *p && line < picks->batches[batch].n;
         line++) {
        size_t len = strcspn(p, "\n");

        rc = pick_line(picks, batch, line, p, len, select, err);
        p += len + (p[len] == '\n');
    }
    hg_buf_done(&text);
    free(path);
    return rc;
}

static int read_all(struct hg_picks *picks, const char *run_dir, const struct hg_run_state *state,
                    const char *text, struct hg_err *err)
{
    struct hg_selector *select = text ? hg_selector_parse(text, err) : NULL;
    int rc = -1;

    picks->n = state->batches.n;
    if (text && !select)
        return -1;
    picks->batches = hg_alloc_zeroed(picks->n + 1, sizeof *picks->batches);
    for (size_t b = 0; b < picks->n; b++) {
        size_t n = picks->batches[b].n = state->batches.items[b].n;

        picks->batches[b].picked = hg_alloc_zeroed(n + 1, sizeof(bool));
        picks->batches[b].numbers = hg_alloc_zeroed(n + 1, sizeof(size_t));
        picks->batches[b].ids = hg_alloc_zeroed(n + 1, sizeof(char *));
        if (read_batch(picks, run_dir, b, select, err) < 0)
            goto out;
    }
    rc = hg_selector_check_seen(select, err);
    if (rc == 0 && text && !hg_picks_any(picks))
        rc = hg_err_set(err, HG_E_INPUT, "no cell of %s matches \"%s\"", run_dir, text);
out:
    hg_selector_free(select);
    return rc;
}

int hg_picks_name(struct hg_picks *picks, const char *run_dir, const struct hg_run_state *state,
                  const char *text, struct hg_err *err)
{
    *picks = (struct hg_picks){ .names = hg_names_create() };
    return read_all(picks, run_dir, state, text, err);
}

int hg_picks_make(struct hg_picks *picks, const char *run_dir, const struct hg_run_state *state,
                  const char *text, struct hg_err *err)
{
    *picks = (struct hg_picks){ .all = !text };
    return text ? read_all(picks, run_dir, state, text, err) : 0;
}

bool hg_picks_has(const struct hg_picks *picks, int batch, uint32_t line)
{
    return picks->all ||
           (batch >= 1 && (size_t)batch <= picks->n && line < picks->batches[batch - 1].n &&
            picks->batches[batch - 1].picked[line]);
}

bool hg_picks_any(const struct hg_picks *picks)
{
    for (size_t b = 0; b < picks->n; b++)
        for (size_t i = 0; i < picks->batches[b].n; i++)
            if (picks->batches[b].picked[i])
                return true;
    return picks->all;
}

bool hg_picks_fits(void *picks, int batch, uint32_t line)
{
    return hg_picks_has(picks, batch, line);
}

int hg_picks_tasks(const struct hg_picks *picks, const struct hg_run_state *state,
                   const struct hg_submission *sub, const struct hg_executor_job *job,
                   struct hg_ranges *hit, struct hg_err *err)
{
    struct hg_ranges set;
    int rc = hg_run_cells_of(sub, job->tasks, &set, err);

    for (size_t i = 0; rc == 0 && i < set.n; i++)
        for (uint32_t k = set.items[i].first; k <= set.items[i].last; k++) {
            const struct hg_run_cell *cell = hg_run_cell_find(state, sub->batch, sub->offset + k);

            /* one that has ended says nothing of the others that share its job */
            if (cell && hg_picks_has(picks, sub->batch, sub->offset + k) &&
                (sub->together == 1 || !hg_cell_is_over(cell)))
                hg_ranges_add(hit, k / sub->together);
        }
    hg_ranges_done(&set);
    return rc;
}

const char *hg_picks_id(const struct hg_picks *picks, int batch, uint32_t line)
{
    if (picks->all || batch < 1 || (size_t)batch > picks->n ||
        line >= picks->batches[batch - 1].n || !picks->batches[batch - 1].ids[line])
        return "";
    return picks->batches[batch - 1].ids[line];
}

void hg_picks_append_name(const struct hg_picks *picks, int batch, uint32_t line,
                          struct hg_buf *out)
{
    if (*hg_picks_id(picks, batch, line)) /* else its line is missing */
        hg_names_append(picks->names, picks->batches[batch - 1].numbers[line], out);
}

void hg_picks_done(struct hg_picks *picks)
{
    for (size_t b = 0; b < picks->n; b++) {
        for (size_t i = 0; i < picks->batches[b].n; i++)
            free(picks->batches[b].ids[i]);
        free(picks->batches[b].ids);
        free(picks->batches[b].numbers);
        free(picks->batches[b].picked);
    }
    free(picks->batches);
    hg_names_free(picks->names);
    *picks = (struct hg_picks){ 0 };
}
