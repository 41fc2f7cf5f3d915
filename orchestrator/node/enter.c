/* SPDX-License-Identifier: Apache-2.0 */
/* May a copy of a job begin its cell? */
#include "node/enter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "rundir/attempts.h"
#include "rundir/claim.h"
#include "rundir/resultfile.h"

#define NOT_BEGUN "received SIGTERM before it began"
#define LOOK_S 1.0 /* between two looks at an owner of another machine */

/* ---- Making one ---- */

static void encode_claim(const char *dir, const struct hg_comer *c, struct hg_buf *text)
{
    json_t *claim = json_copy(c->who), *ranks = c->ranks(c->context, dir);
    struct hg_owner me;

    hg_owner_self(&me);
    hg_owner_encode(&me, claim);
    if (ranks)
        json_object_set_new(claim, "ranks", ranks);
    hg_json_dump(claim, HG_JSON_INDENT, text);
    hg_buf_puts(text, "\n");
    while (text->len < c->reserve)
        hg_buf_puts(text, "                                \n");
    json_decref(claim);
}

/* 0: ours, 1: another copy was faster, -1: err set. */
static int make_claim(const char *dir, const struct hg_comer *c, struct hg_err *err)
{
    char nonce[17], *mine, *claim = hg_fs_join(dir, HG_CLAIM_FILE);
    struct hg_buf text = HG_BUF_INIT;
    struct stat made;
    int rc = hg_fs_mkdirs(dir, 0700, err);

    hg_text_random_hex(8, nonce);
    mine = hg_str_printf("%s/.claim.%s", dir, nonce);
    if (rc == 0) {
        encode_claim(dir, c, &text);
        rc = hg_owner_link(mine, claim, &text, 0600, &made, err);
    }
    if (rc == 0) {
        c->claimed(c->context, dir);
        rc = hg_fs_sync_dir(dir, err);
    }
    hg_buf_done(&text);
    free(mine);
    free(claim);
    return rc;
}

/* If two do it at the same time, one gets an error, which does not matter: it looks again. */
static void take_over(const char *dir)
{
    char *from = hg_fs_join(dir, HG_CLAIM_FILE), *to = hg_fs_join(dir, HG_CLAIM_TAKEN);

    rename(from, to);
    free(from);
    free(to);
}

/* ---- Who is there ---- */

/* Another copy that may be running the cell, or another reason not to begin. */
struct look {
    unsigned next; /* the first attempt of this submission that is free */
    bool leave;    /* there is nothing to do; why is the reason */
    char why[256];
    char *rival; /* folder of an attempt that has not ended; NULL: none */
    char name[HG_ATTEMPT_NAME_MAX];
    struct hg_claim claim;
};

static void look_done(struct look *l)
{
    free(l->rival);
    l->rival = NULL;
}

/* A result: is the cell done, or is this copy's own attempt over? Returns whether the attempt has ended; -1 with err set: it may be a good one,
 * and cannot be read. */
static int look_at_result(const struct hg_comer *c, const struct hg_attempt_group *g,
                          struct hg_attempt_files *f, struct look *l, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    json_t *result = hg_resultfile_read(g, f, c->run_key, NULL, false, &why);
    const char *status = json_string_value(json_object_get(result, "status"));
    bool ended = !json_is_true(json_object_get(result, "ending"));

    if (!result && why.code == HG_E_ENV) {
        *err = why;
        return -1;
    }
    if (status && strcmp(status, "ok") == 0 && (c->submission || !f->submission)) {
        l->leave = true;
        snprintf(l->why, sizeof l->why, "it has a good result, of attempt %u.%u", f->submission,
                 f->restarts);
    } else if (status && ended && f->submission == c->submission && f->restarts >= c->restarts &&
               strcmp(status, "cancelled") != 0) {
        l->leave = true;
        snprintf(l->why, sizeof l->why, "attempt %u.%u has ended: %s", f->submission, f->restarts,
                 status);
    }
    json_decref(result);
    return ended;
}

static int look_at(const struct hg_comer *c, const struct hg_attempt_group *g,
                   struct hg_attempt_files *f, struct look *l, struct hg_err *err)
{
    int ended = 0;
    char *dir;

    if (hg_attempt_look(g, f, NULL, NULL, err) < 0)
        return -1;
    if (f->result)
        ended = look_at_result(c, g, f, l, err);
    if (ended < 0)
        return -1;
    if (f->submission == c->submission && (f->claim || f->result) && f->restarts >= l->next)
        l->next = f->restarts + 1;
    if (ended || f->parts || l->leave || l->rival)
        return 0;
    dir = hg_attempt_path(g, f, "");
    hg_attempt_name(f->submission, f->restarts, l->name);
    if (hg_claim_read(dir, &l->claim) && !l->claim.taken)
        l->rival = dir;
    else
        free(dir);
    return 0;
}

