/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_BOXES_H
#define HG_BOX_BOXES_H

#include "box/record.h"

#define HG_BOX_DEFAULT "default"
#define HG_BOX_NAME_MAX 32 /* munge refuses long socket paths */

/* The boxes of this user, all in /tmp/hpcgrid-<uid>. */
struct hg_box {
    char *name;
    char *dir;
    char *conf; /* value for SLURM_CONF */
    enum hg_box_state state;
    json_t *record; /* as in box/record.h */
};

struct hg_boxes {
    struct hg_box *items;
    size_t n, cap;
};

/* NOTFOUND if there is no such box. Free the result with hg_box_done. */
int hg_boxes_find(const char *name, struct hg_box *box, struct hg_err *err);

/* All boxes of this user, by name. Free with hg_boxes_done. */
int hg_boxes_list(struct hg_boxes *boxes, struct hg_err *err);

/* USAGE if a box cannot have this name. */
int hg_boxes_check_name(const char *name, struct hg_err *err);

/* /tmp/hpcgrid-<uid>/NAME; yours. */
char *hg_boxes_dir(const char *name);

/* Only one box comes or goes at a time for each user; nodes are waited for without the lock. Unlocking removes the folder of all
 * boxes when no box is left. ENV: it is somebody else's folder, or the lock was held for two minutes. */
int hg_boxes_lock(int *fd, struct hg_err *err);
void hg_boxes_unlock(int fd);

void hg_box_done(struct hg_box *box);
void hg_boxes_done(struct hg_boxes *boxes);

#endif
