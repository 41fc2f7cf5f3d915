/* SPDX-License-Identifier: Apache-2.0 */
#include "results/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/tar.h"
#include "results/stats.h"

#define RESULT_FILE_MAX ((size_t)32 << 20)
#define HEAD_MAX 128 /* of a member with members */

/* ---- Members ---- */

/* The loss curve in a file, or in one of a pack: "PACK.tar:FILE". NULL if it cannot be read any more. */
static json_t *load_loss(const char *path)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *result = NULL, *loss = NULL;

    if ((hg_fs_exists(path) ? hg_fs_read(path, RESULT_FILE_MAX, &text, NULL)
                            : hg_tar_read_named(path, RESULT_FILE_MAX, &text, NULL)) == 0)
        result = json_loadb(hg_buf_str(&text), text.len, 0, NULL);
    loss = json_incref(json_object_get(result, "loss"));
    json_decref(result);
    hg_buf_done(&text);
    return loss;
}

json_t *hg_result_get(const struct hg_result *r, const char *member)
{
    json_t *value;

    if (r->entry)
        return json_incref(json_object_get(r->entry, member));
    value = hg_pack_member(&r->pack, member);
    return !value && r->loss_file && strcmp(member, "loss") == 0 ? load_loss(r->loss_file) : value;
}

bool hg_result_is_packed(const struct hg_result *r)
{
    size_t n = strlen(r->attempt_in);

    return n > 4 && strcmp(r->attempt_in + n - 4, ".tar") == 0;
}

void hg_result_folder(const struct hg_result *r, struct hg_buf *out)
{
    if (hg_result_is_packed(r))
        hg_buf_puts(out, r->attempt_in);
    else if (*r->attempt_in && *r->id && *r->attempt)
        hg_buf_printf(out, "%s/%s.%s", r->attempt_in, r->id, r->attempt);
}

json_t *hg_result_entry(const struct hg_result *r)
{
    return r->entry ? json_incref((json_t *)r->entry) : hg_pack_load(&r->pack);
}

/* ---- Numbers ---- */

static double median_of_list(const json_t *list)
{
    size_t n = json_array_size(list), i;
    double *v = hg_alloc(n * sizeof *v), median = NAN;
    json_t *item;

    json_array_foreach(list, i, item) {
        if (!json_is_number(item))
            goto out;
        v[i] = json_number_value(item);
    }
    median = n ? hg_stats_median(v, n) : NAN;
out:
    free(v);
    return median;
}

static double number_of(const json_t *value)
{
    if (json_is_array(value))
        return median_of_list(value);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The part of a dotted path before its first dot; NULL if there is none. */
static const char *head_of(const char *path, char head[static HEAD_MAX])
{
    size_t n = strcspn(path, ".");

    if (!path[n] || n >= HEAD_MAX)
        return NULL;
    snprintf(head, HEAD_MAX, "%.*s", (int)n, path);
    return head;
}

static double number_at(const json_t *object, const char *path)
{
    const json_t *value = json_object_get(object, path);
    char head[HEAD_MAX];

    if (value || !json_is_object(object) || !head_of(path, head))
        return number_of(value);
    return number_at(json_object_get(object, head), path + strlen(head) + 1);
}

double hg_result_number(const struct hg_result *r, const char *path)
{
    json_t *value = hg_result_get(r, path);
    char head[HEAD_MAX];
    double number;

    if (value || !head_of(path, head)) {
        number = number_of(value);
    } else {
        value = hg_result_get(r, head);
        number = number_at(value, path + strlen(head) + 1);
    }
    json_decref(value);
    return number;
}

void hg_result_attempt(const char *attempt, long numbers[static 2])
{
    char *end;

    numbers[0] = strtol(attempt, &end, 10);
    numbers[1] = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
}
