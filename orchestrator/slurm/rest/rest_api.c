/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to slurmrestd and what its answers mean; which of its versions is spoken. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "slurm/rest/rest.h"
#include "base/clock.h"

#define MAX_ARRAY_SIZE 1001 /* Slurm's own, as the others that slurmrestd does not tell */
#define AMBIGUOUS_S 300     /* AuthInfo's ttl where slurm.conf says nothing */
#define CLOCKS_S 10.0       /* slurmctld's clock and ours; from its look at the token to the job */
#define SUBMIT_S 0.9        /* with less time left a submission is not begun */
#define SCHEMAS "#/components/schemas/"
#define HINT_TOKEN \
    "is the token of this cluster and still valid? a fresh one: scontrol token lifespan=86400"

struct hg_rest hg_rest;

/* Slurm's names for them: codes.def. */
enum {
    AUTHENTICATION = 1007,
    NO_CONTROLLER = 1800,
    INVALID_ARRAY = 2081,
    EMPTY_RESULT = 9003,
    REST_AUTHENTICATION = 9008
};

double hg_rest_timeout_s(void)
{
    return hg_rest.config.timeout_s > 0 ? hg_rest.config.timeout_s : 30;
}

long long hg_rest_max_array_size(void)
{
    return hg_rest.config.max_array_size ? hg_rest.config.max_array_size : MAX_ARRAY_SIZE;
}

long hg_rest_ambiguous_s(void)
{
    return hg_rest.config.ambiguous_s ? (long)hg_rest.config.ambiguous_s : AMBIGUOUS_S;
}

/* ---- values ---- */

json_int_t hg_rest_number(const json_t *value, json_int_t dflt)
{
    const char *text = json_string_value(value);

    if (json_is_number(value))
        return (json_int_t)json_number_value(value);
    if (text && *text && strspn(text, "0123456789") == strlen(text))
        return strtoll(text, NULL, 10);
    if (!json_is_true(json_object_get(value, "set")) ||
        json_is_true(json_object_get(value, "infinite")))
        return dflt;
    return (json_int_t)json_number_value(json_object_get(value, "number"));
}

const char *hg_rest_text(const json_t *value)
{
    const char *text = json_string_value(json_is_array(value) ? json_array_get(value, 0) : value);

    return text ? text : "";
}

bool hg_rest_has(const json_t *value, const char *word)
{
    const json_t *item;
    size_t i;

    json_array_foreach(value, i, item)
        if (strcasecmp(hg_rest_text(item), word) == 0)
            return true;
    return !json_is_array(value) && strcasecmp(hg_rest_text(value), word) == 0;
}

/* ---- errors ---- */

static int number_of(const json_t *error)
{
    static const char *const names[] = { "error_number", "error_code" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_integer_value(json_object_get(error, names[i])))
            return (int)json_integer_value(json_object_get(error, names[i]));
    return -1;
}

int hg_rest_errno(const json_t *answer, const char **text)
{
    const json_t *errors = json_object_get(answer, "errors"), *error, *said = NULL;
    int number = 0;
    size_t i;

    json_array_foreach(errors, i, error) {
        if (number && (number != -1 || number_of(error) == -1))
            continue;
        number = number_of(error);
        said = json_object_get(error, "error");
        if (!json_is_string(said) || number == -1)
            said = json_object_get(error, "description") ? json_object_get(error, "description")
                                                         : said;
    }
    if (text)
        *text = said ? hg_rest_text(said) : "unknown error";
    return number;
}

static bool is_authentication(int number)
{
    return number == AUTHENTICATION || (number >= 6000 && number < 6100) ||
           number == REST_AUTHENTICATION;
}

/* Without a number it is for the caller to look, or to ask again. */
static int fail_unnumbered(struct hg_agent_call *call, const char *text, const char *what)
{
    hg_err_set(&call->err, call->submitting ? HG_E_REFUSED : HG_E_AGAIN, "%s: %s", what, text);
    if (hg_rest.plain)
        hg_err_hint(&call->err, "slurmrestd says no more: is slurmctld running, and the token its "
                                "own and still valid?");
    return -1;
}

/* Refusals of a submission are told without a hint. */
static int too_long_an_array(struct hg_agent_call *call)
{
    char text[sizeof call->err.text];

    snprintf(text, sizeof text, "%s", call->err.text);
    call->err = (struct hg_err)HG_ERR_INIT;
    return hg_err_set(
        &call->err, HG_E_REFUSED,
        "%.400s: slurmrestd does not tell MaxArraySize (`scontrol show config`), and %lld "
        "is assumed; say it as rest.max_array_size of the site",
        text, hg_rest_max_array_size());
}

