/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/search.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"

#define SCHEMA "hpcgrid-algorithms/2"
#define TRIES 3
#define HOPELESS 1.1
#define AS_GOOD 0.99

/* ---- Searching ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double wk_search_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return values[n / 2];
}

/* Median of the tries; negative when it cannot do it, or when the first try shows that it is slower. */
static double measure(wk_search_timer *time, void *context, int candidate, double best)
{
    double tries[TRIES];

    if (time(context, candidate, 1) < 0) /* loads its code, and does not count */
        return -1;
    for (int i = 0; i < TRIES; i++) {
        tries[i] = time(context, candidate, WK_SEARCH_REPEATS);
        if (tries[i] < 0 || (i == 0 && best >= 0 && tries[0] > HOPELESS * best))
            return -1;
    }
    return wk_search_median(tries, TRIES);
}

int wk_search_best(int n, wk_search_timer *time, void *context, double *seconds)
{
    double best = -1;
    int found = -1;

    for (int i = 0; i < n; i++) {
        double s = measure(time, context, i, best);

        if (s < 0 || (best >= 0 && s >= AS_GOOD * best))
            continue;
        best = s;
        found = i;
    }
    if (seconds && found >= 0)
        *seconds = best;
    return found;
}

/* ---- Remembering ---- */

struct wk_choices {
    char *path, *device, *library;
    json_t *known; /* key: entry */
    struct wk_choice found;
    bool changed;
};

static json_t *encode(const struct wk_choice *c)
{
    char hex[2 * WK_CHOICE_BYTES + 1];

    for (int i = 0; i < WK_CHOICE_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", c->algorithm[i]);
    return json_pack("{s:i, s:s, s:f, s:f}", "variant", c->variant, "algorithm", hex, "seconds",
                     c->seconds, "tflops", c->tflops);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode(const json_t *o, struct wk_choice *c)
{
    const char *hex = json_string_value(json_object_get(o, "algorithm"));
    const json_t *variant = json_object_get(o, "variant"), *seconds = json_object_get(o, "seconds");
    const json_t *tflops = json_object_get(o, "tflops");

    if (!hex || strlen(hex) != 2 * WK_CHOICE_BYTES || !json_is_integer(variant) ||
        !json_is_number(seconds) || !json_is_number(tflops) || json_object_size(o) != 4)
        return false;
    c->variant = (int)json_integer_value(variant);
    c->seconds = json_number_value(seconds);
    c->tflops = json_number_value(tflops);
    for (int i = 0; i < WK_CHOICE_BYTES; i++) {
        int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        c->algorithm[i] = (uint8_t)(high << 4 | low);
    }
    return c->variant >= 0;
}

static bool is(const json_t *o, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text && strcmp(text, value) == 0;
}

/* The file's choices, all of them in order; NULL: nothing that can be used. A new reference. */
static json_t *load(const struct wk_choices *c)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err err = HG_ERR_INIT;
    json_t *choices = NULL, *entry;
    struct wk_choice choice;
    const char *key;

    if (!c->path || !hg_fs_exists(c->path))
        return NULL;
    if (hg_json_load(c->path, &doc, &err) < 0) {
        hg_warn("%s is damaged and will be rebuilt: %s", c->path, err.text);
        return NULL;
    }
    if (is(doc.root, "schema", SCHEMA) && is(doc.root, "device", c->device) &&
        is(doc.root, "library", c->library))
        choices = json_incref(json_object_get(doc.root, "choices"));
    if (choices && !json_is_object(choices)) {
        json_decref(choices);
        choices = NULL;
    }
    json_object_foreach(choices, key, entry)
        if (!decode(entry, &choice)) {
            hg_warn("%s is damaged and will be rebuilt: %s", c->path, key);
            json_decref(choices);
            choices = NULL;
            break;
        }
    hg_json_doc_done(&doc);
    return choices;
}

struct wk_choices *wk_choices_open(const char *path, const char *device, const char *library)
{
    struct wk_choices *c = hg_alloc_zeroed(1, sizeof *c);

    c->path = path ? hg_strdup(path) : NULL;
    c->device = hg_strdup(device);
    c->library = hg_strdup(library);
    c->known = load(c);
    if (!c->known)
        c->known = json_object();
    return c;
}

void wk_choices_free(struct wk_choices *c)
{
    if (!c)
        return;
    free(c->path);
    free(c->device);
    free(c->library);
    json_decref(c->known);
    free(c);
}

const struct wk_choice *wk_choices_find(const struct wk_choices *c, const char *key)
{
    json_t *entry = json_object_get(c->known, key);
    struct wk_choice *found = (struct wk_choice *)(uintptr_t)&c->found;

    return entry && decode(entry, found) ? found : NULL;
}

void wk_choices_put(struct wk_choices *c, const char *key, const struct wk_choice *choice)
{
    c->changed = true;
    json_object_set_new(c->known, key, encode(choice));
}

int wk_choices_save(struct wk_choices *c, struct hg_err *err)
{
    json_t *theirs, *o;
    char *folder;
    int rc = -1;

    if (!c->path || !c->changed)
        return 0;
    theirs = load(c);
    json_object_update(c->known, theirs);
    json_decref(theirs);
    folder = hg_fs_dirname(c->path);
    o = json_pack("{s:s, s:s, s:s, s:O}", "schema", SCHEMA, "device", c->device, "library",
                  c->library, "choices", c->known);
    if (hg_fs_mkdirs(folder, 0755, err) == 0)
        rc = hg_json_save(c->path, o, err);
    c->changed = rc < 0;
    json_decref(o);
    free(folder);
    return rc;
}

char *wk_choices_path(const char *device, const char *library)
{
    const char *own = getenv("HPCGRID_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char name[160];
    size_t n = 0;

    for (const char *p = device; *p && n + 1 < sizeof name; p++)
        name[n++] = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
    name[n] = '\0';
    if (own && *own)
        return hg_str_printf("%s/algorithms-%s-%s.json", own, name, library);
    if (xdg && *xdg)
        return hg_str_printf("%s/hpcgrid/algorithms-%s-%s.json", xdg, name, library);
    if (home && *home)
        return hg_str_printf("%s/.cache/hpcgrid/algorithms-%s-%s.json", home, name, library);
    return NULL;
}
