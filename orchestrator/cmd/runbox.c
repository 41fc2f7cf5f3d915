/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/runbox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/vec.h"
#include "box/box.h"

struct groups {
    struct hg_box_group *items;
    size_t n, cap;
};

static long job_number(const json_t *job, const char *name)
{
    long v = (long)json_integer_value(json_object_get(job, name));

    return v > 0 ? v : 1;
}

/* What the site says of a kind of node. hw: NULL if the site has it no more. */
static void fill_group(const struct hg_hardware *hw, const char *name, struct hg_box_group *g)
{
    *g = (struct hg_box_group){ 0 };
    snprintf(g->hardware, sizeof g->hardware, "%s", name);
    if (!hw)
        return;
    g->gpus = (long)hw->gpus_per_node;
    g->cpus = (long)hw->cores_per_node;
    g->max_nodes = (long)hw->max_nodes;
    g->max_time_min = (long)ceil(hw->max_time_s / 60);
    snprintf(g->partition, sizeof g->partition, "%s", hw->partition ? hw->partition : "");
    snprintf(g->gres, sizeof g->gres, "%s", hw->gres ? hw->gres : "");
    snprintf(g->constraint, sizeof g->constraint, "%s", hw->constraint ? hw->constraint : "");
}

/* Extend the group of a batch's hardware to what the batch needs. */
static void add_batch(struct groups *list, const struct hg_batch *batch, const struct hg_site *site)
{
    const struct hg_hardware *hw = hg_site_find_hardware(site, batch->hardware);
    long cpus = job_number(batch->job, "tasks_per_node") * job_number(batch->job, "cpus_per_task");
    long mem_mib = job_number(batch->job, "mem_mib");
    struct hg_box_group *g = NULL;

    for (size_t i = 0; i < list->n && !g; i++)
        if (strcmp(list->items[i].hardware, batch->hardware) == 0)
            g = &list->items[i];
    if (!g) {
        g = HG_VEC_PUSH(list);
        fill_group(hw, batch->hardware, g);
    }
    if (job_number(batch->job, "nodes") > g->nodes)
        g->nodes = job_number(batch->job, "nodes");
    if (cpus > 64 && cpus > g->cpus)
        g->cpus = cpus;
    if (mem_mib > g->mem_mib)
        g->mem_mib = mem_mib;
}

/* Always the same for the same run. */
static void name_box(const struct hg_rundir *rd, char name[static HG_RUNBOX_NAME_MAX])
{
    char hex[33];

    hg_hash128_hex(rd->path, strlen(rd->path), hex);
    snprintf(name, HG_RUNBOX_NAME_MAX, "%.14s-%03d-%.8s", rd->name ? rd->name : "run", rd->number,
             hex);
}

static int record_box(const struct hg_rundir *rd, const char *name, struct hg_err *err)
{
    char *path = hg_rundir_path(rd, "box.json");
    json_t *record = json_pack("{s:s}", "box", name);
    int rc = hg_json_save(path, record, err);

    json_decref(record);
    free(path);
    return rc;
}

int hg_runbox_start(const struct hg_rundir *rd, const struct hg_plan *plan,
                    const struct hg_site *site, char name[static HG_RUNBOX_NAME_MAX], bool *is_new,
                    struct hg_err *err)
{
    struct groups list = { 0 };
    struct hg_box_spec spec = { 0 };
    struct hg_box box = { 0 };
    int rc = -1;

    for (size_t i = 0; i < plan->n; i++)
        add_batch(&list, &plan->items[i], site);
    name_box(rd, name);
    spec.name = name;
    spec.groups = list.items;
    spec.n_groups = list.n;
    if (hg_box_up(&spec, &box, is_new, err) < 0 || record_box(rd, name, err) < 0)
        goto out;
    setenv("SLURM_CONF", box.conf, 1);
    if (*is_new)
        hg_info("box %s is up", name);
    rc = 0;
out:
    hg_box_done(&box);
    HG_VEC_DONE(&list);
    return rc;
}

/* Its conf, if it is up. */
static int point_at(const char *name, struct hg_err *err)
{
    struct hg_box box = { 0 };
    int rc = 0;

    if (hg_boxes_find(name, &box, NULL) < 0 || box.state != HG_BOX_UP) {
        hg_err_set(err, HG_E_ENV, "the box of this run (%s) is not up", name);
        rc = hg_err_hint(err, "`hpcgrid run --box` with its matrix starts it again and continues");
    } else {
        setenv("SLURM_CONF", box.conf, 1);
    }
    hg_box_done(&box);
    return rc;
}

int hg_runbox_use(const struct hg_rundir *rd, char name[static HG_RUNBOX_NAME_MAX],
                  struct hg_err *err)
{
    char *path = hg_rundir_path(rd, "box.json");
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    const char *word = NULL;
    int rc = 0;

    *name = '\0';
    if (hg_fs_exists(path)) {
        rc = hg_json_load(path, &doc, err);
        word = json_string_value(json_object_get(doc.root, "box"));
    }
    if (rc == 0 && word)
        rc = point_at(word, err);
    if (rc == 0 && word)
        snprintf(name, HG_RUNBOX_NAME_MAX, "%s", word);
    hg_json_doc_done(&doc);
    free(path);
    return rc;
}

void hg_runbox_end(const struct hg_rundir *rd, const char *name)
{
    struct hg_err err = HG_ERR_INIT;
    char *path = hg_rundir_path(rd, "box.json");

    if (hg_box_down(name, &err) < 0)
        hg_warn("%s", err.text);
    unlink(path);
    free(path);
}
