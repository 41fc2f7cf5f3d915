/* SPDX-License-Identifier: Apache-2.0 */
/* A device that only counts: a model that is opened on it shows what a real device would hold, class by class, and nothing is
 * allocated or computed. */
#ifndef WK_BACKENDS_COUNT_H
#define WK_BACKENDS_COUNT_H

#include "backends/backend.h"

/* For this backend (by name; one that the build lacks is taken as cpu) and precision. No real device is opened, no op may be
 * called. End it with dev->backend->close. */
struct wk_dev *wk_dev_count_open(const char *backend, enum wk_precision precision, int threads,
                                 struct hg_err *err);
/* What wk_dev_grain says of it. */
size_t wk_dev_count_grain(const char *backend);

#endif