int hg_rest_fail(struct hg_agent_call *call, int number, const char *text, const char *what)
{
    if (number < 0)
        return fail_unnumbered(call, text, what);
    if (is_authentication(number) && !call->submitting) {
        call->number = number;
        hg_err_set(&call->err, HG_E_ENV, "%s: %s (%d)", what, text, number);
        return hg_err_hint(&call->err, HINT_TOKEN);
    }
    hg_agent_fail_number(call, number, text, "%s", what);
    call->unfit = false; /* the library is slurmrestd's own */
    if (is_authentication(number))
        hg_err_hint(&call->err, HINT_TOKEN);
    else if (number == NO_CONTROLLER)
        hg_err_hint(&call->err, "slurmrestd is there, the slurmctld behind it is not");
    else if (number == INVALID_ARRAY)
        return too_long_an_array(call);
    return -1;
}

/* What a status without a JSON answer means. Before a request is looked at (4xx) it did nothing. */
static enum hg_err_code classify_status(const struct hg_agent_call *call, long status)
{
    if (status == 429)
        return HG_E_AGAIN;
    if (status >= 300 && status < 500 && status != 408)
        return HG_E_ENV;
    if (call->submitting)
        return HG_E_AMBIGUOUS;
    return status >= 200 && status < 300 ? HG_E_ENV : HG_E_AGAIN;
}

/* The answer's first words, unless it hands the token back. */
static void excerpt(const struct hg_http_answer *answer, const char *token, char out[static 80])
{
    const char *text = hg_buf_str(&answer->body);
    size_t n = strcspn(text, "\r\n");

    if (!*text || (token && strstr(text, token)))
        out[0] = 0;
    else
        snprintf(out, 80, ": %.*s", (int)(n < 76 ? n : 76), text);
}

/* By slurmrestd itself, before it asked anybody: whatever it says beside that. (511 is what it makes of slurmctld's
 * no to a token; some answers have no other word of it.) */
static bool is_turned_away(long status)
{
    return status == 401 || status == 403;
}

static int refuse_answer(struct hg_agent_call *call, const struct hg_http_answer *answer,
                         const char *what, const char *token)
{
    enum hg_err_code code = classify_status(call, answer->status);
    char words[80];

    excerpt(answer, token, words);
    if (is_turned_away(answer->status) || (answer->status == 511 && !call->submitting)) {
        hg_err_set(&call->err, HG_E_ENV, "%s: slurmrestd does not let you in (HTTP %ld)%s",
                   hg_rest.base, answer->status, words);
        return hg_err_hint(
            &call->err, "%s",
            token ? HINT_TOKEN
                  : "no token: set SLURM_JWT, or \"token_file\" of the site's \"rest\"");
    }
    hg_err_set(&call->err, code, "%s answers %s (HTTP %ld)%s",
               hg_rest.socket ? hg_rest.socket : hg_rest.base, what, answer->status, words);
    if (code == HG_E_ENV)
        hg_err_hint(&call->err, "is the URL that of a slurmrestd, without a path? redirects are "
                                "not followed");
    return -1;
}

/* ---- one request ---- */

static char *full_path(enum hg_rest_area area, const char *path)
{
    if (area == HG_REST_OTHER)
        return hg_str_printf("%s", path);
    return hg_str_printf("/%s/%s%s", area == HG_REST_SLURM ? "slurm" : "slurmdb", hg_rest.api,
                         path);
}

static int need_token(const struct hg_token *token, struct hg_err *err)
{
    if (token->text || hg_rest.socket)
        return 0; /* a socket's other end knows who we are */
    hg_err_set(err, HG_E_ENV, "there is no token for %s", hg_rest.base);
    return hg_err_hint(err, "export $(scontrol token lifespan=86400), or name a file in "
                            "\"token_file\" of the site's \"rest\"");
}

/* What is left of the time that the requests of one call may take together. */
static double end_s;

static double time_left(void)
{
    double left = end_s - hg_clock_mono_s();

    return left < 0.1 ? 0.1 : left;
}

static int exchange(const char *method, const char *path, const char *body,
                    const struct hg_token *token, struct hg_http_answer *answer, struct hg_err *err)
{
    const struct hg_rest_config *c = &hg_rest.config;
    const struct hg_http_target target = {
        .base = hg_rest.base,
        .socket = hg_rest.socket,
        .ca_file = c->ca_file,
        .user = c->user          ? c->user
                : token->user[0] ? token->user
                                 : NULL,
        .token = token->text,
        .timeout_s = time_left(),
    };
    struct hg_http *http = hg_http_create(&target, err);
    int rc = http ? hg_http_exchange(http, method, path, body, answer, err) : -1;

    hg_http_free(http);
    return rc;
}

