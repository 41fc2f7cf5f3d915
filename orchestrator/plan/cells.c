/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cells.h"
#include "base/bar.h"
#include "base/alloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "plan/files.h"

#define CELLS_FILE_MAX ((size_t)4 << 30)
#define HALF_SAVED_S 0.5 /* between two renames */
#define PLACE_DIGITS (HG_PLAN_INDEX_LINE - 1)

/* ---- Saving ---- */

void hg_plan_index_add(struct hg_buf *index, uint64_t place)
{
    hg_buf_printf(index, "%0*" PRIu64 "\n", PLACE_DIGITS, place);
}

/* Where each line begins, and the end of the last one. */
static int save_index(const struct hg_buf *cells, const char *path, struct hg_err *err)
{
    const char *text = cells->data, *end = text + cells->len;
    struct hg_buf index = HG_BUF_INIT;
    int rc;

    hg_plan_index_add(&index, 0);
    for (const char *nl = text; (nl = memchr(nl, '\n', (size_t)(end - nl))); nl++)
        hg_plan_index_add(&index, (uint64_t)(nl + 1 - text));
    rc = hg_fs_replace(path, index.data, index.len, 0600, err);
    hg_buf_done(&index);
    return rc;
}

/* The index is ready before the cells are replaced: a job may be about to look its cell up. */
static int save_files(const struct hg_batch *b, const struct hg_buf *cells, const char *dir,
                      struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, b->number);
    char *index = hg_str_printf("%s/batches/%d.cells.idx", dir, b->number);
    char *next = hg_str_printf("%s.next", index);
    int rc = save_index(cells, next, err);

    if (rc == 0)
        rc = hg_fs_replace(path, cells->data, cells->len, 0600, err);
    if (rc == 0 && rename(next, index) < 0)
        rc = hg_err_sys(err, "cannot replace %s", index);
    free(path);
    free(index);
    free(next);
    return rc;
}

/* The saved lines of a known batch, and in their places those that were made anew: a baseline or a note may have changed. */
static int merge_lines(const struct hg_batch *b, const struct hg_buf *old, struct hg_buf *out)
{
    const char *p = hg_buf_str(old), *end = p + old->len, *nl;
    size_t line = 0;

    for (; p < end && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1, line++) {
        const char *text = line < b->n && b->at[line] ? b->cells.data + b->at[line] - 1 : p;

        hg_buf_append(out, text, (size_t)(strchr(text, '\n') + 1 - text));
    }
    return line == b->n ? 0 : -1;
}

/* Were the cells replaced, and their index not (yet)? */
static bool is_half_saved(const char *dir, int number)
{
    char *next = hg_str_printf("%s/batches/%d.cells.idx.next", dir, number);
    bool is = hg_fs_exists(next);

    free(next);
    return is;
}

static int renew_cells(const struct hg_batch *b, const char *dir, struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, b->number);
    struct hg_buf old = HG_BUF_INIT, now = HG_BUF_INIT;
    int rc = hg_fs_read(path, CELLS_FILE_MAX, &old, err);

    if (rc == 0 && merge_lines(b, &old, &now) < 0)
        rc = hg_err_set(err, HG_E_INPUT, "%s does not have the %zu cells of its batch", path, b->n);
    if (rc == 0)
        rc = save_files(b, &now, dir, err);
    hg_buf_done(&old);
    hg_buf_done(&now);
    free(path);
    return rc;
}

int hg_plan_save_cells(const struct hg_batch *b, const char *dir, struct hg_err *err)
{
    if (!b->at)
        return b->cells.len ? save_files(b, &b->cells, dir, err) : 0;
    return b->cells.len || is_half_saved(dir, b->number) ? renew_cells(b, dir, err) : 0;
}

/* ---- Loading ---- */

/* The id at the start of a line of a cells file: {"id":"...",  */
static char *id_of_line(const char *line, size_t n)
{
    static const char start[] = "{\"id\":\"";
    const char *end;

    if (n < sizeof start || memcmp(line, start, sizeof start - 1) != 0)
        return NULL;
    line += sizeof start - 1;
    n -= sizeof start - 1;
    end = memchr(line, '"', n);
    return end && end > line ? hg_strndup(line, (size_t)(end - line)) : NULL;
}

