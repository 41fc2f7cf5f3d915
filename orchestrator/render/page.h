/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_PAGE_H
#define HG_RENDER_PAGE_H

#include <stddef.h>

#include "analysis/report.h"

/* Provenance of a page: how it was made, and where the files of the runs are. Only forms that show it use it. */
struct hg_page {
    char *command; /* that makes it again, ready for a shell; NULL: unknown */
    size_t n_sets;
    char **links;   /* by set: relative path from the page to the run's folder; NULL: no links */
    char **folders; /* by set: the run's folder; NULL: unknown */
    /* By set: text of the run's matrix, or where it is if it is long; NULL: none. */
    char **matrices;
};

/* Room for n sets; free it with hg_page_done. */
void hg_page_init(struct hg_page *page, size_t n_sets);
void hg_page_done(struct hg_page *page);

/* Set `set` is the run in this folder, its page is written to the file `out` (NULL: somewhere into the
 * working directory). What cannot be read is left out. */
void hg_page_set_run(struct hg_page *page, size_t set, const char *run_dir, const char *out);

/* Append "; measured 2026-11-20T10:00:00Z to ..."; nothing if the results have no times. */
void hg_measured_format(const struct hg_report *r, struct hg_buf *out);

/* Fill a listing with hosts, devices, versions and times, and what a published set says of its source: rows of two columns. */
void hg_provenance_fill(const struct hg_report *r, struct hg_listing *l);

#endif
