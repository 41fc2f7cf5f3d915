/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CONTRACT_KEYS_H
#define HG_CONTRACT_KEYS_H

#include <jansson.h>
#include <stdbool.h>

/* The keys that mean something to hpcgrid itself, in the order of the table that describes them.
 * Every cell has a place for each; all other keys are parameters of the workload or notes. */
enum hg_key_index {
    HG_COLUMN_SITE,
    HG_COLUMN_HARDWARE,
    HG_COLUMN_NODES,
    HG_COLUMN_GPUS_PER_NODE,
    HG_COLUMN_TASKS_PER_NODE,
    HG_COLUMN_CPUS_PER_GPU,
    HG_COLUMN_CPUS_PER_TASK,
    HG_COLUMN_CONTAINER,
    HG_COLUMN_MODULES,
    HG_COLUMN_TIME,
    HG_COLUMN_MEM,
    HG_COLUMN_SBATCH,
    HG_COLUMN_REPEAT,
    HG_COLUMN_STRATEGY, /* hpcgrid-worker's; free text for other programs */
    HG_KEY_COUNT
};

enum hg_key_kind {
    HG_KEY_WORD,     /* a string */
    HG_KEY_WHOLE,    /* an integer, min to max */
    HG_KEY_WORDS,    /* a string or a list of strings */
    HG_KEY_DURATION, /* seconds, or "HH:MM:SS" and the like */
    HG_KEY_SIZE,     /* "64G" */
};

/* What a key says of a cell. */
enum hg_key_role {
    HG_ROLE_PLACE,  /* where it runs */
    HG_ROLE_SHAPE,  /* on how many devices */
    HG_ROLE_LOOSE,  /* how the job is requested: not part of the cell's id */
    HG_ROLE_REPEAT, /* which repetition it is */
    HG_ROLE_WORK,   /* what the workload does */
};

struct hg_key {
    const char *name;
    enum hg_key_kind kind;
    double min, max;
    enum hg_key_role role;
    const char *doc;
};

extern const struct hg_key hg_keys[HG_KEY_COUNT];

/* A wall time that follows from the forecast of the cell. */
#define HG_KEY_TIME_AUTO "auto"

/* Index of a key, or -1: a parameter or a note. */
int hg_key_find(const char *name);

/* Is it a key with this role? */
bool hg_key_has_role(const char *name, enum hg_key_role role);

/* Can a key have this name: valid after "--" and, with _ for every other character than letters and digits, in HPCGRID_<KEY>? */
bool hg_key_is_name(const char *key);

/* Is {{key}} something other than a member of the cell: {{dir}}, {{args}} ...? */
bool hg_key_is_reserved(const char *key);

/* Regular expression that finds the names that no key can have: reserved, or not hg_key_is_name. Yours to free. */
char *hg_key_refused_pattern(void);

/* JSON Schema of a key's value (a single one); a new reference. */
json_t *hg_key_schema(const struct hg_key *key);

#endif
