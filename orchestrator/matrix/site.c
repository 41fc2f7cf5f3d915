/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/site.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fields.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/words.h"
#include "contract/keys.h"
#include "contract/sbatch.h"
#include "matrix/pointer.h"

#define NAMES_MAX 64

/* ---- Field tables ---- */

static void check_size(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    uint64_t bytes;

    if (json_is_string(value) && hg_text_size_parse(json_string_value(value), &bytes, &err) < 0)
        hg_err_hint(hg_json_error(doc, pointer, errs, "%s", err.text), "%s", err.hint);
}

static void check_time(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    double seconds;

    if (json_is_string(value) &&
        hg_text_duration_parse(json_string_value(value), &seconds, &err) < 0)
        hg_err_hint(hg_json_error(doc, pointer, errs, "%s", err.text), "%s", err.hint);
}

static void check_extra(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                        struct hg_errs *errs)
{
    struct hg_sbatch_options options = { 0 };
    struct hg_words words = HG_WORDS_INIT;
    struct hg_err err = HG_ERR_INIT;
    json_t *word;
    size_t i;

    json_array_foreach((json_t *)value, i, word)
        if (json_is_string(word))
            hg_words_push(&words, json_string_value(word));
    if (hg_sbatch_read(words.items, &options, &err) < 0)
        hg_err_hint(hg_json_error(doc, pointer, errs, "%s", err.text), "%s", err.hint);
    HG_VEC_DONE(&options);
    hg_words_done(&words);
}

#define SIZE_SCHEMA "{\"pattern\": \"" HG_TEXT_SIZE_PATTERN "\"}"

static const char *const backends[] = { "cpu", "cuda", NULL };

const struct hg_field hg_hardware_fields[] = {
    { "partition", HG_J_STRING, offsetof(struct hg_hardware, partition),
      .doc = "partition to request; absent: Slurm's default" },
    { "gres", HG_J_STRING, offsetof(struct hg_hardware, gres),
      .doc =
          "generic resource, without the count: `gpu:a100`; absent: `gpu` where there are GPUs" },
    { "constraint", HG_J_STRING, offsetof(struct hg_hardware, constraint),
      .doc = "node feature to request" },
    { "max_nodes", HG_J_INT, offsetof(struct hg_hardware, max_nodes), .min = 1, .max = 100000,
      .doc = "nodes that one job may have; absent: not checked" },
    { "max_time", HG_J_STRING, offsetof(struct hg_hardware, max_time), .check = check_time,
      .schema = "{\"pattern\": \"" HG_TEXT_DURATION_PATTERN "\"}",
      .doc = "longest time limit, as `time` of a cell: `2-00:00:00`; absent: not checked" },
    { "gpus_per_node", HG_J_INT, offsetof(struct hg_hardware, gpus_per_node), .min = 0, .max = 1024,
      .doc = "GPUs of one node; 0 or absent: a CPU node" },
    { "cores_per_node", HG_J_INT, offsetof(struct hg_hardware, cores_per_node), .min = 1,
      .max = 65536, .doc = "cores that jobs may use on one node; absent: not checked" },
    { "cpus_per_gpu", HG_J_INT, offsetof(struct hg_hardware, cpus_per_gpu), .min = 1, .max = 65536,
      .doc = "cores to request with each GPU; absent: Slurm's default" },
    { "mem_per_gpu", HG_J_STRING, offsetof(struct hg_hardware, mem_per_gpu), .check = check_size,
      .schema = SIZE_SCHEMA,
      .doc = "memory to request with each GPU: `48G`; absent: Slurm's default" },
    { "device_mem", HG_J_STRING, offsetof(struct hg_hardware, device_mem), .check = check_size,
      .schema = SIZE_SCHEMA,
      .doc = "memory of one GPU (on CPU nodes: of a node, for all its tasks): `40G`; cells of "
             "hpcgrid-worker that would hold more are skipped; absent: not checked" },
    { "network_gbit_s", HG_J_REAL, offsetof(struct hg_hardware, network_gbit_s), .min = 0,
      .max = 1e6,
      .doc = "what one node can send to others in Gbit/s, all its interfaces together; a training "
             "between nodes that stays below 3 % of it has a note in reports" },
    { "backend", HG_J_STRING, offsetof(struct hg_hardware, backend), .words = backends,
      .doc =
          "what hpcgrid-worker computes with: `cuda` or `cpu`; absent: by the presence of GPUs" },
    { "account", HG_J_STRING, offsetof(struct hg_hardware, account),
      .doc = "account to charge, instead of the site's" },
    { "qos", HG_J_STRING, offsetof(struct hg_hardware, qos),
      .doc = "quality of service, instead of the site's" },
    { "price_per_hour", HG_J_REAL, offsetof(struct hg_hardware, price_per_hour), .min = 0,
      .max = 1e9,
      .doc = "what one GPU (on CPU nodes: one core) costs for an hour, for the costs in reports" },
    { 0 },
};

