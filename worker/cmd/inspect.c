/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker inspect: what a safetensors file contains, and which BERT could start from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "models/models.h"
#include "train/weights.h"

/* What a model finds in a file. */
struct found {
    const struct wk_model_kind *kind;
    char size[96];
    json_t *missing, *fresh, *ignored, *foreign, *misshaped; /* names */
};

/* The sizes of the BERT that a file's tensors belong to; false if there is none. */
static bool guess_size(const struct wk_st *st, struct wk_model_size *size)
{
    static const char *const prefixes[] = { "bert.", "" };
    char name[128];

    for (int i = 0; i < 2; i++) {
        const struct wk_st_tensor *t;

        snprintf(name, sizeof name, "%sembeddings.word_embeddings.weight", prefixes[i]);
        t = wk_st_find(st, name);
        if (!t || t->n_dims != 2 || t->dims[0] > INT32_MAX || t->dims[1] > 65536)
            continue;
        *size = (struct wk_model_size){ .vocab_size = (long long)t->dims[0],
                                        .hidden = (long long)t->dims[1] };
        snprintf(name, sizeof name, "%sembeddings.position_embeddings.weight", prefixes[i]);
        t = wk_st_find(st, name);
        if (t && t->n_dims == 2 && t->dims[0] <= 65536)
            size->positions = (long long)t->dims[0];
        for (;; size->layers++) {
            snprintf(name, sizeof name, "%sencoder.layer.%lld.intermediate.dense.weight",
                     prefixes[i], size->layers);
            t = wk_st_find(st, name);
            if (!t || t->n_dims != 2 || t->dims[0] > 1048576)
                break;
            size->intermediate = (long long)t->dims[0];
        }
        return size->layers > 0 && size->hidden > 0;
    }
    return false;
}

static const char *preset_of(const struct wk_model_size *s)
{
    for (const struct wk_model_entry *m = wk_models; m->name; m++)
        if (m->make && m->size.layers == s->layers && m->size.hidden == s->hidden &&
            m->size.intermediate == s->intermediate)
            return m->name;
    return NULL;
}

static void add_name(json_t *list, const char *name)
{
    json_array_append_new(list, json_string(name));
}

/* Hold the file against the model. */
static void compare(const struct wk_st *st, struct found *f)
{
    for (int i = 0; i < f->kind->n_params; i++) {
        const struct wk_param *p = &f->kind->params[i];
        const struct wk_st_tensor *t = wk_weights_find(st, p);

        if (t && !wk_weights_fits(t, p))
            add_name(f->misshaped, t->name);
        else if (!t)
            add_name(wk_weights_may_lack(p) ? f->fresh : f->missing, p->name);
    }
    for (size_t k = 0; k < st->n; k++) {
        bool used = false;

        for (int i = 0; !used && i < f->kind->n_params; i++)
            used = wk_weights_find(st, &f->kind->params[i]) == &st->tensors[k];
        if (!used)
            add_name(wk_weights_may_ignore(st->tensors[k].name) ? f->ignored : f->foreign,
                     st->tensors[k].name);
    }
}

static bool usable(const struct found *f)
{
    return f->kind && !json_array_size(f->missing) && !json_array_size(f->misshaped) &&
           !json_array_size(f->foreign);
}

static int look(const struct wk_st *st, struct found *f, struct hg_err *err)
{
    struct wk_model_size size;
    const char *preset;

    *f = (struct found){ .missing = json_array(),
                         .fresh = json_array(),
                         .ignored = json_array(),
                         .foreign = json_array(),
                         .misshaped = json_array() };
    if (!guess_size(st, &size))
        return 0;
    preset = preset_of(&size);
    snprintf(f->size, sizeof f->size, "%s, %lld layers of %lld, vocabulary %lld",
             preset ? preset : "bert", size.layers, size.hidden, size.vocab_size);
    f->kind = wk_model_make(preset ? preset : "bert-base", &size, err);
    if (!f->kind)
        return -1;
    compare(st, f);
    return 0;
}

static void found_done(struct found *f)
{
    wk_model_free(f->kind);
    json_decref(f->missing);
    json_decref(f->fresh);
    json_decref(f->ignored);
    json_decref(f->foreign);
    json_decref(f->misshaped);
}

/* ---- Printing ---- */

/* A file's name for a tensor may contain anything. */
static void put_name(struct hg_buf *out, const char *name)
{
    hg_text_escape(name, strlen(name), out);
}

