/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/site.h"

#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fields.h"
#include "base/fs.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/words.h"
#include "contract/sbatch.h"
#include "matrix/pointer.h"

#define SITES_MAX 64

/* ---- Field tables ---- */

static void check_size(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    uint64_t bytes;

    if (json_is_string(value) && hg_text_size_parse(json_string_value(value), &bytes, &err) < 0)
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

static const char *const backends[] = { "cpu", "cuda", NULL };

const struct hg_field hg_hardware_fields[] = {
    { "partition", HG_J_STRING, offsetof(struct hg_hardware, partition),
      .doc = "partition to request; absent: Slurm's default" },
    { "gres", HG_J_STRING, offsetof(struct hg_hardware, gres),
      .doc =
          "generic resource, without the count: `gpu:a100`; absent: `gpu` where there are GPUs" },
    { "constraint", HG_J_STRING, offsetof(struct hg_hardware, constraint),
      .doc = "node feature to request" },
    { "gpus_per_node", HG_J_INT, offsetof(struct hg_hardware, gpus_per_node), .min = 0, .max = 1024,
      .doc = "GPUs of one node; 0 or absent: a CPU node" },
    { "cores_per_node", HG_J_INT, offsetof(struct hg_hardware, cores_per_node), .min = 1,
      .max = 65536, .doc = "cores that jobs may use on one node; absent: not checked" },
    { "cpus_per_gpu", HG_J_INT, offsetof(struct hg_hardware, cpus_per_gpu), .min = 1, .max = 65536,
      .doc = "cores to request with each GPU; absent: Slurm's default" },
    { "mem_per_gpu", HG_J_STRING, offsetof(struct hg_hardware, mem_per_gpu), .check = check_size,
      .doc = "memory to request with each GPU: `48G`; absent: Slurm's default" },
    { "device_mem", HG_J_STRING, offsetof(struct hg_hardware, device_mem), .check = check_size,
      .doc = "memory of one GPU (on CPU nodes: of a node, for all its tasks): `40G`; cells of "
             "hpcgrid-worker that would hold more are skipped; absent: not checked" },
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
    { "account", HG_J_STRING, offsetof(struct hg_site, account), .doc = "account to charge" },
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
    const char *names[SITES_MAX];
    size_t n = 0;

    for (; n < site->n_hardware && n < SITES_MAX; n++)
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

static struct hg_site *make_site(const struct hg_json_doc *doc, const json_t *value,
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

/* ---- Where sites are found ---- */

struct hg_site *hg_site_load(const char *path, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_site *site = NULL;
    const char *base = hg_fs_basename(path);
    char *stem = hg_strndup(base, strcspn(base, "."));

    if (hg_json_load(path, &doc, &err) < 0)
        hg_errs_add(errs, &err);
    else
        site = make_site(&doc, doc.root, "", stem, errs);
    hg_json_doc_done(&doc);
    free(stem);
    return site;
}

/* The folders that hold sites, in the order they are searched: beside an installed program, the
 * source tree it was built from, $HPCGRID_SITES. Yours to free. */
static size_t list_folders(char *folders[3])
{
    char *self = hg_fs_self(NULL);
    char *bin = self ? hg_fs_dirname(self) : NULL;
    const char *own = getenv("HPCGRID_SITES");
    size_t n = 0;

    if (bin)
        folders[n++] = hg_fs_join(bin, "../share/hpcgrid/templates/sites");
    folders[n++] = hg_fs_join(HPCGRID_TEMPLATES_DIR, "sites");
    if (own && *own)
        folders[n++] = hg_strdup(own);
    free(bin);
    free(self);
    return n;
}

static char *find_named(const char *name)
{
    char *folders[3], *found = NULL;
    size_t n = list_folders(folders);

    for (size_t i = 0; i < n; i++) {
        char *path = hg_str_printf("%s/%s.json", folders[i], name);

        if (!found && hg_fs_exists(path))
            found = path;
        else
            free(path);
        free(folders[i]);
    }
    return found;
}

static void list_names(const char *folder, char *names[SITES_MAX], size_t *n)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) && *n < SITES_MAX) {
        size_t len = strlen(entry->d_name);

        if (len > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + len - 5, ".json") == 0)
            names[(*n)++] = hg_strndup(entry->d_name, len - 5);
    }
    if (dir)
        closedir(dir);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void suggest_sites(const char *word, struct hg_err *err)
{
    char *folders[3], *names[SITES_MAX];
    size_t n_folders = list_folders(folders), n = 0;

    for (size_t i = 0; i < n_folders; i++) {
        list_names(folders[i], names, &n);
        free(folders[i]);
    }
    qsort(names, n, sizeof *names, compare_names);
    hg_text_suggest(err, word, (const char *const *)names, n);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
}

static bool is_path(const char *word)
{
    size_t n = strlen(word);

    return strchr(word, '/') || (n > 5 && strcmp(word + n - 5, ".json") == 0);
}

/* Path of the file a name or path means; yours. NULL with err set. */
static char *resolve(const char *word, const char *dir, struct hg_err *err)
{
    char *path;

    if (is_path(word))
        return hg_fs_join(dir, word);
    path = hg_text_is_name(word) ? find_named(word) : NULL;
    if (!path) {
        hg_err_set(err, HG_E_INPUT, "unknown site \"%.70s\"", word);
        suggest_sites(word, err);
    }
    return path;
}

struct hg_site *hg_site_find(const char *word, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    char *path = resolve(word, ".", &err);
    struct hg_site *site = path ? hg_site_load(path, errs) : NULL;

    hg_errs_add(errs, &err);
    free(path);
    return site;
}

/* An error in the site's file says which line chose it. */
static struct hg_site *load_chosen(const struct hg_json_doc *doc, const char *pointer,
                                   const char *path, struct hg_errs *errs)
{
    size_t before = errs->n;
    struct hg_site *site = hg_site_load(path, errs);
    struct hg_err *first = errs->n > before ? &errs->items[before] : NULL;

    if (first) {
        char *place = hg_pointer_place(doc, pointer, "chosen here");
        char *hint = hg_str_printf("%s%s%s", first->hint, first->hint[0] ? "\n  " : "", place);

        hg_err_hint(first, "%s", hint);
        free(hint);
        free(place);
    }
    return site;
}

struct hg_site *hg_site_from_value(const struct hg_json_doc *doc, const json_t *value,
                                   const char *pointer, const char *dir, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_site *site = NULL;
    char *path;

    if (!value)
        return hg_site_find("box", errs);
    if (json_is_object(value))
        return make_site(doc, value, pointer, "inline", errs);
    if (!json_is_string(value)) {
        hg_json_error(doc, pointer, errs, "expected a site's name, path or object, found %s",
                      hg_json_type_name(value));
        return NULL;
    }
    path = resolve(json_string_value(value), dir, &err);
    if (path && !hg_fs_exists(path))
        hg_json_error(doc, pointer, errs, "there is no site file \"%s\"", json_string_value(value));
    else if (path)
        site = load_chosen(doc, pointer, path, errs);
    else
        hg_err_hint(hg_json_error(doc, pointer, errs, "%s", err.text), "%s", err.hint);
    free(path);
    return site;
}

json_t *hg_site_schema(void)
{
    json_t *site = hg_json_schema(hg_site_fields, true);
    json_t *properties = json_object_get(site, "properties");
    json_t *hardware = json_object_get(properties, "hardware");

    if (hardware)
        json_object_set_new(hardware, "additionalProperties",
                            hg_json_schema(hg_hardware_fields, true));
    return site;
}
