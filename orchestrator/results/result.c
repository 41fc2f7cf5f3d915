/* SPDX-License-Identifier: Apache-2.0 */
#include "results/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/tar.h"
#include "base/text.h"
#include "base/vec.h"
#include "results/frame.h"
#include "results/stats.h"

/* The text of a larger set is not kept for the places of later errors. */
#define TEXT_KEPT_MAX ((size_t)16 << 20)

/* ---- Metrics ---- */

static bool has_suffix(const char *text, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);

    return len > n && memcmp(text + len - n, suffix, n) == 0;
}

/* "step_s.median" is named by what stands before the dot. */
static size_t head_length(const char *metric)
{
    return strcspn(metric, ".");
}

/* Is `word` the whole of a name, or its last word ("final_loss")? */
static bool is_word_of(const char *name, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len >= n && memcmp(name + len - n, word, n) == 0 &&
           (len == n || name[len - n - 1] == '_');
}

bool hg_metric_is_rate(const char *metric)
{
    return has_suffix(metric, head_length(metric), "_per_s");
}

bool hg_metric_is_time(const char *metric)
{
    return has_suffix(metric, head_length(metric), "_s") && !hg_metric_is_rate(metric);
}

int hg_metric_direction(const char *metric)
{
    static const char *const good[] = { "accuracy", "em",         "exact_match", "f1",
                                        "auc",      "bleu",       "rouge",       "mfu",
                                        "flops",    "throughput", "bandwidth",   "precision",
                                        "recall",   "util" };
    static const char *const bad[] = { "loss",  "perplexity", "ppl",    "error",   "wer",
                                       "bytes", "cost",       "energy", "latency", "j",
                                       "wh",    "seconds",    "misses" };
    size_t n = head_length(metric);
    const char *last = strrchr(metric, '.');

    if (hg_metric_is_rate(metric))
        return 1;
    if (hg_metric_is_time(metric))
        return -1;
    last = last ? last + 1 : metric;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (is_word_of(last, strlen(last), good[i]) || is_word_of(metric, n, good[i]))
            return 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (is_word_of(last, strlen(last), bad[i]) || is_word_of(metric, n, bad[i]))
            return -1;
    return strncmp(metric, "memory.", 7) == 0 ? -1 : 0;
}

static double median_of_list(const json_t *list)
{
    size_t n = json_array_size(list), i;
    double *v = n ? malloc(n * sizeof *v) : NULL, median = NAN;
    json_t *item;

    if (!v)
        return NAN;
    json_array_foreach(list, i, item) {
        if (!json_is_number(item))
            goto out;
        v[i] = json_number_value(item);
    }
    median = hg_stats_median(v, n);
out:
    free(v);
    return median;
}

static double number_of(const json_t *value)
{
    if (json_is_array(value))
        return median_of_list(value);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double number_at(const json_t *entry, const char *path)
{
    const json_t *value = json_object_get(entry, path);

    while (!value && json_is_object(entry) && strchr(path, '.')) {
        char name[128];
        size_t n = strcspn(path, ".");

        if (n >= sizeof name)
            return NAN;
        memcpy(name, path, n);
        name[n] = '\0';
        entry = json_object_get(entry, name);
        path += n + 1;
        value = json_object_get(entry, path);
    }
    return number_of(value);
}

/* ---- Members ---- */

/* A file, or one in a pack: "PACK.tar:FILE". */
static int load_loss(const char *path, struct hg_json_doc *doc)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    if (hg_fs_exists(path))
        return hg_json_load(path, doc, NULL);
    rc = hg_tar_read_named(path, HG_RESULTS_FILE_MAX, &text, NULL);
    if (rc == 0)
        rc = hg_json_parse(path, hg_buf_str(&text), text.len, doc, NULL);
    hg_buf_done(&text);
    return rc;
}

