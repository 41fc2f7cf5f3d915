/* SPDX-License-Identifier: Apache-2.0 */
/* libslurm prints what it thinks of a call, and what a site's submit plugin says, on stderr. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slurm/libslurm/slurm.h"

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

/* "hpcgrid-slurm: error: text" -> "text" */
static const char *without_prefix(const char *line)
{
    static const char *const prefixes[] = { HG_AGENT_PROGRAM ": ", "error: ", "fatal: " };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(line, prefixes[i], strlen(prefixes[i])) == 0)
            line += strlen(prefixes[i]);
    return line;
}

void hg_agent_collect(struct hg_buf *site)
{
    char text[16384], *save = NULL;
    ssize_t n;

    fflush(stdout);
    fflush(stderr);
    n = capture < 0 ? 0 : pread(capture, text, sizeof text - 1, 0);
    if (n <= 0 || ftruncate(capture, 0) < 0)
        return;
    text[n] = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *said = without_prefix(line);

        if (*said)
            hg_buf_printf(site, "%s%s", site->len ? "\n" : "", said);
    }
}
