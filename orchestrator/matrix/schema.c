/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "contract/keys.h"
#include "contract/repeats.h"
#include "matrix/matrix.h"
#include "matrix/params.h"
#include "matrix/report.h"
#include "matrix/site.h"
#include "results/result_keys.h"

/* What stands in cells is described twice: for hpcgrid-worker, whose parameters are known, and for a command, which may have any.
 * Descriptions stand beside "anyOf", not inside: editors show them there. No "$ref" has a neighbour that its target has, too:
 * editors let one of them win. "errorMessage" is VS Code's, instead of "expected object"; validators ignore it. */
struct branch {
    bool worker;
    /* Names in "$defs": members that multiply; what may stand instead of one value (null, a range, a product); an object with
     * names of members; one such name. */
    const char *product, *values, *names, *name;
};

static const struct branch worker = { true, "worker-product", "worker-values", "worker-names",
                                      "worker-name" };
static const struct branch command = { false, "command-product", "command-values", "command-names",
                                       NULL };

static json_t *target(const char *name)
{
    return json_sprintf("#/$defs/%s", name);
}

static json_t *ref(const char *name)
{
    return json_pack("{s:o}", "$ref", target(name));
}

/* The same for values of one type: what stands in "$defs" leaves it open, so that it serves lists of objects, too. */
static json_t *typed_ref(const char *type, const char *name)
{
    return json_pack("{s:s, s:o}", "type", type, "$ref", target(name));
}

/* ---- One value ---- */

static json_t *words_schema(size_t n, const char *const words[])
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(words[i]));
    return json_pack("{s:o}", "enum", list);
}

static json_t *strategy_schema(void)
{
    json_t *list = json_array();

    for (const struct hg_strategy *s = hg_strategies; s->name; s++)
        json_array_append_new(list, json_string(s->name));
    return json_pack("{s:o}", "enum", list);
}

static json_t *param_schema(const struct hg_param *p)
{
    static const char *const types[] = {
        [HG_PARAM_INT] = "integer",
        [HG_PARAM_REAL] = "number",
        [HG_PARAM_BOOL] = "boolean",
        [HG_PARAM_STRING] = "string",
    };
    const char *words[64];
    size_t n = hg_param_words(p, 64, words);
    json_t *schema = strcmp(p->name, "strategy") == 0 ? strategy_schema()
                     : n                              ? words_schema(n, words)
                                                      : json_pack("{s:s}", "type", types[p->kind]);

    if (p->min != 0 || p->max != 0) {
        json_object_set_new(schema, "minimum", hg_json_number(p->min));
        json_object_set_new(schema, "maximum", hg_json_number(p->max));
    }
    json_object_set_new(schema, "description", json_string(p->doc));
    return schema;
}

/* ---- Members: one value, or values that multiply ---- */

/* Move the description of a value to what is made of it. */
static json_t *wrap(json_t *one, json_t *alternatives)
{
    json_t *schema = json_pack("{s:O*, s:o}", "description", json_object_get(one, "description"),
                               "anyOf", alternatives);

    json_object_del(one, "description");
    return schema;
}

static json_t *single(const struct branch *b, json_t *one)
{
    (void)b;
    return wrap(one, json_pack("[o, {s:s}]", one, "type", "null"));
}

static json_t *overlay(const struct branch *b, json_t *one)
{
    (void)b;
    return wrap(one, json_pack("[o, {s:s}, {s:s, s:i, s:i}]", one, "type", "null", "type", "array",
                               "minItems", 1, "maxItems", 1));
}

/* A value, or a list of values, that multiply. */
static json_t *alternatives(const struct branch *b, json_t *alone, json_t *in_list)
{
    json_t *list = json_pack("{s:s, s:i, s:{s:[o, o]}}", "type", "array", "minItems", 1, "items",
                             "anyOf", in_list, ref(b->values));

    return wrap(alone, json_pack("[o, o, o]", alone, ref(b->values), list));
}

