/* SPDX-License-Identifier: Apache-2.0 */
#include "data/wordpiece.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/buf.h"
#include "base/vec.h"
#include "data/gzfile.h"
#include "data/unicode.h"

#define VOCAB_BYTES_MAX ((size_t)16 << 20)
#define TEXT_BYTES_MAX ((size_t)1 << 30)
#define NONE UINT32_MAX
#define WORD_CHARS_MAX 200 /* the larger of the two rules */
#define DECOMPOSED_MAX 16  /* a canonical decomposition has at most 4 code points */
#define CODES 0x110000

enum { CLASS_WORD, CLASS_DROP, CLASS_PRIVATE, CLASS_SPACE, CLASS_PUNCT, CLASS_MARK, CLASS_CJK };

/* ---- The trie: every vocabulary entry is a path of bytes from one of two roots ----
 *
 * Edges live in one open hash table, so a step is one probe and building is one insertion a byte. */

enum { ROOT_FIRST, ROOT_INNER, ROOTS }; /* pieces that begin a word; those written with "##" */

struct edge {
    uint32_t key; /* node << 8 | byte */
    uint32_t child;
};

struct trie {
    struct edge *edges; /* child 0 (a root is not a child): free */
    unsigned bits;      /* the table has 1 << bits slots */
    uint32_t n_nodes, n_edges;
    uint32_t *ids; /* per node: the id that ends there, or NONE */
    size_t ids_cap;
};

struct wk_wordpiece {
    char *text; /* the file; tokens end in NUL instead of a line feed */
    const char **tokens;
    size_t n, tokens_cap;
    struct trie trie;
    struct wk_wordpiece_special special;
    uint8_t *classes; /* per code point */
};

static uint32_t slot_of(const struct trie *t, uint32_t key)
{
    return (key * 0x9e3779b1u) >> (32 - t->bits);
}

static uint32_t trie_step(const struct trie *t, uint32_t node, unsigned char byte)
{
    uint32_t key = node << 8 | byte, mask = (1u << t->bits) - 1;

    for (uint32_t i = slot_of(t, key);; i = (i + 1) & mask) {
        if (t->edges[i].child == 0)
            return 0;
        if (t->edges[i].key == key)
            return t->edges[i].child;
    }
}

static void put_edge(struct trie *t, uint32_t key, uint32_t child)
{
    uint32_t mask = (1u << t->bits) - 1, i = slot_of(t, key);

    while (t->edges[i].child != 0)
        i = (i + 1) & mask;
    t->edges[i] = (struct edge){ key, child };
}

static void trie_resize(struct trie *t, unsigned bits)
{
    struct trie grown = *t;
    size_t old_slots = t->edges ? (size_t)1 << t->bits : 0;

    grown.bits = bits;
    grown.edges = hg_alloc_zeroed((size_t)1 << bits, sizeof *grown.edges);
    for (size_t i = 0; i < old_slots; i++)
        if (t->edges[i].child != 0)
            put_edge(&grown, t->edges[i].key, t->edges[i].child);
    free(t->edges);
    *t = grown;
}

/* A new node without an id. */
static uint32_t trie_node(struct trie *t)
{
    if (t->n_nodes == t->ids_cap) {
        t->ids_cap = t->ids_cap ? t->ids_cap * 2 : 4096;
        t->ids = hg_realloc(t->ids, t->ids_cap * sizeof *t->ids);
    }
    t->ids[t->n_nodes] = NONE;
    return t->n_nodes++;
}

static void trie_init(struct trie *t)
{
    for (int i = 0; i < ROOTS; i++)
        trie_node(t);
    trie_resize(t, 14);
}

/* The node a string leads to, made where there is none. */
static uint32_t trie_add(struct trie *t, uint32_t node, const char *s)
{
    for (; *s; s++) {
        uint32_t child = trie_step(t, node, (unsigned char)*s);

        if (child == 0) {
            if (t->n_edges * 2 >= 1u << t->bits)
                trie_resize(t, t->bits + 1);
            child = trie_node(t);
            put_edge(t, node << 8 | (unsigned char)*s, child);
            t->n_edges++;
        }
        node = child;
    }
    return node;
}

/* ---- Loading ---- */

