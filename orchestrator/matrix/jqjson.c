/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/jqjson.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "matrix/value.h"

jv hg_jv_of_json(const json_t *json)
{
    const char *key;
    json_t *inner;
    size_t i;
    jv v;

    switch (json_typeof(json)) {
    case JSON_OBJECT:
        v = jv_object();
        json_object_foreach((json_t *)json, key, inner)
            v = jv_object_set(v, jv_string(key), hg_jv_of_json(inner));
        return v;
    case JSON_ARRAY:
        v = jv_array();
        json_array_foreach((json_t *)json, i, inner)
            v = jv_array_append(v, hg_jv_of_json(inner));
        return v;
    case JSON_STRING:
        return jv_string_sized(json_string_value(json), (int)json_string_length(json));
    case JSON_INTEGER:
    case JSON_REAL:
        return jv_number(json_number_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return jv_bool(json_is_true(json));
    default:
        return jv_null();
    }
}

static json_t *json_of_jv_inner(jv v)
{
    json_t *json;

    if (jv_get_kind(v) == JV_KIND_ARRAY) {
        json = json_array();
        jv_array_foreach(v, i, x)
        {
            if (json_array_append_new(json, hg_json_of_jv(x)) < 0) {
                json_decref(json);
                return NULL;
            }
        }
        return json;
    }
    json = json_object();
    jv_object_foreach(v, key, x)
    {
        int rc = json_object_set_new(json, jv_string_value(key), hg_json_of_jv(x));

        jv_free(key);
        if (rc < 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

/* A string that no variable and no file of ours could hold. */
static bool has_nul(jv v)
{
    return (size_t)jv_string_length_bytes(jv_copy(v)) != strlen(jv_string_value(v));
}

json_t *hg_json_of_jv(jv v)
{
    json_t *json = NULL;

    switch (jv_get_kind(v)) {
    case JV_KIND_NUMBER:
        if (isfinite(jv_number_value(v)) && fabs(jv_number_value(v)) < 1e300)
            json = hg_json_number(hg_value_round(jv_number_value(v)));
        break;
    case JV_KIND_STRING:
        if (!has_nul(v))
            json = json_stringn(jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)));
        break;
    case JV_KIND_TRUE:
    case JV_KIND_FALSE:
        json = json_boolean(jv_get_kind(v) == JV_KIND_TRUE);
        break;
    case JV_KIND_ARRAY:
    case JV_KIND_OBJECT:
        json = json_of_jv_inner(v);
        break;
    default:
        json = json_null();
    }
    jv_free(v);
    return json;
}