json_t *hg_result_get(const struct hg_result *r, const char *member)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    json_t *value;

    if (r->entry)
        return json_incref(json_object_get(r->entry, member));
    value = hg_jsonpack_member(r->pack, r->packed, member);
    if (value || !r->loss_file || strcmp(member, "loss") != 0)
        return value;
    if (load_loss(r->loss_file, &doc) == 0)
        value = json_incref(json_object_get(doc.root, member));
    hg_json_doc_done(&doc);
    return value;
}

bool hg_result_is_packed(const struct hg_result *r)
{
    size_t n = strlen(r->attempt_in);

    return n > 4 && strcmp(r->attempt_in + n - 4, ".tar") == 0;
}

void hg_result_folder(const struct hg_result *r, struct hg_buf *out)
{
    if (hg_result_is_packed(r))
        hg_buf_puts(out, r->attempt_in);
    else if (*r->attempt_in && *r->id && *r->attempt)
        hg_buf_printf(out, "%s/%s.%s", r->attempt_in, r->id, r->attempt);
}

json_t *hg_result_entry(const struct hg_result *r)
{
    return r->entry ? json_incref((json_t *)r->entry) : hg_jsonpack_load(r->pack, r->packed);
}

double hg_result_number(const struct hg_result *r, const char *path)
{
    size_t n = strcspn(path, ".");
    json_t *value;
    char name[128];
    double number;

    if (r->entry)
        return number_at(r->entry, path);
    value = hg_result_get(r, path);
    if (!value && path[n] && n < sizeof name) {
        memcpy(name, path, n);
        name[n] = '\0';
        value = hg_result_get(r, name);
        path += n + 1;
        number = number_at(value, path);
    } else {
        number = number_of(value);
    }
    json_decref(value);
    return number;
}

/* ---- Decoding, strictly ---- */

/* The place being checked, and where problems go. */
struct check {
    const struct hg_json_doc *doc;
    struct hg_errs *errs;
    struct hg_buf pointer;
};

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

static void pointer_cut(struct check *c, size_t len)
{
    c->pointer.len = len;
    c->pointer.data[len] = '\0';
}

/* The value at the pointer, or at a member below it, is not what it should be. */
static struct hg_err *wrong(struct check *c, const char *member, const char *wanted,
                            const json_t *found)
{
    size_t keep = c->pointer.len;
    struct hg_buf shown = HG_BUF_INIT;
    struct hg_err *err;

    if (member)
        hg_json_pointer_push(&c->pointer, member);
    show_value(found, &shown);
    err = hg_json_error(c->doc, hg_buf_str(&c->pointer), c->errs, "expected %s, found %s", wanted,
                        hg_buf_str(&shown));
    hg_buf_done(&shown);
    pointer_cut(c, keep);
    return err;
}

static bool want_bool(struct check *c, const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    if (value && !json_is_boolean(value) && !json_is_null(value))
        wrong(c, member, "true or false", value);
    return json_is_true(value);
}

static const char *want_string(struct check *c, const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    if (value && !json_is_string(value) && !json_is_null(value))
        wrong(c, member, "a string", value);
    return json_is_string(value) ? json_string_value(value) : "";
}

/* ---- Quantities: the unit is in the name ---- */

enum quantity { QUANTITY_NONE, QUANTITY_ANY, QUANTITY_POSITIVE };

static enum quantity quantity_of(const char *name, size_t len)
{
    static const char *const units[] = { "_s", "_j", "_bytes" };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (has_suffix(name, len, units[i]))
            return QUANTITY_POSITIVE;
    return has_suffix(name, len, "_loss") ? QUANTITY_ANY : QUANTITY_NONE;
}

static void check_value(struct check *c, const char *name, enum quantity q, const json_t *value);

