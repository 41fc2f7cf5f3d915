/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/print.h"

#define USUAL_NODES "a100:2x2,cpu:2x0"

static const char *nodes_text;
static const char *name_text = HG_BOX_DEFAULT;
static bool accounting, all, as_json;
static struct hg_opt_list settings;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 'n', "nodes", &nodes_text, "LIST",
      "up: HARDWARE:NODESxGPUS,... (" USUAL_NODES ")", 0, 0 },
    { HG_OPT_STRING, 0, "name", &name_text, "NAME",
      "name of the box, if there are several (default)", 0, 0 },
    { HG_OPT_LIST, 0, "set", &settings, "KEY=VALUE", "up: a line for slurm.conf; may be repeated",
      0, 0 },
    { HG_OPT_FLAG, 0, "accounting", &accounting, NULL, "up: also MariaDB and slurmdbd, for sacct",
      0, 0 },
    { HG_OPT_FLAG, 'a', "all", &all, NULL, "down: all boxes of this user", 0, 0 },
    { HG_OPT_FLAG, 'j', "json", &as_json, NULL, "status, list: print JSON", 0, 0 },
    { 0 },
};

/* ---- up, down ---- */

/* "a100:2x2,cpu:2x0" */
static void format_nodes(const json_t *record, struct hg_buf *out)
{
    json_t *list = json_object_get(record, "nodes"), *g;
    size_t i;

    json_array_foreach(list, i, g)
        hg_buf_printf(out, "%s%s:%lldx%lld", i ? "," : "",
                      json_string_value(json_object_get(g, "hardware")),
                      (long long)json_integer_value(json_object_get(g, "nodes")),
                      (long long)json_integer_value(json_object_get(g, "gpus")));
}

static int up(struct hg_err *err)
{
    double begin = hg_clock_mono_s();
    struct hg_box_spec spec = { .name = name_text,
                                .settings = settings.items,
                                .accounting = accounting };
    struct hg_box_group *groups =
        hg_box_nodes_parse(nodes_text ? nodes_text : USUAL_NODES, &spec.n_groups, err);
    struct hg_buf nodes = HG_BUF_INIT;
    struct hg_box box;
    bool started;
    int rc = -1;

    spec.groups = groups;
    spec.any = !nodes_text && !settings.n && !accounting;
    if (groups && hg_box_up(&spec, &box, &started, err) == 0) {
        format_nodes(box.record, &nodes);
        if (started)
            hg_info("box \"%s\" is up after %.1f s: %s", box.name, hg_clock_mono_s() - begin,
                    hg_buf_str(&nodes));
        else
            hg_info("box \"%s\" was up already: %s", box.name, hg_buf_str(&nodes));
        printf("export SLURM_CONF=%s\n", box.conf);
        hg_box_done(&box);
        rc = 0;
    }
    hg_buf_done(&nodes);
    free(groups);
    return rc;
}

static int down(struct hg_err *err)
{
    struct hg_boxes boxes;
    int rc = 0;

    if (!all)
        return hg_box_down(name_text, err);
    if (hg_boxes_list(&boxes, err) < 0)
        return -1;
    for (size_t i = 0; i < boxes.n && rc == 0; i++)
        rc = hg_box_down(boxes.items[i].name, err);
    hg_boxes_done(&boxes);
    return rc;
}

/* ---- status, list ---- */

static json_t *encode(const struct hg_box *box)
{
    json_t *o = json_deep_copy(box->record);

    json_object_set_new(o, "name", json_string(box->name));
    json_object_set_new(o, "state", json_string(hg_box_record_state_name(box->state)));
    json_object_set_new(o, "dir", json_string(box->dir));
    json_object_set_new(o, "slurm_conf", json_string(box->conf));
    return o;
}

static int list(struct hg_err *err)
{
    struct hg_boxes boxes;
    json_t *array = json_array();

    if (hg_boxes_list(&boxes, err) < 0) {
        json_decref(array);
        return -1;
    }
    for (size_t i = 0; i < boxes.n; i++) {
        struct hg_buf nodes = HG_BUF_INIT;

        format_nodes(boxes.items[i].record, &nodes);
        if (!as_json)
            printf("%-16s %-9s %-24s %s\n", boxes.items[i].name,
                   hg_box_record_state_name(boxes.items[i].state), hg_buf_str(&nodes),
                   boxes.items[i].conf);
        json_array_append_new(array, encode(&boxes.items[i]));
        hg_buf_done(&nodes);
    }
    hg_boxes_done(&boxes);
    if (as_json)
        hg_print_json(array);
    else
        json_decref(array);
    return 0;
}

static void print_status(const struct hg_box *box)
{
    struct hg_buf nodes = HG_BUF_INIT;
    json_t *daemons = json_object_get(box->record, "daemons"), *d;
    size_t i;

    format_nodes(box->record, &nodes);
    printf("box       %s\nstate     %s\nnodes     %s\nfolder    %s\n", box->name,
           hg_box_record_state_name(box->state), hg_buf_str(&nodes), box->dir);
    json_array_foreach(daemons, i, d)
        printf("%-9s %s, pid %lld\n", i ? "" : "daemons",
               json_string_value(json_object_get(d, "name")),
               (long long)json_integer_value(json_object_get(d, "pid")));
    if (box->state == HG_BOX_DEGRADED)
        hg_info("a daemon has ended; `hpcgrid box up` with the same nodes starts it again");
    if (box->state == HG_BOX_LOST)
        hg_info("its keeper is gone (killed, or the machine was restarted); `hpcgrid box down "
                "--name %s` removes it",
                box->name);
    hg_buf_done(&nodes);
}

static int status(struct hg_err *err)
{
    struct hg_box box;
    int rc;

    if (hg_boxes_find(name_text, &box, err) < 0)
        return -1;
    rc = box.state == HG_BOX_UP ? 0 : 1;
    if (as_json)
        hg_print_json(encode(&box));
    else
        print_status(&box);
    hg_box_done(&box);
    return rc;
}

/* ---- the command ---- */

static int run(int argc, char **argv, struct hg_errs *errs)
{
    static const struct {
        const char *name;
        int (*run)(struct hg_err *err);
    } verbs[] = { { "up", up }, { "down", down }, { "status", status }, { "list", list } };
    const char *names[sizeof verbs / sizeof *verbs];
    struct hg_err err = HG_ERR_INIT;

    if (argc == 2)
        name_text = argv[1];
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        names[i] = verbs[i].name;
        if (strcmp(verbs[i].name, argv[0]) == 0) {
            int rc = verbs[i].run(&err);

            return hg_errs_add(errs, &err) < 0 ? -1 : rc;
        }
    }
    hg_err_set(&err, HG_E_USAGE, "box: unknown word \"%s\"", argv[0]);
    hg_text_suggest(&err, argv[0], names, sizeof verbs / sizeof *verbs);
    return hg_errs_add(errs, &err);
}

const struct hg_cmd hg_cmd_box = {
    .name = "box",
    .args = "up|down|status|list [NAME]",
    .summary = "Manage a private Slurm on this machine for tests and rehearsals.",
    .details = "`up` starts it and prints the line that makes it your Slurm:\n"
               "    eval \"$(hpcgrid box up)\"\n"
               "It is a real Slurm (arrays, GPUs, node failures), but its virtual nodes share\n"
               "this machine's cores: times measured on it are rehearsals. `down` ends its jobs\n"
               "and removes everything.",
    .opts = opts,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
