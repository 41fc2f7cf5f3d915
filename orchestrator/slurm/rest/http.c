/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/rest/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define CONNECT_S 10.0

struct http {
    const struct hg_http_target *target;
    CURL *curl;
    struct curl_slist *headers;
    char reason[CURL_ERROR_SIZE];
    bool too_long;
};

static void add_line(struct http *http, const char *line)
{
    struct curl_slist *longer = curl_slist_append(http->headers, line);

    if (!longer)
        hg_alloc_failed();
    http->headers = longer;
}

static void add_header(struct http *http, const char *name, const char *value)
{
    char *line = hg_str_printf("%s: %s", name, value);

    add_line(http, line);
    explicit_bzero(line, strlen(line));
    free(line);
}

static void add_headers(struct http *http)
{
    const struct hg_http_target *t = http->target;

    add_line(http, "Expect:");
    add_header(http, "Connection", "close");
    add_header(http, "Content-Type", "application/json");
    add_header(http, "Accept", "application/json");
    if (t->token)
        add_header(http, "X-SLURM-USER-TOKEN", t->token);
    if (t->token && t->user)
        add_header(http, "X-SLURM-USER-NAME", t->user);
}

struct sink {
    struct http *http;
    struct hg_buf *body;
};

static size_t take(char *data, size_t size, size_t n, void *context)
{
    struct sink *sink = context;

    if (sink->body->len + size * n > ANSWER_MAX) {
        sink->http->too_long = true;
        return 0;
    }
    hg_buf_append(sink->body, data, size * n);
    return size * n;
}

/* Only these two protocols. */
static void allow_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* The file of the authorities to trust; NULL: as libcurl was built. One that was built for every distribution knows no place. */
static const char *authorities(const struct hg_http_target *t)
{
    static const char *const places[] = { "/etc/ssl/certs/ca-certificates.crt",
                                          "/etc/pki/tls/certs/ca-bundle.crt",
                                          "/etc/ssl/ca-bundle.pem" };
#if LIBCURL_VERSION_NUM >= 0x074600
    const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);

    for (size_t i = 0; i < sizeof places / sizeof *places && !t->ca_file; i++)
        if (!built->cainfo && !built->capath && !getenv("SSL_CERT_FILE") && hg_fs_exists(places[i]))
            return places[i];
#endif
    return t->ca_file;
}

static void set_fixed(struct http *http)
{
    const struct hg_http_target *t = http->target;
    CURL *curl = http->curl;

    allow_protocols(curl);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(t->timeout_s * 1000));
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)((t->timeout_s < CONNECT_S ? t->timeout_s : CONNECT_S) * 1000));
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers);
    if (t->socket)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, t->socket);
    if (authorities(t))
        curl_easy_setopt(curl, CURLOPT_CAINFO, authorities(t));
}

/* ---- what went wrong ---- */

/* Is it certain that no byte of the request was sent? TLS is part of the connection: a handshake that was not
 * finished carried no request. */
static bool never_connected(struct http *http, CURLcode code)
{
    bool tls = strncmp(http->target->base, "https:", 6) == 0;
    double ready_s = 0;

    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return true;
    case CURLE_UNSUPPORTED_PROTOCOL: /* libcurl has no TLS; or the answer is not HTTP */
    case CURLE_OPERATION_TIMEDOUT:
        return curl_easy_getinfo(http->curl, tls ? CURLINFO_APPCONNECT_TIME : CURLINFO_CONNECT_TIME,
                                 &ready_s) == CURLE_OK &&
               ready_s == 0;
    default:
        return false;
    }
}

static void add_hint(CURLcode code, const struct hg_http_target *t, struct hg_err *err)
{
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        hg_err_hint(err, "name the certificate of the site's authority as \"ca_file\" of the "
                         "site's \"rest\"");
    else if (code == CURLE_SSL_CONNECT_ERROR)
        hg_err_hint(err, "does this server use TLS? a slurmrestd without TLS has http://");
    else if (code == CURLE_COULDNT_CONNECT && t->socket)
        hg_err_hint(err, "is slurmrestd running, and may you open its socket?");
    else if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
        hg_err_hint(err, "is slurmrestd running, and is \"url\" of the site's \"rest\" (or "
                         "SLURMRESTD_URL) right?");
}

/* What the system said of a connection; a timeout is ours. */
static int read_errno(struct http *http, CURLcode code)
{
    long number = 0;

    if (!never_connected(http, code))
        return 0;
    curl_easy_getinfo(http->curl, CURLINFO_OS_ERRNO, &number);
    return code == CURLE_OPERATION_TIMEDOUT ? ETIMEDOUT
           : code == CURLE_COULDNT_CONNECT  ? (int)number
                                            : 0;
}

static int fail(struct http *http, CURLcode code, struct hg_err *err)
{
    const struct hg_http_target *t = http->target;
    bool certain = never_connected(http, code);
    const char *where = t->socket ? t->socket : t->base;

    if (http->too_long)
        return hg_err_set(err, HG_E_AMBIGUOUS, "%s: the answer is longer than %zu MiB", where,
                          ANSWER_MAX >> 20);
    hg_err_set(err, certain ? HG_E_ENV : HG_E_AMBIGUOUS, "%s %s: %s",
               certain ? "cannot connect to" : "no complete answer from", where,
               http->reason[0] ? http->reason : curl_easy_strerror(code));
    add_hint(code, t, err);
    return -1;
}

static void set_request(struct http *http, const char *method, const char *url, const char *body)
{
    curl_easy_setopt(http->curl, CURLOPT_URL, url);
    curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, NULL);
    if (body) {
        curl_easy_setopt(http->curl, CURLOPT_POST, 1L);
        curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
        curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, body);
    } else {
        curl_easy_setopt(http->curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(http->curl, CURLOPT_CUSTOMREQUEST, method);
}

static void start(struct http *http, const struct hg_http_target *target)
{
    *http = (struct http){ .target = target, .curl = curl_easy_init() };
    if (!http->curl)
        hg_alloc_failed();
    add_headers(http);
    set_fixed(http);
}

static void finish(struct http *http)
{
    curl_easy_cleanup(http->curl);
    for (struct curl_slist *h = http->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(http->headers);
}

int hg_http_exchange(const struct hg_http_target *target, const char *method, const char *path,
                     const char *body, struct hg_http_answer *answer, struct hg_err *err)
{
    char *url = hg_str_printf("%s%s", target->base, path);
    struct http http;
    struct sink sink = { &http, &answer->body };
    int rc = 0;
    CURLcode code;

    *answer = (struct hg_http_answer){ 0 };
    start(&http, target);
    set_request(&http, method, url, body);
    curl_easy_setopt(http.curl, CURLOPT_WRITEDATA, &sink);
    code = curl_easy_perform(http.curl);
    curl_easy_getinfo(http.curl, CURLINFO_RESPONSE_CODE, &answer->status);
    if (code != CURLE_OK) {
        hg_http_answer_done(answer);
        *answer = (struct hg_http_answer){ .os_errno = read_errno(&http, code) };
        rc = fail(&http, code, err);
    }
    finish(&http);
    free(url);
    return rc;
}

void hg_http_answer_done(struct hg_http_answer *answer)
{
    hg_buf_done(&answer->body);
}
