/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_OPTIONS_H
#define HG_SLURM_COMMON_OPTIONS_H

#include <stddef.h>

#include "base/err.h"

/* One sbatch option as typed, understood. */
struct hg_agent_option {
    const char *name; /* "begin", the long form */
    char *text;       /* its value as typed, lent; NULL: none was given */
    long long
        number; /* by its kind: a count, minutes, MiB, seconds since 1970, bits of mail kinds */
    long long wait_min; /* of --switches COUNT@TIME; -1: none */
};

struct hg_agent_options {
    struct hg_agent_option *items;
    size_t n, cap;
};

/* Bit i of --mail-type's number is kind i; ends with NULL. */
extern const char *const hg_agent_mail_kinds[];

/* Understand words ("--begin=now+1hour", "-x", "n1"; NULL-terminated, may be NULL, must outlive the
 * list). REFUSED with the option's name: it is unknown, its value is bad, or it would break a sweep. */
int hg_agent_options_read(char *const *words, struct hg_agent_options *all, struct hg_err *err);

#endif
