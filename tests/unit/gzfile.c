/* SPDX-License-Identifier: Apache-2.0 */
/* Plain and gzip input: whole, cut off, damaged, too large. */
#include "test.h"

#include <zlib.h>

#include "base/fs.h"
#include "data/gzfile.h"

static const char sentence[] = "the quick brown fox jumps over the lazy dog; ";

/* n bytes of text and their gzip form (one member). */
static void make(size_t n, struct hg_buf *text, struct hg_buf *packed)
{
    z_stream z = { 0 };

    while (text->len < n)
        hg_buf_puts(text, sentence);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    hg_buf_reserve(packed, deflateBound(&z, text->len));
    z.next_in = (unsigned char *)text->data;
    z.avail_in = (unsigned)text->len;
    z.next_out = (unsigned char *)packed->data;
    z.avail_out = (unsigned)packed->cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    packed->len = z.total_out;
    deflateEnd(&z);
}

static int unpack(const void *data, size_t len, size_t max, struct hg_buf *out, struct hg_err *err)
{
    hg_buf_clear(out);
    *err = (struct hg_err)HG_ERR_INIT;
    return wk_gzfile_unpack("f.gz", data, len, max, out, err);
}

static void test_gzip_is_unpacked_and_plain_bytes_stay(void **state)
{
    struct hg_buf text = HG_BUF_INIT, packed = HG_BUF_INIT, out = HG_BUF_INIT;
    struct hg_err err;
    size_t one;

    (void)state;
    make(3 << 20, &text, &packed);
    assert_int_equal(unpack(packed.data, packed.len, 1 << 30, &out, &err), 0);
    assert_int_equal(out.len, text.len);
    assert_memory_equal(out.data, text.data, text.len);
    assert_int_equal(unpack(sentence, sizeof sentence, 1 << 30, &out, &err), 0);
    assert_int_equal(out.len, sizeof sentence);
    one = packed.len; /* two members one after another are one text */
    hg_buf_reserve(&packed, one);
    memcpy(packed.data + one, packed.data, one);
    assert_int_equal(unpack(packed.data, 2 * one, 1 << 30, &out, &err), 0);
    assert_int_equal(out.len, 2 * text.len);
    hg_buf_done(&text);
    hg_buf_done(&packed);
    hg_buf_done(&out);
}

static void test_gzip_cut_anywhere_is_refused(void **state)
{
    struct hg_buf text = HG_BUF_INIT, packed = HG_BUF_INIT, out = HG_BUF_INIT;
    struct hg_err err;

    (void)state;
    make(1000, &text, &packed);
    for (size_t len = 2; len < packed.len; len++) {
        assert_int_equal(unpack(packed.data, len, 1 << 30, &out, &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
        assert_string_equal(err.text, "the gzip data ends too early; is the file cut off?");
    }
    hg_buf_done(&text);
    hg_buf_done(&packed);
    hg_buf_done(&out);
}

static void test_changed_gzip_is_refused_or_the_same(void **state)
{
    struct hg_buf text = HG_BUF_INIT, packed = HG_BUF_INIT, out = HG_BUF_INIT;
    struct hg_err err;

    (void)state;
    make(1000, &text, &packed);
    for (size_t i = 2; i < packed.len; i++) {
        char kept = packed.data[i];

        packed.data[i] ^= 0x41;
        if (unpack(packed.data, packed.len, 1 << 20, &out, &err) == 0)
            assert_memory_equal(out.data, text.data, text.len); /* a name or a date in the header */
        else
            assert_int_equal(err.code, HG_E_INPUT);
        packed.data[i] = kept;
    }
    hg_buf_done(&text);
    hg_buf_done(&packed);
    hg_buf_done(&out);
}

static void test_what_unpacks_to_too_much_is_refused(void **state)
{
    struct hg_buf text = HG_BUF_INIT, packed = HG_BUF_INIT, out = HG_BUF_INIT;
    struct hg_err err;

    (void)state;
    make(8 << 20, &text, &packed);
    assert_int_equal(unpack(packed.data, packed.len, 1 << 20, &out, &err), -1);
    assert_string_equal(err.text, "unpacks to more than 1048576 bytes");
    assert_string_equal(err.file, "f.gz");
    assert_true(out.len < 3 << 20);
    hg_buf_done(&text);
    hg_buf_done(&packed);
    hg_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gzip_is_unpacked_and_plain_bytes_stay),
        cmocka_unit_test(test_gzip_cut_anywhere_is_refused),
        cmocka_unit_test(test_changed_gzip_is_refused_or_the_same),
        cmocka_unit_test(test_what_unpacks_to_too_much_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
