/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_DATA_FEATURES_CACHE_H
#define WK_DATA_FEATURES_CACHE_H

#include "data/features.h"

/* wk_features_build from files, through a cache: a folder that holds ready features under a hash of the data
 * file, the vocabulary, the options and the rules. What is in it is checked before it is used, and
 * built again if it is damaged; any number of processes on any number of nodes may share it, also
 * when all start at once (each builds what it does not find, the last one to finish wins). A cache
 * that cannot be written is a warning. cache_dir NULL: no cache. Problems of the data are added to
 * errs with their places. */
int wk_features_open(const char *data_path, const char *vocab_path, const char *cache_dir,
                     const struct wk_feature_options *options, const struct wk_progress *progress,
                     struct wk_features *out, struct hg_errs *errs);

#endif