static uint8_t *make_classes(void)
{
    static const struct {
        uint32_t class, first, last;
    } ranges[] = {
#define WK_RANGE(class, first, last) { CLASS_##class, first, last },
#include "data/unicode_ranges.def"
#undef WK_RANGE
    };
    uint8_t *classes = hg_alloc_zeroed(CODES, 1);

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        memset(classes + ranges[i].first, (int)ranges[i].class,
               ranges[i].last - ranges[i].first + 1);
    return classes;
}

static int wrong_line(struct hg_err *err, const char *name, size_t id, const char *what)
{
    hg_err_set(err, HG_E_INPUT, "%s", what);
    hg_err_at(err, name, NULL);
    if (err && err->line == 0) {
        err->line = (int)(id + 1);
        err->column = 1;
    }
    return -1;
}

static int add_token(struct wk_wordpiece *wp, const char *name, char *token, struct hg_err *err)
{
    bool inner = strncmp(token, "##", 2) == 0 && token[2];
    uint32_t node;

    if (!*token)
        return wrong_line(err, name, wp->n, "an empty line: every line is a token");
    node = trie_add(&wp->trie, inner ? ROOT_INNER : ROOT_FIRST, token + (inner ? 2 : 0));
    if (wp->trie.ids[node] != NONE) {
        char what[96];

        snprintf(what, sizeof what, "this token is already on line %zu",
                 (size_t)wp->trie.ids[node] + 1);
        return wrong_line(err, name, wp->n, what);
    }
    wp->trie.ids[node] = (uint32_t)wp->n;
    wp->tokens[wp->n++] = token;
    return 0;
}

/* The line at p ends in NUL afterwards; trailing blanks go, a file from Windows has CR before LF.
 * Returns the next line. */
static char *cut_line(char *p, char *end)
{
    char *lf = memchr(p, '\n', (size_t)(end - p));
    char *next = lf ? lf + 1 : end;

    if (!lf)
        lf = end;
    while (lf > p && (lf[-1] == '\r' || lf[-1] == ' ' || lf[-1] == '\t'))
        lf--;
    *lf = '\0';
    return next;
}

static int check_line(const char *p, size_t len, size_t id, const char *name, struct hg_err *err)
{
    size_t step;

    if (memchr(p, '\0', len))
        return wrong_line(err, name, id, "a NUL byte: this is not a text file");
    for (size_t i = 0; i < len; i += step)
        if (wk_utf8_next(p + i, len - i, &step) < 0)
            return wrong_line(err, name, id, "bytes that are not valid UTF-8");
    return 0;
}

static int read_lines(struct wk_wordpiece *wp, const char *name, size_t len, struct hg_err *err)
{
    char *end = wp->text + len;
    size_t lines = 1;

    for (char *p = wp->text; p < end; p++)
        lines += *p == '\n';
    wp->tokens = hg_alloc(lines * sizeof *wp->tokens);
    for (char *p = wp->text, *next; p < end; p = next) {
        char *lf = memchr(p, '\n', (size_t)(end - p));

        if (check_line(p, (size_t)((lf ? lf : end) - p), wp->n, name, err) < 0)
            return -1;
        next = cut_line(p, end);
        if (add_token(wp, name, p, err) < 0)
            return -1;
    }
    return 0;
}

static uint32_t find_token(const struct wk_wordpiece *wp, const char *token)
{
    uint32_t node = ROOT_FIRST;

    for (; *token; token++) {
        node = trie_step(&wp->trie, node, (unsigned char)*token);
        if (node == 0)
            return NONE;
    }
    return wp->trie.ids[node];
}

static int find_special(struct wk_wordpiece *wp, const char *name, struct hg_err *err)
{
    const struct {
        const char *token;
        uint32_t *id;
    } wanted[] = {
        { "[PAD]", &wp->special.pad },   { "[UNK]", &wp->special.unk },
        { "[CLS]", &wp->special.cls },   { "[SEP]", &wp->special.sep },
        { "[MASK]", &wp->special.mask },
    };

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].id = find_token(wp, wanted[i].token);
        if (*wanted[i].id == NONE) {
            hg_err_set(err, HG_E_INPUT, "the special token %s is missing among %zu lines",
                       wanted[i].token, wp->n);
            hg_err_at(err, name, NULL);
            return hg_err_hint(err, "is this the vocabulary of a BERT model (vocab.txt)?");
        }
    }
    return 0;
}

