/* SPDX-License-Identifier: Apache-2.0 */
#include "data/features_block.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static const char magic[8] = { 'H', 'G', 'F', 'E', 'A', 'T', '1', '\n' };
#define BYTE_ORDER_MARK 0x01020304u

struct header {
    char magic[8];
    uint32_t byte_order, max_length, pad, cls, sep, offsets;
    uint64_t n, n_questions, n_question_ids, n_context;
    char key[WK_BLOCK_KEY];
    uint64_t checksum; /* of the whole block with this field 0 */
};
_Static_assert(sizeof(struct header) == 104, "the header has no holes");

/* Bytes of a block; 0 if the counts cannot be those of one. */
static size_t block_size(const struct header *h)
{
    if (h->n > UINT32_MAX || h->n_questions > UINT32_MAX || h->n_question_ids > UINT32_MAX ||
        h->n_context > UINT32_MAX)
        return 0;
    return sizeof *h + h->n * sizeof(struct wk_feature) +
           h->n_questions * sizeof(struct wk_feature_question) +
           sizeof(uint32_t) * (h->n_question_ids + h->n_context * (h->offsets ? 3 : 1));
}

/* Set the members of *f from a block with a good header. */
static void point_into(void *memory, size_t size, struct wk_features *f)
{
    const struct header *h = memory;
    const char *p = (const char *)memory + sizeof *h;

    *f = (struct wk_features){ .max_length = h->max_length,
                               .pad = h->pad,
                               .cls = h->cls,
                               .sep = h->sep,
                               .n = h->n,
                               .n_questions = h->n_questions,
                               .n_context = h->n_context,
                               .n_question_ids = h->n_question_ids,
                               .memory = memory,
                               .size = size };
    f->items = (const void *)p;
    f->questions = (const void *)(f->items + f->n);
    f->question_ids = (const void *)(f->questions + f->n_questions);
    f->context_ids = f->question_ids + f->n_question_ids;
    f->starts = h->offsets ? f->context_ids + f->n_context : NULL;
    f->ends = h->offsets ? f->starts + f->n_context : NULL;
}

static void *put(void *to, const void *from, size_t n)
{
    if (n)
        memcpy(to, from, n);
    return (char *)to + n;
}

int wk_block_pack(const struct wk_features *parts, struct wk_features *out, struct hg_err *err)
{
    struct header h = { .byte_order = BYTE_ORDER_MARK,
                        .max_length = parts->max_length,
                        .pad = parts->pad,
                        .cls = parts->cls,
                        .sep = parts->sep,
                        .offsets = parts->starts != NULL,
                        .n = parts->n,
                        .n_questions = parts->n_questions,
                        .n_question_ids = parts->n_question_ids,
                        .n_context = parts->n_context };
    size_t size = block_size(&h);
    char *memory, *p;

    if (size == 0)
        return hg_err_set(err, HG_E_INPUT, "more than %u features or tokens", UINT32_MAX);
    memory = hg_alloc(size);
    memcpy(h.magic, magic, sizeof magic);
    p = put(memory, &h, sizeof h);
    p = put(p, parts->items, parts->n * sizeof *parts->items);
    p = put(p, parts->questions, parts->n_questions * sizeof *parts->questions);
    p = put(p, parts->question_ids, parts->n_question_ids * sizeof(uint32_t));
    p = put(p, parts->context_ids, parts->n_context * sizeof(uint32_t));
    if (h.offsets) {
        p = put(p, parts->starts, parts->n_context * sizeof(uint32_t));
        put(p, parts->ends, parts->n_context * sizeof(uint32_t));
    }
    point_into(memory, size, out);
    return 0;
}

void wk_block_seal(struct wk_features *f, const char *key)
{
    struct header *h = f->memory;

    memcpy(h->key, key, sizeof h->key);
    h->checksum = 0;
    h->checksum = hg_hash64(f->memory, f->size);
}

static bool checksum_fits(void *memory, size_t size)
{
    struct header *h = memory;
    uint64_t said = h->checksum, is;

    h->checksum = 0;
    is = hg_hash64(memory, size);
    h->checksum = said;
    return is == said;
}

/* Does every index stay inside its array? A checksum does not protect against a program that wrote
 * nonsense. */
static bool indices_fit(const struct wk_features *f)
{
    for (size_t i = 0; i < f->n_questions; i++)
        if ((uint64_t)f->questions[i].at + f->questions[i].n > f->n_question_ids)
            return false;
    for (size_t i = 0; i < f->n; i++) {
        const struct wk_feature *item = &f->items[i];
        uint64_t length;

        if (item->question >= f->n_questions || (uint64_t)item->at + item->n > f->n_context)
            return false;
        length = 3 + (uint64_t)f->questions[item->question].n + item->n;
        if (length > f->max_length || item->start >= length || item->end >= length)
            return false;
    }
    return true;
}

int wk_block_adopt(void *memory, size_t size, const char *key, struct wk_features *out,
                   struct hg_err *err)
{
    const struct header *h = memory;

    if (size < sizeof *h || memcmp(h->magic, magic, sizeof magic) != 0)
        return hg_err_set(err, HG_E_INPUT, "not a file of features");
    if (h->byte_order != BYTE_ORDER_MARK)
        return hg_err_set(err, HG_E_INPUT, "written on a machine of another byte order");
    if (memcmp(h->key, key, sizeof h->key) != 0)
        return hg_err_set(err, HG_E_INPUT, "made for other data or options");
    if (block_size(h) != size)
        return hg_err_set(err, HG_E_INPUT, "%zu bytes long, %zu expected", size, block_size(h));
    if (!checksum_fits(memory, size))
        return hg_err_set(err, HG_E_INPUT, "the checksum does not match");
    point_into(memory, size, out);
    if (!indices_fit(out)) {
        *out = (struct wk_features){ 0 };
        return hg_err_set(err, HG_E_INPUT, "an index points outside");
    }
    return 0;
}
