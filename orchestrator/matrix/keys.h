/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_KEYS_H
#define HG_MATRIX_KEYS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "matrix/site.h"

/* The keys that mean something to hpcgrid itself, in the order of the table that describes them.
 * Every cell has a place for each; all other keys are parameters of the workload or notes. */
enum hg_key_index {
    HG_KEY_SITE,
    HG_KEY_HARDWARE,
    HG_KEY_NODES,
    HG_KEY_GPUS_PER_NODE,
    HG_KEY_TASKS_PER_NODE,
    HG_KEY_CPUS_PER_GPU,
    HG_KEY_CPUS_PER_TASK,
    HG_KEY_CONTAINER,
    HG_KEY_MODULES,
    HG_KEY_TIME,
    HG_KEY_MEM,
    HG_KEY_SBATCH,
    HG_KEY_REPEAT,
    HG_KEY_STRATEGY, /* hpcgrid-worker's; free text for other programs */
    HG_KEY_COUNT
};

enum hg_key_kind {
    HG_KEY_WORD,     /* a string */
    HG_KEY_WHOLE,    /* an integer, min to max */
    HG_KEY_WORDS,    /* a string or a list of strings */
    HG_KEY_DURATION, /* seconds, or "HH:MM:SS" and the like */
    HG_KEY_SIZE,     /* "64G" */
};

struct hg_key {
    const char *name;
    enum hg_key_kind kind;
    double min, max;
    bool identity; /* part of the cell's id */
    const char *doc;
};

extern const struct hg_key hg_keys[HG_KEY_COUNT];

/* Index of a key, or -1: a parameter or a note. */
int hg_key_find(const char *name);

/* Is {{key}} something other than a member of the cell: {{dir}}, {{args}} ...? */
bool hg_key_is_reserved(const char *key);

/* Who judges a member: the site for hardware, the table of hpcgrid-worker if that is the workload.
 */
struct hg_judge {
    const struct hg_site *site; /* NULL: hardware is not judged */
    bool worker;
};

/* May a cell have this key? USAGE of a reserved word, odd characters, a parameter hpcgrid-worker
 * does not know: INPUT with a suggestion. */
int hg_key_judge(const struct hg_judge *j, const char *key, struct hg_err *err);

/* Is this value right for the key? null is right everywhere. */
int hg_member_judge(const struct hg_judge *j, const char *key, const json_t *value,
                    struct hg_err *err);

/* Limits of a strategy of hpcgrid-worker; 0: none. NULL if it has no such strategy. */
struct hg_strategy {
    const char *name;
    int max_nodes, max_tasks, max_devices;
    const char *summary;
};
const struct hg_strategy *hg_strategy_find(const char *name);

/* Is this parameter an option of only some strategies, and of this one? */
bool hg_param_is_option(const char *name);
bool hg_strategy_has_option(const char *strategy, const char *name);
/* The strategies that have it: "ddp, fsdp". Lent until the next call. */
const char *hg_option_owners(const char *name);

/* All of them; ends with an entry without a name. */
extern const struct hg_strategy hg_strategies[];

/* Markdown tables for matrices/reference.md: the keys, the strategies, the worker's parameters. */
void hg_keys_reference(struct hg_buf *out);
void hg_strategies_reference(struct hg_buf *out);
void hg_params_reference(struct hg_buf *out);

/* JSON Schema of a key's value (a single one); a new reference. */
json_t *hg_key_schema(const struct hg_key *key);

#endif
