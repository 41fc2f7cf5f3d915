/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuzz TARGET N FILE...: gives each file to the parser as it is, and N times damaged. The same
 * files are damaged in the same ways each time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "fuzz.h"

#define FILE_MAX ((size_t)1 << 20)
#define DAMAGES_MAX 4 /* of one file at once */
#define PIECE_MAX 40  /* bytes taken away, or written twice */

static uint64_t seed;

/* 0 to n - 1. */
static size_t draw(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return n ? (size_t)(seed >> 33) % n : 0;
}

static void replace(struct hg_buf *text, size_t at, size_t n, const char *by, size_t n_by)
{
    struct hg_buf made = HG_BUF_INIT;

    hg_buf_append(&made, text->data, at);
    hg_buf_append(&made, by, n_by);
    hg_buf_append(&made, text->data + at + n, text->len - at - n);
    hg_buf_done(text);
    *text = made;
}

static void damage(struct hg_buf *text)
{
    static const char *const words[] = {
        "0",    "-1",       "1e9",    "18446744073709551615",
        "null", "true",     "\"\"",   "[]",
        "{}",   "[[[",      "{\"a\"", ",",
        "}",    "]",        "\"",     "\\u0",
        "{{",   "}}",       "/",      "\n",
        "..",   "\xe2\x82", "\xff",   "1e400",
        "|",    "=",        "\\",
    };
    size_t at = draw(text->len), room = text->len - at;
    size_t n = draw(room < PIECE_MAX ? room : PIECE_MAX);
    const char *word = words[draw(sizeof words / sizeof *words)];
    char byte = (char)draw(256), piece[PIECE_MAX];

    switch (draw(5)) {
    case 0:
        replace(text, at, room ? 1 : 0, &byte, 1);
        break;
    case 1:
        replace(text, at, n, "", 0);
        break;
    case 2:
        memcpy(piece, hg_buf_str(text) + at, n);
        replace(text, draw(text->len), 0, piece, n);
        break;
    case 3:
        replace(text, at, n, word, strlen(word));
        break;
    default:
        replace(text, at, 0, word, strlen(word));
        break;
    }
}

static int replay(const struct hg_fuzz_target *target, const char *path, long times)
{
    struct hg_buf whole = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;

    if (hg_fs_read(path, FILE_MAX, &whole, &err) < 0) {
        fprintf(stderr, "fuzz: %s\n", err.text);
        hg_buf_done(&whole);
        return -1;
    }
    target->run(hg_buf_str(&whole), whole.len);
    for (long i = 0; i < times; i++) {
        struct hg_buf text = HG_BUF_INIT;

        seed = (uint64_t)i + 1;
        hg_buf_append(&text, hg_buf_str(&whole), whole.len);
        for (size_t k = draw(DAMAGES_MAX) + 1; k > 0; k--)
            damage(&text);
        target->run(hg_buf_str(&text), text.len);
        hg_buf_done(&text);
    }
    hg_buf_done(&whole);
    return 0;
}

int main(int argc, char **argv)
{
    const struct hg_fuzz_target *target = argc > 3 ? hg_fuzz_find(argv[1]) : NULL;

    if (!target) {
        fputs("usage: test_fuzz TARGET N FILE...\n", stderr);
        return 2;
    }
    for (int i = 3; i < argc; i++)
        if (replay(target, argv[i], atol(argv[2])) < 0)
            return 1;
    return 0;
}
