/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/alt.h"

#include <math.h>

#include "base/json.h"
#include "matrix/value.h"

const json_t *hg_generator_of(const json_t *json, enum hg_alt_kind *kind)
{
    const json_t *range = json_object_get(json, "range");
    const json_t *geometric = json_object_get(json, "geometric");

    if (json_object_size(json) != 1)
        return NULL;
    *kind = range ? HG_ALT_RANGE : HG_ALT_GEOMETRIC;
    return json_is_array(range) ? range : json_is_array(geometric) ? geometric : NULL;
}

double hg_generated(const struct hg_alt *alt, double i)
{
    return hg_value_round(alt->kind == HG_ALT_RANGE ? alt->first + i * alt->step
                                                    : alt->first * pow(alt->step, i));
}

/* How many values lie between first and last. The tolerance forgives what decimal steps lose in
 * binary: 0.3 / 0.1 is a little less than 3. */
static double count_steps(double q)
{
    return floor(q + 1e-9 + q * 1e-13) + 1;
}

static int size_range(struct hg_alt *alt, double last, struct hg_err *err)
{
    if (alt->step == 0)
        return hg_err_set(err, HG_E_INPUT, "a range with step 0 never ends");
    alt->size = count_steps((last - alt->first) / alt->step);
    if ((last - alt->first) / alt->step >= 0)
        return 0;
    hg_err_set(err, HG_E_INPUT, "the range from %.15g to %.15g in steps of %.15g is empty",
               alt->first, last, alt->step);
    return hg_err_hint(err, "a range that goes down needs a negative step");
}

static int size_geometric(struct hg_alt *alt, double last, struct hg_err *err)
{
    double q;

    if (alt->first == 0 || last / alt->first <= 0 || alt->step <= 0 || alt->step == 1) {
        hg_err_set(err, HG_E_INPUT, "no geometric series leads from %.15g to %.15g by factor %.15g",
                   alt->first, last, alt->step);
        return hg_err_hint(err, "first and last have one sign, the factor is above 0 and not 1");
    }
    q = log(last / alt->first) / log(alt->step);
    alt->size = count_steps(q);
    return q >= -1e-12 ? 0
                       : hg_err_set(err, HG_E_INPUT,
                                    "the geometric series from %.15g to %.15g by %.15g is empty",
                                    alt->first, last, alt->step);
}

int hg_generator_fill(const json_t *list, struct hg_alt *alt, struct hg_err *err)
{
    size_t n = json_array_size(list), i;
    double last = json_number_value(json_array_get(list, 1));
    json_t *number;

    if (n > 3 || n < (alt->kind == HG_ALT_RANGE ? 2 : 3))
        return hg_err_set(err, HG_E_INPUT,
                          alt->kind == HG_ALT_RANGE
                              ? "a range is [first, last] or [first, last, step]"
                              : "a geometric series is [first, last, factor]");
    json_array_foreach((json_t *)list, i, number) {
        if (!json_is_number(number))
            return hg_err_set(err, HG_E_INPUT, "expected a number, found %s",
                              hg_json_type_name(number));
    }
    alt->first = json_number_value(json_array_get(list, 0));
    alt->step = n == 3 ? json_number_value(json_array_get(list, 2)) : 1;
    return alt->kind == HG_ALT_RANGE ? size_range(alt, last, err) : size_geometric(alt, last, err);
}
