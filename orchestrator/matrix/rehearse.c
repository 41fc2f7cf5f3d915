/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/rehearse.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"

#define LAUNCHER "srun --mpi=pmix" /* what a box has */

void hg_rehearsal_add(json_t *rehearsal, const char *fmt, ...)
{
    json_t *list = json_object_get(rehearsal, "missing"), *known, *text;
    va_list args;
    size_t i;

    va_start(args, fmt);
    text = json_vsprintf(fmt, args);
    va_end(args);
    json_array_foreach(list, i, known)
        if (json_equal(known, text)) {
            json_decref(text);
            return;
        }
    if (text) /* NULL: not UTF-8 */
        json_array_append_new(list, text);
}

/* A member's value as its file has it, in one line. */
static void add_member(const struct hg_site *site, const char *name)
{
    const json_t *value = json_object_get(site->json, name);
    struct hg_buf text = HG_BUF_INIT;
    size_t i;
    json_t *word;

    if (json_is_string(value))
        hg_buf_puts(&text, json_string_value(value));
    json_array_foreach((json_t *)value, i, word)
        hg_buf_printf(&text, "%s%s", i ? " " : "", json_string_value(word));
    if (text.len)
        hg_rehearsal_add(site->rehearsal, "%s %s", name, hg_buf_str(&text));
    hg_buf_done(&text);
}

/* Release a member of the site by its name, in the struct and in the file's text. */
static void drop_member(struct hg_site *site, const char *name)
{
    const struct hg_field *f = hg_site_fields;

    while (strcmp(f->name, name) != 0)
        f++;
    hg_json_release((struct hg_field[]){ *f, { 0 } }, site);
    json_object_del(site->json, name);
}

static bool is_launcher_of_box(const char *launcher)
{
    return strcmp(launcher, LAUNCHER) == 0 || strcmp(launcher, "srun") == 0;
}

/* Jobs share this machine's cores: each asks for a licence per core, as at the site "box". */
static void set_licenses(struct hg_site *site)
{
    site->licenses = hg_strdup("core:%");
    json_object_set_new(site->json, "licenses", json_string(site->licenses));
}

/* Variables that name the cluster's network: a box has the loopback. */
static void drop_network(struct hg_site *site)
{
    static const char *const foreign[] = { "MASTER_ADDR",        "MASTER_PORT",
                                           "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
                                           "TP_SOCKET_IFNAME",   "UCX_NET_DEVICES" };
    json_t *env = site->env ? json_copy(site->env) : NULL;

    for (size_t i = 0; env && i < sizeof foreign / sizeof *foreign; i++) {
        const char *value = json_string_value(json_object_get(env, foreign[i]));

        if (value)
            hg_rehearsal_add(site->rehearsal, "env %s=%s", foreign[i], value);
        json_object_del(env, foreign[i]);
    }
    if (env)
        json_object_set(site->json, "env", env);
    json_decref(site->env);
    site->env = env;
}

static void rehearse_site(struct hg_site *site)
{
    static const char *const lost[] = { "reservation", "licenses", "container", "modules" };

    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        add_member(site, lost[i]);
        drop_member(site, lost[i]);
    }
    if (!is_launcher_of_box(site->launcher)) {
        add_member(site, "launcher");
        drop_member(site, "launcher");
        site->launcher = hg_strdup(LAUNCHER);
    }
    if (site->account_required && site->account && strcmp(site->account, HG_REHEARSAL_ACCOUNT) == 0)
        hg_rehearsal_add(site->rehearsal, "account (the site wants one: set SBATCH_ACCOUNT)");
    drop_network(site);
    drop_member(site, "transport");
    drop_member(site, "rest");
    set_licenses(site);
}

/* The cluster's folder may not exist here. */
static void rehearse_folder(struct hg_matrix *m)
{
    char *path = m->workload.cwd ? hg_fs_join(m->dir, m->workload.cwd) : NULL;

    if (path && !hg_fs_is_dir(path)) {
        hg_rehearsal_add(m->site->rehearsal, "cwd %s (the matrix's folder instead)", path);
        free(m->workload.cwd);
        m->workload.cwd = NULL;
    }
    free(path);
}

void hg_matrix_rehearse(struct hg_matrix *m, bool shrink)
{
    bool at_home = strcmp(m->site->name, "box") == 0;
    char *name;

    m->site->rehearsal = json_pack("{s:b, s:[]}", "shrink", shrink, "missing");
    if (at_home)
        return;
    rehearse_site(m->site);
    rehearse_folder(m);
    name = hg_str_printf("%.58s-box", m->name);
    free(m->name);
    m->name = name;
}