/* Ranges have rules of their own: they begin where the key does, and have numbers. */
static json_t *axis(const struct branch *b, json_t *one)
{
    json_t *min = json_object_get(one, "minimum"), *types = json_object_get(one, "type");
    const char *type = json_string_value(json_is_array(types) ? json_array_get(types, 0) : types);
    bool text = json_object_get(one, "enum") || (type && strcmp(type, "number") != 0);
    json_t *schema = alternatives(b, one, json_incref(one));

    if (min)
        json_object_set_new(schema, "$ref",
                            json_sprintf("#/$defs/%s-from-%.15g", type, json_number_value(min)));
    else if (text)
        json_object_set_new(schema, "$ref", target("no-range"));
    return schema;
}

/* The values of a parameter of a command, or of a note: a list in a list is one value. */
static json_t *any_axis(const struct branch *b)
{
    return alternatives(b, json_pack("{s:[s,s,s]}", "type", "boolean", "number", "string"),
                        json_pack("{s:[s,s,s,s]}", "type", "boolean", "number", "string", "array"));
}

static json_t *nothing(const struct branch *b, json_t *one)
{
    (void)b;
    json_decref(one);
    return json_object();
}

/* Every key of a cell and, for hpcgrid-worker, every parameter. */
static json_t *members(const struct branch *b, json_t *(*make)(const struct branch *, json_t *))
{
    json_t *properties = json_object();

    for (int i = 0; i < HG_KEY_COUNT; i++)
        json_object_set_new(properties, hg_keys[i].name, make(b, hg_key_schema(&hg_keys[i])));
    for (const struct hg_param *p = hg_params; b->worker && p->name; p++)
        json_object_set_new(properties, p->name, make(b, param_schema(p)));
    return properties;
}

/* An object with these members. hpcgrid-worker knows no others, but there are notes; a command has any that can be keys. */
static json_t *object_of(const struct branch *b, json_t *properties, json_t *other, json_t *wrong)
{
    char *refused = hg_key_refused_pattern();
    json_t *schema = json_pack("{s:o, s:{s:o}, s:o}", "properties", properties, "patternProperties",
                               b->worker ? "^_" : refused, b->worker ? other : wrong,
                               "additionalProperties", b->worker ? wrong : other);

    free(refused);
    return schema;
}

/* ---- Products ---- */

/* The value of a member that is no key: only products. */
static json_t *cases(const struct branch *b)
{
    const char *message =
        b->worker
            ? "hpcgrid-worker has no such parameter; a note begins with _, and only a list of objects may have any name"
            : "no key can have this name; only a list of objects may have any name";

    return json_pack("{s:o, s:[s,s], s:s, s:i, s:{s:o, s:s, s:s}}", "$ref", target(b->product),
                     "type", "object", "array", "errorMessage", message, "minItems", 1, "items",
                     "$ref", target(b->product), "type", "object", "errorMessage", message);
}

static json_t *product_schema(const struct branch *b)
{
    json_t *schema = object_of(b, members(b, axis), any_axis(b), cases(b));

    json_object_set_new(
        schema, "description",
        json_string("keys and their values; lists are alternatives, and all members multiply"));
    return schema;
}

static json_t *values_schema(const struct branch *b)
{
    json_t *product = typed_ref("object", b->product);

    json_object_set_new(product, "not", ref("generated"));
    return json_pack("{s:[{s:s}, o, o]}", "anyOf", "type", "null", ref("generator"), product);
}

/* {"range": [...]} and {"geometric": [...]}: how they look, what is right in them, and where none can stand. */
static const char ranges[] =
    "{\"generated\": {\"type\": \"object\", \"maxProperties\": 1, \"anyOf\": ["
    "  {\"required\": [\"range\"], \"properties\": {\"range\": {\"type\": \"array\"}}},"
    "  {\"required\": [\"geometric\"], \"properties\": {\"geometric\": {\"type\": \"array\"}}}]},"
    "\"generator\": {\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": 1, \"properties\": {"
    "  \"range\": {\"type\": \"array\", \"minItems\": 2, \"maxItems\": 3, \"prefixItems\": ["
    "    {\"type\": \"number\"}, {\"type\": \"number\"}, {\"type\": \"number\", \"not\": {\"const\": 0}}],"
    "    \"description\": \"[first, last, step]; last is included, step is 1 if absent\"},"
    "  \"geometric\": {\"type\": \"array\", \"minItems\": 3, \"maxItems\": 3, \"prefixItems\": ["
    "    {\"type\": \"number\", \"not\": {\"const\": 0}}, {\"type\": \"number\", \"not\": {\"const\": 0}},"
    "    {\"type\": \"number\", \"exclusiveMinimum\": 0, \"not\": {\"const\": 1}}],"
    "    \"description\": \"[first, last, factor]; last is included\"}}, \"additionalProperties\": false},"
    "\"no-range\": {\"not\": {\"$ref\": \"#/$defs/generated\"}, \"items\": {\"not\": {\"$ref\": \"#/$defs/generated\"}},"
    "  \"errorMessage\": \"a range makes numbers, which cannot stand here\"}}";

