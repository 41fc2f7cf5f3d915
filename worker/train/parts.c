/* SPDX-License-Identifier: Apache-2.0 */
#include "train/parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "train/safetensors.h"

#define SCHEMA "hpcgrid-checkpoint-part/1"

/* What a part's file is, as all ranks tell each other. */
struct part_info {
    uint64_t bytes, sum;
};

struct wk_parts {
    const struct wk_train *t;
    const json_t *state; /* the checkpoint's */
    int world;           /* that wrote it */
    char *folder;
    struct wk_st *files; /* (world) opened when they are needed */
    long long *cuts;     /* (params, world) elements that each rank keeps */
};

char *wk_state_name(const struct wk_model_kind *kind, int state, int param)
{
    const char *name = kind->params[param].name;

    return state == WK_STATE_VALUE ? hg_strdup(name)
                                   : hg_str_printf("optimizer.%d.%s", state - WK_STATE_SLOT, name);
}

int wk_state_check(const struct wk_train *t, int state, int param, const wk_real *host, size_t n,
                   struct hg_err *err)
{
    if (state != WK_STATE_VALUE || !t->config->stop_on_nan)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(host[i])) {
            t->result->diverged = true;
            return hg_err_set(err, HG_E_INPUT, "parameter %s became NaN or infinite",
                              t->kind->params[param].name);
        }
    return 0;
}

static char *part_path(const char *path, long save, int rank)
{
    return hg_str_printf("%s.%ld.rank%d", path, save, rank);
}

/* ---- Writing ---- */

/* Tensors of this rank's part, empty ones included. */
static void list_own(const struct wk_train *t, struct wk_st_item *items)
{
    size_t k = 0, first, n;

    for (int state = 0; state <= t->optim.kind->slots; state++)
        for (int i = 0; i < t->kind->n_params; i++, k++) {
            wk_strategy_own(t->strategy, i, &first, &n);
            items[k] = (struct wk_st_item){ .name = wk_state_name(t->kind, state, i),
                                            .dtype = WK_ST_REAL,
                                            .n_dims = 1,
                                            .dims = { n, 0 } };
        }
}

static int write_own(const struct wk_train *t, int state, int param, struct wk_st_writer *w,
                     struct hg_err *err)
{
    size_t first, n;
    wk_real *host;
    int rc = -1;

    wk_strategy_own(t->strategy, param, &first, &n);
    if (n == 0)
        return 0;
    host = hg_alloc(n * sizeof *host);
    if (wk_strategy_fetch_own(t->strategy, state, param, host, err) == 0 &&
        wk_state_check(t, state, param, host, n, err) == 0)
        rc = wk_st_write(w, host, n * sizeof *host, err);
    free(host);
    return rc;
}

static json_t *describe(const struct wk_train *t, long save)
{
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:i}", "schema", SCHEMA, "model", t->kind->name,
                  "strategy", t->strategy->kind->name, "save", (json_int_t)save, "steps",
                  (json_int_t)t->steps_done, "rank", t->comm->rank, "world", t->comm->world);
    struct hg_buf text = HG_BUF_INIT;
    json_t *metadata;

    hg_json_dump(o, HG_JSON_COMPACT, &text);
    metadata = json_pack("{s:s}", "hpcgrid", hg_buf_str(&text));
    json_decref(o);
    hg_buf_done(&text);
    return metadata;
}

static int fill_part(const struct wk_train *t, struct wk_st_writer *w, struct hg_err *err)
{
    for (int state = 0; state <= t->optim.kind->slots; state++)
        for (int i = 0; i < t->kind->n_params; i++)
            if (write_own(t, state, i, w, err) < 0)
                return -1;
    return 0;
}

