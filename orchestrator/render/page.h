/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_PAGE_H
#define HG_RENDER_PAGE_H

#include <stddef.h>

#include "analysis/table.h"

/* What a page knows besides the results: how it was made, and where the runs' files are. Only forms
 * that show provenance use it. */
struct hg_page {
    char *command; /* that makes it again, ready for a shell; NULL: not said */
    size_t n_sets;
    char **links;   /* by set: the way from the page to the run's folder; NULL: no links */
    char **folders; /* by set: the run's folder; NULL: not known */
    char *
        *matrices; /* by set: text of the run's matrix, or where it is if it is long; NULL: none */
};

/* Room for n sets. Returns 0, or -1 when memory is gone; hg_page_done either way. */
int hg_page_init(struct hg_page *page, size_t n_sets);
void hg_page_done(struct hg_page *page);

/* Set `set` is the run in this folder, its page is written to the file `out` (NULL: somewhere into the
 * working directory). What cannot be read is left out. */
void hg_page_set_run(struct hg_page *page, size_t set, const char *run_dir, const char *out);

/* Hosts, devices, versions, times, and what a published set says of itself: rows of two columns. */
void hg_provenance_fill(const struct hg_report *r, struct hg_listing *l);

#endif
