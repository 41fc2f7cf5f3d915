/* SPDX-License-Identifier: Apache-2.0 */
#include "train/predictions.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

int wk_predictions_prepare(const char *path, struct hg_err *err)
{
    char *folder = hg_fs_dirname(path);
    int rc = hg_fs_mkdirs(folder, 0755, err);

    if (rc == 0)
        rc = hg_fs_check_output(path, err);
    free(folder);
    return rc < 0 ? hg_err_wrap(err, "predictions") : 0;
}

/* This rank's answers as a list. */
static void encode_own(const struct wk_squad *squad, const char *const *texts,
                       const struct wk_comm *comm, struct hg_buf *out)
{
    json_t *list = json_array();

    for (size_t q = (size_t)comm->rank; q < squad->n_questions; q += (size_t)comm->world)
        json_array_append_new(list, json_string(texts[q] ? texts[q] : ""));
    hg_json_dump(list, HG_JSON_COMPACT, out);
    json_decref(list);
}

/* The lists of all ranks, `most` bytes each, as one object. */
static json_t *merge(const struct wk_squad *squad, const char *all, const uint64_t *lens,
                     uint64_t most, int world)
{
    json_t **lists = hg_alloc_zeroed((size_t)world, sizeof *lists), *object = json_object();

    for (int rank = 0; rank < world; rank++)
        lists[rank] = json_loadb(all + (uint64_t)rank * most, lens[rank], 0, NULL);
    for (size_t q = 0; q < squad->n_questions; q++)
        json_object_set(object, squad->questions[q].id,
                        json_array_get(lists[q % (size_t)world], q / (size_t)world));
    for (int rank = 0; rank < world; rank++)
        json_decref(lists[rank]);
    free(lists);
    return object;
}

static int save(const char *path, const struct wk_squad *squad, const char *all,
                const uint64_t *lens, uint64_t most, const struct wk_comm *comm, struct hg_err *err)
{
    json_t *object = merge(squad, all, lens, most, comm->world);
    int rc = hg_json_save(path, object, err);

    json_decref(object);
    return rc;
}

/* Rank 0 wrote, all hear how it went. */
static int agree(struct wk_comm *comm, int rc, struct hg_err *err)
{
    double failed = rc < 0 ? 1 : 0;

    if (wk_comm_sum(comm, &failed, 1, err) < 0)
        return -1;
    if (failed > 0 && rc == 0)
        return hg_err_set(err, HG_E_ENV, "rank 0 could not write the predictions");
    return rc;
}

int wk_predictions_save(const char *path, const struct wk_squad *squad, const char *const *texts,
                        struct wk_comm *comm, struct hg_err *err)
{
    struct hg_buf own = HG_BUF_INIT;
    uint64_t *lens = hg_alloc_zeroed((size_t)comm->world, sizeof *lens), most = 0;
    char *all = NULL;
    int rc = -1;

    encode_own(squad, texts, comm, &own);
    lens[comm->rank] = own.len;
    if (wk_comm_gather(comm, lens, sizeof *lens, err) < 0)
        goto out;
    for (int rank = 0; rank < comm->world; rank++)
        most = lens[rank] > most ? lens[rank] : most;
    all = hg_alloc_zeroed((size_t)comm->world, most);
    memcpy(all + (uint64_t)comm->rank * most, own.data, own.len);
    if (wk_comm_gather(comm, all, most, err) < 0)
        goto out;
    rc = comm->rank == 0 ? save(path, squad, all, lens, most, comm, err) : 0;
    rc = agree(comm, rc, err);
out:
    hg_buf_done(&own);
    free(lens);
    free(all);
    return rc;
}