static void print_list(struct hg_buf *out, const char *what, const json_t *names)
{
    size_t n = json_array_size(names);

    if (!n)
        return;
    hg_buf_printf(out, "%-12s%zu: ", what, n);
    for (size_t i = 0; i < n && i < 4; i++) {
        hg_buf_puts(out, i ? ", " : "");
        put_name(out, json_string_value(json_array_get(names, i)));
    }
    hg_buf_puts(out, n > 4 ? ", ...\n" : "\n");
}

static void print_text(const struct wk_st *st, const struct found *f, struct hg_buf *out)
{
    uint64_t elements = 0;
    char shape[128], size[32];

    for (size_t i = 0; i < st->n; i++) {
        wk_st_shape_format(&st->tensors[i], shape);
        hg_buf_printf(out, "%-6s %-16s ", st->tensors[i].dtype, shape);
        put_name(out, st->tensors[i].name);
        hg_buf_puts(out, "\n");
        elements += st->tensors[i].n;
    }
    hg_text_size_format(st->size, size);
    hg_buf_printf(out, "\n%zu tensor%s, %llu value%s, %s\n", st->n, hg_text_s(st->n),
                  (unsigned long long)elements, hg_text_s(elements), size);
    if (wk_weights_in_parts(st))
        hg_buf_printf(out, "a checkpoint of hpcgrid-worker, in %d parts\n",
                      wk_weights_in_parts(st));
    else if (wk_st_metadata(st, "hpcgrid"))
        hg_buf_puts(out, "a checkpoint of hpcgrid-worker\n");
    if (!f->kind) {
        hg_buf_puts(out, "model       not one that hpcgrid-worker knows\n");
        return;
    }
    hg_buf_printf(out, "model       %s\n", f->size);
    print_list(out, "missing", f->missing);
    print_list(out, "misshaped", f->misshaped);
    print_list(out, "foreign", f->foreign);
    print_list(out, "starts anew", f->fresh);
    print_list(out, "ignored", f->ignored);
    hg_buf_printf(out, "as \"init\"   %s\n", usable(f) ? "yes" : "no");
}

static json_t *encode(const struct wk_st *st, const struct found *f)
{
    json_t *o = json_object(), *tensors = json_object();

    for (size_t i = 0; i < st->n; i++) {
        json_t *shape = json_array();

        for (int d = 0; d < st->tensors[i].n_dims; d++)
            json_array_append_new(shape, json_integer((json_int_t)st->tensors[i].dims[d]));
        json_object_set_new(tensors, st->tensors[i].name,
                            json_pack("{s:s, s:o}", "dtype", st->tensors[i].dtype, "shape", shape));
    }
    json_object_set_new(o, "tensors", tensors);
    json_object_set_new(o, "model", f->kind ? json_string(f->size) : json_null());
    json_object_set_new(o, "usable", json_boolean(usable(f)));
    json_object_set(o, "missing", f->missing);
    json_object_set(o, "misshaped", f->misshaped);
    json_object_set(o, "foreign", f->foreign);
    json_object_set(o, "starts_anew", f->fresh);
    json_object_set(o, "ignored", f->ignored);
    return o;
}

static bool json;

static int print(const struct wk_st *st, const struct found *f, struct hg_err *err)
{
    struct hg_buf out = HG_BUF_INIT;

    if (json)
        return wk_cmd_print_json(encode(st, f), HG_JSON_INDENT, err);
    print_text(st, f, &out);
    return wk_cmd_print(&out, err);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    struct found f;
    struct wk_st st;
    int rc;

    if (argc != 1)
        return wk_cmd_misused(&wk_cmd_inspect, "one file is needed", errs);
    if (wk_st_open(argv[0], &st, err) < 0)
        return hg_errs_add(errs, err);
    rc = wk_st_verify(&st, false, err);
    if (rc == 0) {
        rc = look(&st, &f, err) < 0 ? -1 : print(&st, &f, err);
        found_done(&f);
    }
    wk_st_close(&st);
    return rc < 0 ? hg_errs_add(errs, err) : 0;
}

const struct wk_cmd wk_cmd_inspect = {
    .name = "inspect",
    .summary = "what a safetensors file contains",
    .usage = "FILE [--json]",
    .about = "Print what a safetensors file contains: every tensor with its type and shape, the\n"
             "BERT that they belong to, and what that model would miss, ignore or initialise\n"
             "if the file were its \"init\". A checkpoint of hpcgrid-worker is also such a file;\n"
             "its bytes are compared with its checksums.\n",
    .opts = (const struct hg_opt[]){ { HG_OPT_FLAG, 0, "json", &json, NULL, "print JSON", 0, 0 },
                                     { 0 } },
    .words = 1,
    .run = run,
};
