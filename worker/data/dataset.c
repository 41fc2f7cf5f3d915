/* SPDX-License-Identifier: Apache-2.0 */
/* MNIST, whole or a part, from its four files. */
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/idx.h"

#define SIDE 28
#define CLASSES 10
#define SLICE "mnist-slice"
#define SLICE_TRAIN 4000
#define SLICE_TEST 1000
#define FULL_TRAIN 60000
#define FULL_TEST 10000

static const char *const names[] = { "mnist", SLICE };

/* ---- Where the files are ---- */

static bool holds_mnist(const char *folder)
{
    char *plain = hg_fs_join(folder, "train-images-idx3-ubyte");
    char *gz = hg_fs_join(folder, "train-images-idx3-ubyte.gz");
    bool found = hg_fs_exists(plain) || hg_fs_exists(gz);

    free(plain);
    free(gz);
    return found;
}

/* The part that ships: beside the installed program, or in the source tree that built it. */
static char *shipped_folder(void)
{
    char *self = hg_fs_self(NULL), *bin = self ? hg_fs_dirname(self) : NULL;
    char *folder = bin ? hg_str_printf("%s/../share/hpcgrid/mnist", bin) : NULL;

    free(self);
    free(bin);
    if (folder && holds_mnist(folder))
        return folder;
    free(folder);
    return hg_strdup(WK_SHIPPED_MNIST);
}

static char *choose_folder(const struct wk_dataset_options *o, struct hg_err *err)
{
    const char *root = getenv("HPCGRID_DATA");
    char *folder;

    if (!o->data && (strcmp(o->name, SLICE) == 0 || !root || !*root))
        return shipped_folder();
    folder = o->data ? hg_strdup(o->data) : hg_fs_join(root, "mnist");
    if (!hg_fs_is_dir(folder)) {
        hg_err_set(err, HG_E_INPUT, "no folder %s, where %s expects the data set", folder,
                   o->data ? "\"data\"" : "HPCGRID_DATA");
        hg_err_hint(
            err,
            "put the four MNIST files there (train-images-idx3-ubyte.gz ...), or leave %s out for "
            "the small part that ships with hpcgrid",
            o->data ? "\"data\"" : "HPCGRID_DATA");
        free(folder);
        return NULL;
    }
    return folder;
}