/* Add what holds for a range, or a list with ranges, of numbers with this smallest value. */
static void add_from(bool whole, double min, json_t *defs)
{
    const char *type = whole ? "integer" : "number";
    json_t *first = json_pack("{s:s, s:o}", "type", type, "minimum", hg_json_number(min));
    json_t *number = json_pack("{s:s}", "type", type);
    json_t *members = json_pack("{s:{s:[O, {}, o]}, s:{s:[o]}}", "range", "prefixItems", first,
                                number, "geometric", "prefixItems", first);
    char *name = hg_str_printf("%s-from-%.15g", type, min);

    json_object_set_new(
        defs, name,
        json_pack("{s:o, s:{s:O}}", "properties", members, "items", "properties", members));
    free(name);
}

/* ---- The branches ---- */

static json_t *workload_schema(const struct branch *b)
{
    json_t *properties = members(b, single);

    for (const struct hg_field *f = hg_workload_fields; f->kind != HG_J_END; f++)
        if (!b->worker || strcmp(f->name, "command") != 0)
            json_object_set_new(properties, f->name, json_object());
    return object_of(b, properties, json_object(), json_false());
}

static json_t *baseline_schema(const struct branch *b)
{
    json_t *other =
        json_pack("{s:i, s:i, s:o}", "minItems", 1, "maxItems", 1, "not", ref("generated"));

    return object_of(b, members(b, overlay), other, json_false());
}

/* One of the names, or a note. */
static json_t *name_schema(const struct branch *b)
{
    json_t *names = members(b, nothing), *list = json_array();
    const char *name;
    json_t *value;

    json_object_foreach(names, name, value)
        json_array_append_new(list, json_string(name));
    json_decref(names);
    return json_pack("{s:[{s:o}, {s:s}]}", "anyOf", "enum", list, "pattern", "^_");
}

/* In a row of "include", a list of words is most likely meant as one value, but would multiply. */
static json_t *row_schema(const struct branch *b)
{
    json_t *words =
        json_pack("{s:{s:s, s:i, s:[{s:s}]}, s:s}", "not", "type", "array", "minItems", 2,
                  "prefixItems", "type", "string", "errorMessage",
                  "each word would make a cell of its own: one list of words is written "
                  "[[\"a\", \"b\"]]");

    return json_pack("{s:[o, {s:{s:O, s:o}}]}", "allOf", ref(b->product), "properties", "sbatch",
                     words, "modules", words);
}

static json_t *branch_schema(const struct branch *b)
{
    static const char *const lists[] = { "rows", "columns", "group", "work" };
    json_t *report = json_object(), *names = ref(b->names);
    json_t *properties = json_pack("{s:o, s:o, s:{s:o}, s:{s:O}, s:o, s:o, s:{s:o}}", "workload",
                                   workload_schema(b), "axes", ref(b->product), "include", "items",
                                   row_schema(b), "exclude", "items", names, "derive", names,
                                   "baseline", baseline_schema(b), "report", "properties", report);

    for (size_t i = 0; b->name && i < sizeof lists / sizeof *lists; i++)
        json_object_set_new(report, lists[i], json_pack("{s:o}", "items", ref(b->name)));
    return json_pack("{s:o}", "properties", properties);
}

/* ---- What depends on the site ---- */

/* One of the words (or null), or products and lists of them. */
static json_t *words_at(const char *cells, const json_t *words)
{
    json_t *one = json_pack("{s:O}", "enum", words), *more = typed_ref("object", cells);

    return json_pack("{s:[o, {s:s, s:{s:[O, o]}}, O]}", "anyOf", one, "type", "array", "items",
                     "anyOf", one, more, more);
}

