/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_VALUE_H
#define HG_MATRIX_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One value of a cell in eight bytes: a number is its own double, anything else a place in a pool
 * (strings, lists, objects, true and false), absence a pattern of its own. Equal values have equal
 * bits: 1 is 1.0, -0 is 0, and equal texts stand in the pool once. */
typedef uint64_t hg_value;

#define HG_VALUE_ABSENT UINT64_C(0xffff000000000000)
#define HG_VALUE_POOLED UINT64_C(0xfffe000000000000)
#define HG_VALUE_TAG UINT64_C(0xffff000000000000)

static inline bool hg_value_is_absent(hg_value v)
{
    return v == HG_VALUE_ABSENT;
}

static inline bool hg_value_is_number(hg_value v)
{
    return v < HG_VALUE_POOLED; /* no finite double, nor the NaN a processor makes, lies above */
}

/* A number's value; 0 for what is none. */
double hg_value_number(hg_value v);
hg_value hg_value_of_number(double number);

/* Where values that are not numbers are kept, each once. */
struct hg_pool;

struct hg_pool *hg_pool_create(void);
void hg_pool_free(struct hg_pool *pool);

/* The value of a JSON value, put into the pool if need be; null gives HG_VALUE_ABSENT. */
hg_value hg_pool_add(struct hg_pool *pool, const json_t *json);
hg_value hg_pool_add_string(struct hg_pool *pool, const char *text);

/* Is this string in the pool? */
bool hg_pool_has_string(const struct hg_pool *pool, const char *text);

/* JSON of a value, a new reference (whole numbers become integers); NULL for absence. */
json_t *hg_pool_json(const struct hg_pool *pool, hg_value value);

/* A string's characters, lent; NULL for what is not a string. */
const char *hg_pool_string(const struct hg_pool *pool, hg_value value);

/* Canonical text (RFC 8785) of a value that is present. scratch holds numbers; the rest is lent. */
const char *hg_pool_text(const struct hg_pool *pool, hg_value value, char scratch[static 32],
                         size_t *len);

/* A number as generators and formulas make it: 15 significant digits, so that 0.1 + 0.2 is 0.3.
 * Whole numbers up to 2^53 are exact already and stay. */
double hg_value_round(double number);

#endif
