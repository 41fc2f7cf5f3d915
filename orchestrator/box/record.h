/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_RECORD_H
#define HG_BOX_RECORD_H

#include <jansson.h>

#include "box/nodes.h"
#include "box/process.h"

/* box.json: "nodes", "settings", "keeper" and "daemons" with their pids, ... */

enum hg_box_state {
    HG_BOX_UP,
    HG_BOX_DEGRADED, /* the keeper lives, a daemon does not */
    HG_BOX_LOST,     /* the keeper is gone: killed, or the machine was restarted */
};

/* "up", "degraded", "lost" */
const char *hg_box_record_state_name(enum hg_box_state state);

/* A record for a new box; keeper and daemons are not in it yet. */
json_t *hg_box_record_make(const struct hg_box_spec *spec, const struct hg_box_ports *ports);

/* Do the nodes and settings of the record agree with these? */
bool hg_box_record_fits(const json_t *record, const struct hg_box_spec *spec);

/* The record in the folder of a box; an empty object if there is none yet. */
json_t *hg_box_record_load(const char *dir);
int hg_box_record_save(const char *dir, const json_t *record, struct hg_err *err);

/* The object of one process, {"pid", "start"}. */
json_t *hg_box_record_encode(struct hg_box_process p);
struct hg_box_process hg_box_record_process(const json_t *object);
struct hg_box_process hg_box_record_keeper(const json_t *record);

/* Are its pids of this boot at all? */
bool hg_box_record_is_of_this_boot(const json_t *record);

enum hg_box_state hg_box_record_state(const json_t *record);

/* The name of the first daemon that does not run; NULL: all run. */
const char *hg_box_record_dead(const json_t *record);

#endif