/* Gateways write "errors", too, and theirs say nothing of the request behind them: slurmrestd signs its own by
 * "meta", or has one of Slurm's numbers. */
static bool is_slurms(const json_t *answer, long status)
{
    int number = hg_rest_errno(answer, NULL);

    if (is_turned_away(status))
        return false;
    if (!number)
        return status >= 200 && status < 300;
    return json_is_object(json_object_get(answer, "meta")) ||
           (number > 0 && hg_agent_knows(number));
}

static int take_answer(struct hg_agent_call *call, const struct hg_http_answer *got,
                       const char *token, json_t **answer)
{
    json_t *o = json_loadb(got->body.data ? got->body.data : "", got->body.len, 0, NULL);
    bool object = json_is_object(o);

    if (object && is_slurms(o, got->status)) {
        *answer = o;
        return 0;
    }
    json_decref(o);
    return refuse_answer(call, got, object ? "unlike slurmrestd" : "no JSON", token);
}

/* A request that was not answered may wait in slurmrestd, or behind it, for as long as one of them stands still. But it goes
 * to slurmctld with our token, and that looks at the time when it comes. On a socket slurmrestd may sign it itself. */
static long doubt_s(const struct hg_token *token)
{
    double left = fmax(ceil(token->expires - hg_clock_wall_s()) + CLOCKS_S, 1);
    long most = hg_rest_ambiguous_s();

    if (!token->text || token->expires <= 0 || hg_rest.socket || left >= (double)most)
        return most;
    return (long)left;
}

int hg_rest_ask(struct hg_agent_call *call, const char *method, enum hg_rest_area area,
                const char *path, json_t *body, json_t **answer)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_http_answer got = { 0 };
    struct hg_token token = { 0 };
    char *full = full_path(area, path);
    int rc = -1;

    *answer = NULL;
    if (body)
        hg_json_dump(body, HG_JSON_COMPACT, &text);
    if (!full || text.failed) {
        hg_err_oom(&call->err);
    } else if (call->submitting && time_left() < SUBMIT_S) {
        hg_err_set(&call->err, HG_E_AGAIN, "%s took too long to say which versions it has",
                   hg_rest.base);
    } else if (hg_token_load(hg_rest.config.token_file, &token, &call->err) == 0 &&
               need_token(&token, &call->err) == 0) {
        if (area != HG_REST_OTHER)
            call->rpcs++;
        rc = exchange(method, full, body ? hg_buf_str(&text) : NULL, &token, &got, &call->err);
        if (call->submitting)
            call->doubt_s = doubt_s(&token);
        if (got.os_errno)
            call->number = got.os_errno;
        if (rc == 0)
            rc = take_answer(call, &got, token.text, answer);
        else if (!call->submitting && call->err.code == HG_E_AMBIGUOUS)
            call->err.code = HG_E_AGAIN;
    }
    hg_token_done(&token);
    hg_http_answer_done(&got);
    hg_buf_done(&text);
    json_decref(body);
    free(full);
    return rc;
}

/* No list is not an empty one: "jobs" of "/jobs?...". */
static bool has_list(const json_t *answer, const char *path)
{
    char name[32];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(path + 1, "?"), path + 1);
    return json_is_array(json_object_get(answer, name));
}

int hg_rest_get(struct hg_agent_call *call, enum hg_rest_area area, const char *path,
                const char *what, json_t **answer)
{
    const char *text;
    int number;

    if (hg_rest_ask(call, "GET", area, path, NULL, answer) < 0)
        return -1;
    number = hg_rest_errno(*answer, &text);
    if (number == EMPTY_RESULT || (!number && has_list(*answer, path)))
        return 0;
    if (number)
        hg_rest_fail(call, number, text, what);
    else
        hg_err_set(&call->err, HG_E_ENV, "%s: %s answers unlike slurmrestd", what, hg_rest.base);
    json_decref(*answer);
    *answer = NULL;
    return -1;
}

/* ---- versions ---- */

/* Where a schema only names another one, that. */
static json_t *resolve(const json_t *root, json_t *schema)
{
    const char *name = json_string_value(json_object_get(schema, "$ref"));

    if (!name || strncmp(name, SCHEMAS, strlen(SCHEMAS)) != 0)
        return schema;
    return json_object_get(json_object_get(json_object_get(root, "components"), "schemas"),
                           name + strlen(SCHEMAS));
}

static json_t *path_of(const json_t *root, const char *area, const char *api, const char *rest)
{
    char path[96];

    snprintf(path, sizeof path, "/%s/%s%s", area, api, rest);
    return json_object_get(json_object_get(root, "paths"), path);
}

