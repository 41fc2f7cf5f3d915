/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rehearse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "contract/sbatch.h"
#include "matrix/rehearse.h"

#define STEPS 2
#define SLICE_DEVICES 8 /* more would need more questions than the part of SQuAD that ships has */
#define VOCABULARY 1000 /* of made-up texts: what many ranks send each other stays small */
#define SEQ_LEN 128     /* the questions that ship fit, with room for their texts */
#define DOC_STRIDE 32

/* ---- A cell ---- */

/* One cell that is made tiny. */
struct tiny {
    json_t *cell, *rehearsal;
    const char *dir;
    bool bert;
};

static long long count_of(const json_t *cell, const char *key, long long otherwise)
{
    const json_t *value = json_object_get(cell, key);

    return json_is_number(value) ? (long long)json_number_value(value) : otherwise;
}

static bool is_word(const json_t *cell, const char *key, const char *word)
{
    const char *text = json_string_value(json_object_get(cell, key));

    return text && strcmp(text, word) == 0;
}

static void set_count(const struct tiny *t, const char *key, long long value)
{
    json_object_set_new(t->cell, key, json_integer(value));
}

static void set_most(const struct tiny *t, const char *key, long long most)
{
    if (count_of(t->cell, key, most) >= most)
        set_count(t, key, most);
}

/* Drop a member that names something of the cluster. */
static void drop(const struct tiny *t, const char *key)
{
    const char *text = json_string_value(json_object_get(t->cell, key));

    if (text)
        hg_rehearsal_add(t->rehearsal, "%s %s", key, text);
    json_object_del(t->cell, key);
}

/* What a training writes must not meet what the real one writes: a file of the same name in the attempt's folder. */
static void move_path(const struct tiny *t, const char *key)
{
    const char *text = json_string_value(json_object_get(t->cell, key));
    char *path;

    if (!text)
        return;
    hg_rehearsal_add(t->rehearsal, "%s %s (in the attempt's folder instead)", key, text);
    path = hg_fs_join(t->dir ? t->dir : "/tmp", hg_fs_basename(text));
    json_object_set_new(t->cell, key, json_string(path));
    free(path);
}

static void shrink_model(const struct tiny *t)
{
    if (!t->bert)
        return;
    set_most(t, "layers", 2);
    set_count(t, "hidden", 32);
    set_count(t, "heads", 2);
    set_count(t, "intermediate", 64);
    json_object_del(t->cell, "vocab_size");
    if (count_of(t->cell, "seq_len", SEQ_LEN) >= SEQ_LEN) {
        set_count(t, "seq_len", SEQ_LEN);
        set_most(t, "doc_stride", DOC_STRIDE);
    }
}

/* Those that ship; for many devices, made-up ones. */
static void shrink_data(const struct tiny *t, long long devices)
{
    static const char *const files[] = { "data", "vocab", "cache", "init" };
    const char *given = json_string_value(json_object_get(t->cell, "dataset"));
    const char *data = !t->bert ? "mnist-slice" : "squad-slice";

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        drop(t, files[i]);
    given = given ? given : t->bert ? "squad-v1.1" : "mnist";
    if (t->bert && (devices > SLICE_DEVICES || strcmp(given, "synthetic") == 0)) {
        data = "synthetic";
        set_count(t, "vocab_size", VOCABULARY);
        json_object_del(t->cell, "predictions");
    }
    if (strcmp(given, data) != 0)
        hg_rehearsal_add(t->rehearsal, "dataset %s (%s instead)", given, data);
    json_object_del(t->cell, "null_threshold"); /* of squad-v2.0 only */
    json_object_set_new(t->cell, "dataset", json_string(data));
}

