/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MANUAL_TOPICS_H
#define HG_MANUAL_TOPICS_H

#include "base/buf.h"
#include "manual/markup.h"

/* What `hpcgrid help TOPIC` and the manual pages show: sections of the repository's pages, which are compiled in. */
struct hg_topic {
    const char *name;
    const char *summary;      /* "members of a matrix file" */
    const char *page;         /* NULL: the list of commands */
    const char *first, *last; /* headings; NULL as for hg_markup_sections */
};

extern const struct hg_topic hg_topics[]; /* ends with an entry without a name */

/* NULL if there is none of this name. */
const struct hg_topic *hg_topic_find(const char *name);

void hg_topic_append(const struct hg_topic *topic, enum hg_markup_form form, struct hg_buf *out);

/* A manual page that is made of topics. */
struct hg_manual_page {
    const char *name;
    int section;
    const char *summary;
    const char *topics[8]; /* names; ends with NULL */
};

extern const struct hg_manual_page hg_manual_pages[]; /* ends with an entry without a name */

#endif
