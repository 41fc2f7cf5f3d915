/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/tfevents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hash.h"
#include "profile/tfevents.pb-c.h"

#define SETTINGS_MAX 128

struct wk_tfevents {
    FILE *file;
    char *path;
    int error; /* first errno */
};

/* ---- Records: length, its checksum, the message, its checksum ---- */

static void put_u32(uint8_t out[static 4], uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> 8 * i);
}

/* A checksum of data that hold checksums themselves is rotated and moved. */
static uint32_t masked_crc(const void *data, size_t n)
{
    uint32_t crc = hg_crc32c(0, data, n);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void write_bytes(struct wk_tfevents *t, const void *data, size_t n)
{
    if (!t->error && fwrite(data, 1, n, t->file) != n)
        t->error = errno ? errno : EIO;
}

static void write_event(struct wk_tfevents *t, const Tf__Event *event)
{
    size_t n = tf__event__get_packed_size(event);
    uint8_t head[12] = { 0 }, tail[4], *body = hg_alloc(n + 1);

    tf__event__pack(event, body);
    put_u32(head, (uint32_t)n);
    put_u32(head + 8, masked_crc(head, 8));
    put_u32(tail, masked_crc(body, n));
    write_bytes(t, head, sizeof head);
    write_bytes(t, body, n);
    write_bytes(t, tail, sizeof tail);
    free(body);
}

/* ---- The file ---- */

struct wk_tfevents *wk_tfevents_open(const char *folder, double wall_s, struct hg_err *err)
{
    struct wk_tfevents *t = hg_alloc_zeroed(1, sizeof *t);
    Tf__Event event = TF__EVENT__INIT;
    char host[64] = "host";

    gethostname(host, sizeof host - 1);
    t->path =
        hg_str_printf("%s/events.out.tfevents.%.0f.%s.%d.0", folder, wall_s, host, (int)getpid());
    t->file = fopen(t->path, "wbe");
    if (!t->file) {
        hg_err_sys(err, "cannot write %s", t->path);
        free(t->path);
        free(t);
        return NULL;
    }
    event.wall_time = wall_s;
    event.what_case = TF__EVENT__WHAT_FILE_VERSION;
    event.file_version = (char[]){ "brain.Event:2" };
    write_event(t, &event);
    return t;
}

void wk_tfevents_flush(struct wk_tfevents *t)
{
    if (fflush(t->file) != 0 && !t->error)
        t->error = errno;
}

int wk_tfevents_close(struct wk_tfevents *t, struct hg_err *err)
{
    int rc = 0;

    if (!t)
        return 0;
    if (fclose(t->file) != 0 && !t->error)
        t->error = errno;
    if (t->error) {
        errno = t->error;
        rc = hg_err_sys(err, "cannot write %s", t->path);
    }
    free(t->path);
    free(t);
    return rc;
}

static void write_value(struct wk_tfevents *t, Tf__Summary__Value *value, long step, double wall_s)
{
    Tf__Event event = TF__EVENT__INIT;
    Tf__Summary summary = TF__SUMMARY__INIT;

    summary.n_value = 1;
    summary.value = &value;
    event.wall_time = wall_s;
    event.step = step;
    event.what_case = TF__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    write_event(t, &event);
}

void wk_tfevents_scalar(struct wk_tfevents *t, const char *tag, long step, double wall_s,
                        double value)
{
    Tf__Summary__Value v = TF__SUMMARY__VALUE__INIT;

    v.tag = (char *)(uintptr_t)tag;
    v.value_case = TF__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v.simple_value = (float)value;
    write_value(t, &v, step, wall_s);
}

/* ---- The HParams page ---- */

/* Its records are summaries whose metadata carry a message, beside a tensor of no elements. */
static void write_hparams(struct wk_tfevents *t, const char *tag, const Tf__HParamsPluginData *data,
                          double wall_s)
{
    Tf__Summary__Value value = TF__SUMMARY__VALUE__INIT;
    Tf__SummaryMetadata metadata = TF__SUMMARY_METADATA__INIT;
    Tf__SummaryMetadata__PluginData plugin = TF__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Tf__Tensor tensor = TF__TENSOR__INIT;
    Tf__Tensor__Shape shape = TF__TENSOR__SHAPE__INIT;
    Tf__Tensor__Shape__Dim empty = TF__TENSOR__SHAPE__DIM__INIT, *dims[] = { &empty };

    plugin.plugin_name = (char[]){ "hparams" };
    plugin.content.len = tf__hparams_plugin_data__get_packed_size(data);
    plugin.content.data = hg_alloc(plugin.content.len + 1);
    tf__hparams_plugin_data__pack(data, plugin.content.data);
    metadata.plugin_data = &plugin;
    shape.n_dim = 1;
    shape.dim = dims;
    tensor.dtype = 1; /* float */
    tensor.shape = &shape;
    value.tag = (char *)(uintptr_t)tag;
    value.metadata = &metadata;
    value.value_case = TF__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    write_value(t, &value, 0, wall_s);
    free(plugin.content.data);
}

/* One setting, in the two forms that the page needs: its type, and its value. */
struct setting {
    Tf__HParamInfo info;
    Tf__Value value;
    Tf__SessionStartInfo__HparamsEntry entry;
    char *text; /* of a list or an object */
};

static void fill_setting(struct setting *s, const char *name, const json_t *value)
{
    s->info = (Tf__HParamInfo)TF__HPARAM_INFO__INIT;
    s->value = (Tf__Value)TF__VALUE__INIT;
    s->entry = (Tf__SessionStartInfo__HparamsEntry)TF__SESSION_START_INFO__HPARAMS_ENTRY__INIT;
    s->info.name = s->entry.key = (char *)(uintptr_t)name;
    s->entry.value = &s->value;
    if (json_is_boolean(value)) {
        s->info.type = 2;
        s->value.kind_case = TF__VALUE__KIND_BOOL_VALUE;
        s->value.bool_value = json_is_true(value);
    } else if (json_is_number(value)) {
        s->info.type = 3;
        s->value.kind_case = TF__VALUE__KIND_NUMBER_VALUE;
        s->value.number_value = json_number_value(value);
    } else {
        s->info.type = 1;
        s->value.kind_case = TF__VALUE__KIND_STRING_VALUE;
        s->text =
            json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS);
        s->value.string_value = s->text ? s->text : (char *)(uintptr_t)json_string_value(value);
    }
}

