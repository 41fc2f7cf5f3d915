/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"

#define WORD_MAX 64
#define DURATION_MAX_S 1e9 /* 31 years */

/* Optimal string alignment distance; words longer than WORD_MAX are never near. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t na = strlen(a), nb = strlen(b);

    if (na > WORD_MAX || nb > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = above[j - 1] + (tolower(a[i - 1]) != tolower(b[j - 1]));

            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[na % 3][nb];
}

const char *hg_text_nearest(const char *word, const char *const *known, size_t n)
{
    size_t limit = strlen(word) / 3;
    const char *nearest = NULL;
    size_t best;

    if (limit < 1)
        limit = 1;
    best = limit + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, known[i]);

        /* a slip changes a letter more often than it adds one: "dpp" is "ddp" rather than "dp" */
        if (d < best || (d == best && nearest && strlen(known[i]) == strlen(word) &&
                         strlen(nearest) != strlen(word))) {
            best = d;
            nearest = known[i];
        }
    }
    return nearest;
}

void hg_text_suggest(struct hg_err *err, const char *word, const char *const *known, size_t n)
{
    const char *nearest = hg_text_nearest(word, known, n);
    struct hg_buf b = HG_BUF_INIT;

    if (n) {
        hg_buf_puts(&b, "known: ");
        for (size_t i = 0; i < n && b.len < 400; i++)
            hg_buf_printf(&b, "%s%s", i ? ", " : "", known[i]);
        if (nearest)
            hg_buf_printf(&b, " — did you mean \"%s\"?", nearest);
        hg_err_hint(err, "%s", b.data);
    }
    hg_buf_done(&b);
}

#define DECIMAL "0123456789." /* strtod knows 0x10 and 1e9, too */

/* [D-]HH:MM:SS */
static int parse_clock(const char *text, double *seconds)
{
    unsigned days = 0, h, m, s;
    int end = 0;

    if (strchr(text, '-')) {
        if (sscanf(text, "%4u-%2u:%2u:%2u%n", &days, &h, &m, &s, &end) != 4 || text[end] || h > 23)
            return -1;
    } else if (sscanf(text, "%5u:%2u:%2u%n", &h, &m, &s, &end) != 3 || text[end]) {
        return -1;
    }
    if (m > 59 || s > 59)
        return -1;
    *seconds = days * 86400.0 + h * 3600.0 + m * 60.0 + s;
    return 0;
}

static int parse_unit(const char *text, double *seconds)
{
    size_t n = strspn(text, DECIMAL);
    char *end;
    double v = strtod(text, &end);

    if (!isdigit((unsigned char)text[0]) || end != text + n || !text[n] || text[n + 1])
        return -1;
    switch (text[n]) {
    case 's':
        *seconds = v;
        return 0;
    case 'm':
        *seconds = v * 60;
        return 0;
    case 'h':
        *seconds = v * 3600;
        return 0;
    case 'd':
        *seconds = v * 86400;
        return 0;
    default:
        return -1;
    }
}

int hg_text_duration_parse(const char *text, double *seconds, struct hg_err *err)
{
    double v = 0;

    if ((parse_clock(text, &v) < 0 && parse_unit(text, &v) < 0) || v <= 0 || v >= DURATION_MAX_S) {
        hg_err_set(err, HG_E_INPUT, "\"%.40s\" is not a wall time", text);
        return hg_err_hint(
            err, "write \"HH:MM:SS\", \"D-HH:MM:SS\", \"90m\" (s, m, h, d), or a number of "
                 "seconds without quotes");
    }
    *seconds = v;
    return 0;
}

void hg_text_duration_slurm(double seconds, char out[static 32])
{
    unsigned long s = (unsigned long)ceil(seconds);
    unsigned long days = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;

    if (days)
        snprintf(out, 32, "%lu-%02lu:%02lu:%02lu", days, h, m, s % 60);
    else
        snprintf(out, 32, "%02lu:%02lu:%02lu", h, m, s % 60);
}

