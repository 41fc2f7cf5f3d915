/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "matrix/site.h"

static const char *name = "sweep", *site_word, *hardware_word;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "name", &name, "NAME", "name of the experiment (sweep)", 0, 0 },
    { HG_OPT_STRING, 0, "site", &site_word, "SITE", "where it runs: a name or file (box)", 0, 0 },
    { HG_OPT_STRING, 0, "hardware", &hardware_word, "NAME", "kind of node (the site's default)", 0,
      0 },
    { 0 },
};

static const struct hg_hardware *find_hardware(const struct hg_site *site, struct hg_err *err)
{
    const char *word = hardware_word ? hardware_word : site->default_hardware;
    const struct hg_hardware *hw = word ? hg_site_find_hardware(site, word) : site->hardware;

    if (!hw) {
        hg_err_set(err, HG_E_INPUT, "unknown hardware \"%.60s\" at site %s", word, site->name);
        hg_site_suggest_hardware(site, word, err);
    }
    return hw;
}

static void put_string(struct hg_buf *out, const char *text)
{
    hg_json_dump_string(text, strlen(text), out);
}

/* hpcgrid-worker on the slice of MNIST that ships, or the command that was given. */
static void put_workload(struct hg_buf *out, int argc, char **argv)
{
    hg_buf_puts(out, "  \"workload\": {\n");
    if (argc == 0) {
        hg_buf_puts(out, "    \"program\": \"hpcgrid-worker\",\n    \"model\": \"rnn\",\n"
                         "    \"dataset\": \"mnist-slice\",\n    \"epochs\": 8,\n");
    } else {
        hg_buf_puts(out, "    \"command\": [");
        for (int i = 0; i < argc; i++) {
            put_string(out, argv[i]);
            hg_buf_puts(out, ", ");
        }
        hg_buf_puts(out, "\"{{args}}\"],\n");
    }
    hg_buf_puts(out, "    \"time\": \"01:00:00\"\n  },\n");
}

/* One and two nodes, one and all devices: what a first table of speedups needs. */
static void put_axes(struct hg_buf *out, const struct hg_hardware *hw, bool worker)
{
    const char *devices = hw->gpus_per_node ? "gpus_per_node" : "tasks_per_node";
    long long most = hw->gpus_per_node ? hw->gpus_per_node : 2;

    hg_buf_puts(out, "  \"axes\": {\n    \"hardware\": [");
    put_string(out, hw->name);
    hg_buf_printf(out, "],\n    \"nodes\": [1, 2],\n    \"%s\": [1", devices);
    if (most > 1)
        hg_buf_printf(out, ", %lld", most);
    hg_buf_printf(out, "]%s\n  },\n  \"repeats\": 3,\n",
                  worker ? ",\n    \"strategy\": [\"ddp\"]" : "");
    hg_buf_printf(out, "  \"baseline\": { \"nodes\": 1, \"%s\": 1%s },\n", devices,
                  worker ? ", \"strategy\": \"single\"" : "");
    hg_buf_printf(out, "  \"report\": { \"rows\": [\"nodes\", \"%s\"]%s }\n", devices,
                  worker ? ", \"columns\": [\"strategy\"]" : "");
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_site *site = hg_site_find(site_word ? site_word : "box", errs);
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf text = HG_BUF_INIT;
    const struct hg_hardware *hw;
    int rc = -1;

    if (!site)
        return -1;
    if (!hg_text_is_name(name)) {
        hg_err_set(&err, HG_E_USAGE, "--name: \"%.70s\" cannot be a name", name);
        goto out;
    }
    hw = find_hardware(site, &err);
    if (!hw)
        goto out;
    hg_buf_puts(&text, "{\n  \"hpcgrid\": 1,\n  \"name\": ");
    put_string(&text, name);
    hg_buf_puts(&text, ",\n  \"site\": ");
    put_string(&text, site_word ? site_word : "box");
    hg_buf_puts(&text, ",\n");
    put_workload(&text, argc, argv);
    put_axes(&text, hw, argc == 0);
    hg_buf_puts(&text, "}\n");
    fputs(hg_buf_str(&text), stdout);
    rc = 0;
out:
    hg_buf_done(&text);
    hg_site_free(site);
    return rc < 0 ? hg_errs_add(errs, &err) : 0;
}

const struct hg_cmd hg_cmd_init = {
    .name = "init",
    .args = "[--] [COMMAND...]",
    .summary = "Print a matrix to start from, for a command and a site.",
    .details = "Example: hpcgrid init -- python train.py --amp >my.json\n"
               "Then set the axes to what you want to measure; {{args}} becomes --key=value for\n"
               "each member. Without a COMMAND the matrix trains a small model with\n"
               "hpcgrid-worker. A file for --site is written as given: in the matrix it is\n"
               "relative to the matrix's folder.",
    .opts = opts,
    .max_args = -1,
    .run = run,
};
