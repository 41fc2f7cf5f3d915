/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CONTRACT_SBATCH_H
#define HG_CONTRACT_SBATCH_H

#include <stddef.h>

#include "base/err.h"

/* One sbatch option as typed, understood. */
struct hg_sbatch_option {
    const char *name; /* "begin", the long form */
    char *text;       /* its value as typed, lent; NULL: none was given */
    long long
        number; /* by its kind: a count, minutes, MiB, seconds since 1970, bits of mail kinds */
    long long wait_min; /* of --switches COUNT@TIME; -1: none */
};

struct hg_sbatch_options {
    struct hg_sbatch_option *items;
    size_t n, cap;
};

/* Bit i of --mail-type's number is kind i; ends with NULL. */
extern const char *const hg_sbatch_mail_kinds[];

/* Understand words ("--begin=now+1hour", "-x", "n1"; NULL-terminated, may be NULL, must outlive the
 * list). REFUSED with the option's name: it is unknown, its value is bad, or it would break a sweep. */
int hg_sbatch_read(char *const *words, struct hg_sbatch_options *all, struct hg_err *err);

/* Seconds of "--signal=USR1@SECONDS", which sets the site's signal_lead_s for a cell; -1: another word. */
long hg_sbatch_signal_lead(const char *word);

/* Regular expression of texts whose first word is an option that a cell can have. Yours to free. */
char *hg_sbatch_pattern(void);

#endif