void hg_text_duration_format(double seconds, char out[static 32])
{
    unsigned long s = (unsigned long)(fmin(fmax(0, seconds), DURATION_MAX_S) + 0.5);

    if (seconds < 10)
        snprintf(out, 32, "%.2f s", seconds);
    else if (seconds < 99.95)
        snprintf(out, 32, "%.1f s", seconds);
    else if (s < 3600)
        snprintf(out, 32, "%lum %02lus", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, 32, "%luh %02lum", s / 3600, s / 60 % 60);
    else
        snprintf(out, 32, "%s%lud %02luh", seconds > DURATION_MAX_S ? "over " : "", s / 86400,
                 s / 3600 % 24);
}

int hg_text_size_parse(const char *text, uint64_t *bytes, struct hg_err *err)
{
    static const char units[] = "KMGT";
    size_t n = strspn(text, DECIMAL);
    char *end;
    double v = strtod(text, &end);
    const char *unit = text[n] ? strchr(units, toupper((unsigned char)text[n])) : NULL;
    double size = unit ? v * pow(1024, (double)(unit - units + 1)) : 0;

    if (!isdigit((unsigned char)text[0]) || end != text + n || !unit || text[n + 1] || size < 1 ||
        size >= 0x1p63) {
        hg_err_set(err, HG_E_INPUT, "\"%.40s\" is not an amount of memory", text);
        return hg_err_hint(err, "write a number and a unit: \"64G\" (K, M, G or T)");
    }
    *bytes = (uint64_t)size;
    return 0;
}

void hg_text_size_format(uint64_t bytes, char out[static 32])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double v = (double)bytes;
    size_t u = 0;

    while (v >= 1024 && u < 4) {
        v /= 1024;
        u++;
    }
    snprintf(out, 32, u && v < 10 ? "%.1f %s" : "%.0f %s", v, units[u]);
}

bool hg_text_is_name(const char *text)
{
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return n >= 1 && n <= 64 && text[n] == '\0' && text[0] != '.' && text[0] != '-';
}

bool hg_text_is_one_of(const char *text, size_t len, const char *const *words)
{
    for (; *words; words++)
        if ((len == 0 || **words == *text) && strncmp(*words, text, len) == 0 &&
            strlen(*words) == len)
            return true;
    return false;
}

/* Lay the digits of |v| = 0.d1d2...dn x 10^point out as ECMA-262 wants. */
static size_t layout_digits(const char *digits, int n, int point, char *out)
{
    char *p = out;

    if (point > 21 || point <= -6) { /* 1.5e+22, 1e-7 */
        *p++ = digits[0];
        if (n > 1) {
            *p++ = '.';
            memcpy(p, digits + 1, (size_t)n - 1);
            p += n - 1;
        }
        return (size_t)(p - out) + (size_t)sprintf(p, "e%+d", point - 1);
    }
    if (point <= 0) { /* 0.00015 */
        memcpy(p, "0.0000000", 2 + (size_t)-point);
        p += 2 - point;
        memcpy(p, digits, (size_t)n);
        p += n;
    } else if (point >= n) { /* 1500 */
        memcpy(p, digits, (size_t)n);
        memset(p + n, '0', (size_t)(point - n));
        p += point;
    } else { /* 1.5 */
        memcpy(p, digits, (size_t)point);
        p[point] = '.';
        memcpy(p + point + 1, digits + point, (size_t)(n - point));
        p += n + 1;
    }
    *p = '\0';
    return (size_t)(p - out);
}

size_t hg_text_integer_format(long long v, char out[static 32])
{
    unsigned long long rest = v < 0 ? 0ULL - (unsigned long long)v : (unsigned long long)v;
    char digits[20];
    size_t n = 0, len = 0;

    do
        digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        out[len++] = '-';
    while (n)
        out[len++] = digits[--n];
    out[len] = '\0';
    return len;
}

