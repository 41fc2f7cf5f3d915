/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/forecast.h"

#include <math.h>

#include "base/json.h"
#include "base/text.h"

void hg_outlook_append_sources(const struct hg_forecast *f, const struct hg_outlook *o,
                               struct hg_buf *out)
{
    size_t n = 0;

    for (int s = 0; s < HG_FORECAST_SOURCES; s++) {
        size_t cells = o->cells[s] - (s == HG_FORECAST_NOTHING ? o->endless : 0);

        if (!cells)
            continue;
        hg_buf_printf(out, "%s%zu cell%s ", n++ ? ", " : "", cells, hg_text_s(cells));
        hg_forecast_append_source(f, (enum hg_forecast_source)s, out);
    }
    if (o->endless)
        hg_buf_printf(out, "%s%zu cell%s without a measured run and without a time limit",
                      n ? ", " : "", o->endless, hg_text_s(o->endless));
}

void hg_outlook_append_hours(const struct hg_outlook *o, struct hg_buf *out)
{
    const struct hg_estimate *e = &o->device_hours;

    if (!isnan(e->value))
        hg_buf_printf(out, "%.3g device-hours", e->value);
    if (!isnan(e->value) && e->has_interval)
        hg_buf_printf(out, " (%.3g to %.3g)", e->low, e->high);
    if (o->limit_hours > 0)
        hg_buf_printf(out, "%sat most %.3g%s by time limits", isnan(e->value) ? "" : ", and ",
                      o->limit_hours, isnan(e->value) ? " device-hours" : "");
    if (isnan(e->value) && !(o->limit_hours > 0))
        hg_buf_puts(out, "device-hours not known");
}

void hg_outlook_append_time(const struct hg_outlook *o, double passed_s, struct hg_buf *out)
{
    const struct hg_estimate *e = &o->seconds;
    char value[32], low[32], high[32];

    if (isnan(e->value)) {
        hg_buf_puts(out, "not known");
        return;
    }
    hg_text_duration_format(fmax(0, e->value - passed_s), value);
    hg_text_duration_format(fmax(0, e->low - passed_s), low);
    hg_text_duration_format(fmax(0, e->high - passed_s), high);
    hg_buf_printf(out, "%s%s", o->at_most ? "at most " : "", value);
    if (e->has_interval && !o->at_most)
        hg_buf_printf(out, " (%s to %s)", low, high);
}

static json_t *estimate_json(const struct hg_estimate *e, bool at_most)
{
    json_t *o = json_pack("{s:o}", at_most ? "at_most" : "value", hg_json_number(e->value));

    if (e->has_interval && !at_most) {
        json_object_set_new(o, "low", hg_json_number(e->low));
        json_object_set_new(o, "high", hg_json_number(e->high));
    }
    return o;
}

static json_t *cells_json(const struct hg_outlook *o)
{
    static const char *const names[] = {
        [HG_FORECAST_MEASURED] = "measured",
        [HG_FORECAST_LAW] = "law",
        [HG_FORECAST_REGRESSION] = "regression",
        [HG_FORECAST_NOTHING] = "limit",
    };
    json_t *cells = json_object();

    for (int s = 0; s < HG_FORECAST_SOURCES; s++) {
        size_t n = o->cells[s] - (s == HG_FORECAST_NOTHING ? o->endless : 0);

        if (n)
            json_object_set_new(cells, names[s], json_integer((json_int_t)n));
    }
    if (o->endless)
        json_object_set_new(cells, "unknown", json_integer((json_int_t)o->endless));
    return cells;
}

json_t *hg_outlook_json(const struct hg_outlook *o, struct hg_pace pace)
{
    json_t *out = json_object();

    if (!isnan(o->device_hours.value))
        json_object_set_new(out, "device_hours", estimate_json(&o->device_hours, false));
    if (!isnan(o->seconds.value) && pace.slots)
        json_object_set_new(out, "seconds", estimate_json(&o->seconds, o->at_most));
    if (o->limit_hours > 0)
        json_object_set_new(out, "device_hours_by_limits", hg_json_number(o->limit_hours));
    if (pace.slots) {
        json_object_set_new(out, "at_a_time", json_integer((json_int_t)pace.slots));
        json_object_set_new(out, "gap_s", hg_json_number(pace.gap_s));
    }
    json_object_set_new(out, "cells", cells_json(o));
    return out;
}