/* folder/stem or folder/stem.gz; yours. */
static char *find_file(const char *folder, const char *stem, struct hg_err *err)
{
    char *path = hg_fs_join(folder, stem);

    if (!hg_fs_exists(path)) {
        free(path);
        path = hg_str_printf("%s/%s.gz", folder, stem);
    }
    if (!hg_fs_exists(path)) {
        hg_err_set(err, HG_E_INPUT, "no file %s (nor without .gz)", path);
        hg_err_hint(err, "MNIST is four files: train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                         "t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, each plain or .gz");
        free(path);
        path = NULL;
    }
    return path;
}

/* ---- One part: images and their labels ---- */

static int check_images(const struct wk_idx *images, const char *path, struct hg_err *err)
{
    if (images->dims[1] == SIDE && images->dims[2] == SIDE)
        return 0;
    hg_err_set(err, HG_E_INPUT, "images of %u x %u, expected %d x %d", images->dims[1],
               images->dims[2], SIDE, SIDE);
    return hg_err_at(err, path, "");
}

static int check_labels(const struct wk_idx *labels, const char *path, uint32_t n_images,
                        struct hg_err *err)
{
    if (labels->dims[0] != n_images) {
        hg_err_set(err, HG_E_INPUT, "%u labels for %u images: the files do not belong together",
                   labels->dims[0], n_images);
        return hg_err_at(err, path, "");
    }
    for (size_t i = 0; i < labels->n; i++)
        if (labels->data[i] >= CLASSES) {
            hg_err_set(err, HG_E_INPUT, "label %zu is %d, expected 0 to %d", i, labels->data[i],
                       CLASSES - 1);
            return hg_err_at(err, path, "");
        }
    return 0;
}

static int fill_part(struct wk_part *part, struct wk_idx *images, const struct wk_idx *labels,
                     long long limit, const char *path, struct hg_err *err)
{
    if (limit > (long long)images->dims[0]) {
        hg_err_set(err, HG_E_INPUT, "%lld samples requested, the file has %u", limit,
                   images->dims[0]);
        return hg_err_at(err, path, "");
    }
    part->n_all = (int)images->dims[0];
    part->n = limit ? (int)limit : part->n_all;
    part->labels = hg_alloc((size_t)part->n * sizeof *part->labels);
    for (int i = 0; i < part->n; i++)
        part->labels[i] = labels->data[i];
    part->values = images->data; /* taken over */
    images->data = NULL;
    return 0;
}

static int load_part(const char *folder, const char *prefix, long long limit, struct wk_part *part,
                     struct hg_err *err)
{
    struct wk_idx images = { 0 }, labels = { 0 };
    char stem[64], *images_path = NULL, *labels_path = NULL;
    int rc = -1;

    snprintf(stem, sizeof stem, "%s-images-idx3-ubyte", prefix);
    images_path = find_file(folder, stem, err);
    snprintf(stem, sizeof stem, "%s-labels-idx1-ubyte", prefix);
    labels_path = images_path ? find_file(folder, stem, err) : NULL;
    if (!labels_path || wk_idx_load(images_path, 3, &images, err) < 0 ||
        check_images(&images, images_path, err) < 0 ||
        wk_idx_load(labels_path, 1, &labels, err) < 0 ||
        check_labels(&labels, labels_path, images.dims[0], err) < 0)
        goto out;
    rc = fill_part(part, &images, &labels, limit, images_path, err);
out:
    wk_idx_done(&images);
    wk_idx_done(&labels);
    free(images_path);
    free(labels_path);
    return rc;
}

/* ---- The set ---- */

/* Over the content that is used: equal hashes mean the same training, and the same evaluation or not. */
static void hash_set(struct wk_dataset *set)
{
    const struct wk_part *parts[] = { &set->train, &set->test };
    char text[4 * 33] = "";

    for (int i = 0; i < 2; i++) {
        hg_hash128_hex(parts[i]->values, (size_t)parts[i]->n * (size_t)set->width, text + 66 * i);
        hg_hash128_hex(parts[i]->labels, (size_t)parts[i]->n * sizeof *parts[i]->labels,
                       text + 66 * i + 33);
    }
    hg_hash128_hex(text, sizeof text / 2, set->train_hash);
    hg_hash128_hex(text, sizeof text, set->hash);
}

/* The name says what the files hold, whatever the folder is called and however much of it is used. */
static const char *name_of(const struct wk_dataset *set)
{
    if (set->train.n_all == FULL_TRAIN && set->test.n_all == FULL_TEST)
        return "mnist";
    return set->train.n_all == SLICE_TRAIN && set->test.n_all == SLICE_TEST ? SLICE : "mnist-other";
}

static struct wk_dataset *mnist_open(const struct wk_dataset_options *o, struct hg_err *err)
{
    struct wk_dataset *set = hg_alloc_zeroed(1, sizeof *set);

    set->width = SIDE * SIDE;
    set->classes = CLASSES;
    set->mean = 0.1307;
    set->std = 0.3081;
    set->folder = choose_folder(o, err);
    if (!set->folder || load_part(set->folder, "train", o->samples, &set->train, err) < 0 ||
        load_part(set->folder, "t10k", o->test_samples, &set->test, err) < 0) {
        wk_dataset_free(set);
        return NULL;
    }
    snprintf(set->name, sizeof set->name, "%s", name_of(set));
    hash_set(set);
    return set;
}

bool wk_dataset_known(const char *name, struct hg_err *err)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    hg_err_set(err, HG_E_INPUT, "unknown dataset \"%s\"", name);
    hg_text_suggest(err, name, names, sizeof names / sizeof *names);
    return false;
}

struct wk_dataset *wk_dataset_open(const struct wk_dataset_options *o, struct hg_err *err)
{
    return wk_dataset_known(o->name, err) ? mnist_open(o, err) : NULL;
}

void wk_dataset_free(struct wk_dataset *set)
{
    if (!set)
        return;
    free(set->folder);
    free(set->train.values);
    free(set->train.labels);
    free(set->test.values);
    free(set->test.labels);
    free(set);
}