bool hg_text_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

size_t hg_text_control(const char *text)
{
    uint32_t cp;
    size_t n = hg_text_utf8_next(text, &cp);
    unsigned char first = (unsigned char)text[0];

    if (n == 1)
        return first < 0x20 || (first >= 0x7f && first < 0xa0);
    return cp < 0xa0 || cp == 0x61c || cp == 0x200e || cp == 0x200f ||
                   (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) ||
                   cp == 0xfeff || cp == 0xfffe || cp == 0xffff
               ? n
               : 0;
}

void hg_text_escape(const char *text, size_t n, struct hg_buf *out)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        size_t control = hg_text_control(text + i);

        len = hg_text_utf8_next(text + i, &cp);
        if (!control || control > n - i)
            hg_buf_append(out, text + i, len < n - i ? len : n - i);
        else
            hg_buf_printf(out, len > 1 && cp >= 0x100 ? "\\u%04x" : "\\x%02x",
                          len > 1 ? (unsigned)cp : (unsigned char)text[i]);
    }
}

void hg_text_escape_lines(const char *text, size_t n, struct hg_buf *out)
{
    for (const char *end = text + n, *stop; text < end; text = stop + 1) {
        stop = text;
        while (stop < end && !(*stop && strchr("\n\r\t", *stop)))
            stop++;
        hg_text_escape(text, (size_t)(stop - text), out);
        if (stop < end && !(*stop == '\r' && stop + 1 < end && stop[1] == '\n'))
            hg_buf_append(out, *stop == '\t' ? "\t" : "\n", 1);
    }
}

int hg_text_out_of_range(double v, double min, double max, struct hg_err *err)
{
    char texts[3][32];

    hg_text_number_format(v, texts[0]);
    hg_text_number_format(min, texts[1]);
    hg_text_number_format(max, texts[2]);
    return hg_err_set(err, HG_E_INPUT, "%s is out of range; %s to %s", texts[0], texts[1],
                      texts[2]);
}

/* Powers of ten that a double holds exactly. */
static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

double hg_text_decimal(uint64_t units, int k)
{
    char text[40];

    /* A product or quotient of two exact numbers is rounded as strtod rounds. */
    if (units <= 1ull << 53 && abs(k) <= 22)
        return k < 0 ? (double)units / tens[-k] : (double)units * tens[k];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)units, k);
    return strtod(text, NULL);
}

/* Up to 9 decimal places and 15 digits in all that read as v, in units of 10^*k; 0: it takes more. */
static uint64_t few_digits(double v, int *k)
{
    for (int places = 1; places <= 9 && v * tens[places] < 1e15; places++) {
        uint64_t units = (uint64_t)(v * tens[places] + 0.5);

        *k = -places;
        if ((double)units / tens[places] == v)
            return units;
    }
    return 0;
}

/* 15, 16 or 17 digits that read as v, in units of 10^*k; 0: a tie, which 17 digits cannot round. */
static uint64_t round_digits(double v, int *k)
{
    char sci[40];
    uint64_t all;

    snprintf(sci, sizeof sci, "%.16e", v);
    sci[1] = sci[0]; /* for the point */
    all = strtoull(sci + 1, NULL, 10);
    *k = atoi(strchr(sci, 'e') + 1) - 16;
    for (unsigned drop = 2, unit = 100; drop > 0; drop--, unit /= 10) {
        uint64_t fewer = (all + unit / 2) / unit;

        if (all % unit == unit / 2)
            return 0;
        if (hg_text_decimal(fewer, *k + (int)drop) == v) {
            *k += (int)drop;
            return fewer;
        }
    }
    return all; /* 17 always do */
}