/* What stands inside of a quantity is one: {"median": 0.1}, [1.5, 1.4]. */
static void check_inside(struct check *c, const char *name, enum quantity q, const json_t *value)
{
    size_t keep = c->pointer.len, i;
    const char *key;
    json_t *item;

    hg_json_pointer_push(&c->pointer, name);
    json_object_foreach((json_t *)value, key, item)
        check_value(c, key, q ? q : quantity_of(key, strlen(key)), item);
    json_array_foreach(value, i, item) {
        char index[24];

        snprintf(index, sizeof index, "%zu", i);
        check_value(c, index, q, item);
    }
    pointer_cut(c, keep);
}

static void check_value(struct check *c, const char *name, enum quantity q, const json_t *value)
{
    if (json_is_object(value) || json_is_array(value)) {
        check_inside(c, name, q, value);
    } else if (q == QUANTITY_NONE || json_is_null(value)) {
        return;
    } else if (!json_is_number(value)) {
        hg_err_hint(wrong(c, name, "a number", value),
                    "the unit is in the name: write \"%s\": 12.5", name);
    } else if (q == QUANTITY_POSITIVE && json_number_value(value) < 0) {
        wrong(c, name, "a number that is not negative", value);
    }
}

/* Members of a result that hold no figures of it. */
static bool is_description(const char *name, size_t len)
{
    static const char *const names[] = { "cell", "env", "slurm", "error", "comparable", NULL };

    return hg_text_is_one_of(name, len, names);
}

/* Behind a value of compact text. *plain becomes false at what check_value might not like: a number below zero, and what is none in a
 * quantity. */
static const char *skip_plain(const char *p, bool quantity, bool *plain)
{
    char close = *p == '{' ? '}' : ']';

    if (*p == '"') {
        *plain = *plain && !quantity;
        for (p++; *p != '"'; p++)
            p += *p == '\\';
        return p + 1;
    }
    if (*p != '{' && *p != '[') {
        *plain = *plain && *p != '-' && !(quantity && (*p == 't' || *p == 'f'));
        return p + strcspn(p, ",]}");
    }
    for (p++; *p != close; p += *p == ',') {
        const char *name = p + 1;
        bool inner = quantity;

        if (close == '}') {
            p = strchr(name, '"');
            inner = quantity || quantity_of(name, (size_t)(p - name));
            p += 2; /* the quote and the colon */
        }
        p = skip_plain(p, inner, plain);
    }
    return p + 1;
}

bool hg_result_member_is_plain(const char *name, size_t len, const char *value)
{
    bool plain = true;

    if (!is_description(name, len))
        skip_plain(value, quantity_of(name, len), &plain);
    return plain;
}

bool hg_result_looks_at(const char *name, size_t len)
{
    static const char *const names[] = { "status",   "error",       "rehearsal",  "oversubscribed",
                                         "diverged", "suspended_s", "comparable", "env",
                                         "device",   NULL };

    return hg_text_is_one_of(name, len, names);
}

static void check_whole(struct check *c, const json_t *cell, const char *member, double min)
{
    const json_t *value = json_object_get(cell, member);
    double v = json_number_value(value);
    char wanted[48];

    if (!value || json_is_null(value))
        return;
    snprintf(wanted, sizeof wanted, "a whole number from %.0f", min);
    if (!json_is_number(value) || v != floor(v) || v < min || v > 1e9)
        wrong(c, member, wanted, value);
}

static void check_cell(struct check *c, const json_t *cell)
{
    size_t keep = c->pointer.len;

    hg_json_pointer_push(&c->pointer, "cell");
    if (!json_is_object(cell)) {
        wrong(c, NULL, "an object", cell);
    } else {
        check_whole(c, cell, "nodes", 1);
        check_whole(c, cell, "gpus_per_node", 0);
        check_whole(c, cell, "tasks_per_node", 1);
        check_whole(c, cell, "cpus_per_task", 1);
        check_whole(c, cell, "repeat", 1);
    }
    pointer_cut(c, keep);
}

/* A member of the cell as a number, or what stands for its absence. */
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

