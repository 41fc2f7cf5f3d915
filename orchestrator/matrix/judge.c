/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "contract/keys.h"
#include "contract/sbatch.h"
#include "matrix/params.h"

#define EXACT_MAX (1LL << 53) /* larger integers are not exact as doubles */
#define NAMES_MAX 128

static void suggest_param(const char *key, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (const struct hg_param *p = hg_params; p->name && n < NAMES_MAX; p++)
        names[n++] = p->name;
    for (int i = 0; i < HG_KEY_COUNT && n < NAMES_MAX; i++)
        if (i != HG_COLUMN_STRATEGY)
            names[n++] = hg_keys[i].name;
    if (hg_text_nearest(key, names, n))
        hg_err_hint(err, "did you mean \"%s\"? A key of your own begins with _",
                    hg_text_nearest(key, names, n));
    else
        hg_err_hint(err, "known ones are listed in matrices/reference.md; a key of your own begins "
                         "with _");
}

int hg_key_judge(const struct hg_judge *j, const char *key, struct hg_err *err)
{
    if (hg_key_is_reserved(key)) {
        hg_err_set(err, HG_E_INPUT, "\"%s\" cannot be a key of a cell: {{%s}} means something else",
                   key, key);
        return hg_err_hint(err, "choose another name; those taken are args, cell, dir, head, id, "
                                "result");
    }
    if (!hg_key_is_name(key)) {
        hg_err_set(err, HG_E_INPUT, "\"%.70s\" cannot be a key", key);
        return hg_err_hint(err, "use up to 64 letters, digits and _ . - / : + @, beginning with a "
                                "letter, a digit or _");
    }
    if (j->worker && hg_key_find(key) < 0 && key[0] != '_' && !hg_param_find(key)) {
        hg_err_set(err, HG_E_INPUT, "hpcgrid-worker has no parameter \"%s\"", key);
        suggest_param(key, err);
        return -1;
    }
    return 0;
}

static int wrong_type(const json_t *value, const char *wanted, struct hg_err *err)
{
    return hg_err_set(err, HG_E_INPUT, "expected %s, found %s", wanted, hg_json_type_name(value));
}

static int judge_number(const json_t *value, bool whole, double min, double max, struct hg_err *err)
{
    double v = json_number_value(value);

    if (!json_is_number(value))
        return wrong_type(value, whole ? "an integer" : "a number", err);
    if (whole && v != floor(v))
        return hg_err_set(err, HG_E_INPUT, "expected an integer, found %.15g", v);
    if ((min != 0 || max != 0) && (v < min || v > max))
        return hg_text_out_of_range(v, min, max, err);
    return 0;
}

static int judge_words(const json_t *value, struct hg_err *err)
{
    json_t *word;
    size_t i;

    if (json_is_string(value))
        return 0;
    if (!json_is_array(value))
        return wrong_type(value, "a string or a list of strings", err);
    json_array_foreach((json_t *)value, i, word) {
        if (!json_is_string(word))
            return wrong_type(word, "a list of strings", err);
    }
    return 0;
}

void hg_member_words(const json_t *value, struct hg_words *out)
{
    const char *p = json_string_value(value);
    json_t *item;
    size_t i;

    while (p && *(p += strspn(p, " \t\n"))) {
        size_t n = strcspn(p, " \t\n");
        char *word = hg_strndup(p, n);

        hg_words_push(out, word);
        free(word);
        p += n;
    }
    json_array_foreach((json_t *)value, i, item)
        hg_words_push(out, json_string_value(item));
}

static int judge_sbatch(const json_t *value, struct hg_err *err)
{
    struct hg_words all = HG_WORDS_INIT, others = HG_WORDS_INIT;
    struct hg_sbatch_options options = { 0 };
    int rc;

    hg_member_words(value, &all);
    for (size_t i = 0; i < all.n; i++)
        if (hg_sbatch_signal_lead(all.items[i]) < 0)
            hg_words_push(&others, all.items[i]);
    if ((rc = hg_sbatch_read(others.items, &options, err)) < 0)
        err->code = HG_E_INPUT;
    HG_VEC_DONE(&options);
    hg_words_done(&all);
    hg_words_done(&others);
    return rc;
}

static int judge_duration(const json_t *value, struct hg_err *err)
{
    double seconds = json_number_value(value);

    if (json_is_string(value) && strcmp(json_string_value(value), HG_KEY_TIME_AUTO) == 0)
        return 0;
    if (json_is_string(value) &&
        hg_text_duration_parse(json_string_value(value), &seconds, err) < 0)
        return hg_err_hint(err,
                           "write \"HH:MM:SS\", \"D-HH:MM:SS\", \"90m\" (s, m, h, d), a number of "
                           "seconds without quotes, or \"auto\"");
    if (json_is_string(value))
        return 0;
    if (!json_is_number(value))
        return wrong_type(value, "a wall time", err);
    if (!(seconds > 0 && seconds < 1e9))
        return hg_err_set(err, HG_E_INPUT, "%.15g seconds is not a time limit", seconds);
    return 0;
}

static int judge_size(const json_t *value, struct hg_err *err)
{
    uint64_t bytes;

    if (json_is_string(value))
        return hg_text_size_parse(json_string_value(value), &bytes, err);
    wrong_type(value, "an amount of memory", err);
    return hg_err_hint(err, "write a number and a unit in quotes: \"64G\" (K, M, G or T)");
}

/* One of several sites is enough: cells of the others are skipped. */
static bool has_hardware(const struct hg_judge *j, const char *name)
{
    for (size_t i = 0; j->several && i < j->several->n; i++)
        if (hg_site_find_hardware(j->several->items[i].site, name))
            return true;
    return !j->site || hg_site_find_hardware(j->site, name);
}