static int compare_settings(const void *pa, const void *pb)
{
    return strcmp(((const struct setting *)pa)->info.name, ((const struct setting *)pb)->info.name);
}

static size_t read_settings(const json_t *object, struct setting out[static SETTINGS_MAX])
{
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        if (n < SETTINGS_MAX && !json_is_null(value))
            fill_setting(&out[n++], name, value);
    }
    qsort(out, n, sizeof *out, compare_settings);
    for (size_t i = 0; i < n; i++)
        out[i].entry.value = &out[i].value; /* they were moved */
    return n;
}

static void write_experiment(struct wk_tfevents *t, struct setting *settings, size_t n,
                             const char *const *metrics, double wall_s)
{
    Tf__HParamsPluginData data = TF__HPARAMS_PLUGIN_DATA__INIT;
    Tf__Experiment experiment = TF__EXPERIMENT__INIT;
    Tf__HParamInfo *infos[SETTINGS_MAX];
    Tf__MetricName names[8];
    Tf__MetricInfo metric_infos[8], *list[8];

    for (size_t i = 0; i < n; i++)
        infos[i] = &settings[i].info;
    for (size_t i = 0; i < 8 && metrics[i]; i++) {
        names[i] = (Tf__MetricName)TF__METRIC_NAME__INIT;
        names[i].tag = (char *)(uintptr_t)metrics[i];
        metric_infos[i] = (Tf__MetricInfo)TF__METRIC_INFO__INIT;
        metric_infos[i].name = &names[i];
        list[i] = &metric_infos[i];
        experiment.n_metric_infos = i + 1;
    }
    experiment.time_created_secs = wall_s;
    experiment.n_hparam_infos = n;
    experiment.hparam_infos = infos;
    experiment.metric_infos = list;
    data.data_case = TF__HPARAMS_PLUGIN_DATA__DATA_EXPERIMENT;
    data.experiment = &experiment;
    write_hparams(t, "_hparams_/experiment", &data, wall_s);
}

static void write_start(struct wk_tfevents *t, struct setting *settings, size_t n,
                        const char *group, double wall_s)
{
    Tf__HParamsPluginData data = TF__HPARAMS_PLUGIN_DATA__INIT;
    Tf__SessionStartInfo start = TF__SESSION_START_INFO__INIT;
    Tf__SessionStartInfo__HparamsEntry *entries[SETTINGS_MAX];

    for (size_t i = 0; i < n; i++)
        entries[i] = &settings[i].entry;
    start.n_hparams = n;
    start.hparams = entries;
    if (group)
        start.group_name = (char *)(uintptr_t)group;
    start.start_time_secs = wall_s;
    data.data_case = TF__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
    data.session_start_info = &start;
    write_hparams(t, "_hparams_/session_start_info", &data, wall_s);
}

void wk_tfevents_settings(struct wk_tfevents *t, const json_t *settings, const char *const *metrics,
                          const char *group, double wall_s)
{
    struct setting *list = hg_alloc_zeroed(SETTINGS_MAX, sizeof *list);
    size_t n = read_settings(settings, list);

    write_experiment(t, list, n, metrics, wall_s);
    write_start(t, list, n, group, wall_s);
    for (size_t i = 0; i < n; i++)
        free(list[i].text);
    free(list);
}

void wk_tfevents_end(struct wk_tfevents *t, bool success, double wall_s)
{
    Tf__HParamsPluginData data = TF__HPARAMS_PLUGIN_DATA__INIT;
    Tf__SessionEndInfo end = TF__SESSION_END_INFO__INIT;

    end.status = success ? 1 : 2;
    end.end_time_secs = wall_s;
    data.data_case = TF__HPARAMS_PLUGIN_DATA__DATA_SESSION_END_INFO;
    data.session_end_info = &end;
    write_hparams(t, "_hparams_/session_end_info", &data, wall_s);
}
