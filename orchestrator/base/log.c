/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bar.h"
#include "base/buf.h"
#include "base/colour.h"
#include "base/fs.h"

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static const char *program;
static int threshold = -1;
static void (*diverted)(const char *line);
static void (*listener)(const char *text);

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

void hg_log_on_warning(void (*listen)(const char *text))
{
    listener = listen;
}

static int level_from_environment(void)
{
    const char *word = getenv("HPCGRID_LOG");

    for (int i = 0; word && i <= HG_LOG_DEBUG; i++)
        if (strcmp(word, level_names[i]) == 0)
            return i;
    return HG_LOG_INFO;
}

static void put(enum hg_log_level level, struct hg_buf *line)
{
    struct hg_buf shown = HG_BUF_INIT;

    hg_buf_puts(line, "\n");
    if (level <= HG_LOG_WARN)
        hg_colour_append_message(STDERR_FILENO, line->data, line->len, &shown);
    else
        hg_buf_append(&shown, line->data, line->len);
    hg_bar_hide();
    (void)!hg_fs_write_all(STDERR_FILENO, shown.data, shown.len); /* one write: lines never mix */
    hg_buf_done(&shown);
}

void hg_log(enum hg_log_level level, const char *fmt, ...)
{
    struct hg_buf line = HG_BUF_INIT, text = HG_BUF_INIT;
    int sys = errno;
    size_t start;
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
    start = line.len;
    va_start(ap, fmt);
    hg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    hg_colour_append_clean(STDERR_FILENO, hg_buf_str(&text), &line);
    hg_buf_done(&text);
    if (listener && level == HG_LOG_WARN)
        listener(hg_buf_str(&line) + start);
    if (diverted)
        diverted(hg_buf_str(&line));
    else
        put(level, &line);
    hg_buf_done(&line);
    errno = sys;
}
