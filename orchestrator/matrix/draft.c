/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/draft.h"

#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

/* No person writes more; without bounds a file of 16 MB could keep us busy for hours. */
#define KEYS_MAX 2048

int hg_draft_column(struct hg_draft *p, const char *name, const char *pointer)
{
    int found = hg_grid_column(p->g, name), key = hg_key_find(name);
    struct hg_buf prefix = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_column *c;

    if (hg_key_judge(&p->judge, name, &err) < 0)
        return hg_draft_report(p, pointer, true, &err);
    if (found >= 0)
        return found;
    if (p->g->columns.n == KEYS_MAX) {
        if (!p->full)
            hg_json_error(&p->m->doc, "", p->errs, "more than %d different keys", KEYS_MAX);
        p->full = true;
        return -1;
    }
    c = HG_VEC_PUSH(&p->g->columns);
    *c = (struct hg_column){ .start = HG_VALUE_ABSENT, .note = name[0] == '_', .derive = -1 };
    c->identity = key >= 0 ? hg_keys[key].role != HG_ROLE_LOOSE : !c->note;
    hg_json_dump_string(name, strlen(name), &prefix);
    hg_buf_puts(&prefix, ":");
    c->prefix_len = prefix.len;
    c->prefix = hg_buf_detach(&prefix);
    c->name = hg_strdup(name);
    return (int)p->g->columns.n - 1;
}

int hg_draft_report(struct hg_draft *p, const char *pointer, bool at_key, const struct hg_err *err)
{
    struct hg_err *e = at_key ? hg_json_error_key(&p->m->doc, pointer, p->errs, "%s", err->text)
                              : hg_json_error(&p->m->doc, pointer, p->errs, "%s", err->text);

    e->code = err->code;
    if (err->hint[0])
        hg_err_hint(e, "%s", err->hint);
    return -1;
}

int hg_draft_value(struct hg_draft *p, const char *key, const json_t *json, const char *pointer,
                   hg_value *value)
{
    const struct hg_several_site *site;
    struct hg_err err = HG_ERR_INIT;

    if (hg_member_judge(&p->judge, key, json, &err) < 0)
        return hg_draft_report(p, pointer, false, &err);
    site = p->judge.several && strcmp(key, "site") == 0 && json_is_string(json)
               ? hg_several_find(p->judge.several, json_string_value(json))
               : NULL;
    *value = site ? hg_pool_add_string(p->g->pool, site->site->name) /* not the file's */
                  : hg_pool_add(p->g->pool, json);
    return 0;
}

int hg_draft_unknown_key(struct hg_draft *p, const char *pointer, bool at_key, const char *name)
{
    struct hg_err *err =
        at_key ? hg_json_error_key(&p->m->doc, pointer, p->errs, "no cell has \"%s\"", name)
               : hg_json_error(&p->m->doc, pointer, p->errs, "no cell has \"%s\"", name);

    hg_grid_suggest(p->g, name, err);
    return -1;
}
