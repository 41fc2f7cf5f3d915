/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"

/* Opening makes a network file system fetch the file's current attributes. A file that cannot be read counts as existing. */
static bool read_claim(const char *dir, const char *name, struct hg_claim *claim)
{
    char *path = hg_fs_join(dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_buf text = HG_BUF_INIT;
    struct stat st;
    bool there = fd >= 0 || errno != ENOENT;

    if (fd >= 0 && fstat(fd, &st) == 0)
        claim->beat_s = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
    if (fd >= 0 && hg_fs_read_open(fd, path, HG_JSON_FILE_MAX, &text, NULL) == 0 &&
        hg_json_parse(path, hg_buf_str(&text), text.len, &doc, NULL) == 0)
        hg_owner_decode(doc.root, &claim->who);
    hg_json_doc_done(&doc);
    hg_buf_done(&text);
    free(path);
    return there;
}

bool hg_claim_read(const char *dir, struct hg_claim *claim)
{
    char *left = hg_fs_join(dir, HG_CLAIM_LEFT);

    *claim = (struct hg_claim){ .left = hg_fs_exists(left) };
    free(left);
    if (read_claim(dir, HG_CLAIM_FILE, claim))
        return true;
    claim->taken = true;
    return read_claim(dir, HG_CLAIM_TAKEN, claim);
}

enum hg_owner_life hg_claim_life(const struct hg_claim *claim, struct hg_claim_watch *watch,
                                 double now_s, double heartbeat_s)
{
    enum hg_owner_life life = claim->taken ? HG_OWNER_DEAD : hg_owner_life(&claim->who);
    bool first = watch->look_s == 0, moved = watch->beat_s != claim->beat_s;

    if (life != HG_OWNER_UNKNOWN)
        return life;
    watch->still_s = first || moved ? 0 : watch->still_s + fmin(now_s - watch->look_s, heartbeat_s);
    watch->look_s = now_s;
    watch->beat_s = claim->beat_s;
    if (!first && moved)
        return HG_OWNER_ALIVE;
    return watch->still_s < HG_CLAIM_MISSED * heartbeat_s ? HG_OWNER_UNKNOWN : HG_OWNER_DEAD;
}

bool hg_claim_beat(const char *dir)
{
    /* Opening makes a network file system check for changed names: by a cached name the file would be touched even after a rename. */
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    /* If the folder is gone, moved with its run perhaps, nobody took it over. */
    bool ours = fd < 0 || utimensat(fd, HG_CLAIM_FILE, NULL, AT_SYMLINK_NOFOLLOW) == 0 ||
                errno != ENOENT || fstatat(fd, HG_CLAIM_TAKEN, &st, AT_SYMLINK_NOFOLLOW) < 0;

    if (fd >= 0)
        close(fd);
    return ours;
}

/* In place: no new block is needed. */
static int overwrite(const char *path, const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    int rc = -1;

    if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size < len)
        errno = ENOSPC;
    else if (fd >= 0 && hg_fs_write_all(fd, text, len) == 0 && ftruncate(fd, (off_t)len) == 0 &&
             fsync(fd) == 0)
        rc = 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

int hg_claim_use(const char *dir, const char *text, size_t len, const char *name,
                 struct hg_err *err)
{
    char *claim = hg_fs_join(dir, HG_CLAIM_FILE), *path = hg_fs_join(dir, name);
    int rc = -1;

    if (overwrite(claim, text, len) < 0 || link(claim, path) < 0)
        hg_err_sys(err, "cannot write %s", path);
    else
        rc = hg_fs_sync_dir(dir, err);
    free(claim);
    free(path);
    return rc;
}
