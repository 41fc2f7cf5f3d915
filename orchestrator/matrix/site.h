/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_SITE_H
#define HG_MATRIX_SITE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "base/words.h"
#include "contract/restconfig.h"

/* One kind of node at a site. */
struct hg_hardware {
    char *name;          /* as in the matrix: "a100" */
    char *partition;     /* NULL: Slurm's default */
    char *gres;          /* "gpu:a100"; the count is appended. NULL: "gpu" where there are GPUs */
    char *constraint;    /* NULL: none */
    long long max_nodes; /* of one job; 0: not said */
    char *max_time;      /* as written; NULL: not said */
    double max_time_s;   /* 0: not said */
    long long gpus_per_node;  /* 0: a CPU node */
    long long cores_per_node; /* 0: not said */
    long long cpus_per_gpu;   /* 0: the site's default of Slurm */
    char *mem_per_gpu;        /* "48G"; NULL: not requested */
    char *device_mem;         /* "40G": of one GPU, or of a CPU node; NULL: not checked */
    char *backend;            /* "cuda" or "cpu": what hpcgrid-worker computes with */
    char *account;            /* overrides the site's */
    char *qos;
    double price_per_hour; /* of one device; 0: not said */
    double network_gbit_s; /* of one node; 0: not said */
    json_t *json;          /* the entry as written, with its name and gpus_per_node: what $hw is */
};

/* What a cluster calls things. Decoded from templates/sites/NAME.json, a file, or an object in the
 * matrix; all members and their meaning: templates/sites/README.md, generated from the field table. */
#define HG_SITE_HEARTBEAT_S 30 /* where a site does not say */

struct hg_site {
    char *name;
    char *launcher;   /* words: "srun --mpi=pmix" */
    char **container; /* words with {{container}}, NULL-terminated; NULL: no containers here */
    json_t *env;      /* object of strings, set for every rank; NULL: none */
    char **modules;   /* NULL-terminated, loaded by the batch script; NULL: none */
    char *account, *qos, *reservation; /* account: else $SBATCH_ACCOUNT, then in json too */
    bool account_required;
    char **extra; /* further sbatch options, as typed */
    char *default_hardware;
    long long signal_lead_s; /* USR1 so long before the time limit */
    long long heartbeat_s;   /* between two signs of life of a cell at work */
    long long max_queued;    /* jobs the site lets one user have; 0: ask Slurm */
    char *licenses; /* "core:%": the box; a licence per core that a job computes on. NULL: none */
    char *currency; /* of the prices; NULL: not said */
    struct hg_rest_config rest; /* hpcgrid-rest reads it in json */
    char *transport;            /* way to Slurm, one of hg_site_transports; NULL: "auto" */
    struct hg_hardware *hardware;
    size_t n_hardware;
    json_t *json; /* the site as written, for site.json of a run and for $hw */
    /* {"shrink": bool, "missing": [text]}: matrix/rehearse.h; NULL: the site itself. */
    json_t *rehearsal;
};

/* What "transport" may be, "auto" first; ends with NULL. */
extern const char *const hg_site_transports[];

/* NULL if the site has no hardware of this name. */
const struct hg_hardware *hg_site_find_hardware(const struct hg_site *site, const char *name);
/* Hint for a wrong name of hardware. */
void hg_site_suggest_hardware(const struct hg_site *site, const char *word, struct hg_err *err);

/* A site object at pointer of doc, without "extends", that is called `name` if it does not say. NULL
 * on failure, with errs added to. */
struct hg_site *hg_site_decode(const struct hg_json_doc *doc, const json_t *value,
                               const char *pointer, const char *name, struct hg_errs *errs);
/* From the "site" value of a matrix (name, path, object or absent = "box"); relative paths start at
 * dir. Names are looked for in templates/sites of the source tree or the installation, then in
 * $HPCGRID_SITES. Problems go to errs (place: pointer of doc, or inside the site's own file). NULL
 * on failure; free with hg_site_free. */
struct hg_site *hg_site_from_value(const struct hg_json_doc *doc, const json_t *value,
                                   const char *pointer, const char *dir, struct hg_errs *errs);
/* One of several sites, by its name or path. It takes no account (hg_site_take_account) before it is chosen. */
struct hg_site *hg_site_of_axis(const struct hg_json_doc *doc, const json_t *value,
                                const char *pointer, const char *dir, struct hg_errs *errs);
/* The account of $SBATCH_ACCOUNT, if the site names none. Returns 0, or -1 with an error at pointer: the site wants one. */
int hg_site_take_account(struct hg_site *site, const struct hg_json_doc *doc, const char *pointer,
                         struct hg_errs *errs);
/* The site.json of a run, or any site file; its name is its "name" member, else the file's. */
struct hg_site *hg_site_load(const char *path, struct hg_errs *errs);
/* A name or a path, as --site takes it; relative paths start at the working directory. */
struct hg_site *hg_site_find(const char *word, struct hg_errs *errs);
void hg_site_free(struct hg_site *site);

/* Append the names that hg_site_find knows here, sorted, to an empty list. */
void hg_site_names(struct hg_words *names);
/* Hint for a name that none of them has. */
void hg_site_suggest(const char *word, struct hg_err *err);
/* The site of such a name, as one that others extend: it needs no account. */
struct hg_site *hg_site_base(const char *name, struct hg_errs *errs);

/* JSON Schema of a site object; a new reference. */
json_t *hg_site_schema(void);

/* The members of a site and of a hardware entry. */
extern const struct hg_field hg_site_fields[], hg_hardware_fields[];

#endif
