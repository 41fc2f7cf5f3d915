/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/resultfile.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/seal.h"
#include "results/frame.h"
#include "rundir/attempt.h"

/* exec adds to what the workload wrote, so its file may be somewhat larger. */
#define RESULT_FILE_MAX (2 * HG_RESULT_MAX)

/* ---- Foreign JSON ---- */

/* The length of a number word that programs write although JSON does not allow it; 0 if there is none. */
static size_t not_finite(const char *p, size_t n)
{
    static const char *const words[] = { "NaN", "Infinity", "-Infinity", "nan", "inf", "-inf" };

    if (!strchr("NI-ni", *p))
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);

        if (n >= len && memcmp(p, words[i], len) == 0)
            return len;
    }
    return 0;
}

/* One pass over the text: count values outside of strings, copy it with null in the place of
 * NaN and infinities. */
static int guard(const char *name, const char *text, size_t len, struct hg_buf *out, bool *diverged,
                 struct hg_err *err)
{
    size_t depth = 0, values = 0;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        size_t odd;

        if (in_string) {
            if (text[i] == '\\' && i + 1 < len)
                hg_buf_append(out, &text[i++], 1);
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"') {
            in_string = true;
        } else if (strchr("[{", text[i]) && text[i]) {
            values++;
            if (++depth > HG_RESULT_DEPTH)
                return hg_err_set(err, HG_E_INPUT, "%s is nested more than %d levels deep", name,
                                  HG_RESULT_DEPTH);
        } else if (text[i] == ']' || text[i] == '}') {
            depth -= depth > 0;
        } else if (text[i] == ',') {
            if (++values > HG_RESULT_VALUES)
                return hg_err_set(err, HG_E_INPUT, "%s holds more than %d values", name,
                                  HG_RESULT_VALUES);
        } else if ((odd = not_finite(text + i, len - i))) {
            hg_buf_puts(out, "null");
            *diverged = true;
            i += odd - 1;
            continue;
        }
        hg_buf_append(out, &text[i], 1);
    }
    return 0;
}

json_t *hg_resultfile_parse(const char *name, const char *text, size_t len, bool *diverged,
                            struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_buf clean = HG_BUF_INIT;
    json_t *root = NULL;

    if (guard(name, text, len, &clean, diverged, err) == 0 &&
        hg_json_parse(name, hg_buf_str(&clean), clean.len, &doc, err) == 0) {
        if (json_is_object(doc.root))
            root = json_incref(doc.root);
        else
            hg_err_set(err, HG_E_INPUT, "%s is not an object", name);
    }
    hg_json_doc_done(&doc);
    hg_buf_done(&clean);
    return root;
}

/* ---- A result that was written ---- */

bool hg_resultfile_is_status(const char *word)
{
    static const char *const words[] = {
        "ok", "failed", "timeout", "oom", "cancelled", "node_fail"
    };

    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static int expect(const json_t *result, const char *key, const char *expected, struct hg_err *err)
{
    const char *is = json_string_value(json_object_get(result, key));

    if (!expected || (is && strcmp(is, expected) == 0))
        return 0;
    return hg_err_set(err, HG_E_INPUT, "its \"%s\" is \"%s\", expected \"%s\"", key, is ? is : "",
                      expected);
}

static int check_schema(const json_t *result, struct hg_err *err)
{
    const char *schema = json_string_value(json_object_get(result, "schema"));

    if (schema && strcmp(schema, HG_RESULT_SCHEMA) == 0)
        return 0;
    return hg_err_set(err, HG_E_INPUT,
                      "it has schema \"%s\", this hpcgrid reads \"" HG_RESULT_SCHEMA "\"",
                      schema ? schema : "");
}

/* Are all members of a that are no notes the same in b? */
static bool is_part_of(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)a, key, value)
        if (!(hg_frame_key_flags(key) & HG_KEY_NOTE) &&
            (!json_object_get(b, key) || !hg_json_equal(value, json_object_get(b, key))))
            return false;
    return true;
}

