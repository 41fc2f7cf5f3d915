/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/worker.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

char *hg_worker_find(const char *self)
{
    const char *named = getenv("HPCGRID_WORKER");
    char *dir = hg_fs_dirname(self);
    char *beside = hg_fs_join(dir, "hpcgrid-worker");
    char *above = hg_fs_dirname(dir);
    char *built = hg_fs_join(above, "worker/hpcgrid-worker");
    char *found = hg_strdup(named && named[0]      ? named
                            : hg_fs_exists(beside) ? beside
                            : hg_fs_exists(built)  ? built
                                                   : "hpcgrid-worker");

    free(dir);
    free(above);
    free(beside);
    free(built);
    return found;
}

char *hg_worker_input(const json_t *json, struct hg_err *err)
{
    char *path = hg_strdup("/tmp/hpcgrid-worker-XXXXXX");
    int fd = mkstemp(path);
    struct hg_buf text = HG_BUF_INIT;
    int rc = -1;

    hg_json_dump(json, HG_JSON_COMPACT, &text);
    if (fd < 0 || hg_fs_write_all(fd, text.data, text.len) < 0)
        hg_err_sys(err, "cannot write %s", path);
    else
        rc = 0;
    if (fd >= 0)
        close(fd);
    hg_buf_done(&text);
    if (rc == 0)
        return path;
    if (fd >= 0)
        unlink(path);
    free(path);
    return NULL;
}
