/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/schema.h"

#include "contract/keys.h"
#include "contract/repeats.h"
#include "matrix/matrix.h"
#include "matrix/report.h"

/* A value of an axis: one value, a generator, a product, or a list of these. */
static json_t *alternatives(json_t *one)
{
    json_t *item = json_pack("{s:[o, {s:s}, {s:s}]}", "anyOf", json_incref(one), "$ref",
                             "#/$defs/generator", "$ref", "#/$defs/product");
    json_t *schema =
        json_pack("{s:[O, {s:s, s:O}]}", "anyOf", item, "type", "array", "items", item);

    json_decref(item);
    json_decref(one);
    return schema;
}

static json_t *nullable(json_t *schema)
{
    return json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
}

static json_t *any_value(void)
{
    return json_pack("{s:[s,s,s,s,s]}", "type", "null", "boolean", "number", "string", "array");
}

static json_t *product_schema(void)
{
    json_t *properties = json_object();

    for (int i = 0; i < HG_KEY_COUNT; i++)
        json_object_set_new(properties, hg_keys[i].name,
                            alternatives(nullable(hg_key_schema(&hg_keys[i]))));
    return json_pack("{s:s, s:o, s:o, s:s}", "type", "object", "properties", properties,
                     "additionalProperties", alternatives(any_value()), "description",
                     "keys and their values; lists are alternatives, and all members multiply");
}

static json_t *generator_schema(void)
{
    json_t *numbers = json_pack("{s:s, s:{s:s}, s:i, s:i}", "type", "array", "items", "type",
                                "number", "minItems", 2, "maxItems", 3);
    json_t *range =
        json_pack("{s:s, s:{s:O}, s:[s], s:b, s:s}", "type", "object", "properties", "range",
                  numbers, "required", "range", "additionalProperties", 0, "description",
                  "[first, last, step]; last is included, step is 1 if "
                  "absent");
    json_t *geometric =
        json_pack("{s:s, s:{s:o}, s:[s], s:b, s:s}", "type", "object", "properties", "geometric",
                  numbers, "required", "geometric", "additionalProperties", 0, "description",
                  "[first, last, factor]; last is included");

    return json_pack("{s:[o, o]}", "anyOf", range, geometric);
}

/* Members of an object that stand for one value each: where cells start, the baseline. */
static json_t *members_schema(void)
{
    json_t *properties = json_object();

    for (int i = 0; i < HG_KEY_COUNT; i++)
        json_object_set_new(properties, hg_keys[i].name, nullable(hg_key_schema(&hg_keys[i])));
    return properties;
}

static json_t *workload_schema(void)
{
    json_t *schema = hg_json_schema(hg_workload_fields, false);
    json_t *starts = members_schema();

    json_object_update(json_object_get(schema, "properties"), starts);
    json_object_del(schema, "additionalProperties");
    json_decref(starts);
    return schema;
}

static json_t *repeats_schema(void)
{
    return json_pack("{s:[{s:s, s:i, s:i}, o]}", "anyOf", "type", "integer", "minimum", 1,
                     "maximum", HG_REPEATS_MAX, hg_json_schema(hg_repeats_fields, true));
}

static json_t *exclude_schema(void)
{
    json_t *expression = json_pack("{s:s, s:s}", "type", "string", "description",
                                   "a jq expression: true removes the cell");
    json_t *object =
        json_pack("{s:s, s:s}", "type", "object", "description",
                  "removes the cells that have all these members; a list: any of them");

    return json_pack("{s:s, s:{s:[o, o]}}", "type", "array", "items", "anyOf", object, expression);
}

static void refine(json_t *properties, const char *name, json_t *schema)
{
    const json_t *doc = json_object_get(json_object_get(properties, name), "description");

    if (doc)
        json_object_set(schema, "description", (json_t *)doc);
    json_object_set_new(properties, name, schema);
}

json_t *hg_matrix_schema(void)
{
    json_t *schema = json_object();
    json_t *body = hg_json_schema(hg_matrix_fields, true);
    json_t *properties = json_object_get(body, "properties");

    refine(properties, "site",
           json_pack("{s:[{s:s}, o]}", "anyOf", "type", "string", hg_site_schema()));
    refine(properties, "workload", workload_schema());
    refine(properties, "axes", json_pack("{s:s}", "$ref", "#/$defs/product"));
    refine(properties, "include",
           json_pack("{s:s, s:{s:s}}", "type", "array", "items", "$ref", "#/$defs/product"));
    refine(properties, "exclude", exclude_schema());
    refine(properties, "repeats", repeats_schema());
    refine(properties, "baseline",
           json_pack("{s:s, s:o}", "type", "object", "properties", members_schema()));
    refine(properties, "report", hg_json_schema(hg_report_fields, true));
    json_object_set_new(schema, "$schema",
                        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(schema, "title", json_string("hpcgrid experiment matrix, format 1"));
    json_object_update(schema, body);
    json_object_set_new(
        schema, "$defs",
        json_pack("{s:o, s:o}", "product", product_schema(), "generator", generator_schema()));
    json_decref(body);
    return schema;
}
