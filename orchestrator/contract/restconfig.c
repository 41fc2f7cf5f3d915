/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/restconfig.h"

#include <stddef.h>
#include <string.h>

const char *const hg_rest_versions[] = { "v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41",
                                         "v0.0.40", "v0.0.38", NULL };

int hg_rest_url_check(const char *url, struct hg_err *err)
{
    const char *host = strstr(url, "://");

    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0 &&
         strncmp(url, "unix:/", 6) != 0) ||
        strpbrk(url, "?# \t\r\n")) {
        hg_err_set(err, HG_E_INPUT, "\"%s\" is not a URL of slurmrestd", url);
        return hg_err_hint(err, "http://HOST:PORT, https://HOST:PORT or unix:/PATH");
    }
    /* They would be shown wherever the URL is. */
    if (host && memchr(host + 3, '@', strcspn(host + 3, "/")))
        return hg_err_set(err, HG_E_INPUT, "the URL of slurmrestd holds a name or a password");
    return 0;
}

static void check_url(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                      struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;

    if (json_is_string(value) && hg_rest_url_check(json_string_value(value), &err) < 0)
        hg_err_hint(hg_json_error(doc, pointer, errs, "%s", err.text), "%s", err.hint);
}

/* It stands in a header of each request, and nothing may stand behind it. */
static void check_user(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    const char *user = json_string_value(value);

    for (const char *p = user; p && *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 127) {
            hg_json_error(doc, pointer, errs, "\"%s\" is not the name of a user", user);
            return;
        }
}

/* Sites are shared: a file is named the same way wherever hpcgrid is started. */
static void check_path(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    const char *path = json_string_value(value);

    if (path && path[0] != '/' && strncmp(path, "~/", 2) != 0)
        hg_err_hint(hg_json_error(doc, pointer, errs, "\"%s\" is not an absolute path", path),
                    "/PATH, or ~/PATH for one below your home");
}

#define AT(member) offsetof(struct hg_rest_config, member)

const struct hg_field hg_rest_fields[] = {
    { "url", HG_J_STRING, AT(url), .check = check_url,
      .doc = "`http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`; absent: `$SLURMRESTD_URL`" },
    { "token_file", HG_J_STRING, AT(token_file), .check = check_path,
      .doc =
          "file with the token and nothing else, readable by its owner only (`~/` is home); absent: "
          "`$SLURM_JWT`" },
    { "ca_file", HG_J_STRING, AT(ca_file), .check = check_path,
      .doc = "certificates to trust (PEM); absent: the system's" },
    { "user", HG_J_STRING, AT(user), .check = check_user,
      .doc = "the user's name at the cluster; absent: the one in the token" },
    { "api", HG_J_STRING, AT(api), .words = hg_rest_versions,
      .doc = "version of the API; absent: the newest that both sides know" },
    { "timeout_s", HG_J_REAL, AT(timeout_s), .min = 1, .max = 60,
      .doc = "seconds that one call may take, all its requests together; absent: 30" },
    { "max_array_size", HG_J_INT, AT(max_array_size), .min = 2, .max = 4000001,
      .doc = "`MaxArraySize` of slurm.conf, which slurmrestd does not report; absent: 1001" },
    { "max_jobs", HG_J_INT, AT(max_jobs), .min = 1, .max = 4000000000.0,
      .doc = "`MaxJobCount` of slurm.conf; absent: 10000" },
    { "min_job_age_s", HG_J_INT, AT(min_job_age_s), .min = 0, .max = 65533,
      .doc = "`MinJobAge` of slurm.conf; absent: 300" },
    { "ambiguous_s", HG_J_INT, AT(ambiguous_s), .min = 1, .max = 86400,
      .doc =
          "how long a submission without an answer may still appear, if the token lives so long; "
          "absent: 300" },
    { 0 },
};