static int write_part(const struct wk_train *t, long save, uint64_t *sum, struct hg_err *err)
{
    size_t n = (size_t)t->kind->n_params * (size_t)(1 + t->optim.kind->slots);
    struct wk_st_item *items = hg_alloc_zeroed(n, sizeof *items);
    char *path = part_path(t->checkpoint, save, t->comm->rank);
    json_t *metadata = describe(t, save);
    struct wk_st_writer *w;
    int rc = -1;

    list_own(t, items);
    w = wk_st_create(path, items, n, metadata, err);
    if (w && fill_part(t, w, err) == 0) {
        rc = wk_st_commit(w, sum, err);
        w = NULL;
    }
    wk_st_abort(w);
    for (size_t i = 0; i < n; i++)
        free(items[i].name);
    free(items);
    free(path);
    json_decref(metadata);
    return rc;
}

/* What all ranks wrote. */
static json_t *encode_files(const struct wk_train *t, long save, const struct part_info *info)
{
    const char *slash = strrchr(t->checkpoint, '/');
    json_t *files = json_array();
    char sum[17];

    for (int r = 0; r < t->comm->world; r++) {
        char *name = part_path(slash ? slash + 1 : t->checkpoint, save, r);

        snprintf(sum, sizeof sum, "%016llx", (unsigned long long)info[r].sum);
        json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "name", name, "bytes",
                                               (json_int_t)info[r].bytes, "sum", sum));
        free(name);
    }
    return files;
}

static json_t *encode_cuts(const struct wk_train *t, const int64_t *cuts)
{
    json_t *all = json_object();
    int n = t->kind->n_params;

    for (int i = 0; i < n; i++) {
        json_t *each = json_array();

        for (int r = 0; r < t->comm->world; r++)
            json_array_append_new(each, json_integer((json_int_t)cuts[(size_t)r * (size_t)n + i]));
        json_object_set_new(all, t->kind->params[i].name, each);
    }
    return all;
}

static int own_info(const struct wk_train *t, long save, struct part_info *info, int64_t *cuts,
                    struct hg_err *err)
{
    char *path = part_path(t->checkpoint, save, t->comm->rank);
    struct stat st;
    int rc = stat(path, &st);

    if (rc < 0)
        hg_err_sys(err, "cannot see %s", path);
    else
        info->bytes = (uint64_t)st.st_size;
    for (int i = 0; i < t->kind->n_params; i++) {
        size_t first, n;

        wk_strategy_own(t->strategy, i, &first, &n);
        cuts[i] = (int64_t)n;
    }
    free(path);
    return rc;
}

int wk_parts_save(const struct wk_train *t, long save, json_t **parts, struct hg_err *err)
{
    size_t world = (size_t)t->comm->world, n = (size_t)t->kind->n_params;
    struct part_info *info = hg_alloc_zeroed(world, sizeof *info);
    int64_t *cuts = hg_alloc_zeroed(world * n, sizeof *cuts);
    size_t rank = (size_t)t->comm->rank;
    int rc;

    *parts = NULL;
    rc = write_part(t, save, &info[rank].sum, err);
    if (rc == 0)
        rc = own_info(t, save, &info[rank], cuts + rank * n, err);
    /* also after a failure: the others wait */
    if (wk_comm_gather(t->comm, info, sizeof *info, err) < 0 ||
        wk_comm_gather(t->comm, cuts, n * sizeof *cuts, err) < 0)
        rc = -1;
    if (rc == 0)
        *parts = json_pack("{s:i, s:o, s:o}", "world", t->comm->world, "files",
                           encode_files(t, save, info), "cuts", encode_cuts(t, cuts));
    free(info);
    free(cuts);
    return rc;
}

/* What follows the checkpoint's name: .PROCESS.tmp, .SAVE.rankR.PROCESS.tmp, or .SAVE.rankR of another save? */
static bool is_left_over(const char *rest, long keep)
{
    int part = 0, end = 0;
    long save;

    if (rest[0] != '.' || rest[1] < '0' || rest[1] > '9')
        return false;
    sscanf(rest, ".%*[0-9].tmp%n", &end);
    sscanf(rest, ".%ld.rank%*[0-9]%n.%*[0-9].tmp%n", &save, &part, &end);
    if (part && !rest[part])
        return save != keep;
    return end && !rest[end];
}

