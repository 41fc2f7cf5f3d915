/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/rest/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fields.h"
#include "base/fs.h"

struct hg_rest hg_rest;

/* slurmrestd does not show its configuration: Slurm's own defaults, unless the site has a value. */
static void set_defaults(struct hg_rest_config *c)
{
    c->timeout_s = c->timeout_s > 0 ? c->timeout_s : 30;
    c->max_array_size = c->max_array_size ? c->max_array_size : 1001;
    c->max_jobs = c->max_jobs ? c->max_jobs : 10000;
    c->min_job_age_s = c->min_job_age_s ? c->min_job_age_s : 300;
    c->ambiguous_s = c->ambiguous_s ? c->ambiguous_s : 300; /* ttl of AuthInfo */
}

/* "~/x" is a path below the home. */
static void expand_home(char **path)
{
    const char *home = getenv("HOME");
    char *full;

    if (!*path || strncmp(*path, "~/", 2) != 0)
        return;
    full = hg_fs_join(home ? home : "/", *path + 2);
    free(*path);
    *path = full;
}

/* The one argument: the site's "rest". */
static int read_config(const char *text, struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    int rc = -1;

    if (!text)
        return 0;
    if (hg_json_parse("argument", text, strlen(text), &doc, err) == 0)
        rc = hg_json_decode(&doc, doc.root, "", hg_rest_fields, true, &hg_rest.config, &errs);
    if (errs.n)
        *err = errs.items[0];
    expand_home(&hg_rest.config.token_file);
    expand_home(&hg_rest.config.ca_file);
    hg_errs_done(&errs);
    hg_json_doc_done(&doc);
    return rc;
}

/* $SLURMRESTD_URL is used if the site has no URL; a socket has the base http://localhost. */
static int read_url(struct hg_err *err)
{
    static const char unix_prefix[] = "unix:";
    const char *url = hg_rest.config.url ? hg_rest.config.url : getenv("SLURMRESTD_URL");
    size_t n;

    if (!url || !*url)
        return 0;
    if (hg_rest_url_check(url, err) < 0)
        return -1;
    hg_rest.url = hg_strdup(url);
    if (strncmp(url, unix_prefix, sizeof unix_prefix - 1) == 0) {
        url += sizeof unix_prefix - 1;
        url += strspn(url, "/") - 1; /* unix:///path, too */
        hg_rest.socket = hg_strdup(url);
        hg_rest.base = hg_strdup("http://localhost");
        return 0;
    }
    n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    hg_rest.base = hg_str_printf("%.*s", (int)n, url);
    return 0;
}

int hg_rest_configure(const char *argument, struct hg_err *err)
{
    if (read_config(argument, err) < 0)
        return -1;
    set_defaults(&hg_rest.config);
    return read_url(err);
}
