/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_CODE_H
#define HG_NODE_CODE_H

#include <jansson.h>

/* Which code an attempt is about to run. */
struct hg_code_place {
    const char *dir; /* the folder in which the command runs */
    const char *matrix,
        *run; /* what else is written there: neither counts as code; matrix may be NULL */
    const char *const *words; /* of the command; ends with NULL. The first may be hpcgrid-worker */
};

/* "code" of a result:
 *   revision  commit of the git work tree around dir
 *   dirty     its tracked files, but the matrix and the run, differ from that commit; absent: not known
 *   hash      of names and contents of these files; absent: they could not be looked at in time, unknown says how far it came
 *   files     [{"name", "hash"}] of the programs and scripts among the words, wherever they lie
 * A new reference; NULL: nothing is known. Takes at most some seconds, usually some milliseconds. */
json_t *hg_code_of(const struct hg_code_place *p);

/* "files" alone; an empty array where there are none. A new reference. */
json_t *hg_code_files(const struct hg_code_place *p);

#endif