static void read_cell(struct check *c, const json_t *entry, struct hg_result *r)
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

/* What says which run of the cell this is, and how it ended. */
static void read_words(struct check *c, const json_t *entry, struct hg_result *r)
{
    const json_t *error = json_object_get(entry, "error");

    r->id = want_string(c, entry, "id");
    r->baseline_id = want_string(c, entry, "baseline_id");
    r->attempt = want_string(c, entry, "attempt");
    r->attempt_in = want_string(c, entry, "attempt_in");
    r->status = want_string(c, entry, "status");
    if (!*r->status)
        r->status = "ok";
    r->ok = strcmp(r->status, "ok") == 0;
    r->problem = json_is_string(error) ? json_string_value(error)
                                       : json_string_value(json_object_get(error, "message"));
    r->added = want_bool(c, entry, "added");
    r->rehearsal = want_bool(c, entry, "rehearsal");
    r->has_rehearsal = json_is_boolean(json_object_get(entry, "rehearsal"));
    r->oversubscribed = want_bool(c, entry, "oversubscribed");
    r->diverged = want_bool(c, entry, "diverged");
    r->suspended = json_number_value(json_object_get(entry, "suspended_s")) > 0;
}

static void read_entry(struct check *c, const json_t *entry, struct hg_result *r)
{
    const char *name;
    json_t *value;

    r->entry = entry;
    read_cell(c, entry, r);
    read_words(c, entry, r);
    value = json_object_get(entry, "comparable");
    if (value && !json_is_object(value) && !json_is_null(value))
        wrong(c, "comparable", "an object", value);
    r->comparable = value;
    r->env = json_object_get(entry, "env");
    r->device = json_string_value(
        json_object_get(json_array_get(json_object_get(entry, "ranks"), 0), "device"));
    if (!r->device)
        r->device = json_string_value(json_object_get(entry, "device"));
    json_object_foreach((json_t *)entry, name, value) {
        if (!is_description(name, strlen(name)))
            check_value(c, name, quantity_of(name, strlen(name)), value);
    }
}

/* Remember what is wrong with an entry of a tolerant set; the entry stays, as "invalid". */
static int keep_problem(struct hg_results *set, struct hg_result *r, const struct hg_err *found)
{
    char **problems = realloc(set->problems, (set->n_problems + 1) * sizeof *problems);

    if (!problems)
        return -1;
    set->problems = problems;
    problems[set->n_problems] = hg_str_printf("%s: %s", found->pointer, found->text);
    r->problem = problems[set->n_problems];
    if (!r->problem)
        return -1;
    set->n_problems++;
    r->ok = false;
    r->status = "invalid";
    if (!json_is_object(r->cell)) {
        if (!set->no_cell)
            set->no_cell = json_object();
        r->cell = set->no_cell;
        r->devices = NAN;
    }
    return 0;
}

/* Read entry i as the last of the set's results. */
static int take_entry(struct hg_results *set, const json_t *entry, size_t i, struct hg_errs *errs)
{
    struct check c = { .doc = &set->doc, .errs = errs };
    struct hg_errs found = HG_ERRS_INIT;
    struct hg_result *r = HG_VEC_PUSH(set);
    int rc = r ? 0 : -1;

    if (!r)
        return hg_err_oom(hg_errs_next(errs));
    *r = (struct hg_result){
        .id = "", .baseline_id = "", .attempt = "", .attempt_in = "", .status = ""
    };
    hg_buf_printf(&c.pointer, "/results/%zu", i);
    c.errs = set->flags & HG_RESULTS_TOLERANT ? &found : errs;
    if (json_is_object(entry))
        read_entry(&c, entry, r);
    else
        wrong(&c, NULL, "an object", entry);
    if (found.n && keep_problem(set, r, &found.items[0]) < 0)
        rc = hg_err_oom(hg_errs_next(errs));
    hg_errs_done(&found);
    hg_buf_done(&c.pointer);
    return rc;
}