struct wk_wordpiece *wk_wordpiece_parse(const char *name, const char *text, size_t len,
                                        struct hg_err *err)
{
    struct wk_wordpiece *wp;

    if (len > VOCAB_BYTES_MAX) {
        hg_err_set(err, HG_E_INPUT, "larger than %zu bytes", VOCAB_BYTES_MAX);
        hg_err_at(err, name, NULL);
        return NULL;
    }
    wp = hg_alloc_zeroed(1, sizeof *wp);
    wp->text = hg_alloc(len + 1);
    wp->classes = make_classes();
    trie_init(&wp->trie);
    if (len)
        memcpy(wp->text, text, len);
    wp->text[len] = '\0';
    if (read_lines(wp, name, len, err) == 0 && find_special(wp, name, err) == 0)
        return wp;
    wk_wordpiece_free(wp);
    return NULL;
}

struct wk_wordpiece *wk_wordpiece_load(const char *path, struct hg_err *err)
{
    struct wk_wordpiece *wp = NULL;
    struct hg_buf text = HG_BUF_INIT;

    if (wk_gzfile_read(path, VOCAB_BYTES_MAX, &text, err) == 0)
        wp = wk_wordpiece_parse(path, hg_buf_str(&text), text.len, err);
    hg_buf_done(&text);
    return wp;
}

void wk_wordpiece_free(struct wk_wordpiece *wp)
{
    if (!wp)
        return;
    free(wp->trie.edges);
    free(wp->trie.ids);
    free(wp->classes);
    free(wp->tokens);
    free(wp->text);
    free(wp);
}

size_t wk_wordpiece_size(const struct wk_wordpiece *wp)
{
    return wp->n;
}

int wk_wordpiece_check_size(const struct wk_wordpiece *wp, size_t rows, struct hg_err *err)
{
    if (wp->n == rows)
        return 0;
    hg_err_set(err, HG_E_INPUT, "the vocabulary has %zu tokens, the model's embedding %zu rows",
               wp->n, rows);
    return hg_err_hint(err, "give the vocabulary that came with the model's weights");
}

const struct wk_wordpiece_special *wk_wordpiece_special(const struct wk_wordpiece *wp)
{
    return &wp->special;
}

const char *wk_wordpiece_token(const struct wk_wordpiece *wp, uint32_t id)
{
    return id < wp->n ? wp->tokens[id] : NULL;
}

/* ---- Encoding ---- */

/* A code point that waits for its place: combining characters in a row are put in canonical order. */
struct pending {
    uint64_t order; /* combining class << 32 | arrival */
    int32_t code;
    uint32_t at;
};

struct encoder {
    const struct wk_wordpiece *wp;
    enum wk_wordpiece_rules rules;
    unsigned chars_max;
    struct wk_tokens *out;

    /* The word being read: UTF-8, with the original's code point that each byte came from. */
    char word[WORD_CHARS_MAX * 4];
    uint32_t from[WORD_CHARS_MAX * 4];
    size_t len;
    unsigned chars;       /* counts on beyond what is kept */
    uint32_t first, last; /* code points of its first and last character */

    struct {
        struct pending *items;
        size_t n, cap;
    } pending;
};

static void emit(struct encoder *e, uint32_t id, uint32_t start, uint32_t end)
{
    struct wk_tokens *t = e->out;

    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 256;
        t->ids = hg_realloc(t->ids, t->cap * sizeof *t->ids);
        t->starts = hg_realloc(t->starts, t->cap * sizeof *t->starts);
        t->ends = hg_realloc(t->ends, t->cap * sizeof *t->ends);
    }
    t->ids[t->n] = id;
    t->starts[t->n] = start;
    t->ends[t->n++] = end;
}