/* What the cells of a site may name, however deep in products. */
static json_t *cells_schema(const struct hg_site *site, const char *cells)
{
    json_t *hardware = json_array(), *own = json_pack("[s, n]", site->name),
           *none = json_pack("[n]");
    json_t *schema;

    for (size_t i = 0; i < site->n_hardware; i++)
        json_array_append_new(hardware, json_string(site->hardware[i].name));
    json_array_append_new(hardware, json_null());
    schema = json_pack("{s:{s:o, s:o, s:o*}, s:o, s:o}", "properties", "hardware",
                       words_at(cells, hardware), "site", words_at(cells, own), "container",
                       site->container ? NULL : words_at(cells, none), "additionalProperties",
                       ref(cells), "items", ref(cells));
    json_decref(hardware);
    json_decref(own);
    json_decref(none);
    return schema;
}

/* Do axes or include name a site, however deep? Then each cell is at its own. */
static json_t *several_sites(void)
{
    return json_pack("{s:[{s:[s], s:{s:o}}, {s:[s], s:{s:o}}]}", "anyOf", "required", "axes",
                     "properties", "axes", ref("names-site"), "required", "include", "properties",
                     "include", ref("names-site"));
}

static json_t *names_site(void)
{
    return json_pack("{s:[{s:s, s:[s]}, {s:s, s:{s:{s:o}}}, {s:s, s:o}]}", "anyOf", "type",
                     "object", "required", "site", "type", "object", "not", "additionalProperties",
                     "not", ref("names-site"), "type", "array", "contains", ref("names-site"));
}

/* Add what the matrices of one site may name to "$defs"; returns when that holds: for the site, or one that adds none of it. A matrix
 * without a site runs on the box. */
static json_t *site_rule(const struct hg_site *site, const char *name, json_t *defs)
{
    char *cells = hg_str_printf("cells-%s", name), *here = hg_str_printf("site-%s", name);
    json_t *schema = cells_schema(site, cells), *starts = json_object();
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(schema, "properties"), key, value)
        json_object_set_new(
            starts, key,
            json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s/properties/%s", cells, key)));
    json_object_set_new(defs, cells, schema);
    json_object_set_new(defs, here,
                        json_pack("{s:{s:{s:o}, s:o, s:o, s:o}}", "properties", "workload",
                                  "properties", starts, "axes", ref(cells), "include", ref(cells),
                                  "baseline", ref(cells)));
    value = json_pack(
        "{s:{s:{s:{s:[{s:s}, {s:s, s:[s], s:{s:{s:s}}, s:{s:{s:[s,s,s]}}}]}}, s:o*}, s:o}", "if",
        "properties", "site", "anyOf", "const", name, "type", "object", "required", "extends",
        "properties", "extends", "const", name, "propertyNames", "not", "enum", "container",
        "hardware", "name", "required", strcmp(name, "box") == 0 ? NULL : json_pack("[s]", "site"),
        "then", ref(here));
    if (strcmp(name, "box") == 0)
        json_object_set_new(json_object_get(value, "if"), "not", several_sites());
    free(cells);
    free(here);
    return value;
}

static json_t *site_schema(const struct hg_words *names)
{
    return json_pack("{s:[o, {s:s}, o]}", "anyOf",
                     words_schema(names->n, (const char *const *)names->items), "type", "string",
                     hg_site_schema());
}

/* ---- The whole file ---- */

static json_t *repeats_schema(void)
{
    return json_pack("{s:[{s:s, s:i, s:i}, o]}", "anyOf", "type", "integer", "minimum", 1,
                     "maximum", HG_REPEATS_MAX, hg_json_schema(hg_repeats_fields, true));
}

static json_t *exclude_schema(void)
{
    return json_loads(
        "{\"type\": \"array\", \"items\": {\"anyOf\": ["
        "{\"type\": \"object\", \"minProperties\": 1, \"description\":"
        " \"removes the cells that have all these members; a list: any of them\"},"
        "{\"type\": \"string\", \"description\": \"a jq expression: true removes the cell\","
        " \"examples\": [\".nodes * .gpus_per_node > 8\"]}]}}",
        0, NULL);
}

