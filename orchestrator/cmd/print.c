/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/print.h"

#include <stdio.h>
#include <sys/ioctl.h>

#include "base/json.h"

#define WIDTH_MIN 40

void hg_print_json(json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(value, HG_JSON_INDENT, &text);
    puts(hg_buf_str(&text));
    hg_buf_done(&text);
    json_decref(value);
}

size_t hg_print_width(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN ? size.ws_col : 0;
}
