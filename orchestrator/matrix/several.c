/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/several.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/pointer.h"

#define SITES_MAX 64

static void add_site(struct hg_several *s, const struct hg_json_doc *doc, const json_t *value,
                     const char *pointer, const char *dir, struct hg_errs *errs)
{
    const char *word = json_string_value(value);
    struct hg_site *site;

    if (!word || hg_several_knows(s, word)) /* other types are judged with the cells */
        return;
    if (s->n == SITES_MAX) {
        hg_json_error(doc, pointer, errs, "more than %d sites", SITES_MAX);
        return;
    }
    site = hg_site_of_axis(doc, value, pointer, dir, errs);
    if (site && hg_several_find(s, site->name))
        hg_json_error(doc, pointer, errs, "\"%s\" and \"%s\" are both called %s", word,
                      hg_several_find(s, site->name)->word, site->name);
    if (!site)
        hg_words_push(&s->missing, word);
    else
        *HG_VEC_PUSH(s) = (struct hg_several_site){ hg_strdup(word), site };
}

void hg_several_add(struct hg_several *s, const struct hg_json_doc *doc, const json_t *part,
                    const char *pointer, const char *dir, struct hg_errs *errs)
{
    const char *name = strrchr(pointer, '/');
    bool own = name && strcmp(name, "/site") == 0;
    struct hg_buf path = HG_BUF_INIT;
    json_t *inner;
    size_t i;

    if (own)
        add_site(s, doc, part, pointer, dir, errs);
    json_array_foreach((json_t *)part, i, inner) {
        hg_item_pointer(&path, pointer, i);
        if (own && json_is_string(inner))
            add_site(s, doc, inner, hg_buf_str(&path), dir, errs);
        else
            hg_several_add(s, doc, inner, hg_buf_str(&path), dir, errs);
    }
    json_object_foreach((json_t *)part, name, inner)
        hg_several_add(s, doc, inner, hg_member_pointer(&path, pointer, name), dir, errs);
    hg_buf_done(&path);
}

static bool names_site(const json_t *part)
{
    bool names = json_object_get(part, "site");
    const char *key;
    json_t *inner;
    size_t i;

    json_array_foreach((json_t *)part, i, inner)
        names = names || names_site(inner);
    json_object_foreach((json_t *)part, key, inner)
        names = names || names_site(inner);
    return names;
}

bool hg_several_in(const json_t *matrix)
{
    return !json_object_get(matrix, "site") && (names_site(json_object_get(matrix, "axes")) ||
                                                names_site(json_object_get(matrix, "include")));
}

struct hg_several_site *hg_several_find(const struct hg_several *s, const char *word)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->items[i].site->name, word) == 0 || strcmp(s->items[i].word, word) == 0)
            return &s->items[i];
    return NULL;
}

bool hg_several_knows(const struct hg_several *s, const char *word)
{
    return hg_several_find(s, word) ||
           (s->missing.n &&
            hg_text_is_one_of(word, strlen(word), (const char *const *)s->missing.items));
}

int hg_several_hint(const struct hg_several *s, const char *what, struct hg_err *err)
{
    struct hg_buf names = HG_BUF_INIT;

    for (size_t i = 0; i < s->n; i++)
        hg_buf_printf(&names, "%s%s", i ? ", " : "", s->items[i].site->name);
    hg_err_hint(err, "its sites are %s%s", hg_buf_str(&names), what);
    hg_buf_done(&names);
    return -1;
}

void hg_several_done(struct hg_several *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->items[i].word);
        hg_site_free(s->items[i].site);
    }
    HG_VEC_DONE(s);
    hg_words_done(&s->missing);
}