/* The same where that does not work; subnormals hold fewer digits. */
static uint64_t try_digits(double v, int *k)
{
    int precision = v < 1e-290 ? 0 : 14;
    uint64_t units = 0;
    char sci[40];

    do
        snprintf(sci, sizeof sci, "%.*e", precision, v);
    while (precision < 16 && strtod(sci, NULL) != v && ++precision);
    for (const char *p = sci; *p != 'e'; p++)
        if (*p != '.')
            units = 10 * units + (uint64_t)(*p - '0');
    *k = atoi(strchr(sci, 'e') + 1) - precision;
    return units;
}

/* The fewest digits that read as v, above 0; returns how many. *point: as layout_digits has it. */
static int shortest_digits(double v, char digits[static 32], int *point)
{
    int k, n;
    uint64_t units = few_digits(v, &k);

    if (units == 0 && v >= 1e-290)
        units = round_digits(v, &k);
    if (units == 0)
        units = try_digits(v, &k);
    n = (int)hg_text_integer_format((long long)units, digits);
    *point = n + k;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

size_t hg_text_number_format(double v, char out[static 32])
{
    char digits[32];
    int n, point;
    size_t sign = v < 0;

    if (v == floor(v) && fabs(v) < 1e15) /* whole numbers are the common case; -0 prints as 0 */
        return hg_text_integer_format((long long)v, out);
    n = shortest_digits(fabs(v), digits, &point);
    if (sign)
        out[0] = '-';
    return sign + layout_digits(digits, n, point, out + sign);
}

size_t hg_text_utf8_next(const char *text, uint32_t *cp)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* below it: an overlong form */
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 1;
    uint32_t value = n == 1 ? s[0] : s[0] & (0x7fu >> n);

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            goto none;
        value = value << 6 | (s[i] & 0x3f);
    }
    if (s[0] >= 0xf8 || (n == 1 && value >= 0x80) || value < least[n] || value > 0x10ffff ||
        (value >= 0xd800 && value <= 0xdfff))
        goto none;
    *cp = value;
    return n;
none:
    *cp = 0xfffd;
    return 1;
}

size_t hg_text_utf8_whole(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)text[n - back];
        size_t needs = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        if (c >= 0xc0 || c < 0x80) /* where the last character begins */
            return needs > back ? n - back : n;
    }
    return n;
}

static size_t width_of(uint32_t cp)
{
    if ((cp >= 0x300 && cp <= 0x36f) || (cp >= 0x200b && cp <= 0x200f) ||
        (cp >= 0xfe00 && cp <= 0xfe0f))
        return 0;
    if ((cp >= 0x1100 && cp <= 0x115f) || (cp >= 0x2e80 && cp <= 0xa4cf) ||
        (cp >= 0xac00 && cp <= 0xd7a3) || (cp >= 0xf900 && cp <= 0xfaff) ||
        (cp >= 0xfe30 && cp <= 0xfe6f) || (cp >= 0xff00 && cp <= 0xff60) ||
        (cp >= 0xffe0 && cp <= 0xffe6) || (cp >= 0x1f300 && cp <= 0x1faff) ||
        (cp >= 0x20000 && cp <= 0x3fffd))
        return 2;
    return 1;
}

size_t hg_text_width(const char *text)
{
    size_t width = 0;

    while (*text) {
        uint32_t cp;

        text += hg_text_utf8_next(text, &cp);
        width += width_of(cp);
    }
    return width;
}

void hg_text_random_hex(size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = 0;

        while (getrandom(&byte, 1, 0) != 1)
            ;
        sprintf(out + 2 * i, "%02x", byte);
    }
}

const char *hg_text_s(unsigned long long n)
{
    return n == 1 ? "" : "s";
}