/* The longest piece at byte i: its id and end, or NONE. */
static uint32_t longest_piece(const struct encoder *e, size_t i, size_t *end)
{
    const struct trie *t = &e->wp->trie;
    uint32_t node = i ? ROOT_INNER : ROOT_FIRST, id = NONE;

    for (; i < e->len; i++) {
        node = trie_step(t, node, (unsigned char)e->word[i]);
        if (node == 0)
            break;
        if (t->ids[node] != NONE) {
            id = t->ids[node];
            *end = i + 1;
        }
    }
    return id;
}

static void cut_word(struct encoder *e)
{
    size_t before = e->out->n, end = 0;

    for (size_t i = 0; i < e->len; i = end) {
        uint32_t id = longest_piece(e, i, &end);

        if (id == NONE) { /* one part unknown: the whole word is */
            e->out->n = before;
            emit(e, e->wp->special.unk, e->first, e->last + 1);
            return;
        }
        emit(e, id, e->from[i], e->from[end - 1] + 1);
    }
}

static void end_word(struct encoder *e)
{
    if (e->chars > e->chars_max)
        emit(e, e->wp->special.unk, e->first, e->last + 1);
    else if (e->chars)
        cut_word(e);
    e->len = 0;
    e->chars = 0;
}

/* A character of a word, made from the original's code point `at`. */
static void add_char(struct encoder *e, int32_t code, uint32_t at)
{
    if (e->chars == 0)
        e->first = at;
    e->last = at;
    if (e->chars++ >= e->chars_max)
        return;
    if (code < 0x80) {
        e->from[e->len] = at;
        e->word[e->len++] = (char)code;
    } else {
        utf8proc_uint8_t bytes[4];
        size_t n = (size_t)utf8proc_encode_char(code, bytes);

        for (size_t i = 0; i < n; i++) {
            e->from[e->len] = at;
            e->word[e->len++] = (char)bytes[i];
        }
    }
}

/* A character after decomposition and lower-casing. */
static void add_normal(struct encoder *e, int32_t code, uint32_t at)
{
    switch (e->wp->classes[code]) {
    case CLASS_MARK:
        break;
    case CLASS_SPACE:
        end_word(e);
        break;
    case CLASS_PUNCT:
        end_word(e);
        add_char(e, code, at);
        end_word(e);
        break;
    default:
        add_char(e, code, at);
    }
}

static int compare_pending(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;

    return (x->order > y->order) - (x->order < y->order);
}

static void flush_pending(struct encoder *e)
{
    if (e->pending.n == 0)
        return;
    qsort(e->pending.items, e->pending.n, sizeof *e->pending.items, compare_pending);
    for (size_t i = 0; i < e->pending.n; i++)
        add_normal(e, e->pending.items[i].code, e->pending.items[i].at);
    e->pending.n = 0;
}

static void add_pending(struct encoder *e, int32_t code, uint32_t at, int combining_class)
{
    uint64_t arrival = e->pending.n;

    *HG_VEC_PUSH(&e->pending) =
        (struct pending){ (uint64_t)combining_class << 32 | arrival, code, at };
}

/* One character as NFD has it. Marks go before they are ordered: dropping them does not change the
 * order of the rest. */
static void add_decomposed(struct encoder *e, int32_t code, uint32_t at)
{
    int combining_class = utf8proc_get_property(code)->combining_class;

    if (e->wp->classes[code] == CLASS_MARK && combining_class)
        return;
    if (combining_class) {
        add_pending(e, code, at, combining_class);
        return;
    }
    flush_pending(e);
    add_normal(e, utf8proc_tolower(code), at);
}

static bool is_single(const struct encoder *e, int32_t code, uint8_t class)
{
    return class == CLASS_CJK ||
           (e->rules == WK_WORDPIECE_GOOGLE && code >= 0x2b820 && code <= 0x2b91f);
}

static void add_letter(struct encoder *e, int32_t code, uint32_t at, bool single)
{
    utf8proc_int32_t parts[DECOMPOSED_MAX];
    int boundary = 0;
    utf8proc_ssize_t n =
        utf8proc_decompose_char(code, parts, DECOMPOSED_MAX, UTF8PROC_DECOMPOSE, &boundary);

    if (n < 0 || n > DECOMPOSED_MAX) {
        parts[0] = code;
        n = 1;
    }
    if (single) {
        flush_pending(e);
        end_word(e);
    }
    for (utf8proc_ssize_t i = 0; i < n; i++)
        add_decomposed(e, parts[i], at);
    if (single)
        end_word(e);
}

