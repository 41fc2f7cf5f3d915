/* SPDX-License-Identifier: Apache-2.0 */
/* libslurm prints what it thinks of a call, and what a site's submit plugin says, on stderr. */
#include "slurm/libslurm/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slurm/common/codes.h"

static int capture = -1;

int hg_agent_capture(void)
{
    int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    capture = memfd_create("stderr", MFD_CLOEXEC);
    if (answers < 0 || capture < 0 || fcntl(capture, F_SETFL, O_APPEND) < 0 ||
        dup2(capture, STDOUT_FILENO) < 0 || dup2(capture, STDERR_FILENO) < 0)
        return -1;
    return answers;
}

void hg_agent_collect(struct hg_buf *site)
{
    char text[16384];
    ssize_t n;

    fflush(stdout);
    fflush(stderr);
    n = capture < 0 ? 0 : pread(capture, text, sizeof text - 1, 0);
    if (n <= 0 || ftruncate(capture, 0) < 0)
        return;
    text[n] = 0;
    hg_agent_add_lines(text, NULL, site);
}

int hg_agent_fail(struct hg_agent_call *call, int rc, const char *fmt, ...)
{
    /* Up to 24.05 functions return -1 and set errno, later ones may return the number. */
    int number = rc == SLURM_ERROR || rc == SLURM_SUCCESS ? errno : rc;
    char what[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    hg_agent_collect(&call->site);
    return hg_agent_fail_number(call, number, slurm_strerror(number), "%s", what);
}
