/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/common/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

char *hg_agent_words_take(struct hg_agent_words *words, char *s)
{
    return *HG_VEC_PUSH(words) = s;
}

void hg_agent_words_done(struct hg_agent_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        free(words->items[i]);
    HG_VEC_DONE(words);
}

void hg_agent_add(struct hg_agent_call *call, const char *name, json_t *value)
{
    json_object_set_new(call->ok, name, value);
}

json_t *hg_agent_text(const char *s)
{
    return hg_json_text(s ? s : "");
}

/* "sbatch: error: text" -> "text" */
static const char *without_prefix(const char *line)
{
    static const char *const prefixes[] = {
        "hpcgrid-slurm: ", "sbatch: ",   "squeue: ", "sacct: ", "scancel: ",
        "sinfo: ",         "scontrol: ", "error: ",  "fatal: ",
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(line, prefixes[i], strlen(prefixes[i])) == 0)
            line += strlen(prefixes[i]);
    return line;
}

void hg_agent_add_lines(const char *text, const char *skip, struct hg_buf *site)
{
    for (const char *end; *text; text = *end ? end + 1 : end) {
        const char *said = without_prefix(text);

        end = text + strcspn(text, "\n");
        if (said < end && (!skip || strncmp(said, skip, strlen(skip)) != 0))
            hg_buf_printf(site, "%s%.*s", site->len ? "\n" : "", (int)(end - said), said);
    }
}

char *hg_agent_name_tasks(long long job_id, const char *tasks)
{
    return tasks ? hg_str_printf("%lld_[%s]", job_id, tasks) : hg_str_printf("%lld", job_id);
}