/* A character outside ASCII, at byte i of the text. */
static void add_wide(struct encoder *e, const char *text, size_t len, size_t i, int32_t code,
                     uint32_t at)
{
    uint8_t class = e->wp->classes[code];

    if (class == CLASS_DROP || (class == CLASS_PRIVATE && e->rules == WK_WORDPIECE_HF))
        return;
    if (class == CLASS_SPACE) {
        flush_pending(e);
        end_word(e);
        return;
    }
    if (code == 0x3a3 && e->rules == WK_WORDPIECE_GOOGLE &&
        wk_unicode_final_sigma(text, len, i, true))
        code = 0x3c2;
    add_letter(e, code, at, is_single(e, code, class));
}

static void add_ascii(struct encoder *e, unsigned char c, uint32_t at)
{
    switch (e->wp->classes[c]) {
    case CLASS_DROP:
        return;
    case CLASS_SPACE:
        flush_pending(e);
        end_word(e);
        return;
    case CLASS_PUNCT:
        flush_pending(e);
        end_word(e);
        add_char(e, c, at);
        end_word(e);
        return;
    default:
        flush_pending(e);
        add_char(e, c >= 'A' && c <= 'Z' ? c + 32 : c, at);
    }
}

/* Length of the special token that begins at text ("[", known), with its id; 0 if none does. */
static size_t special_at(const struct encoder *e, const char *text, size_t len, uint32_t *id)
{
    const struct wk_wordpiece_special *s = &e->wp->special;
    const uint32_t ids[] = { s->pad, s->unk, s->cls, s->sep, s->mask };

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *token = e->wp->tokens[ids[i]];
        size_t n = strlen(token);

        if (n <= len && memcmp(token, text, n) == 0) {
            *id = ids[i];
            return n;
        }
    }
    return 0;
}

/* Returns the byte where the text stops being UTF-8, or len. */
static size_t encode_all(struct encoder *e, const char *text, size_t len)
{
    uint32_t at = 0; /* code points so far */
    size_t step, n;
    uint32_t id = 0;

    for (size_t i = 0; i < len; i += step, at++) {
        unsigned char c = (unsigned char)text[i];

        step = 1;
        if (c == '[' && e->rules == WK_WORDPIECE_HF &&
            (n = special_at(e, text + i, len - i, &id)) != 0) {
            flush_pending(e);
            end_word(e);
            emit(e, id, at, at + (uint32_t)n);
            step = n;
            at += (uint32_t)n - 1;
        } else if (c < 0x80) {
            add_ascii(e, c, at);
        } else {
            int32_t code = wk_utf8_next(text + i, len - i, &step);

            if (code < 0)
                return i;
            add_wide(e, text, len, i, code, at);
        }
    }
    flush_pending(e);
    end_word(e);
    return len;
}

int wk_wordpiece_encode(const struct wk_wordpiece *wp, enum wk_wordpiece_rules rules,
                        const char *text, size_t len, struct wk_tokens *out, struct hg_err *err)
{
    struct encoder e;
    size_t before = out->n, stopped;

    if (len > TEXT_BYTES_MAX)
        return hg_err_set(err, HG_E_INPUT, "a text of %zu bytes is longer than %zu", len,
                          TEXT_BYTES_MAX);
    /* Not initialised as a whole: the word's buffers are large. */
    e.wp = wp;
    e.rules = rules;
    e.chars_max = rules == WK_WORDPIECE_GOOGLE ? 200 : 100;
    e.out = out;
    e.len = 0;
    e.chars = 0;
    memset(&e.pending, 0, sizeof e.pending);
    stopped = encode_all(&e, text, len);
    HG_VEC_DONE(&e.pending);
    if (stopped == len)
        return 0;
    out->n = before;
    return hg_err_set(err, HG_E_INPUT, "the text is not valid UTF-8 at byte %zu", stopped);
}

void wk_tokens_done(struct wk_tokens *t)
{
    free(t->ids);
    free(t->starts);
    free(t->ends);
    *t = (struct wk_tokens)WK_TOKENS_INIT;
}
