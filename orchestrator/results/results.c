/* SPDX-License-Identifier: Apache-2.0 */
#include "results/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/jsonlist.h"
#include "base/text.h"
#include "base/vec.h"
#include "results/attempts_choose.h"
#include "results/doubts.h"
#include "results/entry.h"
#include "results/inputs.h"

/* The text of a larger set is not kept for the places of later errors. */
#define TEXT_KEPT_MAX ((size_t)16 << 20)

/* ---- Entries ---- */

/* Remember what is wrong with an entry of a tolerant set; the entry stays, as "invalid". */
static void keep_problem(struct hg_results *set, struct hg_result *r, const struct hg_err *found)
{
    char *problem = hg_str_printf("%s: %s", found->pointer, found->text);

    r->problem = hg_store_text(&set->store, problem);
    free(problem);
    r->ok = false;
    r->status = "invalid";
    if (!json_is_object(r->cell)) {
        if (!set->no_cell)
            set->no_cell = json_object();
        r->cell = set->no_cell;
        r->devices = NAN;
    }
}

static void read_entry(struct hg_results *set, size_t i, const json_t *entry, struct hg_result *r,
                       struct hg_errs *errs)
{
    struct hg_errs found = HG_ERRS_INIT;

    hg_entry_read(&set->doc, i, entry, !(set->flags & HG_RESULTS_TOLERANT), r,
                  set->flags & HG_RESULTS_TOLERANT ? &found : errs);
    if (found.n)
        keep_problem(set, r, &found.items[0]);
    hg_errs_done(&found);
}

/* Its values are in the store. */
static const json_t *store_cell(struct hg_store *store, const json_t *cell)
{
    json_t *copy, *value;
    const json_t *stored;
    const char *name;

    if (!json_is_object(cell))
        return hg_store_value(store, cell);
    copy = json_object();
    json_object_foreach((json_t *)cell, name, value)
        json_object_set(copy, name, (json_t *)hg_store_value(store, value));
    stored = hg_store_value(store, copy);
    json_decref(copy);
    return stored;
}

/* The one copy of a value that is ours. */
static const json_t *store_own(struct hg_store *store, json_t *value)
{
    const json_t *stored = hg_store_value(store, value);

    json_decref(value);
    return stored;
}

/* What it says about itself, and why it failed if it gives no status. */
static void read_doubts(struct hg_store *store, const json_t *entry, struct hg_result *r)
{
    char why[64];

    if (!json_is_object(entry))
        return;
    r->inputs = store_own(store, hg_inputs_find(entry));
    r->platform = store_own(store, hg_inputs_platform(entry));
    r->doubts = store_own(store, hg_doubts_find(entry, r));
    if (!r->ok && !r->problem && !json_object_get(entry, "status") && hg_doubts_state(entry, why))
        r->problem = hg_store_text(store, why);
}

/* Put what a result lends from its entry into the store, and the rest of the entry, which is changed. */
static void store_entry(struct hg_store *store, json_t *entry, struct hg_result *r)
{
    r->id = hg_store_text(store, r->id);
    r->baseline_id = hg_store_text(store, r->baseline_id);
    r->attempt = hg_store_text(store, r->attempt);
    r->attempt_in = hg_store_text(store, r->attempt_in);
    r->status = hg_store_text(store, r->status);
    r->device = hg_store_text(store, r->device);
    r->problem = hg_store_text(store, r->problem);
    r->not_comparable = hg_store_text(store, r->not_comparable);
    r->footnote = hg_store_text(store, r->footnote);
    r->note = hg_store_text(store, r->note);
    r->source = hg_store_text(store, r->source);
    r->comparable = hg_store_value(store, r->comparable);
    r->env = hg_store_value(store, r->env);
    r->code = hg_store_value(store, r->code);
    r->cell = store_cell(store, r->cell);
    r->entry = NULL;
    json_object_del(entry, "cell");
    r->pack = hg_pack_make(store, entry);
}

void hg_results_add(struct hg_results *set, json_t *entry, char *file, struct hg_errs *errs)
{
    struct hg_result *r = HG_VEC_PUSH(set);
    bool elsewhere = file && json_object_del(entry, "loss") == 0;

    read_entry(set, set->n - 1, entry, r, errs);
    if (elsewhere)
        r->loss_file = file;
    else
        free(file);
    read_doubts(&set->store, entry, r);
    store_entry(&set->store, entry, r);
    json_decref(entry);
}

int hg_results_look(struct hg_results *set, const json_t *entry, struct hg_result *r,
                    struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;

    read_entry(set, 0, entry, r, errs);
    return errs->n + errs->dropped == before ? 0 : -1;
}

/* ---- The head: all but the results ---- */

static const char *const better_words[] = { "lower", "higher", NULL };