static int judge_hardware(const struct hg_judge *j, const char *name, struct hg_err *err)
{
    const struct hg_site *site = j->site;

    if (has_hardware(j, name))
        return 0;
    if (j->several && j->several->n > 1)
        return hg_err_set(err, HG_E_INPUT, "none of the sites has hardware \"%s\"", name);
    hg_err_set(err, HG_E_INPUT, "unknown hardware \"%s\" at site %s", name, site->name);
    hg_site_suggest_hardware(site, name, err);
    return -1;
}

static int judge_strategy(const char *name, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    if (hg_strategy_find(name))
        return 0;
    for (; n < NAMES_MAX && hg_strategies[n].name; n++)
        names[n] = hg_strategies[n].name;
    hg_err_set(err, HG_E_INPUT, "unknown strategy \"%s\"", name);
    hg_text_suggest(err, name, names, n);
    return -1;
}

static int judge_container(const struct hg_judge *j, struct hg_err *err)
{
    const struct hg_site *site = j->site;

    for (size_t i = 0; j->several && i < j->several->n; i++)
        if (j->several->items[i].site->container)
            return 0;
    if (!site || site->container)
        return 0;
    if (j->several && j->several->n > 1)
        hg_err_set(err, HG_E_INPUT, "none of the sites says how to run in a container");
    else
        hg_err_set(err, HG_E_INPUT, "site %s does not say how to run in a container", site->name);
    return hg_err_hint(err, "give the site \"container\", such as "
                            "[\"apptainer\", \"exec\", \"--nv\", \"{{container}}\"]");
}

static int judge_word(const struct hg_judge *j, int index, const json_t *value, struct hg_err *err)
{
    const char *word = json_string_value(value);

    if (!word)
        return wrong_type(value, "a string", err);
    if (index == HG_COLUMN_HARDWARE)
        return judge_hardware(j, word, err);
    if (index == HG_COLUMN_STRATEGY && j->worker)
        return judge_strategy(word, err);
    if (index == HG_COLUMN_CONTAINER)
        return judge_container(j, err);
    if (index == HG_COLUMN_SITE && j->several)
        return hg_several_knows(j->several, word)
                   ? 0
                   : hg_err_set(err, HG_E_INPUT, "no axis and no row of include has site \"%s\"",
                                word);
    if (index == HG_COLUMN_SITE && j->site && strcmp(word, j->site->name) != 0)
        return hg_err_set(err, HG_E_INPUT, "a matrix runs at one site, \"%s\", not at \"%s\"",
                          j->site->name, word);
    return 0;
}

static int judge_key(const struct hg_judge *j, int index, const json_t *value, struct hg_err *err)
{
    const struct hg_key *key = &hg_keys[index];

    if (index == HG_COLUMN_STRATEGY && !j->worker)
        return 0;
    switch (key->kind) {
    case HG_KEY_WORD:
        return judge_word(j, index, value, err);
    case HG_KEY_WHOLE:
        return judge_number(value, true, key->min, key->max, err);
    case HG_KEY_WORDS:
        return judge_words(value, err) < 0 ? -1
               : index == HG_COLUMN_SBATCH ? judge_sbatch(value, err)
                                           : 0;
    case HG_KEY_DURATION:
        return judge_duration(value, err);
    case HG_KEY_SIZE:
        return judge_size(value, err);
    }
    return 0;
}

/* One of the words that the worker knows, where the parameter has such; else any text. */
static int judge_text(const struct hg_param *p, const json_t *value, struct hg_err *err)
{
    const char *names[NAMES_MAX], *text = json_string_value(value);
    size_t n = hg_param_words(p, NAMES_MAX, names);

    if (!text)
        return wrong_type(value, "a string", err);
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return 0;
    if (!n)
        return 0;
    hg_err_set(err, HG_E_INPUT, "unknown %s \"%s\"", p->name, text);
    hg_text_suggest(err, text, names, n);
    return -1;
}

static int judge_param(const struct hg_param *p, const json_t *value, struct hg_err *err)
{
    switch (p->kind) {
    case HG_PARAM_INT:
    case HG_PARAM_REAL:
        return judge_number(value, p->kind == HG_PARAM_INT, p->min, p->max, err);
    case HG_PARAM_BOOL:
        return json_is_boolean(value) ? 0 : wrong_type(value, "true or false", err);
    case HG_PARAM_STRING:
        return judge_text(p, value, err);
    }
    return 0;
}

/* Integers that a double cannot hold exactly would silently become their neighbours. */
static int judge_exact(const json_t *value, struct hg_err *err)
{
    const char *key;
    json_t *inner;
    size_t i;

    if (json_integer_value(value) > EXACT_MAX || json_integer_value(value) < -EXACT_MAX) {
        hg_err_set(err, HG_E_INPUT, "%" JSON_INTEGER_FORMAT " is beyond 2^53 and would be changed",
                   json_integer_value(value));
        return hg_err_hint(err, "write it as a string");
    }
    json_array_foreach((json_t *)value, i, inner) {
        if (judge_exact(inner, err) < 0)
            return -1;
    }
    json_object_foreach((json_t *)value, key, inner) {
        if (judge_exact(inner, err) < 0)
            return -1;
    }
    return 0;
}

int hg_member_judge(const struct hg_judge *j, const char *key, const json_t *value,
                    struct hg_err *err)
{
    int index = hg_key_find(key);
    const struct hg_param *p = j->worker && index < 0 ? hg_param_find(key) : NULL;

    if (json_is_null(value))
        return 0;
    if (judge_exact(value, err) < 0)
        return -1;
    if (index >= 0)
        return judge_key(j, index, value, err);
    return p ? judge_param(p, value, err) : 0;
}
