/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_FRAME_H
#define HG_RESULTS_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* Cells as a table of small numbers: one row a cell, one column a key, equal values (1 is 1.0, but
 * neither true nor "1") the same number, 0 for absent. Comparing, grouping and looking up cells is
 * then comparing integers. */

enum {
    HG_KEY_NOTE = 1,   /* begins with "_" */
    HG_KEY_LOOSE = 2,  /* how the job is requested: time, mem, sbatch; not part of identity */
    HG_KEY_SHAPE = 4,  /* says on how many devices: nodes, gpus_per_node, tasks_per_node, ... */
    HG_KEY_REPEAT = 8, /* "repeat" */
};

/* The flags of a key, by its name. */
unsigned hg_frame_key_flags(const char *name);

struct hg_frame_key {
    char *name;
    unsigned flags;
};

struct hg_frame_value {
    char *text;   /* a string as it is, anything else as JSON */
    json_t *json; /* own reference */
    double number;
    bool is_number;
};

struct hg_frame {
    struct {
        struct hg_frame_key *items;
        size_t n, cap;
    } keys;
    struct {
        struct hg_frame_value *items; /* [0] is absence, text "" */
        size_t n, cap;
    } values;
    struct hg_map key_index, value_index;
    uint32_t *rows; /* n_rows times keys.n numbers */
    size_t n_rows, cap_rows;
};

/* Append a row, to an empty frame ({ 0 }) too. */
void hg_frame_add(struct hg_frame *f, const json_t *cell);

/* Fill an empty frame ({ 0 }) with n cells (objects). `extra` (may be NULL) names one more key, absent in
 * every row until set. */
void hg_frame_build(struct hg_frame *f, const json_t *const *cells, size_t n, const char *extra);
void hg_frame_done(struct hg_frame *f);

/* Column of a key; HG_MAP_NONE if no cell has it. */
size_t hg_frame_find_key(const struct hg_frame *f, const char *name);

/* Number of a value, added if it is new; null is 0. */
size_t hg_frame_value(struct hg_frame *f, const json_t *value);

/* Number of a value; 0 if no cell has it. */
size_t hg_frame_find_value(const struct hg_frame *f, const json_t *value);

static inline uint32_t *hg_frame_row(const struct hg_frame *f, size_t row)
{
    return f->rows + row * f->keys.n;
}

/* Order of two values for people: absence, then numbers by size, then the rest as they appeared. */
int hg_frame_compare(const struct hg_frame *f, uint32_t a, uint32_t b);

#endif