void wk_parts_tidy(const char *path, long keep)
{
    const char *base = hg_fs_basename(path);
    char *folder = hg_fs_dirname(path);
    DIR *d = opendir(folder);
    struct dirent *e;
    size_t n = strlen(base);

    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, base, n) == 0 && is_left_over(e->d_name + n, keep))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    free(folder);
}

/* ---- Reading ---- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "?";
}

static long long number_of(const json_t *o, const char *key)
{
    return (long long)json_integer_value(json_object_get(o, key));
}

static const json_t *file_entry(const struct wk_parts *p, int rank)
{
    return json_array_get(json_object_get(json_object_get(p->state, "parts"), "files"),
                          (size_t)rank);
}

/* A part cannot be used: which, why, and what helps. */
static int __attribute__((format(printf, 4, 5)))
refuse(const struct wk_parts *p, int rank, struct hg_err *err, const char *format, ...)
{
    char why[600];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    hg_err_set(err, HG_E_INPUT, "part %s of rank %d of %d (%s, after step %lld) %s",
               text_of(file_entry(p, rank), "name"), rank, p->world, text_of(p->state, "strategy"),
               number_of(p->state, "steps"), why);
    hg_err_at(err, p->t->checkpoint, "");
    return hg_err_hint(err,
                       "all %d parts are needed, on %d rank%s too: restore it, or remove the "
                       "checkpoint to start over",
                       p->world, p->t->comm->world, p->t->comm->world == 1 ? "" : "s");
}

/* Is the file what the checkpoint says it is, as far as its header shows? */
static int check_header(const struct wk_parts *p, int rank, const struct wk_st *st,
                        struct hg_err *err)
{
    const json_t *entry = file_entry(p, rank);
    const char *text = wk_st_metadata(st, "hpcgrid");
    json_t *is = text ? json_loads(text, 0, NULL) : NULL;
    char sum[17];
    int rc = 0;

    snprintf(sum, sizeof sum, "%016llx", (unsigned long long)wk_st_sum(st));
    if (strcmp(text_of(is, "schema"), SCHEMA) != 0)
        rc = refuse(p, rank, err, "is not part of a checkpoint (schema %s)", text_of(is, "schema"));
    else if (number_of(is, "rank") != rank || number_of(is, "world") != p->world ||
             number_of(is, "steps") != number_of(p->state, "steps") ||
             strcmp(text_of(is, "model"), text_of(p->state, "model")) != 0)
        rc = refuse(p, rank, err,
                    "belongs to another checkpoint: model %s, rank %lld of %lld, after step %lld",
                    text_of(is, "model"), number_of(is, "rank"), number_of(is, "world"),
                    number_of(is, "steps"));
    else if (strcmp(sum, text_of(entry, "sum")) != 0)
        rc = refuse(p, rank, err,
                    "belongs to another training, or was changed: its sum is %s, not %s", sum,
                    text_of(entry, "sum"));
    json_decref(is);
    return rc;
}

/* Have a part's file open. */
static int need(struct wk_parts *p, int rank, struct hg_err *err)
{
    const json_t *entry = file_entry(p, rank);
    struct hg_err why = HG_ERR_INIT;
    struct wk_st st;
    struct stat info;
    char *path;
    int rc = -1;

    if (p->files[rank].map)
        return 0;
    path = hg_fs_join(p->folder, text_of(entry, "name"));
    if (stat(path, &info) < 0)
        refuse(p, rank, err, "is missing");
    else if (wk_st_open(path, &st, &why) < 0 && info.st_size < number_of(entry, "bytes"))
        refuse(p, rank, err, "was cut off: %lld of %lld bytes", (long long)info.st_size,
               number_of(entry, "bytes"));
    else if (why.code)
        refuse(p, rank, err, "cannot be read: %s", why.text);
    else if (check_header(p, rank, &st, err) < 0)
        wk_st_close(&st);
    else
        rc = 0;
    if (rc == 0)
        p->files[rank] = st;
    free(path);
    return rc;
}

/* This rank's share of the parts, to the last byte. */
static int check_bytes(struct wk_parts *p, struct hg_err *err)
{
    for (int r = p->t->comm->rank; r < p->world; r += p->t->comm->world) {
        struct hg_err why = HG_ERR_INIT;

        if (need(p, r, err) < 0)
            return -1;
        if (wk_st_verify(&p->files[r], true, &why) < 0)
            return refuse(p, r, err, "is %s", why.text);
    }
    return 0;
}