static int read_entries(struct hg_results *set, struct hg_errs *errs)
{
    const json_t *list = json_object_get(set->doc.root, "results");
    size_t before = errs->n + errs->dropped, i;
    json_t *entry;

    json_array_foreach(list, i, entry) {
        if (errs->dropped) /* fifty messages are enough */
            break;
        if (take_entry(set, entry, i, errs) < 0)
            return -1;
    }
    return errs->n + errs->dropped == before ? 0 : -1;
}

/* ---- Packing ---- */

static const char *keep_word(struct hg_jsonpack *pack, const char *word, bool *failed)
{
    json_t *value = word && *word ? json_string(word) : NULL;
    const json_t *kept = value ? hg_jsonpack_share(pack, value) : NULL;

    *failed = *failed || (word && *word && !kept);
    json_decref(value);
    return kept ? json_string_value(kept) : word ? "" : NULL;
}

static const json_t *keep_value(struct hg_jsonpack *pack, const json_t *value, bool *failed)
{
    const json_t *kept = value ? hg_jsonpack_share(pack, value) : NULL;

    *failed = *failed || (value && !kept);
    return kept;
}

/* A cell of values that are there once. */
static const json_t *keep_cell(struct hg_jsonpack *pack, const json_t *cell, bool *failed)
{
    json_t *copy = json_object(), *value;
    const char *name;
    const json_t *kept;

    json_object_foreach((json_t *)cell, name, value)
        json_object_set(copy, name, (json_t *)keep_value(pack, value, failed));
    kept = keep_value(pack, copy, failed);
    json_decref(copy);
    return kept;
}

/* All members but those of the cell. What the text does not have is in the entry. */
static size_t pack_members(struct hg_jsonpack *pack, json_t *entry, const char *text)
{
    static const char *const planned[] = { "id", "baseline_id", "added", "attempt", "attempt_in" };
    json_t *head;
    size_t handle;

    if (!text) {
        json_object_del(entry, "cell");
        return hg_jsonpack_add(pack, entry);
    }
    head = json_object();
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        json_object_set(head, planned[i], json_object_get(entry, planned[i]));
    handle = hg_jsonpack_add_text(pack, head, text);
    json_decref(head);
    return handle;
}

/* What the first rank says that it computed on; it is asked for where only the text has the ranks. */
static void find_device(struct hg_jsonpack *pack, struct hg_result *r, bool *failed)
{
    json_t *rank = hg_jsonpack_first(pack, r->packed, "ranks");
    const char *device = json_string_value(json_object_get(rank, "device"));

    if (device)
        r->device = keep_word(pack, device, failed);
    json_decref(rank);
}

/* Put what a result lends from its entry into the pack, and the entry itself. */
static int pack_entry(struct hg_results *set, json_t *entry, const char *text, struct hg_result *r)
{
    bool own_problem = set->n_problems && r->problem == set->problems[set->n_problems - 1],
         failed = false;
    struct hg_jsonpack *pack = set->pack;

    r->id = keep_word(pack, r->id, &failed);
    r->baseline_id = keep_word(pack, r->baseline_id, &failed);
    r->attempt = keep_word(pack, r->attempt, &failed);
    r->attempt_in = keep_word(pack, r->attempt_in, &failed);
    r->status = keep_word(pack, r->status, &failed);
    r->device = keep_word(pack, r->device, &failed);
    if (!own_problem)
        r->problem = keep_word(pack, r->problem, &failed);
    r->comparable = keep_value(pack, r->comparable, &failed);
    r->env = keep_value(pack, r->env, &failed);
    if (r->cell != set->no_cell)
        r->cell = keep_cell(pack, r->cell, &failed);
    r->entry = NULL;
    r->pack = pack;
    r->packed = pack_members(pack, entry, text);
    if (text && r->packed != HG_MAP_NONE)
        find_device(pack, r, &failed);
    return failed || r->packed == HG_MAP_NONE || !r->cell ? -1 : 0;
}

