/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"
#include "plot/gnuplot.h"
#include "plot/plots.h"

static const char *const known[] = { "svg", "png", "pdf", "gp" };
enum { FORMATS = sizeof known / sizeof *known, GP = FORMATS - 1 };

struct request {
    bool formats[FORMATS];
    const char *out; /* NULL: standard output */
    bool is_file;
};

/* Which of the formats a file's ending names; FORMATS: none. */
static size_t ending(const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t i = 0;

    while (i < FORMATS && !(dot && strcmp(dot + 1, known[i]) == 0))
        i++;
    return i;
}

static int read_formats(const char *words, struct request *w, struct hg_err *err)
{
    char *copy = hg_strdup(words), *rest = NULL;
    int rc = 0;

    for (char *word = strtok_r(copy, ",", &rest); word && rc == 0;
         word = strtok_r(NULL, ",", &rest)) {
        size_t i = 0;

        while (i < FORMATS && strcmp(known[i], word) != 0)
            i++;
        if (i < FORMATS) {
            w->formats[i] = true;
            continue;
        }
        rc = hg_err_set(err, HG_E_USAGE, "--plot: unknown format \"%s\"", word);
        hg_text_suggest(err, word, known, FORMATS);
    }
    free(copy);
    return rc;
}

static size_t count_formats(const struct request *w)
{
    size_t n = 0;

    for (size_t i = 0; i < FORMATS; i++)
        n += w->formats[i];
    return n;
}

static int read_request(const char *formats, const char *out, struct request *w, struct hg_err *err)
{
    size_t named = out ? ending(out) : FORMATS;

    w->out = out;
    w->is_file = named < FORMATS && !hg_fs_is_dir(out);
    if (formats && read_formats(formats, w, err) < 0)
        return -1;
    if (!formats)
        w->formats[w->is_file ? named : 0] = true;
    if (w->is_file && (count_formats(w) != 1 || !w->formats[named])) {
        hg_err_set(err, HG_E_USAGE, "--out %s is not a %s file", out, formats);
        return hg_err_hint(err, "a name without one of these endings is a folder for all of them");
    }
    return 0;
}

/* The script of a picture draws it as the first other format requested. */
static const char *script_terminal(const struct request *w)
{
    for (size_t i = 0; i < GP; i++)
        if (w->formats[i])
            return known[i];
    return known[0];
}

static int render(const struct hg_plot *p, const struct request *w, size_t format,
                  struct hg_buf *out, struct hg_err *err)
{
    const char *terminal = format == GP ? script_terminal(w) : known[format];
    char *name;

    if (format != GP)
        return hg_plot_draw(p, terminal, out, err);
    name = hg_str_printf("%s.%s", p->name, terminal);
    hg_plot_gnuplot(p, terminal, name, out);
    free(name);
    return 0;
}

static int write_one(const struct hg_plot *p, const struct request *w, size_t format,
                     struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    char *path = NULL;
    int rc = render(p, w, format, &text, err);

    if (rc == 0 && !w->out) {
        fwrite(text.data, 1, text.len, stdout);
    } else if (rc == 0) {
        struct hg_buf name = HG_BUF_INIT;

        hg_buf_printf(&name, "%s.%s", p->name, known[format]);
        path = w->is_file ? hg_strdup(w->out) : hg_fs_join(w->out, hg_buf_str(&name));
        hg_buf_done(&name);
        rc = hg_fs_replace(path, text.data, text.len, 0644, err);
    }
    free(path);
    hg_buf_done(&text);
    return rc;
}

static bool has_kind(const struct hg_plots *plots, unsigned kind)
{
    for (size_t i = 0; i < plots->n; i++)
        if (plots->items[i].kind == kind)
            return true;
    return false;
}

/* Each kind that was named must give a picture; of `all` one is enough. */
static int check_kinds(const struct hg_plots *plots, unsigned kinds, struct hg_errs *errs)
{
    bool all = kinds == (1u << HG_PLOT_KINDS) - 1;
    int rc = 0;

    for (unsigned k = 0; k < HG_PLOT_KINDS; k++)
        if ((kinds >> k & 1) && !has_kind(plots, k) && !(all && plots->n))
            rc = hg_err_set(hg_errs_next(errs), HG_E_INPUT, "no picture of %s: it needs %s",
                            hg_plot_names[k], hg_plot_needs((enum hg_plot_kind)k));
    return rc;
}

static int check_number(const struct hg_plots *plots, const struct request *w, struct hg_err *err)
{
    size_t n = plots->n * count_formats(w);

    if (w->out && !w->is_file)
        return hg_fs_mkdirs(w->out, 0755, err);
    if (n > 1) {
        hg_err_set(err, HG_E_USAGE, "%zu pictures do not fit into one file", n);
        return hg_err_hint(err, "--out FOLDER takes them all; --where can pick one table");
    }
    if (!w->out && isatty(STDOUT_FILENO) && !w->formats[GP] && !w->formats[0])
        return hg_err_set(err, HG_E_USAGE,
                          "a picture cannot be written to a terminal: add --out FILE");
    return 0;
}

static int write_all(const struct hg_plots *plots, const struct request *w, struct hg_err *err)
{
    int rc = check_number(plots, w, err);

    for (size_t i = 0; i < plots->n && rc == 0; i++)
        for (size_t f = 0; f < FORMATS && rc == 0; f++)
            if (w->formats[f])
                rc = write_one(&plots->items[i], w, f, err);
    return rc;
}

int hg_pictures_write(const struct hg_plots *plots, const char *out, struct hg_err *err)
{
    struct request w = { 0 };

    if (plots->n == 0)
        return hg_err_set(err, HG_E_INPUT, "no picture: no cell has a result");
    if (read_request(NULL, out, &w, err) < 0)
        return -1;
    return write_all(plots, &w, err);
}

int hg_pictures_draw(const struct hg_report *r, const char *kinds, const char *formats,
                     const char *out, struct hg_errs *errs)
{
    struct request w = { 0 };
    struct hg_plots plots = { 0 };
    struct hg_err err = HG_ERR_INIT;
    unsigned wanted;
    int rc = hg_plot_kinds_parse(kinds, &wanted, &err);

    if (rc == 0)
        rc = read_request(formats, out, &w, &err);
    for (size_t t = 0; t < r->tables.n && rc == 0; t++)
        hg_plots_build(r, t, wanted, &plots);
    if (rc == 0 && check_kinds(&plots, wanted, errs) < 0)
        rc = -1;
    else if (rc == 0)
        rc = write_all(&plots, &w, &err);
    hg_plots_done(&plots);
    hg_errs_add(errs, &err);
    return rc;
}
