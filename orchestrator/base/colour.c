/* SPDX-License-Identifier: Apache-2.0 */
#include "base/colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static enum { AUTO, ALWAYS, NEVER } mode;

bool hg_colour_set(const char *when)
{
    static const char *const words[] = { "auto", "always", "never" };

    for (int i = 0; i < 3; i++)
        if (strcmp(when, words[i]) == 0) {
            mode = i;
            return true;
        }
    return false;
}

static bool is_wanted(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return !(no && *no) && !(term && strcmp(term, "dumb") == 0) && isatty(fd);
}

static bool is_on(int fd)
{
    static int known[3]; /* of a descriptor: 1 + whether it is wanted; 0: not asked yet */

    if (fd < 0 || fd >= 3 || mode != AUTO)
        return fd >= 0 && mode == ALWAYS;
    if (!known[fd])
        known[fd] = 1 + is_wanted(fd);
    return known[fd] == 2;
}

static const char stop[] = "\033[m";
static const char *const codes[] = {
    [HG_COLOUR_GOOD] = "\033[32m",    [HG_COLOUR_BAD] = "\033[31m",
    [HG_COLOUR_WARNING] = "\033[33m", [HG_COLOUR_ACTIVE] = "\033[36m",
    [HG_COLOUR_BEST] = "\033[1;32m",
};

const char *hg_colour_start(int fd, enum hg_colour colour)
{
    return is_on(fd) ? codes[colour] : "";
}

const char *hg_colour_stop(int fd)
{
    return is_on(fd) ? stop : "";
}

/* Length of the code that a text begins with; 0: none of ours. */
static size_t code_length(const char *text)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strncmp(text, codes[i], strlen(codes[i])) == 0)
            return strlen(codes[i]);
    return strncmp(text, stop, sizeof stop - 1) == 0 ? sizeof stop - 1 : 0;
}

void hg_colour_append_clean(int fd, const char *text, struct hg_buf *out)
{
    while (*text) {
        size_t code = is_on(fd) ? code_length(text) : 0;
        size_t n = code ? 0 : strcspn(text + 1, "\033") + 1;

        hg_text_escape_lines(text, n, out);
        hg_buf_append(out, text, code);
        text += n + code;
    }
}

void hg_colour_append_message(int fd, const char *line, size_t n, struct hg_buf *out)
{
    static const char error[] = "error:", warning[] = "warning:";
    const char *at = memmem(line, n, warning, strlen(warning)), *label = warning;
    const char *other = memmem(line, n, error, strlen(error)), *end = line + n;

    if (other && !(at && at < other)) {
        at = other;
        label = error;
    }
    if (at) {
        hg_buf_append(out, line, (size_t)(at - line));
        hg_buf_printf(out, "%s%s%s",
                      hg_colour_start(fd, label == error ? HG_COLOUR_BAD : HG_COLOUR_WARNING),
                      label, hg_colour_stop(fd));
        line = at + strlen(label);
    }
    hg_buf_append(out, line, (size_t)(end - line));
}