int hg_results_add(struct hg_results *set, json_t *entry, const char *text, char *loss_file,
                   struct hg_errs *errs)
{
    int rc = take_entry(set, entry, set->n, errs);

    if (rc == 0) {
        struct hg_result *r = &set->items[set->n - 1];

        r->loss_file = loss_file;
        rc = pack_entry(set, entry, text, r) < 0 ? hg_err_oom(hg_errs_next(errs)) : 0;
    } else {
        free(loss_file);
    }
    json_decref(entry);
    return rc;
}

/* ---- Which attempt counts ---- */

void hg_result_attempt(const char *attempt, long numbers[static 2])
{
    char *end;

    numbers[0] = strtol(attempt, &end, 10);
    numbers[1] = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
}

/* "2.10" is newer than "2.9". */
static int compare_attempts(const char *a, const char *b)
{
    long na[2], nb[2];

    hg_result_attempt(a, na);
    hg_result_attempt(b, nb);
    if (na[0] != nb[0])
        return na[0] < nb[0] ? -1 : 1;
    return (na[1] > nb[1]) - (na[1] < nb[1]);
}

/* What a cell is, as bytes: all its members but notes and the way of asking. */
static size_t identity(const struct hg_frame *f, uint32_t *row)
{
    for (size_t k = 0; k < f->keys.n; k++)
        if (f->keys.items[k].flags & (HG_KEY_NOTE | HG_KEY_LOOSE))
            row[k] = 0;
    return f->keys.n * sizeof *row;
}

static bool counts_more(const struct hg_result *a, const struct hg_result *b)
{
    return a->ok != b->ok ? a->ok : compare_attempts(a->attempt, b->attempt) >= 0;
}

static void duplicate(struct hg_results *set, size_t i, size_t earlier, struct hg_errs *errs)
{
    char *pointer = hg_str_printf("/results/%zu", i);
    struct hg_err *err = hg_json_error(&set->doc, pointer ? pointer : "", errs,
                                       "the same cell as /results/%zu", earlier);

    hg_err_hint(err,
                "several runs of one case are told apart by \"repeat\": 1, 2, ... in the cell");
    free(pointer);
}

/* An id names one cell, and a cell has one id. */
static void mismatch(struct hg_results *set, size_t i, size_t earlier, const char *what,
                     struct hg_errs *errs)
{
    char *pointer = hg_str_printf("/results/%zu", i);

    hg_json_error(&set->doc, pointer ? pointer : "", errs, "%s /results/%zu", what, earlier);
    free(pointer);
}

struct cells {
    struct hg_map members, ids, attempts; /* to the first result */
    struct hg_buf name;
};

/* First result of the same cell, by its id where it has one. HG_MAP_NONE when memory is gone. */
static size_t first_of_cell(struct hg_results *set, struct cells *cells, const struct hg_frame *f,
                            size_t i, bool strict, struct hg_errs *errs)
{
    const struct hg_result *r = &set->items[i];
    uint32_t *row = hg_frame_row(f, i);
    size_t same = hg_map_put(&cells->members, row, identity(f, row), i), id;

    if (same == HG_MAP_NONE || !*r->id)
        return same;
    id = hg_map_put(&cells->ids, r->id, strlen(r->id), i);
    if (strict && id != HG_MAP_NONE && id == i && same != i)
        mismatch(set, i, same, "under another id the same cell as", errs);
    else if (strict && id != HG_MAP_NONE && set->items[id].first != set->items[same].first)
        mismatch(set, i, id, "another cell under the id of", errs);
    return id;
}

