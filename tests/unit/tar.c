/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tar.h"

static void put(struct hg_buf *out, const char *name, const char *content, size_t size)
{
    struct hg_tar_file f = { .size = size, .mtime_s = 1700000000 };
    static const char zeros[2 * HG_TAR_BLOCK];
    char block[HG_TAR_BLOCK];

    if (!name) {
        hg_buf_append(out, zeros, sizeof zeros);
        return;
    }
    snprintf(f.name, sizeof f.name, "%s", name);
    assert_int_equal(hg_tar_header(&f, block, NULL), 0);
    hg_buf_append(out, block, sizeof block);
    hg_buf_append(out, content, size);
    hg_buf_append(out, zeros, hg_tar_padding(size));
}

/* Files as "name=size;" */
static int list(void *context, const struct hg_tar_file *file)
{
    hg_buf_printf(context, "%s=%llu;", file->name, (unsigned long long)file->size);
    return 0;
}

/* Walk over an archive with this content; what was seen stands in seen. */
static struct hg_tar_walk walk(const struct hg_buf *archive, size_t len, struct hg_buf *seen)
{
    char *path = hg_fs_join(dir, "a.tar");
    struct hg_tar_walk walk;
    int fd;

    assert_int_equal(hg_fs_replace(path, archive->data, len, 0600, NULL), 0);
    fd = open(path, O_RDONLY);
    hg_buf_clear(seen);
    hg_buf_puts(seen, "");
    assert_int_equal(hg_tar_each(fd, path, list, seen, &walk, NULL), 0);
    close(fd);
    free(path);
    return walk;
}

static char *long_name(size_t folder, size_t file)
{
    char *name = hg_str_printf("%0*d/%0*d", (int)folder, 1, (int)file, 2);

    assert_int_equal(strlen(name), folder + 1 + file);
    return name;
}

static void test_files_come_back_with_name_size_and_content(void **state)
{
    char *names[] = { long_name(147, 11), long_name(155, 100), long_name(1, 98), long_name(1, 99) };
    struct hg_buf archive = HG_BUF_INIT, seen = HG_BUF_INIT, want = HG_BUF_INIT, text = HG_BUF_INIT;
    static char content[100000];
    struct hg_tar_walk w;
    char *named;

    (void)state;
    memset(content, 'x', sizeof content);
    for (size_t i = 0; i < N_OF(names); i++) {
        static const size_t sizes[] = { 0, 1, 512, sizeof content };

        put(&archive, names[i], content, sizes[i]);
        hg_buf_printf(&want, "%s=%zu;", names[i], sizes[i]);
    }
    put(&archive, NULL, NULL, 0);
    w = walk(&archive, archive.len, &seen);
    assert_string_equal(seen.data, want.data);
    assert_int_equal(w.files, 4);
    assert_int_equal(w.damaged, 0);
    assert_true(w.ended);
    named = hg_str_printf("%s/a.tar:%s", dir, names[3]);
    assert_int_equal(hg_tar_read_named(named, sizeof content, &text, NULL), 0);
    assert_int_equal(text.len, sizeof content);
    assert_memory_equal(text.data, content, sizeof content);
    assert_int_equal(hg_tar_read_named(named, sizeof content - 1, &text, NULL), -1);
    named[strlen(named) - 1] = 'z';
    assert_int_equal(hg_tar_read_named(named, sizeof content, &text, NULL), -1);
    for (size_t i = 0; i < N_OF(names); i++)
        free(names[i]);
    free(named);
    hg_buf_done(&archive);
    hg_buf_done(&seen);
    hg_buf_done(&want);
    hg_buf_done(&text);
}

static void test_what_does_not_fit_into_a_header_is_refused(void **state)
{
    char *names[] = { long_name(156, 11), long_name(11, 101), strdup("") };
    struct hg_tar_file f = { .name = "a", .size = HG_TAR_SIZE_MAX };
    char block[HG_TAR_BLOCK];

    (void)state;
    assert_int_equal(hg_tar_header(&f, block, NULL), -1);
    f.size--;
    assert_int_equal(hg_tar_header(&f, block, NULL), 0);
    for (size_t i = 0; i < N_OF(names); i++) {
        snprintf(f.name, sizeof f.name, "%s", names[i]);
        assert_int_equal(hg_tar_header(&f, block, NULL), -1);
        free(names[i]);
    }
}

static void test_damage_costs_the_file_that_it_hits_and_no_other(void **state)
{
    struct hg_buf archive = HG_BUF_INIT, seen = HG_BUF_INIT;
    struct hg_tar_walk w;

    (void)state;
    put(&archive, "a/1", "one", 3);
    put(&archive, "a/2", "two", 3);
    put(&archive, "a/3", "three", 5);
    put(&archive, NULL, NULL, 0);
    for (size_t at = 0; at < HG_TAR_BLOCK; at++) { /* any byte of the second header */
        if (at == 155)                             /* behind the checksum's end */
            continue;
        archive.data[1024 + at] ^= 0x55;
        w = walk(&archive, archive.len, &seen);
        if (strcmp(seen.data, "a/1=3;a/3=5;") != 0 || w.damaged != 1 || w.where != 1024 || !w.ended)
            fail_msg("byte %zu: %s", at, seen.data);
        archive.data[1024 + at] ^= 0x55;
    }
    for (size_t len = 0; len < archive.len; len += 128) { /* cut short */
        static const char *const want[] = { "", "a/1=3;", "a/1=3;a/2=3;", "a/1=3;a/2=3;a/3=5;" };
        size_t whole = 0;

        w = walk(&archive, len, &seen);
        while (whole < 3 && len >= whole * 1024 + 512 + (size_t[]){ 3, 3, 5 }[whole])
            whole++;
        if (strcmp(seen.data, want[whole]) != 0 || !w.damaged != (len >= 3072 + 512))
            fail_msg("%zu bytes: %s, damaged %llu", len, seen.data, (unsigned long long)w.damaged);
    }
    hg_buf_done(&archive);
    hg_buf_done(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(test_files_come_back_with_name_size_and_content),
        cmocka_unit_test(test_what_does_not_fit_into_a_header_is_refused),
        in_dir(test_damage_costs_the_file_that_it_hits_and_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
