/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "node/code.h"

#define SHOWN 6
#define VALUE_MAX 48 /* characters of a value */

struct changes {
    struct hg_buf *out;
    size_t n;
};

static void put_value(const json_t *value, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    if (value)
        hg_json_dump(value, HG_JSON_COMPACT, &text);
    else
        hg_buf_puts(&text, "none");
    if (text.len > VALUE_MAX) {
        size_t n = VALUE_MAX - 3;

        while ((text.data[n] & 0xc0) == 0x80) /* not within a character */
            n--;
        hg_buf_append(out, text.data, n);
        hg_buf_puts(out, "...");
    } else {
        hg_buf_append(out, text.data, text.len);
    }
    hg_buf_done(&text);
}

static void add(struct changes *c, const char *path, const json_t *old, const json_t *now)
{
    if (++c->n > SHOWN)
        return;
    hg_buf_printf(c->out, "%s%s ", c->n > 1 ? ", " : "", path);
    put_value(old, c->out);
    hg_buf_puts(c->out, " → ");
    put_value(now, c->out);
}

static void compare(struct changes *c, const char *path, const json_t *old, const json_t *now);

static void compare_member(struct changes *c, const char *path, const char *key, const json_t *old,
                           const json_t *now)
{
    char *inner = hg_str_printf("%s%s%s", path, *path ? "." : "", key);

    compare(c, inner, old, now);
    free(inner);
}

static void compare(struct changes *c, const char *path, const json_t *old, const json_t *now)
{
    const char *key;
    json_t *value;

    if (old && now && hg_json_equal(old, now))
        return;
    if (!json_is_object(old) || !json_is_object(now)) {
        add(c, path, old, now);
        return;
    }
    json_object_foreach((json_t *)old, key, value)
        compare_member(c, path, key, value, json_object_get(now, key));
    json_object_foreach((json_t *)now, key, value)
        if (!json_object_get(old, key))
            compare_member(c, path, key, NULL, value);
}

/* A copy in the run's folder against what it was made from. */
static void compare_copy(struct changes *c, const struct hg_rundir *rd, const char *name,
                         const char *path, const json_t *now)
{
    char *file = hg_rundir_path(rd, "%s", name);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err ignored = HG_ERR_INIT;

    if (hg_json_load(file, &doc, &ignored) == 0) {
        if (json_is_object(json_object_get(doc.root, "site")) &&
            json_is_object(json_object_get(now, "site"))) /* it is in site.json, too */
            json_object_set(doc.root, "site", json_object_get(now, "site"));
        compare(c, path, doc.root, now);
    }
    hg_json_doc_done(&doc);
    free(file);
}

/* ---- The files of the command ---- */

static json_t *look_at_files(const struct hg_rundir *rd, const json_t *workload)
{
    const json_t *command = json_object_get(workload, "command");
    const char *dir = json_string_value(json_object_get(workload, "cwd"));
    size_t n = json_array_size(command);
    const char **words = hg_alloc_zeroed(n + 1, sizeof *words);
    json_t *files;

    for (size_t i = 0; i < n; i++)
        words[i] = json_string_value(json_array_get(command, i));
    files = hg_code_files(
        &(struct hg_code_place){ .dir = dir ? dir : rd->path, .run = rd->path, .words = words });
    free(words);
    return files;
}

void hg_changes_note_files(const struct hg_rundir *rd, struct hg_plan *plan)
{
    json_object_set_new(plan->workload, "code", look_at_files(rd, plan->workload));
}

static void compare_files(struct changes *c, const struct hg_rundir *rd,
                          const struct hg_plan *known)
{
    const json_t *old = json_object_get(known->workload, "code");
    json_t *now = look_at_files(rd, known->workload), *file;
    size_t i;

    json_array_foreach(old, i, file) {
        const json_t *other = json_array_get(now, i);

        if (!hg_json_equal(file, other ? other : json_null()) && ++c->n <= SHOWN)
            hg_buf_printf(c->out, "%sthe file %s", c->n > 1 ? ", " : "",
                          json_string_value(json_object_get(file, "name")));
    }
    json_decref(now);
}

size_t hg_changes_list(const struct hg_rundir *rd, const struct hg_matrix *m,
                       const struct hg_plan *known, struct hg_buf *out)
{
    struct changes c = { .out = out };

    compare_copy(&c, rd, "matrix.json", "", m->doc.root);
    compare_copy(&c, rd, "site.json", "site", m->site->json);
    if (known)
        compare_files(&c, rd, known);
    if (c.n > SHOWN)
        hg_buf_printf(out, " and %zu more", c.n - SHOWN);
    return c.n;
}
