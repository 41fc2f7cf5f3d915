/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/keys.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

#define EXACT_MAX (1LL << 53) /* larger integers are not exact as doubles */
#define NAMES_MAX 128

const struct hg_key hg_keys[HG_KEY_COUNT] = {
    [HG_KEY_SITE] = { "site", HG_KEY_WORD, .identity = true,
                      .doc = "the site's name; every cell has the matrix's" },
    [HG_KEY_HARDWARE] = { "hardware", HG_KEY_WORD, .identity = true,
                          .doc = "kind of node, a name the site knows; default: the site's" },
    [HG_KEY_NODES] = { "nodes", HG_KEY_WHOLE, 1, 100000, .identity = true,
                       .doc = "nodes of the job; default 1" },
    [HG_KEY_GPUS_PER_NODE] = { "gpus_per_node", HG_KEY_WHOLE, 0, 1024, .identity = true,
                               .doc = "GPUs on each node; default 1, 0 on hardware without GPUs" },
    [HG_KEY_TASKS_PER_NODE] = { "tasks_per_node", HG_KEY_WHOLE, 1, 65536, .identity = true,
                                .doc = "processes on each node; default one per GPU, else 1" },
    [HG_KEY_CPUS_PER_GPU] = { "cpus_per_gpu", HG_KEY_WHOLE, 1, 65536, .identity = true,
                              .doc = "CPU cores for each GPU; default: the site's" },
    [HG_KEY_CPUS_PER_TASK] = { "cpus_per_task", HG_KEY_WHOLE, 1, 65536, .identity = true,
                               .doc = "CPU cores (threads) for each process" },
    [HG_KEY_CONTAINER] = { "container", HG_KEY_WORD, .identity = true,
                           .doc = "image to run in; the site says how (`container`)" },
    [HG_KEY_MODULES] = { "modules", HG_KEY_WORDS, .identity = true,
                         .doc = "environment modules to load, instead of the site's" },
    [HG_KEY_TIME] = { "time", HG_KEY_DURATION,
                      .doc = "time limit: \"HH:MM:SS\", \"D-HH:MM:SS\", \"90m\" (s, m, h, d), or a "
                             "number of seconds" },
    [HG_KEY_MEM] = { "mem", HG_KEY_SIZE, .doc = "memory per node: \"64G\" (K, M, G, T)" },
    [HG_KEY_SBATCH] = { "sbatch", HG_KEY_WORDS, .doc = "further sbatch options, as typed" },
    [HG_KEY_REPEAT] = { "repeat", HG_KEY_WHOLE, 1, 1000000, .identity = true,
                        .doc = "number of the repetition; made by `repeats`, default 1" },
    [HG_KEY_STRATEGY] = { "strategy", HG_KEY_WORD, .identity = true,
                          .doc =
                              "how ranks share the work; for hpcgrid-worker one of its strategies "
                              "(default single), for a command any text" },
};

const struct hg_strategy hg_strategies[] = {
#define HG_STRATEGY(name, max_nodes, max_tasks, max_devices, summary) \
    { #name, max_nodes, max_tasks, max_devices, summary },
#include "contract/strategies.def"
#undef HG_STRATEGY
    { 0 },
};

struct param {
    const char *name;
    enum { PARAM_INT, PARAM_REAL, PARAM_BOOL, PARAM_STRING } kind;
    double min, max;
    const char *doc;
};

static const struct param params[] = {
#define HG_WORKER_PARAM(kind, name, min, max, doc) { #name, PARAM_##kind, min, max, doc },
#include "contract/worker_params.def"
#undef HG_WORKER_PARAM
};
#define N_PARAMS (sizeof params / sizeof *params)

static const struct {
    const char *param, *word;
} words[] = {
#define HG_WORKER_WORD(param, word) { #param, word },
#include "contract/worker_words.def"
#undef HG_WORKER_WORD
};
#define N_WORDS (sizeof words / sizeof *words)

int hg_key_find(const char *name)
{
    for (int i = 0; i < HG_KEY_COUNT; i++)
        if (strcmp(hg_keys[i].name, name) == 0)
            return i;
    return -1;
}

const struct hg_strategy *hg_strategy_find(const char *name)
{
    for (const struct hg_strategy *s = hg_strategies; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static const struct {
    const char *strategy, *name;
} options[] = {
#define HG_STRATEGY_OPTION(strategy, parameter) { #strategy, #parameter },
#include "contract/strategy_options.def"
#undef HG_STRATEGY_OPTION
};
#define N_OPTIONS (sizeof options / sizeof *options)

bool hg_param_is_option(const char *name)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0)
            return true;
    return false;
}

bool hg_strategy_has_option(const char *strategy, const char *name)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].strategy, strategy) == 0 && strcmp(options[i].name, name) == 0)
            return true;
    return false;
}