/* The members that a job may have, by the slurmrestd's own description. */
static json_t *find_members(const json_t *root, const char *api)
{
    json_t *body = json_object_get(
        json_object_get(path_of(root, "slurm", api, "/job/submit"), "post"), "requestBody");
    json_t *schema = json_object_get(
        json_object_get(json_object_get(body, "content"), "application/json"), "schema");
    json_t *job = json_object_get(json_object_get(resolve(root, schema), "properties"), "job");

    return json_object_get(resolve(root, job), "properties");
}

static int no_version(struct hg_agent_call *call, const json_t *root)
{
    struct hg_buf theirs = HG_BUF_INIT, ours = HG_BUF_INIT;
    const char *path;
    const json_t *value;
    char api[16];

    json_object_foreach(json_object_get(root, "paths"), path, value)
        if (sscanf(path, "/slurm/%15[^/]", api) == 1 && !strstr(hg_buf_str(&theirs), api))
            hg_buf_printf(&theirs, "%s%s", theirs.len ? ", " : "", api);
    for (const char *const *v = hg_rest_versions; *v; v++)
        hg_buf_printf(&ours, "%s%s", ours.len ? ", " : "", *v);
    call->unfit = true;
    hg_err_set(&call->err, HG_E_ENV, "slurmrestd at %s speaks %s: hpcgrid-rest wants %s",
               hg_rest.base, theirs.len ? hg_buf_str(&theirs) : "no version of Slurm's API",
               hg_rest.config.api ? hg_rest.config.api : hg_buf_str(&ours));
    hg_buf_done(&theirs);
    hg_buf_done(&ours);
    return -1;
}

static int choose_version(struct hg_agent_call *call, const json_t *root)
{
    const char *chosen = NULL;

    for (const char *const *v = hg_rest_versions; *v && !chosen; v++)
        if ((!hg_rest.config.api || strcmp(hg_rest.config.api, *v) == 0) &&
            path_of(root, "slurm", *v, "/job/submit"))
            chosen = *v;
    if (!chosen || !find_members(root, chosen))
        return no_version(call, root);
    snprintf(hg_rest.api, sizeof hg_rest.api, "%s", chosen);
    hg_rest.plain = strcmp(chosen, "v0.0.38") == 0;
    hg_rest.kills_lists = json_object_get(path_of(root, "slurm", chosen, "/jobs/"), "delete") ||
                          json_object_get(path_of(root, "slurm", chosen, "/jobs"), "delete");
    json_decref(hg_rest.members);
    hg_rest.members = json_incref(find_members(root, chosen));
    hg_rest.has_accounts =
        path_of(root, "slurmdb", chosen, "/jobs") || path_of(root, "slurmdb", chosen, "/jobs/");
    return 0;
}

/* "meta" of every answer has Slurm's version, and in newer ones its cluster and where accounts go. */
static void learn(const json_t *answer)
{
    const json_t *meta = json_object_get(answer, "meta"), *slurm = json_object_get(meta, "slurm");
    const char *store =
        json_string_value(json_object_get(json_object_get(meta, "plugin"), "accounting_storage"));

    if (!slurm)
        slurm = json_object_get(meta, "Slurm");
    snprintf(hg_rest.release, sizeof hg_rest.release, "%s",
             hg_rest_text(json_object_get(slurm, "release")));
    snprintf(hg_rest.cluster, sizeof hg_rest.cluster, "%s",
             hg_rest_text(json_object_get(slurm, "cluster")));
    if (store && !strstr(store, "slurmdbd"))
        hg_rest.has_accounts = false;
}

/* Does it let us in, and does it reach its slurmctld? Known before the first submission, a wrong token is no
 * riddle there. */
static int try_it(struct hg_agent_call *call)
{
    json_t *answer;

    if (hg_rest_get(call, HG_REST_SLURM, "/partitions", "cannot ask slurmctld", &answer) < 0) {
        call->err.code = HG_E_ENV;
        return -1;
    }
    learn(answer);
    json_decref(answer);
    return 0;
}

int hg_rest_ready(struct hg_agent_call *call)
{
    json_t *root = NULL;

    end_s = hg_clock_mono_s() + hg_rest_timeout_s();
    if (hg_rest.known)
        return 0;
    if (!hg_rest.base) {
        hg_err_set(&call->err, HG_E_ENV, "no URL of a slurmrestd");
        return hg_err_hint(&call->err, "write \"rest\": {\"url\": \"http://HOST:6820\"} in the "
                                       "site, or set SLURMRESTD_URL");
    }
    if (hg_rest_ask(call, "GET", HG_REST_OTHER, "/openapi/v3", NULL, &root) == 0 &&
        choose_version(call, root) == 0 && try_it(call) == 0)
        hg_rest.known = true;
    json_decref(root);
    return hg_rest.known ? 0 : -1;
}