static const struct hg_field report_fields[] = {
    { "rows", HG_J_STRINGS, offsetof(struct hg_results, rows),
      .doc = "keys whose values are rows" },
    { "columns", HG_J_STRINGS, offsetof(struct hg_results, columns),
      .doc = "keys whose values are columns" },
    { "group", HG_J_STRINGS, offsetof(struct hg_results, group),
      .doc = "keys that give a table each" },
    { "metric", HG_J_STRING, offsetof(struct hg_results, metric), .doc = "result key to tabulate" },
    { "where", HG_J_STRING, offsetof(struct hg_results, where),
      .doc = "selector: only these cells" },
    { "better", HG_J_STRING, offsetof(struct hg_results, better), .words = better_words,
      .doc = "which values are good" },
    { "numbers", HG_J_STRING, offsetof(struct hg_results, numbers),
      .doc = "how to write numbers: --numbers" },
    { "work", HG_J_STRINGS, offsetof(struct hg_results, work),
      .doc = "keys whose product is the work of a cell" },
    { 0 },
};

/* Of another schema nothing else is read. */
static bool check_schema(struct hg_results *set, struct hg_errs *errs)
{
    const json_t *schema = json_object_get(set->doc.root, "schema");
    const char *word = json_string_value(schema);
    struct hg_err *err;

    if (!schema) {
        hg_err_hint(hg_json_error(&set->doc, "", errs, "not a result set: \"schema\" is missing"),
                    "a result set begins with \"schema\": \"" HG_RESULTS_SCHEMA "\"");
        return false;
    }
    if (word && strcmp(word, HG_RESULTS_SCHEMA) == 0)
        return true;
    err = hg_json_error(&set->doc, "/schema", errs, "unknown schema \"%.60s\"",
                        word ? word : hg_json_type_name(schema));
    hg_err_hint(err, word && strncmp(word, "hpcgrid-result/", 15) == 0
                         ? "this is one result; name its run's folder instead"
                         : "this hpcgrid reads \"" HG_RESULTS_SCHEMA "\"");
    return false;
}

/* Members that describe the set are free; one that looks like a misspelt known one is an error. */
static void check_members(struct hg_results *set, struct hg_errs *errs)
{
    static const char *const known[] = { "schema",  "name",   "run",      "baseline", "report",
                                         "results", "prices", "currency", "repeats" };
    static const char *const free_words[] = { "source", "note", "notes" };
    const size_t n = sizeof known / sizeof *known;
    const char *name;
    json_t *value;

    json_object_foreach(set->doc.root, name, value) {
        const char *near = hg_text_nearest(name, known, n);
        bool fine = !near || name[0] == '_' || name[0] == '$' || strcmp(near, name) == 0;
        struct hg_buf pointer = HG_BUF_INIT;

        for (size_t i = 0; i < sizeof free_words / sizeof *free_words; i++)
            fine = fine || strcmp(name, free_words[i]) == 0;
        if (fine)
            continue;
        hg_json_pointer_push(&pointer, name);
        hg_err_hint(
            hg_json_error_key(&set->doc, hg_buf_str(&pointer), errs, "unknown member \"%s\"", name),
            "did you mean \"%s\"?", near);
        hg_buf_done(&pointer);
    }
}

static void read_prices(struct hg_results *set, struct hg_check *c)
{
    const json_t *prices = json_object_get(set->doc.root, "prices");
    size_t keep = c->pointer.len;
    const char *name;
    json_t *value;

    if (!prices || json_is_null(prices))
        return;
    set->prices = prices;
    if (!json_is_object(prices))
        hg_check_wrong(c, "prices", "an object: what an hour of a device costs, by hardware",
                       prices);
    hg_json_pointer_push(&c->pointer, "prices");
    json_object_foreach((json_t *)prices, name, value) {
        if (!json_is_number(value) || json_number_value(value) < 0)
            hg_check_wrong(c, name, "a number that is not negative", value);
    }
    hg_check_leave(c, keep);
}

static void read_repeats(struct hg_results *set, struct hg_errs *errs)
{
    const json_t *repeats = json_object_get(set->doc.root, "repeats");
    size_t before = errs->n + errs->dropped;

    if (repeats)
        hg_repeats_check(&set->doc, repeats, "/repeats", errs);
    if (errs->n + errs->dropped == before)
        set->repeats = hg_repeats_of(repeats);
}

static void read_head(struct hg_results *set, struct hg_errs *errs)
{
    const json_t *root = set->doc.root;
    struct hg_check c = { .doc = &set->doc, .errs = errs };
    const json_t *report = json_object_get(root, "report");

    if (!check_schema(set, errs))
        return;
    check_members(set, errs);
    hg_buf_puts(&c.pointer, "");
    hg_buf_reserve(&c.pointer, 1);
    set->name = hg_check_string(&c, root, "name");
    set->run = hg_check_string(&c, root, "run");
    set->baseline = json_object_get(root, "baseline");
    if (json_is_null(set->baseline))
        set->baseline = NULL;
    if (set->baseline && !json_is_object(set->baseline))
        hg_check_wrong(&c, "baseline", "an object of members put over a cell", set->baseline);
    set->currency = hg_check_string(&c, root, "currency");
    read_prices(set, &c);
    read_repeats(set, errs);
    if (report && !json_is_null(report))
        hg_json_decode(&set->doc, report, "/report", report_fields, true, set, errs);
    hg_buf_done(&c.pointer);
}