static int choose_attempts(struct hg_results *set, struct hg_frame *f, struct hg_errs *errs)
{
    bool strict = !(set->flags & HG_RESULTS_TOLERANT);
    size_t before = errs->n + errs->dropped;
    struct cells cells = { .name = HG_BUF_INIT };
    int rc = 0;

    for (size_t i = 0; i < set->n && !errs->dropped; i++) {
        struct hg_result *r = &set->items[i];
        size_t cell, first;

        r->first = i;
        cell = first_of_cell(set, &cells, f, i, strict, errs);
        hg_buf_clear(&cells.name);
        hg_buf_printf(&cells.name, "%zu %s", cell, r->attempt);
        first = cells.name.failed ? HG_MAP_NONE
                                  : hg_map_put(&cells.attempts, cells.name.data, cells.name.len, i);
        if (cell == HG_MAP_NONE || first == HG_MAP_NONE) {
            rc = hg_err_oom(hg_errs_next(errs));
            break;
        }
        r->first = cell;
        if (first != i && strict)
            duplicate(set, i, first, errs);
        if (cell == i || counts_more(r, &set->items[set->items[cell].best]))
            set->items[cell].best = i;
    }
    for (size_t i = 0; i < set->n; i++)
        set->items[i].used = set->items[set->items[i].first].best == i;
    hg_buf_done(&cells.name);
    hg_map_done(&cells.attempts);
    hg_map_done(&cells.ids);
    hg_map_done(&cells.members);
    return errs->n + errs->dropped == before ? rc : -1;
}

static int settle_attempts(struct hg_results *set, struct hg_errs *errs)
{
    const json_t **cells = malloc((set->n + 1) * sizeof *cells);
    struct hg_frame frame = HG_FRAME_INIT;
    int rc = -1;

    for (size_t i = 0; cells && i < set->n; i++)
        cells[i] = set->items[i].cell;
    if (!cells || hg_frame_build(&frame, cells, set->n, NULL) < 0)
        hg_err_oom(hg_errs_next(errs));
    else
        rc = choose_attempts(set, &frame, errs);
    hg_frame_done(&frame);
    free(cells);
    return rc;
}

/* ---- The set ---- */

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
    { "work", HG_J_STRINGS, offsetof(struct hg_results, work),
      .doc = "keys whose product is the work of a cell" },
    { 0 },
};

static bool is_our_schema(const json_t *root)
{
    const char *word = json_string_value(json_object_get(root, "schema"));

    return word && strcmp(word, HG_RESULTS_SCHEMA) == 0;
}

/* Of another schema nothing else is read. */
static bool check_schema(struct hg_results *set, struct hg_errs *errs)
{
    const json_t *schema = json_object_get(set->doc.root, "schema");
    const char *word = json_string_value(schema);

    if (!schema) {
        hg_err_hint(hg_json_error(&set->doc, "", errs, "no result set: \"schema\" is missing"),
                    "a result set begins with \"schema\": \"" HG_RESULTS_SCHEMA "\"");
        return false;
    }
    if (!is_our_schema(set->doc.root)) {
        struct hg_err *err = hg_json_error(&set->doc, "/schema", errs, "unknown schema \"%.60s\"",
                                           word ? word : hg_json_type_name(schema));

        if (word && strncmp(word, "hpcgrid-result/", 15) == 0)
            hg_err_hint(err, "this is one result; name its run's folder instead");
        else
            hg_err_hint(err, "this hpcgrid reads \"" HG_RESULTS_SCHEMA "\"");
        return false;
    }
    return true;
}

