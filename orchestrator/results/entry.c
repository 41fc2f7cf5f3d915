/* SPDX-License-Identifier: Apache-2.0 */
#include "results/entry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "results/doubts.h"
#include "results/metric.h"

/* ---- Checks ---- */

/* A value in a message: as written when it is short, else its type. */
static void show_value(const json_t *value, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(value, HG_JSON_COMPACT, &text);
    hg_buf_puts(out, text.len <= 60 && !json_is_object(value) && !json_is_array(value)
                         ? hg_buf_str(&text)
                         : hg_json_type_name(value));
    hg_buf_done(&text);
}

void hg_check_leave(struct hg_check *c, size_t len)
{
    c->pointer.len = len;
    c->pointer.data[len] = '\0';
}

struct hg_err *hg_check_wrong(struct hg_check *c, const char *member, const char *expected,
                              const json_t *found)
{
    size_t keep = c->pointer.len;
    struct hg_buf shown = HG_BUF_INIT;
    struct hg_err *err;

    if (member)
        hg_json_pointer_push(&c->pointer, member);
    show_value(found, &shown);
    err = hg_json_error(c->doc, hg_buf_str(&c->pointer), c->errs, "expected %s, found %s", expected,
                        hg_buf_str(&shown));
    hg_buf_done(&shown);
    hg_check_leave(c, keep);
    return err;
}

const char *hg_check_string(struct hg_check *c, const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    if (value && !json_is_string(value) && !json_is_null(value))
        hg_check_wrong(c, member, "a string", value);
    return json_is_string(value) ? json_string_value(value) : "";
}

static bool check_bool(struct hg_check *c, const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    if (value && !json_is_boolean(value) && !json_is_null(value))
        hg_check_wrong(c, member, "true or false", value);
    return json_is_true(value);
}

/* ---- Quantities: the unit is in the name ---- */

enum quantity { QUANTITY_NONE, QUANTITY_ANY, QUANTITY_POSITIVE };

static enum quantity quantity_of(const char *name, size_t len)
{
    static const char *const units[] = { "_s", "_j", "_bytes" };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (hg_metric_has_suffix(name, len, units[i]))
            return QUANTITY_POSITIVE;
    return hg_metric_has_suffix(name, len, "_loss") ? QUANTITY_ANY : QUANTITY_NONE;
}

/* A value that is surely right, whatever its name. */
static bool is_right(enum quantity q, const json_t *value)
{
    if (json_is_object(value) || json_is_array(value))
        return false;
    return q == QUANTITY_NONE || json_is_null(value) ||
           (json_is_number(value) && (q == QUANTITY_ANY || json_number_value(value) >= 0));
}

static void check_value(struct hg_check *c, const char *name, enum quantity q, const json_t *value);

/* The values inside a quantity are quantities: {"median": 0.1}, [1.5, 1.4]. */
static void check_inside(struct hg_check *c, const char *name, enum quantity q, const json_t *value)
{
    size_t keep = c->pointer.len, i;
    const char *key;
    json_t *item;

    hg_json_pointer_push(&c->pointer, name);
    json_object_foreach((json_t *)value, key, item)
        check_value(c, key, q ? q : quantity_of(key, strlen(key)), item);
    json_array_foreach(value, i, item) {
        char index[24];

        if (is_right(q, item))
            continue;
        snprintf(index, sizeof index, "%zu", i);
        check_value(c, index, q, item);
    }
    hg_check_leave(c, keep);
}

static void check_value(struct hg_check *c, const char *name, enum quantity q, const json_t *value)
{
    if (is_right(q, value))
        return;
    if (json_is_object(value) || json_is_array(value))
        check_inside(c, name, q, value);
    else if (!json_is_number(value))
        hg_err_hint(hg_check_wrong(c, name, "a number", value),
                    "the unit is in the name: write \"%s\": 12.5", name);
    else
        hg_check_wrong(c, name, "a number that is not negative", value);
}

/* Members of a result that hold no figures of it. */
static bool is_description(const char *name, size_t len)
{
    static const char *const names[] = {
        "cell", "env", "slurm", "error", "comparable", "code", NULL
    };

    return hg_text_is_one_of(name, len, names);
}