json_t *hg_resultfile_cell(const json_t *cell, const json_t *ran)
{
    json_t *made, *value;
    const char *key;

    if (hg_json_equal(cell, ran))
        return json_incref((json_t *)cell);
    made = json_object();
    json_object_foreach((json_t *)cell, key, value)
        if (!(hg_frame_key_flags(key) & HG_KEY_LOOSE))
            json_object_set(made, key, value);
    json_object_foreach((json_t *)ran, key, value)
        if (hg_frame_key_flags(key) & HG_KEY_LOOSE)
            json_object_set(made, key, value);
    if (is_part_of(made, ran) && is_part_of(ran, made))
        return made;
    json_decref(made);
    return NULL;
}

/* Does this result belong here? */
static int check_place(const json_t *result, const char *run_key, const char *id, const char *name,
                       const json_t *cell, struct hg_err *err)
{
    json_t *ran;

    if (check_schema(result, err) < 0 || expect(result, "run_key", run_key, err) < 0 ||
        expect(result, "id", id, err) < 0 || expect(result, "attempt", name, err) < 0)
        return -1;
    if (!hg_resultfile_is_status(json_string_value(json_object_get(result, "status"))))
        return hg_err_set(err, HG_E_INPUT, "its \"status\" is unknown");
    if (!cell)
        return 0;
    ran = hg_resultfile_cell(cell, json_object_get(result, "cell"));
    json_decref(ran);
    return ran ? 0 : hg_err_set(err, HG_E_INPUT, "it is of another cell");
}

/* Leave only "loss": {} of the loss curve: it can be most of the text. exec indents each level by two spaces, and the checksum follows,
 * so the text that is searched can only be the member of the result itself. Returns the new length. */
static size_t cut_loss(char *text, size_t len)
{
    static const char head[] = "\n  \"loss\": {", tail[] = "\n  },";
    char *begin = memmem(text, len, head, sizeof head - 1), *end;

    if (!begin)
        return len;
    begin += sizeof head - 1;
    end = memmem(begin, len - (size_t)(begin - text), tail, sizeof tail - 1);
    if (!end)
        return len;
    end += sizeof tail - sizeof "},";
    memmove(begin, end, len - (size_t)(end - text));
    return len - (size_t)(end - begin);
}

static json_t *parse_sealed(char *text, size_t len, bool curve)
{
    return json_loadb(text, curve ? len : cut_loss(text, len), 0, NULL);
}

/* A text with the right checksum is as exec wrote it; any other is looked at closely, to say what is wrong. */
static json_t *judge(const struct hg_attempt_files *f, const char *path, struct hg_buf *text,
                     const char *run_key, const json_t *cell, bool curve, struct hg_err *err)
{
    const char *bytes = hg_buf_str(text);
    size_t len = text->len && bytes[text->len - 1] == '\n' ? text->len - 1 : text->len;
    bool sealed = hg_seal_holds(bytes, len), diverged;
    json_t *result = sealed ? parse_sealed(text->data, len, curve)
                            : hg_resultfile_parse(path, bytes, text->len, &diverged, err);
    char name[HG_ATTEMPT_NAME_MAX];
    int rc = result ? 0 : -1;

    hg_attempt_name(f->submission, f->restarts, name);
    if (rc == 0)
        rc = check_place(result, run_key, f->id, name, cell, err);
    if (rc == 0 && !sealed)
        rc = hg_err_set(err, HG_E_INPUT, "it was changed after it was written");
    if (rc == 0)
        return result;
    json_decref(result);
    return NULL;
}

json_t *hg_resultfile_read(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                           const char *run_key, const json_t *cell, bool curve, struct hg_err *err)
{
    char *path = hg_attempt_path(g, f, "result.json");
    struct hg_buf text = HG_BUF_INIT;
    json_t *result = NULL;
    int rc = hg_attempt_read_result(g, f, RESULT_FILE_MAX, &text, err);

    if (rc == 0)
        result = judge(f, path, &text, run_key, cell, curve, err);
    else if (rc == HG_ATTEMPT_NONE)
        hg_err_set(err, HG_E_NOTFOUND, "the file is absent");
    if (!result)
        hg_err_wrap(err, "%s", path);
    hg_buf_done(&text);
    free(path);
    return result;
}
