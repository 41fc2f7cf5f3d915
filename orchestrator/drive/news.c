/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop learns, on its way to the journal. */
#include "drive/news.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/ranges.h"
#include "base/vec.h"

bool hg_drive_has_uncounted(const struct hg_drive *d)
{
    return memcmp(&d->o.executor->facts(d->o.session)->counts, &d->counted, sizeof d->counted) != 0;
}

/* Requests made since the last line that counted them. */
static void attach_receipt(struct hg_drive *d, json_t *members)
{
    struct hg_executor_counts old = d->counted, now = d->o.executor->facts(d->o.session)->counts;

    json_object_set_new(members, "rpc",
                        json_pack("[I,I,I]", (json_int_t)(now.submits - old.submits),
                                  (json_int_t)(now.polls - old.polls),
                                  (json_int_t)(now.cancels - old.cancels)));
    d->counted = now;
}

void hg_drive_say(struct hg_drive *d, const char *kind, json_t *members)
{
    if (hg_drive_has_uncounted(d))
        attach_receipt(d, members);
    hg_journal_add(d->journal, hg_drive_now(d), kind, members, NULL);
}

int hg_drive_commit(struct hg_drive *d, struct hg_err *err)
{
    if (!hg_journal_is_empty(d->journal))
        d->changed_s = hg_drive_mono(d);
    return hg_journal_commit(d->journal, err);
}

int hg_drive_record(struct hg_drive *d, const char *kind, json_t *members, struct hg_err *err)
{
    hg_drive_say(d, kind, members);
    return hg_drive_commit(d, err);
}

void hg_drive_tell(struct hg_drive *d, const char *kind, const struct hg_submission *sub,
                   uint32_t index, const char *word, uint32_t restarts, const char *text)
{
    struct hg_drive_news *news = HG_VEC_PUSH(&d->news);

    *news = (struct hg_drive_news){ .kind = kind,
                                    .text = text && *text ? hg_strdup(text) : NULL,
                                    .submission = sub->number,
                                    .restarts = restarts,
                                    .index = index };
    snprintf(news->word, sizeof news->word, "%s", word);
}

/* Everything but the index. */
static int compare_kinds(const struct hg_drive_news *a, const struct hg_drive_news *b)
{
    int by;

    if (a->submission != b->submission)
        return a->submission < b->submission ? -1 : 1;
    by = strcmp(a->kind, b->kind);
    if (by == 0)
        by = strcmp(a->word, b->word);
    if (by == 0)
        by = strcmp(a->text ? a->text : "", b->text ? b->text : "");
    return by ? by : (a->restarts > b->restarts) - (a->restarts < b->restarts);
}

static int compare_news(const void *pa, const void *pb)
{
    const struct hg_drive_news *a = pa, *b = pb;
    int by = compare_kinds(a, b);

    return by ? by : (a->index > b->index) - (a->index < b->index);
}

static void say_group(struct hg_drive *d, const struct hg_drive_news *news, size_t n)
{
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_buf tasks = HG_BUF_INIT;
    json_t *members;

    for (size_t i = 0; i < n; i++)
        hg_ranges_add(&set, news[i].index);
    hg_ranges_format(&set, &tasks);
    hg_ranges_done(&set);
    members = json_pack("{s:I,s:s}", "submission", (json_int_t)news->submission, "tasks",
                        hg_buf_str(&tasks));
    hg_buf_done(&tasks);
    if (*news->word)
        json_object_set_new(members, strcmp(news->kind, "state") == 0 ? "state" : "status",
                            hg_json_text(news->word));
    if (news->restarts)
        json_object_set_new(members, "restarts", json_integer(news->restarts));
    if (news->text)
        json_object_set_new(members, "text", hg_json_text(news->text));
    hg_drive_say(d, news->kind, members);
}

void hg_drive_drop_news(struct hg_drive *d)
{
    for (size_t i = 0; i < d->news.n; i++)
        free(d->news.items[i].text);
    d->news.n = 0;
}

int hg_drive_flush(struct hg_drive *d, struct hg_err *err)
{
    struct hg_drive_news *items = d->news.items;

    if (d->news.n)
        qsort(items, d->news.n, sizeof *items, compare_news);
    for (size_t i = 0, n; i < d->news.n; i += n) {
        for (n = 1; i + n < d->news.n && compare_kinds(&items[i], &items[i + n]) == 0;)
            n++;
        say_group(d, &items[i], n);
    }
    hg_drive_drop_news(d);
    return hg_drive_commit(d, err);
}
