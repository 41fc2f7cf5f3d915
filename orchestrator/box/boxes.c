/* SPDX-License-Identifier: Apache-2.0 */
#include "box/boxes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/text.h"
#include "base/vec.h"

#define LOCK_S 120.0 /* another up or down takes seconds */

/* ---- the folder of all boxes ---- */

static char *root_dir(void)
{
    return hg_str_printf("/tmp/hpcgrid-%ld", (long)geteuid());
}

char *hg_boxes_dir(const char *name)
{
    return hg_str_printf("/tmp/hpcgrid-%ld/%s", (long)geteuid(), name);
}

/* /tmp is everybody's: somebody else may have made the folder first, or a link in its place. */
static int claim_root(const char *root, struct hg_err *err)
{
    struct stat st;

    if (mkdir(root, 0755) < 0 && errno != EEXIST)
        return hg_err_sys(err, "cannot make %s", root);
    if (lstat(root, &st) < 0)
        return hg_err_sys(err, "cannot look at %s", root);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return hg_err_set(err, HG_E_ENV, "%s is somebody else's: boxes cannot live there", root);
    if ((st.st_mode & 0777) != 0755 && chmod(root, 0755) < 0)
        return hg_err_sys(err, "cannot change the mode of %s", root);
    return 0;
}

/* The lock's file goes with the last box: a lock on a file that was removed meanwhile does not count. */
int hg_boxes_lock(int *fd, struct hg_err *err)
{
    char *root = root_dir(), *path = hg_fs_join(root, "lock");
    double end = hg_clock_mono_s() + LOCK_S;
    int rc = -1;

    *fd = -1;
    for (;;) {
        struct stat ours, now;

        if (claim_root(root, err) < 0)
            break;
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (*fd < 0 && errno == ENOENT)
            continue;
        if (*fd < 0) {
            hg_err_sys(err, "cannot open %s", path);
            break;
        }
        if (flock(*fd, LOCK_EX | LOCK_NB) == 0 && fstat(*fd, &ours) == 0 && stat(path, &now) == 0 &&
            ours.st_ino == now.st_ino) {
            rc = 0;
            break;
        }
        close(*fd);
        *fd = -1;
        if (hg_clock_mono_s() > end) {
            hg_err_set(err, HG_E_ENV, "another hpcgrid holds %s", path);
            break;
        }
        hg_clock_sleep_s(0.02);
    }
    free(path);
    free(root);
    return rc;
}

void hg_boxes_unlock(int fd)
{
    char *root = root_dir(), *path = hg_fs_join(root, "lock");
    DIR *folder = opendir(root);
    const struct dirent *e;
    bool empty = folder != NULL;

    while (folder && (e = readdir(folder)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, "lock") != 0)
            empty = false;
    if (folder)
        closedir(folder);
    if (empty && unlink(path) == 0)
        rmdir(root);
    close(fd);
    free(path);
    free(root);
}

/* ---- one box, all boxes ---- */

static bool name_is_fine(const char *name)
{
    return hg_text_is_name(name) && strlen(name) <= HG_BOX_NAME_MAX && strcmp(name, "lock") != 0;
}

int hg_boxes_check_name(const char *name, struct hg_err *err)
{
    if (name_is_fine(name))
        return 0;
    return hg_err_set(
        err, HG_E_USAGE,
        "\"%s\" cannot be the name of a box: letters, digits, . _ -, at most %d of them", name,
        HG_BOX_NAME_MAX);
}

static void fill(const char *name, struct hg_box *box)
{
    *box = (struct hg_box){ .name = hg_strdup(name), .dir = hg_boxes_dir(name) };
    box->conf = hg_fs_join(box->dir, "slurm.conf");
    box->record = hg_box_record_load(box->dir);
    box->state = hg_box_record_state(box->record);
}

int hg_boxes_find(const char *name, struct hg_box *box, struct hg_err *err)
{
    struct stat st;

    *box = (struct hg_box){ 0 };
    if (hg_boxes_check_name(name, err) < 0)
        return -1;
    fill(name, box);
    if (lstat(box->dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
        return 0;
    hg_box_done(box);
    hg_err_set(err, HG_E_NOTFOUND, "there is no box \"%s\"", name);
    return hg_err_hint(err, "`hpcgrid box list` names them");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hg_box *)a)->name, ((const struct hg_box *)b)->name);
}

int hg_boxes_list(struct hg_boxes *boxes, struct hg_err *err)
{
    char *root = root_dir();
    DIR *folder = opendir(root);
    const struct dirent *e;
    int rc = 0;

    if (!folder && errno != ENOENT)
        rc = hg_err_sys(err, "cannot read folder %s", root);
    *boxes = (struct hg_boxes){ 0 };
    while (folder && (e = readdir(folder))) {
        struct hg_box box;

        if (name_is_fine(e->d_name) &&
            hg_boxes_find(e->d_name, &box, &(struct hg_err)HG_ERR_INIT) == 0)
            *HG_VEC_PUSH(boxes) = box;
    }
    if (folder)
        closedir(folder);
    free(root);
    if (boxes->n)
        qsort(boxes->items, boxes->n, sizeof *boxes->items, by_name);
    return rc;
}

void hg_box_done(struct hg_box *box)
{
    free(box->name);
    free(box->dir);
    free(box->conf);
    json_decref(box->record);
    *box = (struct hg_box){ 0 };
}

void hg_boxes_done(struct hg_boxes *boxes)
{
    for (size_t i = 0; i < boxes->n; i++)
        hg_box_done(&boxes->items[i]);
    HG_VEC_DONE(boxes);
}
