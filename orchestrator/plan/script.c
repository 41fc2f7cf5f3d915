/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"

static bool is_plain(const char *value)
{
    return value[strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "._-+:,=/@%&|[]()*")] == '\0';
}

/* One header line. sbatch reads quotes and backslashes there much as a shell does; a line end or a
 * control character has no way in. */
static int header(struct hg_buf *out, const char *option, const char *between, const char *value,
                  struct hg_err *err)
{
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return hg_err_set(err, HG_E_INPUT, "a control character in the value of %s: \"%s\"",
                              option, value);
    hg_buf_printf(out, "#SBATCH %s%s", option, between);
    if (is_plain(value)) {
        hg_buf_puts(out, value);
    } else {
        hg_buf_puts(out, "\"");
        for (const char *p = value; *p; p++) {
            if (strchr("\"\\", *p))
                hg_buf_puts(out, "\\");
            hg_buf_append(out, p, 1);
        }
        hg_buf_puts(out, "\"");
    }
    hg_buf_puts(out, "\n");
    return 0;
}

/* Members of a job that are header options with the value unchanged. */
static const struct {
    const char *key, *option;
} options[] = {
    { "name", "--job-name" },
    { "partition", "--partition" },
    { "nodes", "--nodes" },
    { "tasks_per_node", "--ntasks-per-node" },
    { "cpus_per_task", "--cpus-per-task" },
    { "gres", "--gres" },
    { "account", "--account" },
    { "qos", "--qos" },
    { "constraint", "--constraint" },
    { "reservation", "--reservation" },
    { "licenses", "--licenses" },
};

static int header_options(const json_t *job, struct hg_buf *out, struct hg_err *err)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const json_t *value = json_object_get(job, options[i].key);
        char number[32];

        if (!value)
            continue;
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        if (header(out, options[i].option, "=",
                   json_is_string(value) ? json_string_value(value) : number, err) < 0)
            return -1;
    }
    return 0;
}

/* "--exclude=n1" as one word, or "-x" and "n1" as two. */
static int header_extra(const json_t *extra, struct hg_buf *out, struct hg_err *err)
{
    for (size_t i = 0; i < json_array_size(extra); i++) {
        const char *option = json_string_value(json_array_get(extra, i));
        const char *next = json_string_value(json_array_get(extra, i + 1));
        size_t n = strcspn(option, "=");
        char *name = hg_strndup(option, n);
        int rc;

        if (option[n]) {
            rc = header(out, name, "=", option + n + 1, err);
        } else if (next && next[0] != '-') {
            rc = header(out, name, " ", next, err);
            i++;
        } else {
            rc = header(out, name, "", "", err);
        }
        free(name);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int header_rest(const json_t *job, struct hg_buf *out, struct hg_err *err)
{
    long long mem = json_integer_value(json_object_get(job, "mem_mib"));
    long long time = json_integer_value(json_object_get(job, "time_s"));
    long long lead = json_integer_value(json_object_get(job, "signal_lead_s"));
    char text[32];

    if (mem)
        hg_buf_printf(out, "#SBATCH --mem=%lldM\n", mem);
    if (time) {
        hg_text_duration_slurm((double)time, text);
        hg_buf_printf(out, "#SBATCH --time=%s\n", text);
    }
    if (lead)
        hg_buf_printf(out, "#SBATCH --signal=USR1@%lld\n", lead);
    hg_buf_printf(out, "#SBATCH --%srequeue\n#SBATCH --open-mode=append\n",
                  json_is_true(json_object_get(job, "requeue")) ? "" : "no-");
    return header_extra(json_object_get(job, "extra"), out, err);
}

/* Modules may fail to load: the job must still leave a result that says so. */
static void load_modules(char *const *modules, struct hg_buf *out)
{
    if (!modules || !modules[0])
        return;
    hg_buf_puts(out, "if ! command -v module >/dev/null; then\n"
                     "    for f in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh "
                     "/usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash; do\n"
                     "        [ -r \"$f\" ] && . \"$f\" && break\n"
                     "    done\n"
                     "fi\n");
    for (; *modules; modules++) {
        hg_buf_puts(out, "module load ");
        hg_text_quote(*modules, out);
        hg_buf_puts(out, " || {\n    export HPCGRID_ERROR='module load failed: '");
        hg_text_quote(*modules, out);
        hg_buf_puts(out, "\n    echo \"task ${SLURM_ARRAY_TASK_ID-0}: $HPCGRID_ERROR\" >&2\n}\n");
    }
}

int hg_plan_script(const struct hg_plan *plan, const struct hg_batch *b, const char *dir,
                   struct hg_buf *out, struct hg_err *err)
{
    char *self = hg_fs_self(err);
    char *log = hg_str_printf("%s/batches/%d-%%A.out", dir, b->number); /* of all tasks */
    int rc = -1;

    if (!self)
        goto out;
    hg_buf_puts(out, "#!/bin/bash\n");
    if (header_options(b->job, out, err) < 0 || header_rest(b->job, out, err) < 0)
        goto out;
    hg_buf_printf(out, "#SBATCH --array=0-%zu\n", hg_batch_jobs(b, b->n) - 1);
    if (header(out, "--chdir", "=", dir, err) < 0 || header(out, "--output", "=", log, err) < 0)
        goto out;
    hg_buf_printf(out, "# %s, batch %d: %zu cell%s, ", plan->name, b->number, b->n,
                  hg_text_s(b->n));
    if (b->together > 1)
        hg_buf_printf(out, "%u per array index, one after another\n", b->together);
    else
        hg_buf_puts(out, "one per array index\n");
    load_modules(b->modules, out);
    hg_buf_puts(out, "exec ");
    hg_text_quote(self, out);
    hg_buf_puts(out, " exec --run ");
    hg_text_quote(dir, out);
    hg_buf_printf(out, " --batch %d", b->number);
    if (b->together > 1)
        hg_buf_printf(out, " --together %u", b->together);
    hg_buf_puts(out, " \"$@\"\n");
    rc = 0;
out:
    free(log);
    free(self);
    return rc;
}
