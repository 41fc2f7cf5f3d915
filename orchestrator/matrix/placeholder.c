/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/placeholder.h"

#include <ctype.h>
#include <string.h>

static size_t name_length(const char *name)
{
    size_t n = 0;

    while (isalnum((unsigned char)name[n]) || (name[n] && strchr("_-.", name[n])))
        n++;
    return n;
}

bool hg_placeholder_parse(const char *at, struct hg_placeholder *p)
{
    const char *name = at + 2 + strspn(at + 2, " "), *rest, *end = strstr(at, "}}");
    size_t n = name_length(name);

    if (!end || n == 0 || isdigit((unsigned char)name[0]))
        return false;
    *p = (struct hg_placeholder){ .start = at, .end = end + 2 };
    rest = name + n;
    p->several = n > 3 && strncmp(rest - 3, "...", 3) == 0;
    n -= p->several ? 3 : 0;
    if (!p->several && *rest == '?') {
        p->text = rest + 1 + strspn(rest + 1, " ");
        for (rest = end; rest > p->text && rest[-1] == ' ';)
            rest--;
        p->text_len = (size_t)(rest - p->text);
    }
    if (n > HG_PLACEHOLDER_KEY_MAX || rest + strspn(rest, " ") != end)
        return false;
    memcpy(p->key, name, n);
    return true;
}

bool hg_placeholder_next(const char *text, struct hg_placeholder *p)
{
    while ((text = strstr(text, "{{"))) {
        if (hg_placeholder_parse(text, p))
            return true;
        text++;
    }
    return false;
}

bool hg_placeholder_is_whole(const struct hg_placeholder *p, const char *text)
{
    return p->start == text && *p->end == '\0';
}
