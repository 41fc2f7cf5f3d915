/* SPDX-License-Identifier: Apache-2.0 */
#include "results/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/vec.h"

/* Marks in a form. After NAME come a member's name, with its NUL, and its value. TEXT, INTEGER and REAL each have a scalar. */
enum mark {
    OBJECT = '{',
    NAME = ':',
    LIST = '[',
    END = '}',
    TEXT = 's',
    INTEGER = 'i',
    REAL = 'r'
};
enum { IS_TRUE = 't', IS_FALSE = 'f', IS_NULL = 'n' };

struct place {
    const char *form;
    const union hg_scalar *scalar;
};

struct hg_shape {
    char *form;
    struct {
        const char *name;
        size_t form, scalar; /* where its value begins */
    } * members;
    size_t n;
};

/* ---- Forms ---- */

static void put_mark(struct hg_store *s, int mark)
{
    hg_buf_append(&s->form, &(char){ (char)mark }, 1);
}

static void put_scalar(struct hg_store *s, enum mark mark, union hg_scalar scalar)
{
    put_mark(s, mark);
    hg_buf_append(&s->scalars, &scalar, sizeof scalar);
}

static void put_value(struct hg_store *s, const json_t *value)
{
    const char *name;
    json_t *inner;
    size_t i;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_mark(s, OBJECT);
        json_object_foreach((json_t *)value, name, inner) {
            put_mark(s, NAME);
            hg_buf_append(&s->form, name, strlen(name) + 1);
            put_value(s, inner);
        }
        put_mark(s, END);
        break;
    case JSON_ARRAY:
        put_mark(s, LIST);
        json_array_foreach(value, i, inner)
            put_value(s, inner);
        put_mark(s, END);
        break;
    case JSON_STRING:
        put_scalar(s, TEXT,
                   (union hg_scalar){ .text = hg_store_text(s, json_string_value(value)) });
        break;
    case JSON_INTEGER:
        put_scalar(s, INTEGER, (union hg_scalar){ .integer = json_integer_value(value) });
        break;
    case JSON_REAL:
        put_scalar(s, REAL, (union hg_scalar){ .real = json_real_value(value) });
        break;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        put_mark(s, json_is_null(value) ? IS_NULL : json_is_true(value) ? IS_TRUE : IS_FALSE);
        break;
    }
}

/* The value at a place, which is moved past it; a new reference. */
static json_t *take_value(struct place *p)
{
    json_t *made;

    switch (*p->form++) {
    case OBJECT:
        made = json_object();
        while (*p->form++ == NAME) {
            const char *name = p->form;

            p->form += strlen(name) + 1;
            json_object_set_new_nocheck(made, name, take_value(p));
        }
        return made;
    case LIST:
        made = json_array();
        while (*p->form != END)
            json_array_append_new(made, take_value(p));
        p->form++;
        return made;
    case TEXT:
        return json_string_nocheck(p->scalar++->text);
    case INTEGER:
        return json_integer(p->scalar++->integer);
    case REAL:
        return json_real(p->scalar++->real);
    case IS_TRUE:
        return json_true();
    case IS_FALSE:
        return json_false();
    default:
        return json_null();
    }
}

/* ---- Shapes ---- */

/* The shape of an object with this form. */
static struct hg_shape *make_shape(const json_t *object, const char *form, size_t len)
{
    struct hg_shape *shape = hg_alloc_zeroed(1, sizeof *shape);
    const char *name;
    json_t *value;
    struct hg_store scratch = { 0 }; /* to measure the members */

    shape->form = hg_alloc(len);
    memcpy(shape->form, form, len);
    shape->members = hg_alloc_zeroed(json_object_size(object), sizeof *shape->members);
    put_mark(&scratch, OBJECT);
    json_object_foreach((json_t *)object, name, value) {
        shape->members[shape->n].name = shape->form + scratch.form.len + 1;
        put_mark(&scratch, NAME);
        hg_buf_append(&scratch.form, name, strlen(name) + 1);
        shape->members[shape->n].form = scratch.form.len;
        shape->members[shape->n++].scalar = scratch.scalars.len / sizeof(union hg_scalar);
        put_value(&scratch, value);
    }
    hg_store_done(&scratch);
    return shape;
}

static const struct hg_shape *shape_of(struct hg_store *s, const json_t *object)
{
    size_t at = hg_map_put(&s->shape_index, s->form.data, s->form.len, s->shapes.n);

    if (at == s->shapes.n)
        *HG_VEC_PUSH(&s->shapes) = make_shape(object, s->form.data, s->form.len);
    return s->shapes.items[at];
}

/* ---- The store ---- */

struct hg_pack hg_pack_make(struct hg_store *s, const json_t *object)
{
    struct hg_pack p;

    hg_buf_clear(&s->form);
    hg_buf_clear(&s->scalars);
    put_value(s, object);
    p.shape = shape_of(s, object);
    p.scalars = hg_alloc(s->scalars.len);
    if (s->scalars.len)
        memcpy(p.scalars, s->scalars.data, s->scalars.len);
    return p;
}

json_t *hg_pack_load(const struct hg_pack *p)
{
    return take_value(&(struct place){ p->shape->form, p->scalars });
}

json_t *hg_pack_member(const struct hg_pack *p, const char *name)
{
    for (size_t i = 0; i < p->shape->n; i++)
        if (strcmp(p->shape->members[i].name, name) == 0)
            return take_value(&(struct place){ p->shape->form + p->shape->members[i].form,
                                               p->scalars + p->shape->members[i].scalar });
    return NULL;
}

const char *hg_store_text(struct hg_store *s, const char *text)
{
    size_t len = text ? strlen(text) : 0, at;

    if (!len)
        return text ? "" : NULL;
    at = hg_map_put(&s->text_index, text, len, s->texts.n);
    if (at == s->texts.n)
        *HG_VEC_PUSH(&s->texts) = hg_strdup(text);
    return s->texts.items[at];
}

const json_t *hg_store_value(struct hg_store *s, const json_t *value)
{
    size_t at;

    if (!value)
        return NULL;
    hg_buf_clear(&s->form);
    hg_json_dump(value, HG_JSON_COMPACT, &s->form);
    at = hg_map_put(&s->value_index, s->form.data, s->form.len, s->values.n);
    if (at == s->values.n)
        *HG_VEC_PUSH(&s->values) = json_incref((json_t *)value);
    return s->values.items[at];
}

void hg_store_done(struct hg_store *s)
{
    for (size_t i = 0; i < s->shapes.n; i++) {
        free(s->shapes.items[i]->form);
        free(s->shapes.items[i]->members);
        free(s->shapes.items[i]);
    }
    for (size_t i = 0; i < s->texts.n; i++)
        free(s->texts.items[i]);
    for (size_t i = 0; i < s->values.n; i++)
        json_decref(s->values.items[i]);
    HG_VEC_DONE(&s->shapes);
    HG_VEC_DONE(&s->texts);
    HG_VEC_DONE(&s->values);
    hg_map_done(&s->shape_index);
    hg_map_done(&s->text_index);
    hg_map_done(&s->value_index);
    hg_buf_done(&s->form);
    hg_buf_done(&s->scalars);
    *s = (struct hg_store){ 0 };
}