static void check_whole(struct hg_check *c, const json_t *cell, const char *member, double min)
{
    const json_t *value = json_object_get(cell, member);
    double v = json_number_value(value);
    char expected[48];

    if (!value || json_is_null(value) ||
        (json_is_number(value) && v == floor(v) && v >= min && v <= 1e9))
        return;
    snprintf(expected, sizeof expected, "a whole number from %.0f", min);
    hg_check_wrong(c, member, expected, value);
}

static void check_cell(struct hg_check *c, const json_t *cell)
{
    size_t keep = c->pointer.len;

    hg_json_pointer_push(&c->pointer, "cell");
    if (!json_is_object(cell)) {
        hg_check_wrong(c, NULL, "an object", cell);
    } else {
        check_whole(c, cell, "nodes", 1);
        check_whole(c, cell, "gpus_per_node", 0);
        check_whole(c, cell, "tasks_per_node", 1);
        check_whole(c, cell, "cpus_per_task", 1);
        check_whole(c, cell, "repeat", 1);
    }
    hg_check_leave(c, keep);
}

/* A member of the cell as a number, or a substitute if it is absent. */
static double cell_number(const json_t *cell, const char *member, double absent)
{
    const json_t *value = json_object_get(cell, member);

    return json_is_number(value) ? json_number_value(value) : absent;
}

static void count_devices(struct hg_result *r)
{
    double nodes = cell_number(r->cell, "nodes", NAN);
    double gpus = cell_number(r->cell, "gpus_per_node", NAN);
    double tasks = cell_number(r->cell, "tasks_per_node", NAN);
    double cpus = cell_number(r->cell, "cpus_per_task", NAN);

    r->on_cores = gpus == 0 || (isnan(gpus) && !(isnan(tasks) && isnan(cpus)));
    if (isnan(nodes) && isnan(gpus) && isnan(tasks) && isnan(cpus))
        r->devices = NAN;
    else if (r->on_cores)
        r->devices =
            (isnan(nodes) ? 1 : nodes) * (isnan(tasks) ? 1 : tasks) * (isnan(cpus) ? 1 : cpus);
    else
        r->devices = (isnan(nodes) ? 1 : nodes) * (isnan(gpus) ? 1 : gpus);
}

static void read_cell(struct hg_check *c, const json_t *entry, struct hg_result *r)
{
    r->cell = json_object_get(entry, "cell");
    if (!r->cell)
        hg_err_hint(
            hg_json_error(c->doc, hg_buf_str(&c->pointer), c->errs,
                          "\"cell\" is missing: the members that say what was run"),
            "for example {\"cell\": {\"nodes\": 1, \"gpus_per_node\": 2}, \"train_s\": 101.7}");
    else
        check_cell(c, r->cell);
    if (json_is_object(r->cell))
        count_devices(r);
}

/* The members that identify this run of the cell, and its end. */
static void read_words(struct hg_check *c, const json_t *entry, struct hg_result *r)
{
    const json_t *error = json_object_get(entry, "error");
    const char *state;
    char why[64];

    r->id = hg_check_string(c, entry, "id");
    r->baseline_id = hg_check_string(c, entry, "baseline_id");
    r->attempt = hg_check_string(c, entry, "attempt");
    r->attempt_in = hg_check_string(c, entry, "attempt_in");
    r->status = hg_check_string(c, entry, "status");
    if (!*r->status)
        r->status = (state = hg_doubts_state(entry, why)) ? state : "ok";
    r->ok = strcmp(r->status, "ok") == 0;
    r->problem = json_is_string(error) ? json_string_value(error)
                                       : json_string_value(json_object_get(error, "message"));
    r->added = check_bool(c, entry, "added");
    r->removed = json_is_true(json_object_get(entry, "removed"));
    r->rehearsal = check_bool(c, entry, "rehearsal");
    r->has_rehearsal = json_is_boolean(json_object_get(entry, "rehearsal"));
    r->oversubscribed = check_bool(c, entry, "oversubscribed");
    r->diverged = check_bool(c, entry, "diverged");
    r->suspended = json_number_value(json_object_get(entry, "suspended_s")) > 0;
}

