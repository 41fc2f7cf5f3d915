/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_KINDS_H
#define HG_RENDER_KINDS_H

#include "analysis/report.h"
#include "base/buf.h"
#include "base/err.h"

/* Other kinds of CSV: --csv KIND. "steps" and "epochs": one line for each step or epoch of each result, with its keys and every list of
 * numbers that it has of them (loss, epoch_s ...). "pgfplots": one line for each number of devices, for each case its value, speedup and
 * efficiency with the lengths of the error bars, nan where there is none; names of letters, digits and "_". */

#define HG_CSV_KINDS "steps, epochs or pgfplots"

/* Append the CSV. Returns 0, or -1 with err set: USAGE if the kind is unknown, INPUT if no result has such lists. */
int hg_csv_kind_render(const struct hg_report *r, const char *kind, struct hg_buf *out,
                       struct hg_err *err);

#endif