/* Jobs find their cells by it: one that does not fit is found before they are submitted. */
static int check_index(const struct hg_batch *b, const char *dir, struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.idx", dir, b->number);
    const off_t expected = (off_t)(b->n + 1) * HG_PLAN_INDEX_LINE;
    struct stat st;
    int rc = 0;

    if (stat(path, &st) < 0)
        rc = hg_err_sys(err, "cannot read %s", path);
    else if (st.st_size != expected)
        rc = hg_err_set(err, HG_E_INPUT, "%s has %lld bytes, expected %lld for %zu cell%s", path,
                        (long long)st.st_size, (long long)expected, b->n, hg_text_s(b->n));
    free(path);
    return rc;
}

int hg_plan_load_ids(struct hg_batch *b, size_t cells, const char *dir, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, b->number);
    struct {
        uint64_t *items;
        size_t n, cap;
    } saved = { 0 };
    int rc = -1;

    if (hg_fs_read(path, CELLS_FILE_MAX, &text, err) < 0)
        goto out;
    for (const char *p = hg_buf_str(&text), *end = p + text.len, *nl; p < end; p = nl + 1) {
        char *id;

        nl = memchr(p, '\n', (size_t)(end - p));
        id = nl ? id_of_line(p, (size_t)(nl - p)) : NULL;
        if (!id) {
            hg_err_set(err, HG_E_INPUT, "%s: line %zu is not a cell", path, b->n + 1);
            HG_VEC_DONE(&saved);
            goto out;
        }
        hg_batch_push(b, id);
        *HG_VEC_PUSH(&saved) = hg_hash64(p, (size_t)(nl + 1 - p));
    }
    b->saved = saved.items;
    rc = b->n == cells ? check_index(b, dir, err)
                       : hg_err_set(err, HG_E_INPUT, "%s has %zu cell%s, plan.json says %zu", path,
                                    b->n, hg_text_s(b->n), cells);
out:
    hg_buf_done(&text);
    free(path);
    return rc;
}

/* ---- One cell ---- */

