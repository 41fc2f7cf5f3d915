/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_RECORDS_H
#define HG_SLURM_COMMON_RECORDS_H

#include <stdint.h>
#include <time.h>

#include "slurm/common/job.h"

/* What poll and history answer with: one record for the waiting part of an array and for each started task. */
struct hg_agent_record {
    const char *key, *tasks;
    const char *state; /* Slurm's base state */
    const char *reason, *nodes;
    uint32_t job_id; /* of the array */
    uint32_t restarts;
    int exit_status; /* a wait status; 0 until the job ends */
    time_t submit, start,
        end; /* as Slurm has them; start and end are passed on once they have happened, a start before as `expected_s` */
};

/* Slurm's name for a base state, in capitals; NULL: the word is not one. */
const char *hg_agent_base_state(const char *word, size_t n);

/* Does this flag, which some programs print in place of the state, mean that the job waits (again)? */
bool hg_agent_is_waiting(const char *flag);

bool hg_agent_has_ended(const char *state);

/* As JSON; a new reference. */
json_t *hg_agent_record_encode(const struct hg_agent_record *r);

/* The key in a comment, name or path (NULL: none). */
bool hg_agent_find_key(const char *text, char key[static HG_AGENT_KEY_DIGITS + 1]);

/* Slurm's text of an index set, "1,3-5,10-20:2%4" or "[1-3]", as "1,3-5,10,12,...", appended to out.
 * False if it was cut short or cannot be read. */
bool hg_agent_plain_set(const char *text, struct hg_buf *out);

/* The keys that a history asks for, as a set; a new reference. */
json_t *hg_agent_wanted_keys(const json_t *request);

/* The database has a record for each run of a requeued job: keep the last of an id in the object, count
 * the others. The record's reference is taken. */
void hg_agent_keep_latest(json_t *latest, const char *id, json_t *record);

#endif