const char *hg_option_owners(const char *name)
{
    static char out[256];
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0 && used + 32 < sizeof out)
            used += (size_t)snprintf(out + used, sizeof out - used, "%s%s", used ? ", " : "",
                                     options[i].strategy);
    return out;
}

static const struct param *find_param(const char *name)
{
    for (size_t i = 0; i < N_PARAMS; i++)
        if (strcmp(params[i].name, name) == 0)
            return &params[i];
    return NULL;
}

/* ---- Keys ---- */

bool hg_key_is_reserved(const char *key)
{
    static const char *const taken[] = { "args", "cell", "dir", "head", "id", "result" };

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(taken[i], key) == 0)
            return true;
    return false;
}

/* What can stand behind "--" and, with _ for what is no letter or digit, in HPCGRID_<KEY>. */
static bool is_key(const char *key)
{
    size_t n = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/:+@");

    return n >= 1 && n <= 64 && !key[n] && (isalnum((unsigned char)key[0]) || key[0] == '_');
}

static void suggest_param(const char *key, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < N_PARAMS && n < NAMES_MAX; i++)
        names[n++] = params[i].name;
    for (int i = 0; i < HG_KEY_COUNT && n < NAMES_MAX; i++)
        if (i != HG_KEY_STRATEGY)
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
        hg_err_set(err, HG_E_INPUT, "\"%s\" is no key for a cell: {{%s}} means something else", key,
                   key);
        return hg_err_hint(err, "choose another name; those taken are args, cell, dir, head, id, "
                                "result");
    }
    if (!is_key(key)) {
        hg_err_set(err, HG_E_INPUT, "\"%.70s\" cannot be a key", key);
        return hg_err_hint(err, "use up to 64 letters, digits and _ . - / : + @, beginning with a "
                                "letter, a digit or _");
    }
    if (j->worker && hg_key_find(key) < 0 && key[0] != '_' && !find_param(key)) {
        hg_err_set(err, HG_E_INPUT, "hpcgrid-worker has no parameter \"%s\"", key);
        suggest_param(key, err);
        return -1;
    }
    return 0;
}

/* ---- Values ---- */

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
        return hg_err_set(err, HG_E_INPUT, "%.15g is out of range; %.15g to %.15g", v, min, max);
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

