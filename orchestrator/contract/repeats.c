/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/repeats.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MIN 3 /* fewer say nothing about the spread */
#define UNTIL_MIN 0.001

/* "5%" or 0.05; 0: neither. */
static double until_of(const json_t *value)
{
    const char *text = json_string_value(value), *end;
    size_t digits = text ? strspn(text, "0123456789.") : 0;

    if (json_is_number(value))
        return json_number_value(value);
    if (!digits)
        return 0;
    end = text + digits;
    return strcmp(end + (*end == ' '), "%") == 0 ? strtod(text, NULL) / 100 : 0;
}

static void check_until(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                        struct hg_errs *errs)
{
    double until = until_of(value);

    if (!(until >= UNTIL_MIN && until <= 1))
        hg_json_error(doc, pointer, errs,
                      "expected a half width such as \"5%%\" or 0.05, from 0.1%% to 100%%");
}

/* As it is written. */
struct written {
    json_t *until;
    long long min, max;
};

const struct hg_field hg_repeats_fields[] = {
    { "until", HG_J_JSON, offsetof(struct written, until), HG_J_REQUIRED, .check = check_until,
      .schema = "{\"anyOf\": [{\"type\": \"string\", \"pattern\": \"^[0-9.]+ ?%$\"},"
                " {\"type\": \"number\", \"minimum\": 0.001, \"maximum\": 1}]}",
      .doc = "half width of the interval at which a configuration needs no more runs: \"5%\"" },
    { "min", HG_J_INT, offsetof(struct written, min), .min = RUNS_MIN, .max = HG_REPEATS_MAX,
      .doc = "runs of the first round; absent: 3" },
    { "max", HG_J_INT, offsetof(struct written, max), HG_J_REQUIRED, .min = RUNS_MIN,
      .max = HG_REPEATS_MAX, .doc = "runs at most" },
    { 0 },
};

static void check_number(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                         struct hg_errs *errs)
{
    double v = json_number_value(value);

    if (!json_is_number(value) || v != floor(v))
        hg_json_error(doc, pointer, errs, "expected an integer, found %s",
                      hg_json_type_name(value));
    else if (v < 1 || v > HG_REPEATS_MAX)
        hg_json_error(doc, pointer, errs, "%.15g is out of range; 1 to %d", v, HG_REPEATS_MAX);
}

void hg_repeats_check(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                      struct hg_errs *errs)
{
    struct written w = { .min = RUNS_MIN };

    if (!json_is_object(value))
        check_number(doc, value, pointer, errs);
    else if (hg_json_decode(doc, value, pointer, hg_repeats_fields, true, &w, errs) == 0 &&
             w.max < w.min)
        hg_json_error(doc, pointer, errs, "max is %lld, min is %lld", w.max, w.min);
    hg_json_release(hg_repeats_fields, &w);
}

struct hg_repeats hg_repeats_of(const json_t *value)
{
    long long n = value ? (long long)json_number_value(value) : 1;
    const json_t *min = json_object_get(value, "min");

    if (!json_is_object(value))
        return (struct hg_repeats){ .min = n, .max = n };
    return (struct hg_repeats){
        .until = until_of(json_object_get(value, "until")),
        .min = min ? (long long)json_number_value(min) : RUNS_MIN,
        .max = (long long)json_number_value(json_object_get(value, "max")),
    };
}