/* own: the folder of our own claim; NULL: none yet. */
static int look_around(const struct hg_comer *c, const char *own, struct look *l,
                       struct hg_err *err)
{
    struct hg_attempt_group group = { .rd = c->rd };
    struct hg_attempt_list list;
    int rc = hg_attempt_list(&group, c->batch, c->line, c->id, &list, err);

    *l = (struct look){ .next = c->restarts };
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        rc = look_at(c, &group, &list.items[i], l, err);
        if (own && l->rival && strcmp(own, l->rival) == 0)
            look_done(l);
    }
    hg_attempt_group_forget(&group);
    return rc;
}

/* ---- Claiming ---- */

static void say_left(const char *rival, const json_t *who)
{
    char *path = hg_fs_join(rival, HG_CLAIM_LEFT);

    hg_attempt_write_json(path, who, NULL);
    free(path);
}

static void describe_rival(const struct look *l, char why[static 256])
{
    snprintf(why, 256, "attempt %s is running (process %ld on %.64s)", l->name, l->claim.who.pid,
             l->claim.who.host);
}

/* Wait until it is certain whether the rival lives. 0: it is gone, 1: it lives, or we received TERM. */
static int await_rival(const struct hg_comer *c, struct look *l, char why[static 256])
{
    struct hg_claim_watch watch = { 0 };
    enum hg_owner_life life;

    describe_rival(l, why);
    while ((life = hg_claim_life(&l->claim, &watch, hg_clock_mono_s(), c->heartbeat_s)) ==
           HG_OWNER_UNKNOWN) {
        if (c->got_term(c->context, LOOK_S < c->heartbeat_s ? LOOK_S : c->heartbeat_s)) {
            snprintf(why, 256, NOT_BEGUN);
            return 1;
        }
        if (!hg_claim_read(l->rival, &l->claim))
            return 0;
    }
    if (life == HG_OWNER_ALIVE)
        say_left(l->rival, c->who);
    else
        take_over(l->rival);
    return life == HG_OWNER_ALIVE;
}

/* 0: nobody else runs the cell, *next is the number of a free attempt; 1: leave; -1: err set. */
static int await_turn(const struct hg_comer *c, unsigned *next, char why[static 256],
                      struct hg_err *err)
{
    for (;;) {
        struct look l;
        int rc = look_around(c, NULL, &l, err);

        *next = l.next;
        if (rc == 0 && l.leave)
            snprintf(why, 256, "%s", l.why);
        if (rc < 0 || l.leave || !l.rival) {
            look_done(&l);
            return rc < 0 ? -1 : l.leave;
        }
        rc = await_rival(c, &l, why);
        look_done(&l);
        if (rc)
            return rc;
    }
}

/* Look again, now that others can see us. Two copies of different names may have come at the same time, and neither has seen the other:
 * both leave, and the driver submits the cell again. An attempt may have been packed between two looks. */
static int check_alone(const struct hg_comer *c, const char *own, char why[static 256],
                       struct hg_err *err)
{
    struct look l;
    int rc = look_around(c, own, &l, err);

    if (rc == 0 && l.leave) {
        snprintf(why, 256, "%s", l.why);
        rc = 1;
    } else if (rc == 0 && l.rival && hg_owner_life(&l.claim.who) != HG_OWNER_DEAD) {
        describe_rival(&l, why);
        say_left(l.rival, c->who);
        rc = 1;
    }
    if (rc == 1)
        take_over(own);
    look_done(&l);
    return rc;
}

int hg_enter(const struct hg_comer *c, char name[static HG_ATTEMPT_NAME_MAX], char **dir,
             char why[static 256], struct hg_err *err)
{
    for (;;) {
        unsigned next;
        int rc = await_turn(c, &next, why, err);

        if (rc)
            return rc;
        hg_attempt_name(c->submission, next, name);
        *dir = hg_attempt_dir(c->rd, c->batch, c->line, c->id, c->submission, next);
        rc = make_claim(*dir, c, err);
        if (rc == 0)
            rc = check_alone(c, *dir, why, err);
        else if (rc == 1) { /* another copy was faster: look which */
            free(*dir);
            *dir = NULL;
            if (!c->got_term(c->context, 0.1))
                continue;
            snprintf(why, 256, NOT_BEGUN);
        }
        if (rc) {
            c->claimed(c->context, NULL);
            free(*dir);
            *dir = NULL;
        } else {
            why[0] = '\0';
        }
        return rc;
    }
}