static int judge_duration(const json_t *value, struct hg_err *err)
{
    double seconds = json_number_value(value);

    if (json_is_string(value))
        return hg_text_duration_parse(json_string_value(value), &seconds, err);
    if (!json_is_number(value))
        return wrong_type(value, "a wall time", err);
    if (!(seconds > 0 && seconds < 1e9))
        return hg_err_set(err, HG_E_INPUT, "%.15g seconds is no time limit", seconds);
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

static int judge_hardware(const struct hg_site *site, const char *name, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    if (!site || hg_site_find_hardware(site, name))
        return 0;
    for (; n < site->n_hardware && n < NAMES_MAX; n++)
        names[n] = site->hardware[n].name;
    hg_err_set(err, HG_E_INPUT, "unknown hardware \"%s\" at site %s", name, site->name);
    hg_text_suggest(err, name, names, n);
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

static int judge_container(const struct hg_site *site, struct hg_err *err)
{
    if (!site || site->container)
        return 0;
    hg_err_set(err, HG_E_INPUT, "site %s does not say how to run in a container", site->name);
    return hg_err_hint(err, "give the site \"container\", such as "
                            "[\"apptainer\", \"exec\", \"--nv\", \"{{container}}\"]");
}

static int judge_word(const struct hg_judge *j, int index, const json_t *value, struct hg_err *err)
{
    const char *word = json_string_value(value);

    if (!word)
        return wrong_type(value, "a string", err);
    if (index == HG_KEY_HARDWARE)
        return judge_hardware(j->site, word, err);
    if (index == HG_KEY_STRATEGY && j->worker)
        return judge_strategy(word, err);
    if (index == HG_KEY_CONTAINER)
        return judge_container(j->site, err);
    if (index == HG_KEY_SITE && j->site && strcmp(word, j->site->name) != 0)
        return hg_err_set(err, HG_E_INPUT, "a matrix runs at one site, \"%s\", not at \"%s\"",
                          j->site->name, word);
    return 0;
}

static int judge_key(const struct hg_judge *j, int index, const json_t *value, struct hg_err *err)
{
    const struct hg_key *key = &hg_keys[index];

    if (index == HG_KEY_STRATEGY && !j->worker)
        return 0;
    switch (key->kind) {
    case HG_KEY_WORD:
        return judge_word(j, index, value, err);
    case HG_KEY_WHOLE:
        return judge_number(value, true, key->min, key->max, err);
    case HG_KEY_WORDS:
        return judge_words(value, err);
    case HG_KEY_DURATION:
        return judge_duration(value, err);
    case HG_KEY_SIZE:
        return judge_size(value, err);
    }
    return 0;
}

/* One of the words that the worker knows, where the parameter has such; else any text. */
static int judge_text(const struct param *p, const json_t *value, struct hg_err *err)
{
    const char *names[N_WORDS], *text = json_string_value(value);
    size_t n = 0;

    if (!text)
        return wrong_type(value, "a string", err);
    for (size_t i = 0; i < N_WORDS; i++)
        if (strcmp(words[i].param, p->name) == 0)
            names[n++] = words[i].word;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return 0;
    if (!n)
        return 0;
    hg_err_set(err, HG_E_INPUT, "unknown %s \"%s\"", p->name, text);
    hg_text_suggest(err, text, names, n);
    return -1;
}

static int judge_param(const struct param *p, const json_t *value, struct hg_err *err)
{
    switch (p->kind) {
    case PARAM_INT:
    case PARAM_REAL:
        return judge_number(value, p->kind == PARAM_INT, p->min, p->max, err);
    case PARAM_BOOL:
        return json_is_boolean(value) ? 0 : wrong_type(value, "true or false", err);
    case PARAM_STRING:
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
    const struct param *p = j->worker && index < 0 ? find_param(key) : NULL;

    if (json_is_null(value))
        return 0;
    if (judge_exact(value, err) < 0)
        return -1;
    if (index >= 0)
        return judge_key(j, index, value, err);
    return p ? judge_param(p, value, err) : 0;
}

/* ---- Reference pages and schema ---- */

void hg_keys_reference(struct hg_buf *out)
{
    static const char *const kinds[] = {
        [HG_KEY_WORD] = "string",
        [HG_KEY_WHOLE] = "integer",
        [HG_KEY_WORDS] = "string or list of strings",
        [HG_KEY_DURATION] = "number or string",
        [HG_KEY_SIZE] = "string",
    };

    hg_buf_puts(out, "| key | type | in the id | meaning |\n| --- | --- | --- | --- |\n");
    for (int i = 0; i < HG_KEY_COUNT; i++) {
        const struct hg_key *k = &hg_keys[i];

        hg_buf_printf(out, "| `%s` | %s", k->name, kinds[k->kind]);
        if (k->kind == HG_KEY_WHOLE)
            hg_buf_printf(out, ", %.15g to %.15g", k->min, k->max);
        hg_buf_printf(out, " | %s | %s |\n", k->identity ? "yes" : "no", k->doc);
    }
}

static void limit_cell(int limit, struct hg_buf *out)
{
    if (limit)
        hg_buf_printf(out, " %d |", limit);
    else
        hg_buf_puts(out, " any |");
}

void hg_strategies_reference(struct hg_buf *out)
{
    hg_buf_puts(out, "| strategy | nodes | tasks | devices | meaning |\n"
                     "| --- | --- | --- | --- | --- |\n");
    for (const struct hg_strategy *s = hg_strategies; s->name; s++) {
        hg_buf_printf(out, "| `%s` |", s->name);
        limit_cell(s->max_nodes, out);
        limit_cell(s->max_tasks, out);
        limit_cell(s->max_devices, out);
        hg_buf_printf(out, " %s |\n", s->summary);
    }
}

void hg_params_reference(struct hg_buf *out)
{
    static const char *const kinds[] = {
        [PARAM_INT] = "integer",
        [PARAM_REAL] = "number",
        [PARAM_BOOL] = "true/false",
        [PARAM_STRING] = "string",
    };

    hg_buf_puts(out, "| parameter | type | meaning |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < N_PARAMS; i++) {
        const struct param *p = &params[i];

        hg_buf_printf(out, "| `%s` | %s", p->name, kinds[p->kind]);
        if (p->min != 0 || p->max != 0)
            hg_buf_printf(out, ", %.15g to %.15g", p->min, p->max);
        hg_buf_printf(out, " | %s |\n", p->doc);
    }
}

json_t *hg_key_schema(const struct hg_key *key)
{
    if (key == &hg_keys[HG_KEY_STRATEGY]) /* a command's may be anything */
        return json_pack("{s:s}", "description", key->doc);
    switch (key->kind) {
    case HG_KEY_WHOLE:
        return json_pack("{s:s, s:o, s:o, s:s}", "type", "integer", "minimum",
                         hg_json_number(key->min), "maximum", hg_json_number(key->max),
                         "description", key->doc);
    case HG_KEY_WORDS:
        return json_pack("{s:[s,s], s:{s:s}, s:s}", "type", "string", "array", "items", "type",
                         "string", "description", key->doc);
    case HG_KEY_DURATION:
        return json_pack("{s:[s,s], s:s}", "type", "number", "string", "description", key->doc);
    default:
        return json_pack("{s:s, s:s}", "type", "string", "description", key->doc);
    }
}
