/* SPDX-License-Identifier: Apache-2.0 */
/* Reading weights from files, good and bad ones. */
#include "worker.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "train/weights.h"

static char path[64];

static int make_file(void **state)
{
    int fd;

    (void)state;
    snprintf(path, sizeof path, "/tmp/hpcgrid-test-XXXXXX");
    fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return remove(path);
}

static void write_file(const void *header, size_t header_bytes, uint64_t announced,
                       const void *data, size_t bytes)
{
    char text[4096];

    memcpy(text, &announced, 8);
    memcpy(text + 8, header, header_bytes);
    memcpy(text + 8 + header_bytes, data, bytes);
    assert_int_equal(hg_fs_replace(path, text, 8 + header_bytes + bytes, 0600, NULL), 0);
}

static void test_damaged_files_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *header;
        int bytes; /* of values */
        const char *message;
    } cases[] = {
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4,
          "tensor a: bytes 0 to 8" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 12,
          "4 bytes at the end" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "are not the 12" },
        { "{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
          "unknown dtype \"F31\"" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8,
          "the shape is not a list" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4294967296],\"data_offsets\":[0,8]}}",
          8, "the shape is not a list" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8,
          "the shape is not a list" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
          "tensor a: bytes 8 to 0" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "tensor a: bytes 0 to 0" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
          12, "tensor b: bytes that belong to no tensor before it" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
          8, "tensor b: it overlaps the one before it" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          4, "twice" },
        { "{\"a\":3}", 0, "tensor a: unknown dtype" },
        { "{\"a\"", 0, "header of safetensors" },
        { "[]      ", 0, "not a safetensors file" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        static const char zeros[64];
        struct hg_err err = HG_ERR_INIT;
        struct wk_st st;

        write_file(cases[i].header, strlen(cases[i].header), strlen(cases[i].header), zeros,
                   (size_t)cases[i].bytes);
        assert_int_equal(wk_st_open(path, &st, &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
        if (!strstr(err.text, cases[i].message))
            fail_msg("\"%s\" lacks \"%s\"", err.text, cases[i].message);
    }
}

static void test_headers_that_lie_about_their_length_are_refused(void **state)
{
    static const uint64_t lengths[] = { 0, 1, 3, 100, 99999999, 100000001, UINT64_MAX };

    (void)state;
    for (size_t i = 0; i < N_OF(lengths); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_st st;

        write_file("{}", 2, lengths[i], "", 0);
        assert_int_equal(wk_st_open(path, &st, &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
    }
}

static void test_values_of_every_float_type_are_read(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[20,28]},"
        "\"i\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[28,28]}}   ";
    /* 1, -2, 2^-24, largest, 2^-14, 1/3; 1, -3.140625 */
    const uint16_t halves[] = { 0x3c00, 0xc000, 0x0001, 0x7bff, 0x0400, 0x3555, 0x3f80, 0xc049 };
    const double wanted[] = { 1, -2, 0x1p-24, 65504, 0x1p-14, 0.333251953125 };
    const float f = 0.1f;
    const double d = 0.2;
    unsigned char data[28];
    struct hg_err err = HG_ERR_INIT;
    struct wk_st st;
    wk_real out[6];

    (void)state;
    memcpy(data, halves, 16);
    memcpy(data + 16, &f, 4);
    memcpy(data + 20, &d, 8);
    write_file(header, strlen(header), strlen(header), data, sizeof data);
    if (wk_st_open(path, &st, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(st.n, 5);
    assert_string_equal(wk_st_metadata(&st, "format"), "pt");
    assert_int_equal(wk_st_read(&st, wk_st_find(&st, "h"), out, &err), 0);
    for (int i = 0; i < 6; i++)
        assert_true((double)out[i] == wanted[i]);
    assert_int_equal(wk_st_read(&st, wk_st_find(&st, "b"), out, &err), 0);
    assert_true(out[0] == 1 && out[1] == (wk_real)-3.140625);
    assert_int_equal(wk_st_read(&st, wk_st_find(&st, "f"), out, &err), 0);
    assert_true(out[0] == (wk_real)f);
    assert_int_equal(wk_st_read(&st, wk_st_find(&st, "d"), out, &err), 0);
    assert_true(out[0] == (wk_real)d);
    assert_int_equal(wk_st_read(&st, wk_st_find(&st, "i"), out, &err), -1);
    assert_non_null(strstr(err.text, "tensor i: dtype I64"));
    wk_st_close(&st);
}

static void test_a_value_that_is_no_number_is_refused(void **state)
{
    static const char header[] = "{\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}";
    const uint16_t bad[] = { 0x7e00, 0x7c00, 0xfc00 };

    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++) {
        const uint16_t halves[] = { 0x3c00, bad[i] };
        struct hg_err err = HG_ERR_INIT;
        struct wk_st st;
        wk_real out[2];

        write_file(header, strlen(header), strlen(header), halves, sizeof halves);
        assert_int_equal(wk_st_open(path, &st, &err), 0);
        assert_int_equal(wk_st_read(&st, wk_st_find(&st, "h"), out, &err), -1);
        assert_non_null(strstr(err.text, "tensor h: element 1 is not finite"));
        wk_st_close(&st);
    }
}

/* ---- Weights of a model ---- */

struct change {
    const char *from,
        *to;  /* part of a name, and what stands there instead; "": the tensor is left out */
    int rows; /* more in the changed ones */
};

static const struct wk_model_size sizes = {
    .layers = 1, .hidden = 8, .heads = 2, .intermediate = 12, .vocab_size = 30, .positions = 20
};

static void save_model(const struct wk_model_kind *kind, const struct change *c, bool extra)
{
    struct wk_st_item items[64];
    struct hg_err err = HG_ERR_INIT;
    struct wk_st_writer *w;
    size_t n = 0;

    for (int i = 0; i < kind->n_params; i++) {
        const struct wk_param *p = &kind->params[i];
        const char *at = c ? strstr(p->name, c->from) : NULL;

        if (at && !*c->to)
            continue;
        items[n] =
            (struct wk_st_item){ .name = at ? hg_str_printf("%.*s%s%s", (int)(at - p->name),
                                                            p->name, c->to, at + strlen(c->from))
                                            : strdup(p->name),
                                 .dtype = WK_ST_REAL,
                                 .n_dims = p->cols ? 2 : 1,
                                 .dims = { (uint64_t)(p->rows + (at ? c->rows : 0)),
                                           (uint64_t)p->cols } };
        n++;
    }
    if (extra) {
        items[n++] = (struct wk_st_item){ strdup("cls.predictions.bias"), WK_ST_REAL, 1, { 3, 0 } };
        items[n++] =
            (struct wk_st_item){ strdup("bert.pooler.dense.bias"), WK_ST_REAL, 1, { 3, 0 } };
        items[n++] =
            (struct wk_st_item){ strdup("bert.embeddings.position_ids"), "I64", 1, { 3, 0 } };
    }
    w = wk_st_create(path, items, n, NULL, &err);
    assert_non_null(w);
    for (size_t i = 0; i < n; i++) {
        size_t values = (size_t)(items[i].dims[0] * (items[i].n_dims > 1 ? items[i].dims[1] : 1));
        wk_real *host = calloc(values + 8, 8);

        for (size_t k = 0; k < values; k++)
            host[k] = noise((uint32_t)strlen(items[i].name), k);
        assert_int_equal(
            wk_st_write(w, host, values * (items[i].dtype[0] == 'I' ? 8 : sizeof *host), &err), 0);
        free(host);
        free(items[i].name);
    }
    assert_int_equal(wk_st_commit(w, NULL, &err), 0);
}

/* Open a strategy with the file's weights; NULL with err set. */
static int load_model(const struct wk_model_kind *kind, wk_real *gamma, wk_real *head,
                      struct hg_err *err)
{
    struct wk_comm *comm = wk_comm_self.open(err);
    struct wk_dev *dev = open_cpu(1);
    struct wk_optim optim = { .kind = wk_optim_get("adamw", err) };
    struct wk_strategy_options options = { 0 };
    struct wk_strategy *s = wk_strategy_open(wk_strategy_get("single", 1, err), dev, comm, kind,
                                             &optim, &options, 1, err);
    int rc = s && wk_weights_load(path, s, err) == 0 ? wk_strategy_start(s, err) : -1;

    if (rc == 0) {
        *gamma = ((wk_real *)s->params[3].value.data)[1];
        *head = ((wk_real *)s->params[kind->n_params - 2].value.data)[1];
    }
    wk_strategy_close(s);
    dev->backend->close(dev);
    wk_comm_close(comm);
    return rc;
}

static void test_weights_are_found_by_their_names_old_and_new(void **state)
{
    static const struct change changes[] = {
        { "nothing", "nothing", 0 },
        { "LayerNorm.weight", "LayerNorm.gamma", 0 },
        { "LayerNorm.bias", "LayerNorm.beta", 0 },
    };
    struct hg_err err = HG_ERR_INIT;
    const struct wk_model_kind *kind = wk_model_make("bert-tiny", &sizes, &err);
    wk_real gamma, head;

    (void)state;
    for (size_t i = 0; i < N_OF(changes); i++) {
        const char *name =
            i == 1 ? "bert.embeddings.LayerNorm.gamma" : "bert.embeddings.LayerNorm.weight";

        save_model(kind, &changes[i], true);
        if (load_model(kind, &gamma, &head, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(gamma == noise((uint32_t)strlen(name), 1));
        assert_true(head == noise((uint32_t)strlen("qa_outputs.weight"), 1));
    }
    wk_model_free(kind);
}

static void test_a_missing_head_starts_anew_and_nothing_else_may_lack(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    const struct wk_model_kind *kind = wk_model_make("bert-tiny", &sizes, &err);
    wk_real gamma, head, first[16];

    (void)state;
    save_model(kind, &(struct change){ "qa_outputs", "", 0 }, false);
    assert_int_equal(load_model(kind, &gamma, &head, &err), 0);
    wk_param_init(&kind->params[kind->n_params - 2], kind->n_params - 2, 1, first);
    assert_true(head == first[1]);
    save_model(kind, &(struct change){ "query.bias", "", 0 }, false);
    assert_int_equal(load_model(kind, &gamma, &head, &err), -1);
    assert_non_null(strstr(err.text, "no tensor bert.encoder.layer.0.attention.self.query.bias"));
    wk_model_free(kind);
}

static void test_weights_of_another_model_are_refused(void **state)
{
    struct hg_err shape = HG_ERR_INIT, foreign = HG_ERR_INIT;
    struct wk_model_size deeper = sizes;
    const struct wk_model_kind *kind = wk_model_make("bert-tiny", &sizes, &shape), *other;
    wk_real gamma, head;

    (void)state;
    save_model(kind, &(struct change){ "word_embeddings", "word_embeddings", 1 }, false);
    assert_int_equal(load_model(kind, &gamma, &head, &shape), -1);
    assert_non_null(strstr(shape.text, "has shape [31, 8], model bert-tiny needs [30, 8]"));
    deeper.layers = 2;
    other = wk_model_make("bert-tiny", &deeper, &foreign);
    save_model(other, NULL, false);
    assert_int_equal(load_model(kind, &gamma, &head, &foreign), -1);
    assert_non_null(strstr(foreign.text, "has no parameter for tensor bert.encoder.layer.1."));
    wk_model_free(kind);
    wk_model_free(other);
}

/* One bit at a time, all over the file. */
static void test_a_changed_byte_is_refused_by_the_name_of_its_tensor(void **state)
{
    struct hg_err err = HG_ERR_INIT, named = HG_ERR_INIT;
    const struct wk_model_kind *kind = wk_model_make("bert-tiny", &sizes, &err);
    struct hg_buf text = HG_BUF_INIT;
    struct wk_st st;
    size_t norm;

    (void)state;
    save_model(kind, NULL, true);
    assert_int_equal(wk_st_open(path, &st, &err), 0);
    assert_int_equal(wk_st_verify(&st, true, &err), 0);
    norm =
        (size_t)(wk_st_find(&st, "bert.embeddings.LayerNorm.bias")->data - (unsigned char *)st.map);
    wk_st_close(&st);
    assert_int_equal(hg_fs_read(path, 1 << 20, &text, &err), 0);
    for (size_t i = 0; i < text.len; i += 5) {
        struct hg_err why = HG_ERR_INIT;

        text.data[i] ^= (char)(1 << i % 8);
        assert_int_equal(hg_fs_replace(path, text.data, text.len, 0600, NULL), 0);
        if (wk_st_open(path, &st, &why) == 0) {
            if (wk_st_verify(&st, true, &why) == 0)
                fail_msg("byte %zu of %zu was changed, and nobody saw it", i, text.len);
            wk_st_close(&st);
        }
        text.data[i] ^= (char)(1 << i % 8);
    }
    text.data[norm] ^= 1;
    assert_int_equal(hg_fs_replace(path, text.data, text.len, 0600, NULL), 0);
    assert_int_equal(wk_st_open(path, &st, &named), 0);
    assert_int_equal(wk_st_verify(&st, true, &named), -1);
    assert_string_equal(
        named.text,
        "damaged: the bytes of tensor bert.embeddings.LayerNorm.bias are not those that were written");
    wk_st_close(&st);
    hg_buf_done(&text);
    wk_model_free(kind);
}

static void test_an_abandoned_file_leaves_the_old_one(void **state)
{
    struct wk_st_item item = { (char[]){ "a" }, "F32", 1, { 1, 0 } };
    struct hg_err err = HG_ERR_INIT;
    struct wk_st_writer *w;
    struct hg_buf text = HG_BUF_INIT;

    (void)state;
    assert_int_equal(hg_fs_replace(path, "old", 3, 0600, NULL), 0);
    w = wk_st_create(path, &item, 1, NULL, &err);
    assert_non_null(w);
    wk_st_abort(w);
    assert_int_equal(hg_fs_read(path, 100, &text, &err), 0);
    assert_string_equal(hg_buf_str(&text), "old");
    hg_buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_files_are_refused_with_the_reason),
        cmocka_unit_test(test_headers_that_lie_about_their_length_are_refused),
        cmocka_unit_test(test_values_of_every_float_type_are_read),
        cmocka_unit_test(test_a_value_that_is_no_number_is_refused),
        cmocka_unit_test(test_weights_are_found_by_their_names_old_and_new),
        cmocka_unit_test(test_a_missing_head_starts_anew_and_nothing_else_may_lack),
        cmocka_unit_test(test_weights_of_another_model_are_refused),
        cmocka_unit_test(test_a_changed_byte_is_refused_by_the_name_of_its_tensor),
        cmocka_unit_test(test_an_abandoned_file_leaves_the_old_one),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