/* Members that describe the set are free; one that looks like a misspelt known one is an error. */
static void check_members(struct hg_results *set, struct hg_errs *errs)
{
    static const char *const known[] = { "schema", "name",    "run",    "baseline",
                                         "report", "results", "prices", "currency" };
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

static void read_prices(struct hg_results *set, struct check *c)
{
    const json_t *prices = json_object_get(set->doc.root, "prices");
    size_t keep = c->pointer.len;
    const char *name;
    json_t *value;

    if (!prices || json_is_null(prices))
        return;
    set->prices = prices;
    if (!json_is_object(prices))
        wrong(c, "prices", "an object: what an hour of a device costs, by hardware", prices);
    hg_json_pointer_push(&c->pointer, "prices");
    json_object_foreach((json_t *)prices, name, value) {
        if (!json_is_number(value) || json_number_value(value) < 0)
            wrong(c, name, "a number that is not negative", value);
    }
    pointer_cut(c, keep);
}

static void read_head(struct hg_results *set, struct hg_errs *errs)
{
    const json_t *root = set->doc.root;
    struct check c = { .doc = &set->doc, .errs = errs };
    const json_t *report = json_object_get(root, "report");

    if (!check_schema(set, errs))
        return;
    check_members(set, errs);
    hg_buf_puts(&c.pointer, "");
    hg_buf_reserve(&c.pointer, 1);
    set->name = want_string(&c, root, "name");
    set->run = want_string(&c, root, "run");
    set->baseline = json_object_get(root, "baseline");
    if (json_is_null(set->baseline))
        set->baseline = NULL;
    if (set->baseline && !json_is_object(set->baseline))
        wrong(&c, "baseline", "an object of members put over a cell", set->baseline);
    set->currency = want_string(&c, root, "currency");
    read_prices(set, &c);
    if (report && !json_is_null(report))
        hg_json_decode(&set->doc, report, "/report", report_fields, true, set, errs);
    hg_buf_done(&c.pointer);
}

/* Its head: all but the results. */
static int open_set(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                    struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;

    set->doc = *doc;
    set->flags = flags;
    *doc = (struct hg_json_doc)HG_JSON_DOC_INIT;
    if (!json_is_object(set->doc.root))
        hg_json_error(&set->doc, "", errs, "no result set: expected an object, found %s",
                      hg_json_type_name(set->doc.root));
    else
        read_head(set, errs);
    return errs->n + errs->dropped == before ? 0 : -1;
}

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
    int rc = open_set(doc, flags, set, errs);

    if (!json_is_object(set->doc.root) || !is_our_schema(set->doc.root))
        return -1;
    if (check_list(set, errs) < 0 || rc < 0 || read_entries(set, errs) < 0 ||
        settle_attempts(set, errs) < 0)
        return -1;
    if (set->doc.len > TEXT_KEPT_MAX) {
        free(set->doc.text);
        set->doc.text = NULL;
    }
    return 0;
}

int hg_results_begin(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                     struct hg_errs *errs)
{
    set->pack = hg_jsonpack_create();
    if (!set->pack)
        return hg_err_oom(hg_errs_next(errs));
    return open_set(doc, flags, set, errs);
}

int hg_results_end(struct hg_results *set, struct hg_errs *errs)
{
    if (set->n == 0) {
        hg_json_error(&set->doc, "", errs, "no results in it");
        return -1;
    }
    return settle_attempts(set, errs);
}

static void free_problems(struct hg_results *set)
{
    for (size_t i = 0; i < set->n_problems; i++)
        free(set->problems[i]);
    free(set->problems);
    set->problems = NULL;
    set->n_problems = 0;
}

int hg_results_look(struct hg_results *set, const json_t *entry, struct hg_result *r,
                    struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;

    free_problems(set);
    if (take_entry(set, entry, 0, errs) < 0 || errs->n + errs->dropped != before)
        return -1;
    *r = set->items[--set->n];
    return 0;
}

void hg_results_done(struct hg_results *set)
{
    hg_json_release(report_fields, set);
    for (size_t i = 0; i < set->n; i++)
        free(set->items[i].loss_file);
    HG_VEC_DONE(set);
    free_problems(set);
    json_decref(set->no_cell);
    hg_jsonpack_free(set->pack);
    hg_json_doc_done(&set->doc);
    *set = (struct hg_results)HG_RESULTS_INIT;
}