/* Two steps of whole batches on each device. */
static void shrink_work(const struct tiny *t)
{
    long long devices = count_of(t->cell, "nodes", 1) * count_of(t->cell, "tasks_per_node", 1);

    if (is_word(t->cell, "strategy", "dp"))
        devices = count_of(t->cell, "dp_devices", count_of(t->cell, "gpus_per_node", 1));
    devices = devices > 0 ? devices : 1;
    set_most(t, "batch_size", 2);
    if (json_object_get(t->cell, "accumulate"))
        set_most(t, "accumulate", 2);
    if (json_object_get(t->cell, "epochs"))
        set_count(t, "epochs", 1);
    set_most(t, "steps", STEPS);
    set_count(t, "samples",
              STEPS * devices * count_of(t->cell, "batch_size", 1) *
                  count_of(t->cell, "accumulate", 1));
    set_most(t, "test_samples", 8);
    set_most(t, "test_batch", 8);
    if (json_object_get(t->cell, "checkpoint_every"))
        set_count(t, "checkpoint_every", 1);
    shrink_data(t, devices);
}

/* A round of the trace that two steps have room for. */
static void shrink_trace(const struct tiny *t)
{
    static const char *const before[] = { "trace_skip", "trace_wait", "trace_warmup" };

    if (!json_is_true(json_object_get(t->cell, "trace")))
        return;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        set_count(t, before[i], 0);
    set_count(t, "trace_active", 1);
    set_count(t, "trace_repeat", 1);
}

json_t *hg_rehearse_cell(json_t *rehearsal, const json_t *cell, const char *dir)
{
    const char *model = json_string_value(json_object_get(cell, "model"));
    struct tiny t = { .cell = json_copy((json_t *)cell),
                      .rehearsal = rehearsal,
                      .dir = dir,
                      .bert = model && strncmp(model, "bert", 4) == 0 };

    json_object_set_new(t.cell, "backend", json_string("cpu"));
    if (is_word(cell, "precision", "tf32")) {
        hg_rehearsal_add(rehearsal, "precision tf32 (fp32 instead)");
        json_object_set_new(t.cell, "precision", json_string("fp32"));
    }
    if (json_is_true(json_object_get(rehearsal, "shrink"))) {
        shrink_model(&t);
        shrink_work(&t);
        shrink_trace(&t);
    }
    move_path(&t, "checkpoint");
    move_path(&t, "predictions");
    return t.cell;
}

/* ---- What this machine has room for ---- */

#define NODES_MAX 256 /* of a box */
#define RANK_BYTES \
    (64LL * 1 << 20) /* of a tiny training with what starts it; half of the memory is for them */

void hg_rehearse_why(const struct hg_shape *shape, char why[static 160])
{
    long long ranks = shape->nodes * shape->tasks_per_node;
    long long bytes = (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    long long room = bytes / 2 / RANK_BYTES;

    why[0] = '\0';
    if (ranks > room || shape->nodes > NODES_MAX)
        snprintf(why, 160,
                 "this machine can rehearse %lld ranks on %d nodes, the cell has %lld on %lld",
                 room, NODES_MAX, ranks, shape->nodes);
}

/* ---- sbatch options ---- */

/* Those that name nodes, features, jobs or moments of the cluster, or hardware that virtual nodes do not have. */
static bool is_foreign(const char *name)
{
    static const char *const foreign[] = {
        "begin",      "container", "core-spec",        "cores-per-socket", "deadline",
        "dependency", "exclude",   "gpu-bind",         "gpu-freq",         "hold",
        "nodelist",   "prefer",    "sockets-per-node", "threads-per-core", "tmp",
    };

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strcmp(foreign[i], name) == 0)
            return true;
    return false;
}

void hg_rehearse_options(struct hg_words *options, struct hg_words *lost)
{
    struct hg_words kept = HG_WORDS_INIT;
    struct hg_sbatch_options all = { 0 };
    struct hg_err err = HG_ERR_INIT;

    if (hg_sbatch_read(options->items, &all, &err) < 0) /* Slurm's agent will say it better */
        return;
    for (size_t i = 0; i < all.n; i++) {
        const struct hg_sbatch_option *o = &all.items[i];
        char *word =
            o->text ? hg_str_printf("--%s=%s", o->name, o->text) : hg_str_printf("--%s", o->name);

        hg_words_push(is_foreign(o->name) ? lost : &kept, word);
        free(word);
    }
    free(all.items);
    hg_words_done(options);
    *options = kept;
}
