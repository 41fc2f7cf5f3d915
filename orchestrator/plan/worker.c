/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/worker.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

char *hg_worker_find(void)
{
    static const char *const places[] = { "hpcgrid-worker", "../worker/hpcgrid-worker", NULL };
    const char *named = getenv("HPCGRID_WORKER");
    char *path = named && *named ? hg_strdup(named) : hg_fs_find_beside(places);

    return path ? path : hg_strdup("hpcgrid-worker");
}

char *hg_worker_input(const json_t *json, struct hg_err *err)
{
    char *path = hg_strdup("/tmp/hpcgrid-worker-XXXXXX");
    int fd = mkstemp(path);
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(json, HG_JSON_COMPACT, &text);
    if (fd < 0 || hg_fs_write_all(fd, text.data, text.len) < 0) {
        hg_err_sys(err, "cannot write %s", path);
        if (fd >= 0)
            unlink(path);
        free(path);
        path = NULL;
    }
    if (fd >= 0)
        close(fd);
    hg_buf_done(&text);
    return path;
}
