/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/matrix.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "matrix/checks.h"

static void check_name(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    const char *name = json_string_value(value);

    if (name && !hg_text_is_name(name))
        hg_err_hint(hg_json_error(doc, pointer, errs, "\"%.70s\" cannot be a name", name),
                    "a name becomes a folder: up to 64 letters, digits, ., _ and -, not beginning "
                    "with . or -");
}

static void check_format(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                         struct hg_errs *errs)
{
    if (json_is_number(value) && json_number_value(value) != 1)
        hg_json_error(doc, pointer, errs, "format %.15g is not known; this hpcgrid reads format 1",
                      json_number_value(value));
}

static void check_list(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    if (!json_is_array(value))
        hg_json_error(doc, pointer, errs, "expected a list, found %s", hg_json_type_name(value));
}

const struct hg_field hg_limits_fields[] = {
    { "running", HG_J_INT, offsetof(struct hg_matrix, running), .min = 1, .max = 1000000,
      .doc = "cells that may run at the same time" },
    { "gpu_hours", HG_J_REAL, offsetof(struct hg_matrix, gpu_hours), .min = 0.001, .max = 1e9,
      .doc =
          "GPU-hours that all cells may cost by their time limits, retries left out; a larger plan is "
          "refused" },
    { 0 },
};

#define ANY_OBJECT "{\"type\": \"object\"}"
#define ANY_OBJECTS "{\"type\": \"array\", \"items\": {\"type\": \"object\"}}"

const struct hg_field hg_matrix_fields[] = {
    { "$schema", HG_J_JSON, 0, HG_J_IGNORED, .schema = "{\"type\": \"string\"}",
      .doc = "for editors; ignored" },
    { "hpcgrid", HG_J_INT, offsetof(struct hg_matrix, format), HG_J_REQUIRED, .min = 1, .max = 1,
      .check = check_format, .doc = "number of the format: 1" },
    { "name", HG_J_STRING, offsetof(struct hg_matrix, name), HG_J_REQUIRED, .check = check_name,
      .schema = "{\"pattern\": \"^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$\"}",
      .doc = "name of the experiment; runs are kept in `reports/NAME`" },
    { "site", HG_J_JSON, offsetof(struct hg_matrix, site_json),
      .schema = "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}",
      .doc = "where it runs: a name from `templates/sites`, a path, or an object; absent: `box`" },
    { "workload", HG_J_JSON, offsetof(struct hg_matrix, workload_json), HG_J_REQUIRED,
      .check = hg_check_object, .schema = ANY_OBJECT,
      .doc = "what runs in every cell, and the members cells start with" },
    { "axes", HG_J_JSON, offsetof(struct hg_matrix, axes), .check = hg_check_object,
      .schema = ANY_OBJECT,
      .doc = "lists of values that are multiplied; the first varies slowest" },
    { "include", HG_J_JSON, offsetof(struct hg_matrix, include), .check = check_list,
      .schema = ANY_OBJECTS, .doc = "further products, written like `axes`" },
    { "exclude", HG_J_JSON, offsetof(struct hg_matrix, exclude), .check = check_list,
      .schema = "{\"type\": \"array\", \"items\": {\"type\": [\"object\", \"string\"]}}",
      .doc = "rules that remove cells: objects that match, or jq expressions" },
    { "derive", HG_J_JSON, offsetof(struct hg_matrix, derive), .check = hg_check_object,
      .schema = HG_TEXTS_SCHEMA, .doc = "jq expressions for members that a cell lacks, in order" },
    { "repeats", HG_J_INT, offsetof(struct hg_matrix, repeats), .min = 1, .max = 100000,
      .doc = "how many times every cell is run; absent: 1" },
    { "shuffle", HG_J_INT, offsetof(struct hg_matrix, shuffle), .min = 0, .max = 999999999999999,
      .doc = "a seed: the cells of each round are mixed" },
    { "together", HG_J_STRINGS, 0, HG_J_REFUSED, .doc = "hpcgrid does not run cells together" },
    { "baseline", HG_J_JSON, offsetof(struct hg_matrix, baseline), .check = hg_check_object,
      .schema = ANY_OBJECT,
      .doc = "members that, put over a cell, give the cell it is compared with" },
    { "limits", HG_J_OBJECT, 0, .fields = hg_limits_fields, .doc = "bounds of a run" },
    { "retry", HG_J_OBJECT, offsetof(struct hg_matrix, retry), .fields = hg_retry_fields,
      .doc = "how often a cell is run again that ended badly, by cause" },
    { "report", HG_J_JSON, offsetof(struct hg_matrix, report), .check = hg_check_object,
      .schema = ANY_OBJECT, .doc = "the tables wanted" },
    { 0 },
};
