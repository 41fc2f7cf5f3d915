/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_ORPHANS_H
#define HG_BOX_ORPHANS_H

#include <jansson.h>

/* End what a dead keeper left: the daemons of the record (NULL: there is none, or it is of an earlier boot), daemons that it did not
 * record before it was killed, step daemons and their descendants. */
void hg_box_orphans_stop(const char *dir, const json_t *record);

#endif
