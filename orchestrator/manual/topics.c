/* SPDX-License-Identifier: Apache-2.0 */
#include "manual/topics.h"

#include <stdlib.h>
#include <string.h>

#include "manual_pages.h"

/* clang-format off */
const struct hg_topic hg_topics[] = {
    { "commands", "all commands", NULL, NULL, NULL },
    { "matrix", "members of a matrix file", page_matrices_reference, "Members of a matrix", "`report`" },
    { "keys", "keys that say where a cell runs", page_matrices_reference, "Keys that say where a cell runs", NULL },
    { "rules", "how axes, include, exclude and baseline make cells", page_matrices_README, "How cells are made", NULL },
    { "selectors", "how to name cells: -s nodes=2..8,strategy!=dp", page_matrices_README, "Selectors", NULL },
    { "recipes", "how to write common matrices", page_matrices_README, "Recipes", NULL },
    { "command", "placeholders of a command, and how it reports results", page_matrices_reference, "Commands", NULL },
    { "ids", "how the id of a cell is made", page_matrices_reference, "Ids", "Bounds" },
    { "site", "members of a site file", page_templates_sites_README, NULL, NULL },
    { "metrics", "keys of a result that tables calculate with", page_orchestrator_reference, "Metrics", NULL },
    { "environment", "variables that hpcgrid reads", page_orchestrator_reference, "Environment", NULL },
    { "exit-codes", "what the exit codes mean", page_orchestrator_reference, "Exit codes", NULL },
    { "strategies", "strategies of hpcgrid-worker", page_matrices_reference, "Strategies of hpcgrid-worker", NULL },
    { "worker", "parameters of hpcgrid-worker", page_matrices_reference, "Parameters of hpcgrid-worker", NULL },
    { 0 },
};

/* Not a topic of help, because `hpcgrid-worker --help` says the same. */
static const struct hg_topic worker_page = { "hpcgrid-worker", "", page_worker_README, NULL, "" };

const struct hg_manual_page hg_manual_pages[] = {
    { "hpcgrid-matrix", 5, "format of experiment matrices", { "matrix", "keys", "rules", "selectors", "recipes", "command", "ids" } },
    { "hpcgrid-site", 5, "format of site files", { "site" } },
    { "hpcgrid-worker", 1, "train one cell of an experiment matrix", { "hpcgrid-worker", "strategies", "worker" } },
    { 0 },
};
/* clang-format on */

const struct hg_topic *hg_topic_find(const char *name)
{
    for (const struct hg_topic *t = hg_topics; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return strcmp(name, worker_page.name) == 0 ? &worker_page : NULL;
}

void hg_topic_append(const struct hg_topic *topic, enum hg_markup_form form, struct hg_buf *out)
{
    if (!hg_markup_sections(topic->page, topic->first, topic->last, form, out))
        abort(); /* a heading was renamed; a test shows every topic */
}