static const char *text_of(struct hg_check *c, const json_t *entry, const char *member)
{
    const char *text = hg_check_string(c, entry, member);

    return *text ? text : NULL;
}

static void check_deviation(struct hg_check *c, const char *name, const json_t *value)
{
    if (value && !json_is_null(value) && !(json_number_value(value) >= 0 && json_is_number(value)))
        hg_check_wrong(c, name, "a standard deviation", value);
}

/* What people add to a figure that they found in print. */
static void read_published(struct hg_check *c, const json_t *entry, struct hg_result *r)
{
    const json_t *sd = json_object_get(entry, "sd");
    const char *name;
    json_t *value;

    r->not_comparable = text_of(c, entry, "not_comparable");
    r->footnote = text_of(c, entry, "footnote");
    r->note = json_string_value(json_object_get(entry, "note"));
    r->source = json_string_value(json_object_get(entry, "source"));
    check_whole(c, entry, "n", 1);
    r->runs = (size_t)cell_number(entry, "n", 1);
    if (sd && cell_number(entry, "n", 1) < 2)
        hg_check_wrong(c, "sd", "\"n\", the number of runs, beside it", sd);
    if (!json_is_object(sd))
        check_deviation(c, "sd", sd);
    json_object_foreach((json_t *)sd, name, value)
        check_deviation(c, "sd", value);
}

static uint64_t job_of(const json_t *entry)
{
    const json_t *slurm = json_object_get(entry, "slurm"), *id = json_object_get(slurm, "job_id");
    long long restarts = json_integer_value(json_object_get(slurm, "restarts"));
    struct hg_buf text = HG_BUF_INIT;
    uint64_t job;

    if (!id)
        return 0;
    hg_json_dump(id, HG_JSON_COMPACT, &text);
    hg_buf_append(&text, &restarts, sizeof restarts);
    job = hg_hash64(text.data, text.len);
    hg_buf_done(&text);
    return job;
}

static void read_members(struct hg_check *c, const json_t *entry, struct hg_result *r)
{
    const char *name;
    json_t *value;

    r->entry = entry;
    read_cell(c, entry, r);
    read_words(c, entry, r);
    value = json_object_get(entry, "comparable");
    if (value && !json_is_object(value) && !json_is_null(value))
        hg_err_hint(hg_check_wrong(c, "comparable", "an object", value),
                    "to keep it out of comparisons: \"not_comparable\": \"why\"");
    r->comparable = value;
    r->env = json_object_get(entry, "env");
    r->code = json_object_get(entry, "code");
    r->job = job_of(entry);
    r->device = json_string_value(
        json_object_get(json_array_get(json_object_get(entry, "ranks"), 0), "device"));
    if (!r->device)
        r->device = json_string_value(json_object_get(entry, "device"));
    json_object_foreach((json_t *)entry, name, value) {
        if (!is_description(name, strlen(name)))
            check_value(c, name, quantity_of(name, strlen(name)), value);
    }
}

void hg_entry_read(const struct hg_json_doc *doc, size_t i, const json_t *entry, bool published,
                   struct hg_result *r, struct hg_errs *errs)
{
    struct hg_check c = { .doc = doc, .errs = errs };
    char index[32];

    *r = (struct hg_result){
        .id = "",
        .baseline_id = "",
        .attempt = "",
        .attempt_in = "",
        .status = "",
        .steps = NAN,
        .noise_times = NAN,
        .trained = NAN,
        .loss = NAN,
        .score = NAN,
        .runs = 1,
    };
    hg_text_integer_format((long long)i, index);
    hg_buf_puts(&c.pointer, "/results/");
    hg_buf_puts(&c.pointer, index);
    if (json_is_object(entry)) {
        read_members(&c, entry, r);
        if (published)
            read_published(&c, entry, r);
    }
    if (!json_is_object(entry))
        hg_check_wrong(&c, NULL, "an object", entry);
    hg_buf_done(&c.pointer);
}
