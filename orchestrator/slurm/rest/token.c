/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/rest/token.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define HINT_FRESH "a fresh one for a day: scontrol token lifespan=86400"

/* The token's three parts are base64url, with dots between them. Nothing else may get into a header. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

/* ---- its claims ---- */

/* Decode base64url without padding; returns the length. */
static size_t decode_part(const char *text, size_t n, char *out)
{
    unsigned bits = 0, held = 0;
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        bits = bits << 6 | (unsigned)(strchr(letters, text[i]) - letters);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[len++] = (char)(bits >> held & 0xff);
        }
    }
    return len;
}

/* Read the claims: who it is for ("sun", or "username" where a site makes its own), and until when. */
static bool read_claims(struct hg_token *token)
{
    const char *claims = strchr(token->text, '.'), *end, *user;
    char text[HG_TOKEN_MAX];
    json_t *o;

    if (!claims || !(end = strchr(++claims, '.')) || strchr(end + 1, '.'))
        return false;
    o = json_loadb(text, decode_part(claims, (size_t)(end - claims), text), 0, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return false;
    }
    user = json_string_value(json_object_get(o, "sun"));
    if (!user)
        user = json_string_value(json_object_get(o, "username"));
    if (user && strlen(user) < sizeof token->user && !strpbrk(user, "\r\n"))
        snprintf(token->user, sizeof token->user, "%s", user);
    token->expires = json_number_value(json_object_get(o, "exp"));
    json_decref(o);
    return true;
}

static int check(struct hg_token *token, const char *from, struct hg_err *err)
{
    char when[64];
    time_t expires;

    if (token->text[strspn(token->text, letters)] || !read_claims(token)) {
        hg_err_set(err, HG_E_ENV, "%s does not contain a token", from);
        return hg_err_hint(err, HINT_FRESH);
    }
    if (token->expires <= 0 || token->expires > hg_clock_wall_s())
        return 0;
    expires = (time_t)token->expires;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %Z", localtime(&expires));
    hg_err_set(err, HG_E_ENV, "the token of %s has expired (%s)", from, when);
    return hg_err_hint(err, HINT_FRESH);
}

/* ---- where it comes from ---- */

/* `scontrol token` prints "SLURM_JWT=TOKEN"; people save just that. */
static void trim(char *text)
{
    static const char name[] = "SLURM_JWT=";
    size_t skip = strspn(text, " \t\r\n"), len;

    if (strncmp(text + skip, name, sizeof name - 1) == 0)
        skip += sizeof name - 1;
    memmove(text, text + skip, strlen(text + skip) + 1);
    len = strlen(text);
    while (len && strchr(" \t\r\n", text[len - 1]))
        text[--len] = 0;
}

static int read_file(const char *path, struct hg_token *token, struct hg_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 077)) {
        token->text = hg_alloc_zeroed(1, HG_TOKEN_MAX);
        n = read(fd, token->text, HG_TOKEN_MAX - 1);
    }
    if (fd < 0) {
        hg_err_sys(err, "cannot read the token of %s", path);
        return hg_err_hint(err, "scontrol token lifespan=86400 >FILE, with umask 077");
    }
    close(fd);
    if (n >= 0) {
        trim(token->text);
        return 0;
    }
    if (S_ISREG(st.st_mode) && (st.st_mode & 077)) {
        hg_err_set(err, HG_E_ENV, "the token of %s is readable by others", path);
        return hg_err_hint(err, "chmod 600 %s", path);
    }
    return hg_err_set(err, HG_E_ENV, "cannot read the token of %s", path);
}

int hg_token_load(const char *path, struct hg_token *token, struct hg_err *err)
{
    const char *text = getenv("SLURM_JWT");

    *token = (struct hg_token){ 0 };
    if (path) {
        if (read_file(path, token, err) < 0)
            goto fail;
    } else if (!text || !*text) {
        return 0;
    } else if (strlen(text) >= HG_TOKEN_MAX) {
        return hg_err_set(err, HG_E_ENV, "SLURM_JWT does not contain a token");
    } else {
        token->text = hg_strdup(text);
    }
    if (check(token, path ? path : "SLURM_JWT", err) == 0)
        return 0;
fail:
    hg_token_done(token);
    return -1;
}

void hg_token_done(struct hg_token *token)
{
    if (token->text)
        explicit_bzero(token->text, strlen(token->text));
    free(token->text);
    token->text = NULL;
}