const char *const hg_site_transports[] = { "auto", "slurm", "rest", "cli", NULL };

const struct hg_field hg_site_fields[] = {
    { "name", HG_J_STRING, offsetof(struct hg_site, name),
      .doc = "what cells call the site; absent: the file's name" },
    { "extends", HG_J_STRING, .flags = HG_J_IGNORED,
      .doc =
          "a site, by name or path, that this one adds to: what is written here is put in the place of "
          "its members, inside of objects too" },
    { "launcher", HG_J_STRING, offsetof(struct hg_site, launcher),
      .doc = "words that start the ranks; absent: `srun --mpi=pmix`" },
    { "container", HG_J_STRINGS, offsetof(struct hg_site, container),
      .doc =
          "words before the program of a cell with a `container`, or more options of the launcher "
          "(if the first begins with `-`)" },
    { "env", HG_J_JSON, offsetof(struct hg_site, env), .check = hg_check_texts,
      .schema = HG_TEXTS_SCHEMA,
      .doc = "environment variables of every rank: an object of strings" },
    { "modules", HG_J_STRINGS, offsetof(struct hg_site, modules),
      .doc = "environment modules that the batch script loads" },
    { "account", HG_J_STRING, offsetof(struct hg_site, account),
      .doc = "account to charge; absent: `$SBATCH_ACCOUNT`, else your default account" },
    { "account_required", HG_J_BOOL, offsetof(struct hg_site, account_required),
      .doc = "the site refuses jobs without an account: `check` asks for one" },
    { "qos", HG_J_STRING, offsetof(struct hg_site, qos), .doc = "quality of service" },
    { "reservation", HG_J_STRING, offsetof(struct hg_site, reservation), .doc = "reservation" },
    { "extra", HG_J_STRINGS, offsetof(struct hg_site, extra), .check = check_extra,
      .doc = "further sbatch options, as typed" },
    { "default", HG_J_STRING, offsetof(struct hg_site, default_hardware),
      .doc = "hardware of cells that name none; absent: a cell must name it, unless there is one" },
    { "signal_lead_s", HG_J_INT, offsetof(struct hg_site, signal_lead_s), .min = 0, .max = 86400,
      .doc = "seconds before the time limit at which the ranks get USR1; absent: 120" },
    { "heartbeat_s", HG_J_INT, offsetof(struct hg_site, heartbeat_s), .min = 1, .max = 3600,
      .doc =
          "seconds between two signs of life of a cell at work (the time of one file is set); after four "
          "without one it counts as dead; absent: 30" },
    { "max_queued", HG_J_INT, offsetof(struct hg_site, max_queued), .min = 1, .max = 10000000,
      .doc = "jobs that the site lets one user have; absent: what Slurm says" },
    { "licenses", HG_J_STRING, offsetof(struct hg_site, licenses),
      .doc = "`core:%`: a licence for each core that a job computes on (the box)" },
    { "currency", HG_J_STRING, offsetof(struct hg_site, currency),
      .doc = "of the prices: `EUR`; absent: reports name none" },
    { "transport", HG_J_STRING, offsetof(struct hg_site, transport), .words = hg_site_transports,
      .doc = "way to Slurm: `slurm` (libslurm), `rest` (slurmrestd), `cli` (`sbatch`, `squeue`), "
             "or `auto`: the first that "
             "works; absent: `auto`" },
    { "rest", HG_J_OBJECT, offsetof(struct hg_site, rest), .fields = hg_rest_fields,
      .doc = "the site's slurmrestd (below)" },
    { "hardware", HG_J_JSON, offsetof(struct hg_site, json), HG_J_REQUIRED,
      .schema = "{\"type\": \"object\"}", .doc = "the kinds of nodes, by name" },
    { 0 },
};

/* ---- Decoding ---- */

static void fill_hardware(struct hg_hardware *hw, const char *name, const json_t *entry)
{
    hw->name = hg_strdup(name);
    if (hw->max_time)
        hg_text_duration_parse(hw->max_time, &hw->max_time_s, NULL);
    if (!hw->backend)
        hw->backend = hg_strdup(hw->gpus_per_node ? "cuda" : "cpu");
    hw->json = json_copy((json_t *)entry);
    json_object_set_new(hw->json, "name", json_string(name));
    json_object_set_new(hw->json, "gpus_per_node", json_integer(hw->gpus_per_node));
}

