/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_NEWS_H
#define HG_DRIVE_NEWS_H

#include "drive/state.h"

/* Queue a line of the journal, with the requests made since the last one that counted them. The reference is taken. */
void hg_drive_say(struct hg_drive *d, const char *kind, json_t *members);

/* Write the lines that are queued. */
int hg_drive_commit(struct hg_drive *d, struct hg_err *err);

/* Both. */
int hg_drive_record(struct hg_drive *d, const char *kind, json_t *members, struct hg_err *err);

/* Queue one cell's news. text may be NULL or "". */
void hg_drive_tell(struct hg_drive *d, const char *kind, const struct hg_submission *sub,
                   uint32_t index, const char *word, uint32_t restarts, const char *text);

/* Write the news, equal ones of several cells as one line. */
int hg_drive_flush(struct hg_drive *d, struct hg_err *err);

/* Forget the news that are queued. */
void hg_drive_drop_news(struct hg_drive *d);

/* Were requests made that no line has counted yet? */
bool hg_drive_has_uncounted(const struct hg_drive *d);

#endif
