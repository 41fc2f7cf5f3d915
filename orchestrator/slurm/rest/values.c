/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/rest/values.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REAL_MAX 9e15 /* of a number with a fraction; larger ones are none of Slurm's */

static json_int_t whole(const json_t *value, json_int_t dflt)
{
    double real = json_real_value(value);

    if (!json_is_real(value))
        return json_is_integer(value) ? json_integer_value(value) : dflt;
    return real > -REAL_MAX && real < REAL_MAX ? (json_int_t)real : dflt;
}

json_int_t hg_rest_number(const json_t *value, json_int_t dflt)
{
    const char *text = json_string_value(value);

    if (json_is_number(value))
        return whole(value, dflt);
    if (text && *text && strspn(text, "0123456789") == strlen(text))
        return strtoll(text, NULL, 10);
    if (!json_is_true(json_object_get(value, "set")) ||
        json_is_true(json_object_get(value, "infinite")))
        return dflt;
    return whole(json_object_get(value, "number"), dflt);
}

const char *hg_rest_text(const json_t *value)
{
    const char *text = json_string_value(json_is_array(value) ? json_array_get(value, 0) : value);

    return text ? text : "";
}

bool hg_rest_has(const json_t *value, const char *word)
{
    const json_t *item;
    size_t i;

    json_array_foreach(value, i, item)
        if (strcasecmp(hg_rest_text(item), word) == 0)
            return true;
    return !json_is_array(value) && strcasecmp(hg_rest_text(value), word) == 0;
}
