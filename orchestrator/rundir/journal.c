/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/seal.h"
#include "rundir/events.h"

struct hg_journal {
    struct hg_run_state *state;
    char *path;
    int fd;
    uint32_t fence;
    uint64_t seq; /* of the last line queued */
    off_t size;   /* of the file */
    struct hg_buf queue;
    int (*guard)(void *context, struct hg_err *err);
    void *context;
    bool broken;
};

const struct hg_run_state *hg_journal_state(const struct hg_journal *j)
{
    return j->state;
}

bool hg_journal_is_empty(const struct hg_journal *j)
{
    return j->queue.len == 0;
}

void hg_journal_close(struct hg_journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    hg_run_state_free(j->state);
    hg_buf_done(&j->queue);
    free(j->path);
    free(j);
}

static int open_file(struct hg_journal *j, const char *run_dir, struct hg_err *err)
{
    size_t used;

    j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (j->fd < 0)
        return hg_err_sys(err, "cannot write %s", j->path);
    if (hg_run_state_read(j->state, j->path, &used, err) < 0)
        return -1;
    if (j->state->fence >= j->fence)
        return hg_err_set(err, HG_E_AGAIN, "the journal has seen lock %" PRIu32 " already",
                          j->state->fence);
    if (j->state->torn) {
        hg_warn("%s: the last line was cut short and is dropped", j->path);
        if (ftruncate(j->fd, (off_t)used) < 0 || fsync(j->fd) < 0)
            return hg_err_sys(err, "cannot repair %s", j->path);
        j->state->torn = false;
    }
    j->size = (off_t)used;
    j->seq = j->state->seq;
    return hg_fs_sync_dir(run_dir, err);
}

struct hg_journal *hg_journal_open(const char *run_dir, uint32_t fence,
                                   int (*guard)(void *context, struct hg_err *err), void *context,
                                   struct hg_err *err)
{
    struct hg_journal *j = hg_alloc_zeroed(1, sizeof *j);

    j->fd = -1;
    j->fence = fence;
    j->guard = guard;
    j->context = context;
    j->path = hg_fs_join(run_dir, "events.jsonl");
    j->state = hg_run_state_create();
    if (open_file(j, run_dir, err) == 0)
        return j;
    hg_journal_close(j);
    return NULL;
}

int hg_journal_add(struct hg_journal *j, double now_s, const char *kind, json_t *members,
                   struct hg_err *err)
{
    json_t *record;

    if (!members)
        return hg_err_set(err, HG_E_BUG, "a record \"%s\" holds text that is not UTF-8", kind);
    record = json_pack("{s:I,s:I,s:f,s:s}", "seq", (json_int_t)++j->seq, "fence",
                       (json_int_t)j->fence, "t", round(now_s * 1000) / 1000, "kind", kind);
    json_object_update(record, members);
    hg_seal_dump(record, HG_JSON_COMPACT, &j->queue);
    json_decref(record);
    json_decref(members);
    return 0;
}

/* The file must be as we left it; if it is not, two processes write. */
static int check_owner(struct hg_journal *j, struct hg_err *err)
{
    struct stat st;

    if (j->broken)
        return hg_err_set(err, HG_E_ENV, "%s could not be written before", j->path);
    if (j->guard && j->guard(j->context, err) < 0)
        return -1;
    if (fstat(j->fd, &st) < 0)
        return hg_err_sys(err, "cannot write %s", j->path);
    if (st.st_size != j->size || st.st_nlink == 0)
        return hg_err_set(err, HG_E_ENV, "%s was changed by somebody else", j->path);
    return 0;
}

static int write_queue(struct hg_journal *j, struct hg_err *err)
{
    if (check_owner(j, err) < 0)
        return -1;
    if (hg_fs_write_all(j->fd, j->queue.data, j->queue.len) < 0 || fsync(j->fd) < 0) {
        hg_err_sys(err, "cannot write %s", j->path);
        if (ftruncate(j->fd, j->size) < 0) /* readers see the rest as a torn line */
            j->broken = true;
        return -1;
    }
    j->size += (off_t)j->queue.len;
    return 0;
}

int hg_journal_commit(struct hg_journal *j, struct hg_err *err)
{
    size_t used;
    int rc = 0;

    if (j->queue.len)
        rc = write_queue(j, err);
    if (rc == 0 && j->queue.len)
        rc = hg_run_state_fold(j->state, j->path, j->queue.data, j->queue.len, &used, err);
    if (rc < 0)
        j->seq = j->state->seq;
    hg_buf_clear(&j->queue);
    return rc;
}
