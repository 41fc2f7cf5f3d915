/* SPDX-License-Identifier: Apache-2.0 */
#include "render/renderers.h"

#include <string.h>

#include "base/text.h"

#define ADDRESS(form) &hg_renderer_##form,
const struct hg_renderer *const hg_renderers[] = { HG_RENDERERS(ADDRESS) NULL };

#define NAME(form) #form,
static const char *const names[] = { HG_RENDERERS(NAME) };

const struct hg_renderer *hg_renderer_find(const char *name)
{
    for (const struct hg_renderer *const *r = hg_renderers; *r; r++)
        if (strcmp((*r)->name, name) == 0)
            return *r;
    return NULL;
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = words; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");

        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len;
    }
    return false;
}

const struct hg_renderer *hg_renderer_of_file(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (const struct hg_renderer *const *r = hg_renderers; dot && *r; r++)
        if (has_word((*r)->endings, dot + 1))
            return *r;
    return NULL;
}

int hg_renderer_unknown(const char *name, struct hg_err *err)
{
    hg_err_set(err, HG_E_USAGE, "--format: unknown format \"%s\"", name);
    hg_text_suggest(err, name, names, sizeof names / sizeof *names);
    return -1;
}
