/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/client/transport.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "matrix/site.h"

/* Is a URL set? */
static int look_for_url(const json_t *site, struct hg_err *err)
{
    const char *named = getenv("SLURMRESTD_URL");

    if (json_object_get(site, "rest") || (named && *named))
        return 0;
    hg_err_set(err, HG_E_ENV, "no slurmrestd URL is set");
    return hg_err_hint(err, "write \"rest\": {\"url\": \"http://HOST:6820\"} in the site, or set "
                            "SLURMRESTD_URL");
}

static int look_for_sbatch(const json_t *site, struct hg_err *err)
{
    char *path = hg_fs_find_program("sbatch", getenv("PATH"));

    (void)site;
    free(path);
    if (path)
        return 0;
    hg_err_set(err, HG_E_ENV, "sbatch is not in PATH");
    return hg_err_hint(err, "log in where the site's Slurm commands are, or load its module");
}

const struct hg_transport hg_transports[] = {
    { .name = "slurm",
      .program = "hpcgrid-slurm",
      .variable = "HPCGRID_SLURM_AGENT",
      .means = "libslurm",
      .next = "install libslurm-dev (or -DSLURM_ROOT=PREFIX) and build again" },
    { .name = "rest",
      .program = "hpcgrid-rest",
      .variable = "HPCGRID_REST_AGENT",
      .means = "slurmrestd",
      .next = "install libcurl4-openssl-dev and build again",
      .member = "rest",
      .look = look_for_url },
    { .name = "cli",
      .program = "hpcgrid-sbatch",
      .variable = "HPCGRID_CLI_AGENT",
      .means = "sbatch and squeue",
      .next = "build again: hpcgrid-sbatch needs no libslurm",
      .look = look_for_sbatch },
    { 0 },
};

/* In the build tree, or installed. */
static char *find_program(const char *program)
{
    char *installed = hg_str_printf("../libexec/hpcgrid/%s", program);
    const char *const places[] = { program, installed, NULL };
    char *path = hg_fs_find_beside(places);

    free(installed);
    return path;
}

char *hg_transport_find(const struct hg_transport *t, const json_t *site, struct hg_err *err)
{
    const char *named = getenv(t->variable);
    char *path;

    if (named && *named)
        return hg_strdup(named);
    if (t->look && t->look(site, err) < 0)
        return NULL;
    path = find_program(t->program);
    if (!path) {
        hg_err_set(err, HG_E_ENV, "%s is not installed beside hpcgrid", t->program);
        hg_err_hint(err, "%s, or name it in %s", t->next, t->variable);
    }
    return path;
}

char *hg_transport_argument(const struct hg_transport *t, const json_t *site)
{
    const json_t *value = t->member ? json_object_get(site, t->member) : NULL;

    return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}

static const struct hg_transport *find_name(const char *word)
{
    for (const struct hg_transport *t = hg_transports; t->name; t++)
        if (strcmp(t->name, word) == 0)
            return t;
    return NULL;
}

static int unknown(const char *word, const char *by, struct hg_err *err)
{
    size_t n = 0;

    while (hg_site_transports[n])
        n++;
    hg_err_set(err, HG_E_INPUT, "%s: unknown transport \"%.40s\"", by, word);
    hg_text_suggest(err, word, hg_site_transports, n);
    return -1;
}

int hg_transport_wanted(const json_t *site, const struct hg_transport **t, const char **by,
                        struct hg_err *err)
{
    const char *agent = getenv(hg_transports[0].variable);
    const char *word = getenv("HPCGRID_TRANSPORT");

    *t = NULL;
    *by = "HPCGRID_TRANSPORT";
    if (!word || !*word) {
        word = json_string_value(json_object_get(site, "transport"));
        *by = "the site";
    }
    if (word && strcmp(word, "auto") != 0) {
        *t = find_name(word);
        return *t ? 0 : unknown(word, *by, err);
    }
    *by = "itself";
    if (!word && agent && *agent) {
        *t = &hg_transports[0];
        *by = hg_transports[0].variable;
    }
    return 0;
}