/* Every parameter's elements, shared out over the ranks that wrote them. */
static int read_cuts(struct wk_parts *p, const json_t *cuts)
{
    const struct wk_model_kind *m = p->t->kind;

    for (int i = 0; i < m->n_params; i++) {
        const json_t *each = json_object_get(cuts, m->params[i].name);
        size_t n = 0;

        for (int r = 0; r < p->world; r++) {
            json_int_t k = json_integer_value(json_array_get(each, (size_t)r));

            if (k < 0 || (size_t)k > wk_param_n(&m->params[i]) - n)
                return -1;
            p->cuts[i * p->world + r] = k;
            n += (size_t)k;
        }
        if (n != wk_param_n(&m->params[i]))
            return -1;
    }
    return 0;
}

static int read_manifest(struct wk_parts *p, struct hg_err *err)
{
    const json_t *parts = json_object_get(p->state, "parts");
    size_t n;

    p->world = (int)number_of(parts, "world");
    if (p->world < 1 || json_array_size(json_object_get(parts, "files")) != (size_t)p->world) {
        hg_err_set(err, HG_E_INPUT, "the checkpoint is damaged: %zu parts of %d ranks",
                   json_array_size(json_object_get(parts, "files")), p->world);
        return hg_err_at(err, p->t->checkpoint, "");
    }
    n = (size_t)p->world;
    p->folder = hg_fs_dirname(p->t->checkpoint);
    p->files = hg_alloc_zeroed(n, sizeof *p->files);
    p->cuts = hg_alloc_zeroed(n * (size_t)p->t->kind->n_params, sizeof *p->cuts);
    if (read_cuts(p, json_object_get(parts, "cuts")) == 0)
        return 0;
    hg_err_set(err, HG_E_INPUT, "the checkpoint is damaged: its cuts are not those of model %s",
               p->t->kind->name);
    return hg_err_at(err, p->t->checkpoint, "");
}

struct wk_parts *wk_parts_open(const struct wk_train *t, const json_t *state, struct hg_err *err)
{
    struct wk_parts *p = hg_alloc_zeroed(1, sizeof *p);

    p->t = t;
    p->state = state;
    if (read_manifest(p, err) == 0 && check_bytes(p, err) == 0)
        return p;
    wk_parts_close(p);
    return NULL;
}

void wk_parts_close(struct wk_parts *p)
{
    if (!p)
        return;
    for (int r = 0; p->files && r < p->world; r++)
        wk_st_close(&p->files[r]);
    free(p->files);
    free(p->cuts);
    free(p->folder);
    free(p);
}

/* Elements of one rank's part of a tensor. */
static int read_from(struct wk_parts *p, int rank, const char *name, size_t n, size_t skip,
                     size_t count, wk_real *out, struct hg_err *err)
{
    const struct wk_st_tensor *from;

    if (need(p, rank, err) < 0)
        return -1;
    from = wk_st_find(&p->files[rank], name);
    if (!from || from->n != n || strcmp(from->dtype, WK_ST_REAL) != 0)
        return refuse(p, rank, err, "has no tensor %s of %zu values", name, n);
    memcpy(out, from->data + skip * sizeof *out, count * sizeof *out);
    return 0;
}

int wk_parts_read(struct wk_parts *p, int state, int param, size_t first, size_t n, wk_real *out,
                  struct hg_err *err)
{
    char *name = wk_state_name(p->t->kind, state, param);
    size_t at = 0, end = first + n;
    int rc = 0;

    for (int r = 0; r < p->world && rc == 0; r++) {
        size_t own = (size_t)p->cuts[param * p->world + r];
        size_t from = at > first ? at : first, to = at + own < end ? at + own : end;

        if (from < to)
            rc = read_from(p, r, name, own, from - at, to - from, out + (from - first), err);
        at += own;
    }
    free(name);
    return rc;
}