/* 0, 1 where the file ends before, or -1. */
static int read_at(int fd, char *out, size_t n, uint64_t at)
{
    while (n) {
        ssize_t got = pread(fd, out, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : 1;
        out += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}

/* A line of the index: 15 digits and a newline. */
static bool parse_place(const char *line, uint64_t *place)
{
    *place = 0;
    for (size_t i = 0; i < PLACE_DIGITS; i++) {
        if (line[i] < '0' || line[i] > '9')
            return false;
        *place = *place * 10 + (uint64_t)(line[i] - '0');
    }
    return line[PLACE_DIGITS] == '\n';
}

/* Where a line of the cells file begins and ends. */
static int find_line(const char *dir, int batch, size_t line, uint64_t place[static 2],
                     struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.idx", dir, batch);
    int fd = hg_fs_open_file(path, err), got = -1;
    char text[2 * HG_PLAN_INDEX_LINE];
    int rc = -1;

    if (fd >= 0 && (got = read_at(fd, text, sizeof text, (uint64_t)line * HG_PLAN_INDEX_LINE)) < 0)
        hg_err_sys(err, "cannot read %s", path);
    else if (got > 0)
        hg_err_set(err, HG_E_NOTFOUND, "%s/batches/%d.cells.jsonl has no line %zu", dir, batch,
                   line + 1);
    else if (got == 0 &&
             (!parse_place(text, &place[0]) || !parse_place(text + HG_PLAN_INDEX_LINE, &place[1]) ||
              place[0] >= place[1] || place[1] > CELLS_FILE_MAX))
        hg_err_set(err, HG_E_INPUT, "%s:%zu: not the place of a cell", path, line + 1);
    else if (got == 0)
        rc = 0;
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* Is it one whole line? text begins with the byte before it, where there is one. */
static bool is_line(const char *text, size_t n, bool has_before)
{
    if (has_before && *text++ != '\n')
        return false;
    n -= has_before;
    return memchr(text, '\n', n) == text + n - 1;
}

/* What every reader relies on. */
static int check_record(const char *path, size_t line, const json_t *record, struct hg_err *err)
{
    if (json_is_string(json_object_get(record, "id")) &&
        json_is_object(json_object_get(record, "cell")))
        return 0;
    return hg_err_set(err, HG_E_INPUT, "%s:%zu: not a cell: no id, or no members", path, line + 1);
}

static json_t *read_cell(const char *dir, int batch, size_t line, struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, batch), *text = NULL;
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    int fd = hg_fs_open_file(path, err), got;
    uint64_t place[2];
    json_t *root = NULL;
    size_t n, before;
    struct stat st;

    if (fd < 0 || find_line(dir, batch, line, place, err) < 0)
        goto out;
    before = place[0] > 0;
    n = place[1] - place[0] + before;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size < place[1]) {
        hg_err_set(err, HG_E_INPUT, "%s ends before its line %zu does", path, line + 1);
        goto out;
    }
    text = hg_alloc(n);
    got = read_at(fd, text, n, place[0] - before);
    if (got < 0)
        hg_err_sys(err, "cannot read %s", path);
    else if (got > 0 || !is_line(text, n, before))
        hg_err_set(err, HG_E_INPUT, "%s:%zu: not where %d.cells.idx says", path, line + 1, batch);
    else if (hg_json_parse(path, text + before, n - before - 1, &doc, err) == 0 &&
             check_record(path, line, doc.root, err) == 0)
        root = json_incref(doc.root);
    hg_json_doc_done(&doc);
out:
    if (fd >= 0)
        close(fd);
    free(text);
    free(path);
    return root;
}

json_t *hg_plan_read_cell(const char *dir, int batch, size_t line, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    json_t *cell = read_cell(dir, batch, line, &why);

    if (!cell && why.code == HG_E_INPUT && is_half_saved(dir, batch)) {
        hg_clock_sleep_s(HALF_SAVED_S);
        return read_cell(dir, batch, line, err);
    }
    if (!cell && err)
        *err = why;
    return cell;
}

int hg_plan_each_cell(const char *dir, int batch,
                      int (*visit)(size_t line, const json_t *cell, void *context), void *context,
                      struct hg_err *err)
{
    char *path = hg_str_printf("%s/batches/%d.cells.jsonl", dir, batch);
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = f ? 0 : hg_err_sys(err, "cannot read %s", path);

    for (size_t line = 0; rc == 0 && (n = getline(&text, &cap, f)) > 0; line++) {
        struct hg_json_doc doc = HG_JSON_DOC_INIT;

        rc = hg_json_parse(path, text, (size_t)n - (text[n - 1] == '\n'), &doc, err);
        hg_bar_step();
        if (rc == 0)
            rc = check_record(path, line, doc.root, err);
        if (rc == 0)
            rc = visit(line, doc.root, context);
        hg_json_doc_done(&doc);
    }
    if (f && rc == 0 && !feof(f))
        rc = hg_err_sys(err, "cannot read %s", path);
    if (f)
        fclose(f);
    free(text);
    free(path);
    return rc;
}

static int add_name(size_t line, const json_t *record, void *context)
{
    (void)line;
    hg_names_add(context, json_object_get(record, "cell"));
    return 0;
}

struct hg_names *hg_plan_names(const char *dir, struct hg_err *err)
{
    struct hg_names *names = hg_names_create();
    json_t *plan = hg_plan_read(dir, err);
    size_t n = json_array_size(json_object_get(plan, "batches"));
    int rc = plan ? 0 : -1;

    for (size_t b = 0; rc == 0 && b < n; b++)
        rc = hg_plan_each_cell(dir, (int)b + 1, add_name, names, err);
    json_decref(plan);
    if (rc == 0)
        return names;
    hg_names_free(names);
    return NULL;
}

void hg_plan_append_name(const char *dir, struct hg_names **names, int batch, size_t line,
                         const char *id, struct hg_buf *out)
{
    json_t *record = NULL;

    if (!*names)
        *names = hg_plan_names(dir, NULL);
    if (*names)
        record = hg_plan_read_cell(dir, batch, line, NULL);
    if (record)
        hg_names_append_cell(*names, json_object_get(record, "cell"), out);
    else
        hg_buf_puts(out, id);
    json_decref(record);
}
