/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/keys.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "contract/sbatch.h"

const struct hg_key hg_keys[HG_KEY_COUNT] = {
    [HG_COLUMN_SITE] = { "site", HG_KEY_WORD, .role = HG_ROLE_PLACE,
                         .doc = "the site's name; every cell has the matrix's, or one of several" },
    [HG_COLUMN_HARDWARE] = { "hardware", HG_KEY_WORD, .role = HG_ROLE_PLACE,
                             .doc = "kind of node, a name the site knows; default: the site's" },
    [HG_COLUMN_NODES] = { "nodes", HG_KEY_WHOLE, 1, 100000, .role = HG_ROLE_SHAPE,
                          .doc = "nodes of the job; default 1" },
    [HG_COLUMN_GPUS_PER_NODE] = { "gpus_per_node", HG_KEY_WHOLE, 0, 1024, .role = HG_ROLE_SHAPE,
                                  .doc =
                                      "GPUs on each node; default 1, 0 on hardware without GPUs" },
    [HG_COLUMN_TASKS_PER_NODE] = { "tasks_per_node", HG_KEY_WHOLE, 1, 65536, .role = HG_ROLE_SHAPE,
                                   .doc = "processes on each node; default one per GPU, else 1" },
    [HG_COLUMN_CPUS_PER_GPU] = { "cpus_per_gpu", HG_KEY_WHOLE, 1, 65536, .role = HG_ROLE_SHAPE,
                                 .doc = "CPU cores for each GPU; default: the site's" },
    [HG_COLUMN_CPUS_PER_TASK] = { "cpus_per_task", HG_KEY_WHOLE, 1, 65536, .role = HG_ROLE_SHAPE,
                                  .doc = "CPU cores (threads) for each process" },
    [HG_COLUMN_CONTAINER] = { "container", HG_KEY_WORD, .role = HG_ROLE_PLACE,
                              .doc = "image to run in; the site says how (`container`)" },
    [HG_COLUMN_MODULES] = { "modules", HG_KEY_WORDS, .role = HG_ROLE_PLACE,
                            .doc = "environment modules to load, instead of the site's" },
    [HG_COLUMN_TIME] = { "time", HG_KEY_DURATION, .role = HG_ROLE_LOOSE,
                         .doc =
                             "time limit: \"HH:MM:SS\", \"D-HH:MM:SS\", \"90m\" (s, m, h, d), a number "
                             "of seconds, or \"auto\": by the forecast from earlier runs" },
    [HG_COLUMN_MEM] = { "mem", HG_KEY_SIZE, .role = HG_ROLE_LOOSE,
                        .doc = "memory per node: \"64G\" (K, M, G, T)" },
    [HG_COLUMN_SBATCH] = { "sbatch", HG_KEY_WORDS, .role = HG_ROLE_LOOSE,
                           .doc = "further sbatch options, as typed" },
    [HG_COLUMN_REPEAT] = { "repeat", HG_KEY_WHOLE, 1, 1000000, .role = HG_ROLE_REPEAT,
                           .doc = "number of the repetition; made by `repeats`, default 1" },
    [HG_COLUMN_STRATEGY] = { "strategy", HG_KEY_WORD, .role = HG_ROLE_WORK,
                             .doc =
                                 "how ranks share the work; for hpcgrid-worker one of its strategies "
                                 "(default single), for a command any text" },
};

int hg_key_find(const char *name)
{
    for (int i = 0; i < HG_KEY_COUNT; i++)
        if (strcmp(hg_keys[i].name, name) == 0)
            return i;
    return -1;
}

bool hg_key_has_role(const char *name, enum hg_key_role role)
{
    int i = hg_key_find(name);

    return i >= 0 && hg_keys[i].role == role;
}

/* The same in hg_key_refused_pattern. */
bool hg_key_is_name(const char *key)
{
    size_t n = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/:+@");

    return n >= 1 && n <= 64 && !key[n] && (isalnum((unsigned char)key[0]) || key[0] == '_');
}

static const char *const reserved[] = { "args", "cell", "dir", "head", "id", "result", NULL };

bool hg_key_is_reserved(const char *key)
{
    return hg_text_is_one_of(key, strlen(key), reserved);
}

char *hg_key_refused_pattern(void)
{
    struct hg_buf b = HG_BUF_INIT;

    hg_buf_puts(&b, "^(");
    for (const char *const *word = reserved; *word; word++)
        hg_buf_printf(&b, "%s|", *word);
    hg_buf_puts(&b, ")$|^[^A-Za-z0-9_]|[^A-Za-z0-9_./:+@-]|^.{65}");
    return hg_buf_detach(&b);
}

/* Only the first word is judged: a later one may be the value of an option. */
static json_t *sbatch_schema(const char *doc)
{
    char *pattern = hg_sbatch_pattern();
    json_t *schema = json_pack(
        "{s:[s,s], s:s, s:[{s:s, s:s}], s:{s:s}, s:s, s:s}", "type", "string", "array", "pattern",
        pattern, "prefixItems", "type", "string", "pattern", pattern, "items", "type", "string",
        "errorMessage", "no option that a cell can have: `hpcgrid check` says what to use instead",
        "description", doc);

    free(pattern);
    return schema;
}

json_t *hg_key_schema(const struct hg_key *key)
{
    if (key == &hg_keys[HG_COLUMN_SBATCH])
        return sbatch_schema(key->doc);
    if (key == &hg_keys[HG_COLUMN_STRATEGY]) /* a command's may be anything */
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
        return json_pack("{s:[s,s], s:i, s:s, s:[s,s], s:s}", "type", "number", "string",
                         "exclusiveMinimum", 0, "pattern",
                         HG_TEXT_DURATION_PATTERN "|^" HG_KEY_TIME_AUTO "$", "examples", "01:30:00",
                         "90m", "description", key->doc);
    case HG_KEY_SIZE:
        return json_pack("{s:s, s:s, s:[s], s:s}", "type", "string", "pattern",
                         HG_TEXT_SIZE_PATTERN, "examples", "64G", "description", key->doc);
    default:
        return json_pack("{s:s, s:s}", "type", "string", "description", key->doc);
    }
}
