/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_TEXTS_H
#define HG_SLURM_COMMON_TEXTS_H

/* The number of the error that Slurm's own words for it end a line with, in the C locale; 0: not known. */
int hg_agent_number_of(const char *text);

#endif