static void refuse_names(json_t *fields, const char *name, const char *pattern,
                         const char *const words[])
{
    size_t n = 0;

    while (words[n])
        n++;
    json_object_set_new(json_object_get(fields, name), "propertyNames",
                        json_pack("{s:s, s:o}", "pattern", pattern, "not", words_schema(n, words)));
}

/* The workload's own words; its other members are the branches' business. */
static json_t *words_of_workload(void)
{
    json_t *schema = hg_json_schema(hg_workload_fields, false);
    json_t *properties = json_object_get(schema, "properties");

    json_object_del(schema, "additionalProperties");
    refuse_names(properties, "env", "^[A-Za-z_][A-Za-z0-9_]*$", hg_workload_own_variables);
    refuse_names(properties, "files", HG_TEXT_NAME_PATTERN, hg_workload_own_files);
    refuse_names(properties, "results", "", hg_result_keys_own);
    json_object_set_new(
        schema, "anyOf",
        json_pack("[{s:[s]}, {s:[s]}]", "required", "program", "required", "command"));
    return schema;
}

static void refine(json_t *properties, const char *name, json_t *schema)
{
    json_t *doc = json_object_get(json_object_get(properties, name), "description");

    if (doc)
        json_object_set(schema, "description", doc);
    json_object_set_new(properties, name, schema);
}

static void add_branch(const struct branch *b, json_t *defs)
{
    json_object_set_new(defs, b->worker ? "worker" : "command", branch_schema(b));
    json_object_set_new(defs, b->product, product_schema(b));
    json_object_set_new(defs, b->values, values_schema(b));
    json_object_set_new(defs, b->names,
                        object_of(b, members(b, nothing), json_object(), json_false()));
    if (b->name)
        json_object_set_new(defs, b->name, name_schema(b));
}

static json_t *definitions(void)
{
    json_t *defs = json_loads(ranges, 0, NULL);

    add_branch(&worker, defs);
    add_branch(&command, defs);
    for (int i = 0; i < HG_KEY_COUNT; i++)
        if (hg_keys[i].kind == HG_KEY_WHOLE)
            add_from(true, hg_keys[i].min, defs);
    for (const struct hg_param *p = hg_params; p->name; p++)
        if (p->min != 0 || p->max != 0)
            add_from(p->kind == HG_PARAM_INT, p->min, defs);
    return defs;
}

/* Without axes there must be a row of "include" (if it stands there at all); and what depends on the site, for each that has a name here. */
static json_t *rules_of(const struct hg_words *names, json_t *defs, struct hg_errs *errs)
{
    json_t *rules = json_pack("[{s:{s:[s]}, s:{s:{s:{s:i}}}}]", "if", "required", "axes", "else",
                              "properties", "include", "minItems", 1);

    json_object_set_new(defs, "names-site", names_site());
    for (size_t i = 0; i < names->n; i++) {
        struct hg_site *site = hg_site_base(names->items[i], errs);

        if (site)
            json_array_append_new(rules, site_rule(site, names->items[i], defs));
        hg_site_free(site);
    }
    return rules;
}

json_t *hg_matrix_schema(struct hg_errs *errs)
{
    json_t *schema =
        json_pack("{s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
                  "hpcgrid experiment matrix, format 1");
    json_t *body = hg_json_schema(hg_matrix_fields, true), *defs = definitions(), *rules;
    json_t *properties = json_object_get(body, "properties");
    struct hg_words sites = HG_WORDS_INIT;

    hg_site_names(&sites);
    rules = rules_of(&sites, defs, errs);
    refine(properties, "site", site_schema(&sites));
    refine(properties, "workload", words_of_workload());
    refine(properties, "exclude", exclude_schema());
    refine(properties, "repeats", repeats_schema());
    refine(properties, "report", hg_json_schema(hg_report_fields, true));
    json_object_update(schema, body);
    json_object_update_new(schema, json_pack("{s:{s:[s], s:{s:{s:[s]}}}, s:o, s:o, s:o, s:o}", "if",
                                             "required", "workload", "properties", "workload",
                                             "required", "program", "then", ref("worker"), "else",
                                             ref("command"), "allOf", rules, "$defs", defs));
    json_decref(body);
    hg_words_done(&sites);
    return schema;
}
