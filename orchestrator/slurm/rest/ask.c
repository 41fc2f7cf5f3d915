/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to slurmrestd and what its answers mean. */
#include "slurm/rest/ask.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "slurm/common/codes.h"
#include "slurm/rest/http.h"
#include "slurm/rest/server.h"
#include "slurm/rest/token.h"
#include "slurm/rest/values.h"

#define CLOCKS_S 10.0 /* slurmctld's clock and ours; from its look at the token to the job */
#define SUBMIT_S 0.9  /* with less time left a submission is not begun */
#define HINT_TOKEN \
    "is the token of this cluster and still valid? a fresh one: scontrol token lifespan=86400"

/* Slurm's names for them: codes.def. */
enum {
    AUTHENTICATION = 1007,
    NO_CONTROLLER = 1800,
    INVALID_ARRAY = 2081,
    EMPTY_RESULT = 9003,
    REST_AUTHENTICATION = 9008
};

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

/* Without a number the caller must check, or ask again. */
static int fail_unnumbered(struct hg_agent_call *call, const char *text, const char *what)
{
    hg_err_set(&call->err, call->submitting ? HG_E_REFUSED : HG_E_AGAIN, "%s: %s", what, text);
    if (hg_rest.plain)
        hg_err_hint(&call->err,
                    "slurmrestd gives no reason: is slurmctld running, and is the token "
                    "of this cluster and still valid?");
    return -1;
}

/* The hint of a refused submission is not shown, so the text has it. */
static int too_long_an_array(struct hg_agent_call *call)
{
    char text[sizeof call->err.text];

    snprintf(text, sizeof text, "%s", call->err.text);
    call->err = (struct hg_err)HG_ERR_INIT;
    return hg_err_set(
        &call->err, HG_E_REFUSED,
        "%.400s: slurmrestd does not tell MaxArraySize (`scontrol show config`), and %lld "
        "is assumed; set rest.max_array_size of the site",
        text, (long long)hg_rest.config.max_array_size);
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
        hg_err_hint(&call->err, "slurmrestd answers, the slurmctld behind it does not");
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

/* The answer's first line, unless it is a lone brace (of JSON on several lines) or the answer contains the token. */
static void excerpt(const struct hg_http_answer *answer, const char *token, char out[static 80])
{
    const char *text = hg_buf_str(&answer->body);
    size_t n = strcspn(text, "\r\n");

    if (n < 2 || (token && strstr(text, token)))
        out[0] = 0;
    else
        snprintf(out, 80, ": %.*s", (int)(n < 76 ? n : 76), text);
}

/* Refused by slurmrestd itself, before it contacted slurmctld, whatever else the answer has. (511: slurmctld refused the
 * token; some answers have no other sign of it.) */
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
        hg_err_set(&call->err, HG_E_ENV, "%s: slurmrestd refuses access (HTTP %ld)%s", hg_rest.base,
                   answer->status, words);
        return hg_err_hint(
            &call->err, "%s",
            token ? HINT_TOKEN
                  : "no token: set SLURM_JWT, or \"token_file\" of the site's \"rest\"");
    }
    hg_err_set(&call->err, code, "%s %s (HTTP %ld)%s",
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
    hg_err_set(err, HG_E_ENV, "no token for %s", hg_rest.base);
    return hg_err_hint(err, "export $(scontrol token lifespan=86400), or name a file in "
                            "\"token_file\" of the site's \"rest\"");
}

static double end_s; /* of the time that the requests of one call may take together */

void hg_rest_start_clock(void)
{
    end_s = hg_clock_mono_s() + hg_rest.config.timeout_s;
}

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

    return hg_http_exchange(&target, method, path, body, answer, err);
}

/* Gateways write "errors" too, which say nothing about the request: slurmrestd signs its own by
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
    return refuse_answer(
        call, got, object ? "does not answer like slurmrestd" : "does not answer with JSON", token);
}

/* A request without an answer may wait in slurmrestd, or behind it, while one of them hangs. But it reaches slurmctld with
 * our token, whose expiry is checked then. On a socket slurmrestd may sign it itself. */
static long doubt_s(const struct hg_token *token)
{
    double left = fmax(ceil(token->expires - hg_clock_wall_s()) + CLOCKS_S, 1);
    long most = (long)hg_rest.config.ambiguous_s; /* a token that expires sooner makes it less */

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
    if (call->submitting && time_left() < SUBMIT_S) {
        hg_err_set(&call->err, HG_E_AGAIN, "%s took too long to list its versions", hg_rest.base);
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

/* A missing list is not an empty one: "jobs" of "/jobs?...". */
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
    if (number) {
        hg_rest_fail(call, number, text, what);
    } else { /* 23.11 says no more of a token that slurmctld refuses */
        hg_err_set(&call->err, HG_E_ENV, "%s: %s does not answer like slurmrestd", what,
                   hg_rest.base);
        hg_err_hint(&call->err, HINT_TOKEN);
    }
    json_decref(*answer);
    *answer = NULL;
    return -1;
}
