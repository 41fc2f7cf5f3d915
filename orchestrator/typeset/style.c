/* SPDX-License-Identifier: Apache-2.0 */
#include "typeset/style.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static int ask_locale(struct hg_style *style, struct hg_err *err)
{
    locale_t locale = newlocale(LC_NUMERIC_MASK, "", (locale_t)0);

    if (!locale) {
        hg_err_set(err, HG_E_ENV, "--numbers: the locale of the environment is not installed");
        return hg_err_hint(
            err, "`locale -a` lists the installed ones; --numbers comma does not need one");
    }
    style->comma = strcmp(nl_langinfo_l(RADIXCHAR, locale), ",") == 0;
    freelocale(locale);
    return 0;
}

/* "decimals=3" */
static int parse_count(const char *word, struct hg_style *style, struct hg_err *err)
{
    const char *digits = strchr(word, '=') + 1;
    int *target = strncmp(word, "decimals=", 9) == 0  ? &style->decimals
                  : strncmp(word, "speedup=", 8) == 0 ? &style->speedup_decimals
                                                      : NULL;

    if (!target || strspn(digits, "0123456789") != 1 || digits[1])
        return hg_err_set(err, HG_E_USAGE,
                          "--numbers: \"%s\" is not decimals=N or speedup=N, 0 to 9", word);
    *target = digits[0] - '0' + 1;
    return 0;
}

static int parse_word(const char *word, struct hg_style *style, struct hg_err *err)
{
    static const char *const known[] = { "point", "comma", "locale", "seconds", "durations" };
    size_t i = 0;

    if (strchr(word, '='))
        return parse_count(word, style, err);
    while (i < 5 && strcmp(known[i], word) != 0)
        i++;
    switch (i) {
    case 0:
    case 1:
        style->comma = i == 1;
        return 0;
    case 2:
        return ask_locale(style, err);
    case 3:
    case 4:
        style->durations = i == 4;
        return 0;
    default:
        hg_err_set(err, HG_E_USAGE, "--numbers: unknown word \"%s\"", word);
        hg_text_suggest(err, word, known, 5);
        return -1;
    }
}

int hg_style_parse(const char *words, struct hg_style *style, struct hg_err *err)
{
    char *copy = hg_strdup(words), *rest = NULL;
    int rc = 0;

    *style = (struct hg_style)HG_STYLE_INIT;
    for (char *word = strtok_r(copy, ",", &rest); word && rc == 0;
         word = strtok_r(NULL, ",", &rest))
        rc = parse_word(word, style, err);
    free(copy);
    return rc;
}

int hg_style_option(const char *words, bool json, struct hg_style *style, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;

    if (words && json)
        return hg_err_set(hg_errs_next(errs), HG_E_USAGE,
                          "--numbers does not go with JSON, which has seconds and points");
    if (words && hg_style_parse(words, style, &err) < 0)
        return hg_errs_add(errs, &err);
    return 0;
}

static void append_special(double v, struct hg_buf *out)
{
    hg_buf_puts(out, isnan(v) ? "–" : v > 0 ? "∞" : "-∞");
}

/* Numbers are formatted in the C locale, always: the program never calls setlocale. */
static void set_point(const struct hg_style *style, size_t start, struct hg_buf *out)
{
    char *point =
        style->comma && out->len > start ? memchr(out->data + start, '.', out->len - start) : NULL;

    if (point)
        *point = ',';
}

/* The decimal that a double stands for may be a half though the double is just below it: some units in its last place up. Whole
 * numbers beyond a double's last halves stay. */
static double tipped(double v)
{
    return fabs(v) < 1e15 ? v * (1 + 0x1p-51) : v;
}

void hg_number_append(const struct hg_style *style, double v, int decimals, struct hg_buf *out)
{
    size_t start = out->len;

    if (!isfinite(v)) {
        append_special(v, out);
        return;
    }
    hg_buf_printf(out, "%.*f", decimals, tipped(v));
    set_point(style, start, out);
}

void hg_digits_append(const struct hg_style *style, double v, int digits, struct hg_buf *out)
{
    size_t start = out->len;

    if (!isfinite(v)) {
        append_special(v, out);
        return;
    }
    hg_buf_printf(out, "%.*g", digits, tipped(v));
    set_point(style, start, out);
}

void hg_seconds_append(const struct hg_style *style, double s, int decimals, struct hg_buf *out)
{
    double unit = pow(10, decimals), ticks = round(fabs(tipped(s)) * unit), minutes;

    if (!style->durations || !isfinite(s) || ticks > 1e15) {
        hg_number_append(style, s, decimals, out);
        return;
    }
    /* Rounded first: 59.996 with two decimals is 1m0.00s, not 0m60.00s. */
    minutes = floor(ticks / (60 * unit));
    hg_buf_printf(out, "%s%.0fm", s < 0 && ticks > 0 ? "-" : "", minutes);
    hg_number_append(style, (ticks - minutes * 60 * unit) / unit, decimals, out);
    hg_buf_puts(out, "s");
}

void hg_seconds_append_exact(const struct hg_style *style, double s, struct hg_buf *out)
{
    char text[32], *point;
    int decimals = 0;

    if (isfinite(s)) {
        text[hg_text_number_format(s, text)] = '\0';
        point = strchr(text, '.');
        decimals = point ? (int)strspn(point + 1, "0123456789") : 0;
        decimals = strchr(text, 'e') || decimals > 9 ? 9 : decimals;
    }
    hg_seconds_append(style, s, decimals, out);
}