static int open_set(struct hg_results *set, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;

    if (!json_is_object(set->doc.root))
        hg_json_error(&set->doc, "", errs, "not a result set: expected an object, found %s",
                      hg_json_type_name(set->doc.root));
    else
        read_head(set, errs);
    return errs->n + errs->dropped == before ? 0 : -1;
}

int hg_results_begin(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                     struct hg_errs *errs)
{
    set->doc = *doc;
    set->flags = flags;
    *doc = (struct hg_json_doc)HG_JSON_DOC_INIT;
    return open_set(set, errs);
}

int hg_results_end(struct hg_results *set, struct hg_errs *errs)
{
    if (set->n)
        return hg_attempts_choose(set, errs);
    hg_json_error(&set->doc, "", errs, "no results in it");
    return -1;
}

size_t hg_results_count(const struct hg_results *set, const char *member)
{
    json_int_t n = json_integer_value(json_object_get(json_object_get(set->doc.root, member), "n"));

    return n > 0 ? (size_t)n : 0;
}

/* ---- A whole document ---- */

static int check_list(const struct hg_results *set, struct hg_errs *errs)
{
    const json_t *list = json_object_get(set->doc.root, "results");

    if (!json_is_array(list))
        hg_json_error(&set->doc, list ? "/results" : "", errs, "\"results\" %s",
                      list ? "is not a list" : "is missing: the list of results");
    else if (json_array_size(list) == 0)
        hg_json_error(&set->doc, "/results", errs, "no results in it");
    return json_array_size(list) ? 0 : -1;
}

int hg_results_decode(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                      struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped, i;
    json_t *list, *entry;

    if (hg_results_begin(doc, flags, set, errs) < 0 || check_list(set, errs) < 0)
        return -1;
    list = json_object_get(set->doc.root, "results");
    json_array_foreach(list, i, entry) {
        if (errs->dropped) /* fifty messages are enough */
            break;
        hg_results_add(set, json_incref(entry), NULL, errs);
        json_array_set_new(list, i, json_null());
    }
    return errs->n + errs->dropped == before ? hg_attempts_choose(set, errs) : -1;
}

/* ---- A file ---- */

static void forget_entries(struct hg_results *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->items[i].pack.scalars);
        free(set->items[i].loss_file);
    }
    HG_VEC_DONE(set);
}

struct loading {
    struct hg_results *set;
    struct hg_errs found; /* in its results */
};

static int take_item(void *context, json_t *item)
{
    struct loading *l = context;

    if (!l->found.dropped)
        hg_results_add(l->set, json_incref(item), NULL, &l->found);
    return 0;
}

/* Its results were read, its head was not. What is wrong there is said first. */
static int end_loading(struct loading *l, struct hg_errs *errs)
{
    struct hg_results *set = l->set;

    if (open_set(set, errs) < 0)
        return -1;
    hg_errs_append(errs, &l->found);
    if (l->found.n)
        return -1;
    if (set->n == 0) {
        hg_json_error(&set->doc, "/results", errs, "no results in it");
        return -1;
    }
    if (hg_attempts_choose(set, errs) < 0)
        return -1;
    if (set->doc.len > TEXT_KEPT_MAX) {
        free(set->doc.text);
        set->doc.text = NULL;
    }
    return 0;
}

int hg_results_load(const char *path, struct hg_results *set, struct hg_errs *errs)
{
    struct loading l = { .set = set, .found = HG_ERRS_INIT };
    struct hg_json_doc doc;
    struct hg_err err = HG_ERR_INIT;
    int rc =
        hg_json_load_items(path, HG_RESULTS_FILE_MAX, "results", &set->doc, take_item, &l, &err);

    if (rc < 0) {
        hg_errs_add(errs, &err);
    } else if (rc == HG_JSON_WHOLE) {
        forget_entries(set);
        doc = set->doc;
        rc = hg_results_decode(&doc, 0, set, errs);
    } else {
        rc = end_loading(&l, errs);
    }
    hg_errs_done(&l.found);
    return rc;
}

void hg_results_done(struct hg_results *set)
{
    hg_json_release(report_fields, set);
    forget_entries(set);
    json_decref(set->no_cell);
    hg_store_done(&set->store);
    hg_json_doc_done(&set->doc);
    *set = (struct hg_results)HG_RESULTS_INIT;
}
