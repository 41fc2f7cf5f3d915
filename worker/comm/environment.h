/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says about the ranks of this job. */
#ifndef WK_COMM_ENVIRONMENT_H
#define WK_COMM_ENVIRONMENT_H

/* A variable's value, from 0 to max; -1 if it is absent or anything else. */
long wk_env_number(const char *name, long max);

/* Rank and number of ranks as the environment tells them (RANK, WORLD_SIZE, SLURM_*, OMPI_*),
 * before wk_comm_open. */
void wk_comm_environment(int *rank, int *world);
/* This rank's number on its machine, as the environment tells it; 0 where it does not. */
int wk_comm_local_rank(void);

#endif
