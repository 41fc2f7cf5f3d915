/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static const char *program;
static int threshold = -1;
static void (*diverted)(const char *line);

void hg_log_set_name(const char *name)
{
    program = name;
}

void hg_log_set_level(enum hg_log_level level)
{
    threshold = (int)level;
}

void hg_log_divert(void (*take)(const char *line))
{
    diverted = take;
}

static int level_from_environment(void)
{
    const char *word = getenv("HPCGRID_LOG");

    for (int i = 0; word && i <= HG_LOG_DEBUG; i++)
        if (strcmp(word, level_names[i]) == 0)
            return i;
    return HG_LOG_INFO;
}

void hg_log(enum hg_log_level level, const char *fmt, ...)
{
    struct hg_buf line = HG_BUF_INIT;
    int sys = errno;
    va_list ap;

    if (threshold < 0)
        threshold = level_from_environment();
    if ((int)level > threshold)
        return;
    hg_buf_printf(&line, "%s: ", program ? program : program_invocation_short_name);
    if (level == HG_LOG_WARN)
        hg_buf_puts(&line, "warning: ");
    else if (level == HG_LOG_ERROR)
        hg_buf_puts(&line, "error: ");
    va_start(ap, fmt);
    hg_buf_vprintf(&line, fmt, ap);
    va_end(ap);
    if (diverted) {
        diverted(hg_buf_str(&line));
    } else {
        hg_buf_puts(&line, "\n");
        (void)!hg_fs_write_all(STDERR_FILENO, line.data, line.len); /* one write: lines never mix */
    }
    hg_buf_done(&line);
    errno = sys;
}