bool hg_text_first_host(const char *nodes, char *out, size_t size)
{
    size_t n = nodes ? strcspn(nodes, ",[") : 0;
    size_t digits;

    if (!nodes || (n == 0 && nodes[0] != '['))
        return false;
    if (nodes[n] != '[') {
        snprintf(out, size, "%.*s", (int)n, nodes);
        return true;
    }
    digits = strspn(nodes + n + 1, "0123456789");
    snprintf(out, size, "%.*s%.*s", (int)n, nodes, (int)digits, nodes + n + 1);
    nodes += n + 1 + strcspn(nodes + n + 1, "]");
    if (*nodes == ']') { /* "rack[1-2]-ib" */
        size_t used = strlen(out);

        nodes++;
        snprintf(out + used, size - used, "%.*s", (int)strcspn(nodes, ",["), nodes);
    }
    return digits > 0;
}

#define HOSTS_MAX 65536
#define HOST_LEN 256

/* A walk over a node list. */
struct hosts {
    int (*each)(void *context, const char *host);
    void *context;
    size_t n;
    char name[HOST_LEN];
};

static int walk_name(struct hosts *w, size_t len, const char *rest, size_t n);

/* One "7" or "02-04" of a bracket, and what comes behind it. */
static int walk_range(struct hosts *w, size_t len, const char *range, const char *rest, size_t n)
{
    size_t digits = strspn(range, "0123456789");
    const char *last = range[digits] == '-' ? range + digits + 1 : range;
    size_t width = strspn(last, "0123456789");
    unsigned long from, to;
    int rc = 0;

    if (!digits || digits > 9 || !width || width > 9 || !strchr(",]", last[width]))
        return -1;
    from = strtoul(range, NULL, 10);
    to = strtoul(last, NULL, 10);
    if (to < from || to - from >= HOSTS_MAX)
        return -1;
    for (unsigned long k = from; k <= to && rc == 0; k++) {
        int wrote = snprintf(w->name + len, HOST_LEN - len, "%0*lu", (int)digits, k);

        rc = (size_t)wrote < HOST_LEN - len ? walk_name(w, len + (size_t)wrote, rest, n) : -1;
    }
    return rc;
}

/* The rest of one name, n bytes, behind the first len bytes of the host that is being made. */
static int walk_name(struct hosts *w, size_t len, const char *rest, size_t n)
{
    size_t plain = 0;
    const char *close;
    int rc = 0;

    while (plain < n && rest[plain] != '[')
        plain++;
    if (len + plain >= HOST_LEN)
        return -1;
    memcpy(w->name + len, rest, plain);
    len += plain;
    if (plain == n) {
        w->name[len] = '\0';
        return len && ++w->n <= HOSTS_MAX ? w->each(w->context, w->name) : -1;
    }
    close = memchr(rest + plain, ']', n - plain);
    if (!close)
        return -1;
    for (const char *p = rest + plain; p < close && rc == 0; p += 1 + strcspn(p + 1, ",]"))
        rc = walk_range(w, len, p + 1, close + 1, n - (size_t)(close + 1 - rest));
    return rc;
}

int hg_text_each_host(const char *nodes, int (*each)(void *context, const char *host),
                      void *context)
{
    struct hosts w = { .each = each, .context = context };
    int rc = nodes && *nodes ? 0 : -1;

    while (rc == 0 && *nodes) {
        bool inside = false;
        size_t n = 0;

        for (; nodes[n] && (inside || nodes[n] != ','); n++)
            inside = nodes[n] == '[' || (inside && nodes[n] != ']');
        rc = walk_name(&w, 0, nodes, n);
        nodes += n + (nodes[n] == ',');
    }
    return rc;
}

void hg_text_quote(const char *word, struct hg_buf *out)
{
    hg_buf_puts(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            hg_buf_puts(out, "'\\''");
        else
            hg_buf_append(out, word, 1);
    hg_buf_puts(out, "'");
}

void hg_text_quote_if_needed(const char *word, struct hg_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-._/,=:+@%";

    if (*word && word[strspn(word, plain)] == '\0')
        hg_buf_puts(out, word);
    else
        hg_text_quote(word, out);
}