static int decode_hardware(const struct hg_json_doc *doc, const json_t *all, const char *pointer,
                           struct hg_site *site, struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *entry;
    int rc = 0;

    site->hardware = hg_alloc_zeroed(json_object_size(all), sizeof *site->hardware);
    json_object_foreach((json_t *)all, name, entry) {
        struct hg_hardware *hw = &site->hardware[site->n_hardware++];

        hg_buf_clear(&path);
        hg_buf_printf(&path, "%s/hardware", pointer);
        hg_json_pointer_push(&path, name);
        if (!hg_text_is_name(name)) {
            hg_json_error_key(doc, hg_buf_str(&path), errs,
                              "\"%.70s\" cannot be a name of hardware", name);
            rc = -1;
        }
        if (hg_json_decode(doc, entry, hg_buf_str(&path), hg_hardware_fields, true, hw, errs) < 0)
            rc = -1;
        fill_hardware(hw, name, entry);
    }
    hg_buf_done(&path);
    return rc;
}

void hg_site_suggest_hardware(const struct hg_site *site, const char *word, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (; n < site->n_hardware && n < NAMES_MAX; n++)
        names[n] = site->hardware[n].name;
    hg_text_suggest(err, word, names, n);
}

static int check_site(const struct hg_json_doc *doc, const char *pointer, struct hg_site *site,
                      struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    int rc = 0;

    hg_buf_printf(&path, "%s/default", pointer);
    if (!site->n_hardware) {
        hg_json_error(doc, pointer, errs, "the site has no hardware");
        rc = -1;
    } else if (site->default_hardware && !hg_site_find_hardware(site, site->default_hardware)) {
        hg_site_suggest_hardware(site, site->default_hardware,
                                 hg_json_error(doc, hg_buf_str(&path), errs,
                                               "unknown hardware \"%s\"", site->default_hardware));
        rc = -1;
    } else if (!site->default_hardware && site->n_hardware == 1) {
        site->default_hardware = hg_strdup(site->hardware[0].name);
    }
    if (!hg_text_is_name(site->name)) {
        hg_json_error(doc, pointer, errs, "\"%.70s\" cannot be the name of a site", site->name);
        rc = -1;
    }
    hg_buf_done(&path);
    return rc;
}

static int decode_site(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       const char *name, struct hg_site *site, struct hg_errs *errs)
{
    json_t *hardware;
    int rc;

    site->signal_lead_s = 120;
    site->heartbeat_s = HG_SITE_HEARTBEAT_S;
    rc = hg_json_decode(doc, value, pointer, hg_site_fields, true, site, errs);
    hardware = site->json; /* decoded there for want of a better place */
    site->json = NULL;
    if (json_is_object(value))
        site->json = json_copy((json_t *)value);
    if (!site->name)
        site->name = hg_strdup(name);
    if (!site->launcher)
        site->launcher = hg_strdup("srun --mpi=pmix");
    json_object_set_new(site->json, "name", json_string(site->name));
    if (hardware && decode_hardware(doc, hardware, pointer, site, errs) < 0)
        rc = -1;
    if (rc == 0)
        rc = check_site(doc, pointer, site, errs);
    json_decref(hardware);
    return rc;
}

struct hg_site *hg_site_decode(const struct hg_json_doc *doc, const json_t *value,
                               const char *pointer, const char *name, struct hg_errs *errs)
{
    struct hg_site *site = hg_alloc_zeroed(1, sizeof *site);

    if (decode_site(doc, value, pointer, name, site, errs) < 0) {
        hg_site_free(site);
        return NULL;
    }
    return site;
}

void hg_site_free(struct hg_site *site)
{
    if (!site)
        return;
    for (size_t i = 0; i < site->n_hardware; i++) {
        hg_json_release(hg_hardware_fields, &site->hardware[i]);
        free(site->hardware[i].name);
        json_decref(site->hardware[i].json);
    }
    free(site->hardware);
    json_decref(site->rehearsal);
    hg_json_release(hg_site_fields, site);
    free(site);
}

const struct hg_hardware *hg_site_find_hardware(const struct hg_site *site, const char *name)
{
    for (size_t i = 0; i < site->n_hardware; i++)
        if (strcmp(site->hardware[i].name, name) == 0)
            return &site->hardware[i];
    return NULL;
}

json_t *hg_site_schema(void)
{
    json_t *site = hg_json_schema(hg_site_fields, true);
    json_t *properties = json_object_get(site, "properties");
    json_t *extra = hg_key_schema(&hg_keys[HG_COLUMN_SBATCH]);

    json_object_del(site, "required");
    json_object_set_new(site, "anyOf",
                        json_pack("[{s:[s], s:{s:{s:i}}}, {s:[s]}]", "required", "hardware",
                                  "properties", "hardware", "minProperties", 1, "required",
                                  "extends"));
    json_object_set_new(json_object_get(properties, "hardware"), "additionalProperties",
                        hg_json_schema(hg_hardware_fields, true));
    json_object_set_new(extra, "type", json_string("array"));
    json_object_set_new(properties, "extra", extra);
    return site;
}
