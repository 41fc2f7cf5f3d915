/* SPDX-License-Identifier: Apache-2.0 */
/* plot/: what pictures are made of, before a browser or gnuplot draws them. tests/peers sees them drawn. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build.h"
#include "base/json.h"
#include "plot/details.h"
#include "plot/layout.h"
#include "plot/plots.h"
#include "plot/svg.h"

/* Fifteen series on four sizes, five runs each, with a loss curve and names that are too long. */
static char *set_text(void)
{
    struct hg_buf text = HG_BUF_INIT;
    const char *gap = "";

    hg_buf_puts(&text, "{\"schema\": \"hpcgrid-results/1\", \"name\": \"set\", "
                       "\"baseline\": {\"nodes\": 1}, \"results\": [");
    for (int s = 0; s < 15; s++)
        for (int n = 1; n <= 16; n *= 2)
            for (int k = 1; k <= 5; k++) {
                hg_buf_printf(&text,
                              "%s{\"id\": \"%d-%d-%d\", \"cell\": {\"nodes\": %d, \"strategy\": "
                              "\"WWW strategy with a name that fits nowhere, number %d\", "
                              "\"repeat\": %d}, \"train_s\": %.6f, \"wall_s\": %d, \"init_s\": 2, "
                              "\"memory\": {\"a class of memory with a long name, too\": 123456789}"
                              ", \"loss\": {\"epoch\": [-1234567.5, 3, 2.5, %d]}}",
                              gap, s, n, k, n, s, k, 1e6 / n * (1 + 0.01 * s) * (1 + 0.01 * k),
                              1000000 / n, s);
                gap = ", ";
            }
    hg_buf_puts(&text, "]}");
    return hg_buf_detach(&text);
}

struct pictures {
    struct hg_results set;
    struct hg_report *r;
    struct hg_plots plots;
};

static void setup(struct pictures *f)
{
    char *text = set_text();
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;

    *f = (struct pictures){ 0 };
    assert_int_equal(hg_json_parse("set", text, strlen(text), &doc, &err), 0);
    assert_int_equal(hg_results_decode(&doc, 0, &f->set, &errs), 0);
    f->r = hg_report_build(&f->set, 1, NULL, &errs);
    assert_non_null(f->r);
    hg_plots_build(f->r, 0, ~0u, &f->plots);
    assert_int_equal(f->plots.n, HG_PLOT_KINDS);
    hg_errs_done(&errs);
    free(text);
}

static void teardown(struct pictures *f)
{
    hg_plots_done(&f->plots);
    hg_report_free(f->r);
    hg_results_done(&f->set);
}

static void test_series_are_told_apart_without_colour(void **state)
{
    (void)state;
    for (size_t a = 0; a < HG_PLOT_LOOKS; a++)
        for (size_t b = a + 1; b < HG_PLOT_LOOKS; b++) {
            struct hg_plot_look x = hg_plot_look(a), y = hg_plot_look(b);

            assert_true(x.shape != y.shape || x.dash != y.dash);
            assert_true(b != a + 1 || (x.shape != y.shape && x.dash != y.dash));
            assert_true(b >= HG_PLOT_COLOURS || x.colour != y.colour);
        }
    assert_true(HG_PLOT_SERIES_MAX <= HG_PLOT_LOOKS);
}

/* A number behind `name` in a tag. */
static double attribute(const char *tag, const char *name)
{
    const char *at = strstr(tag, name);

    return at && at < strchr(tag, '>') ? strtod(at + strlen(name), NULL) : NAN;
}

/* Every text of a picture, as wide as it is taken to be, lies inside of it. */
static void check_texts(const char *svg, const char *kind)
{
    double width = 0, height = 0, em = attribute(svg, "font-size=\"");
    size_t texts = 0;

    assert_int_equal(sscanf(strstr(svg, "viewBox"), "viewBox=\"0 0 %lf %lf", &width, &height), 2);
    for (const char *at = svg; (at = strstr(at, "<text ")); at++, texts++) {
        const char *from = strchr(at, '>') + 1;
        char *text = strndup(from, (size_t)(strstr(from, "</text>") - from));
        bool middle = strstr(at, "\"middle\"") && strstr(at, "\"middle\"") < from;
        bool end = strstr(at, "\"end\"") && strstr(at, "\"end\"") < from;
        double x = attribute(at, " x=\""), y = attribute(at, " y=\"");
        double w = em * hg_plot_text_em(text), left = x - (middle ? w / 2 : end ? w : 0);

        if (isnan(x)) { /* turned */
            sscanf(at, "<text transform=\"translate(%lf %lf)", &y, &x);
            left = x - w / 2;
            assert_true(left + w <= height);
        } else if (left < 0 || left + w > width || y - em < 0 || y + em / 4 > height) {
            fail_msg("%s: \"%s\" from %.1f to %.1f at %.1f in %g x %g", kind, text, left, left + w,
                     y, width, height);
        }
        free(text);
    }
    assert_true(texts > 8);
}

static void test_no_text_is_clipped(void **state)
{
    struct pictures f;

    (void)state;
    setup(&f);
    for (size_t i = 0; i < f.plots.n; i++) {
        struct hg_buf svg = HG_BUF_INIT;

        hg_plot_svg(&f.plots.items[i], i, &svg);
        check_texts(hg_buf_str(&svg), f.plots.items[i].name);
        hg_buf_done(&svg);
    }
    teardown(&f);
}

static void test_a_text_that_does_not_fit_keeps_both_ends(void **state)
{
    static const struct {
        const char *text;
        double em;
        const char *wanted;
    } cases[] = {
        { "short", 10, "short" },
        { "strategy_with_a_long_name_14", 10, "strateg…_name_14" },
        { "ab\x01"
          "c",
          10, "ab?c" },
        { "日本語日本語日本語", 6, "日本…日本語" },
        { "WWWW", 0.5, "…" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hg_buf cut = HG_BUF_INIT;

        hg_plot_text_fit(cases[i].text, cases[i].em, &cut);
        assert_string_equal(hg_buf_str(&cut), cases[i].wanted);
        hg_buf_done(&cut);
    }
}

static void test_intervals_stand_beside_each_other(void **state)
{
    struct pictures f;
    const struct hg_plot *p;

    (void)state;
    setup(&f);
    p = &f.plots.items[HG_PLOT_SPEEDUP];
    assert_int_equal(p->series.n, 15);
    for (size_t s = 0; s < 15; s++) {
        const struct hg_plot_series *series = &p->series.items[s];

        assert_int_equal(series->points.n, 5);
        for (size_t i = 0; i < 5; i++) {
            double at = hg_plot_moved(&p->x, series->points.items[i].x, series->dodge);

            assert_true(at >= p->x.low && at <= p->x.high);
            /* all series of one size stand before all of the next */
            assert_true(i == 0 || at > hg_plot_moved(&p->x, series->points.items[i - 1].x,
                                                     p->series.items[14].dodge));
        }
        assert_true(s == 0 || series->dodge > p->series.items[s - 1].dodge + 0.005);
    }
    teardown(&f);
}

static void test_every_run_is_a_dot(void **state)
{
    struct pictures f;

    (void)state;
    setup(&f);
    for (size_t s = 0; s < 15; s++) {
        const struct hg_plot_series *series = &f.plots.items[HG_PLOT_SPEEDUP].series.items[s];
        const struct hg_plot_points *dots = &series->dots;

        assert_int_equal(dots->n, 5 * 5);
        assert_non_null(dots->items[0].tip); /* the name of the run */
        for (size_t i = 0; i < dots->n; i++) {
            assert_true(dots->items[i].y > f.plots.items[HG_PLOT_SPEEDUP].y.low);
            assert_true(dots->items[i].y < f.plots.items[HG_PLOT_SPEEDUP].y.high);
        }
    }
    assert_int_equal(f.plots.items[HG_PLOT_RUNS].series.items[0].dots.n, 40 * 5);
    assert_non_null(strstr(f.plots.items[HG_PLOT_RUNS].note, "the first 40 of 75 places"));
    teardown(&f);
}

/* The piece of a line in the legend has the dash of the line, its mark the shape of the marks. */
static void test_the_legend_is_as_drawn(void **state)
{
    struct pictures f;
    struct hg_buf svg = HG_BUF_INIT;
    const char *at;
    size_t groups = 0;

    (void)state;
    setup(&f);
    hg_plot_svg(&f.plots.items[HG_PLOT_LOSS], 1, &svg);
    for (at = hg_buf_str(&svg); (at = strstr(at, "<g class=\"s c")); at++, groups++) {
        const char *end = strstr(at, "</g>"), *line = strstr(at, "class=\"line\""), *entry;
        char dash[2][64] = { "", "" }, shape[2][64] = { "", "" };

        assert_true(line && line < end);
        sscanf(strchr(line + 14, '"') + 5, "%*[^\"]\"%63[^>]", dash[0]);
        for (entry = line;
             strstr(entry + 1, "class=\"line\"") < end && strstr(entry + 1, "class=\"line\"");)
            entry = strstr(entry + 1, "class=\"line\"");
        assert_true(entry > line);
        sscanf(strchr(entry + 14, '"') + 5, "%*[^\"]\"%63[^>]", dash[1]);
        assert_string_equal(dash[0], dash[1]);
        sscanf(strstr(line, "<path d=\"M"), "<path d=\"M%*[0-9. ]%63[^\"]", shape[0]);
        sscanf(strstr(entry, "<path d=\"M"), "<path d=\"M%*[0-9. ]%63[^\"]", shape[1]);
        assert_true(strlen(shape[0]) > 8);
        assert_string_equal(shape[0], shape[1]);
    }
    assert_int_equal(groups, HG_PLOT_SERIES_MAX);
    hg_buf_done(&svg);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series_are_told_apart_without_colour),
        cmocka_unit_test(test_no_text_is_clipped),
        cmocka_unit_test(test_a_text_that_does_not_fit_keeps_both_ends),
        cmocka_unit_test(test_intervals_stand_beside_each_other),
        cmocka_unit_test(test_every_run_is_a_dot),
        cmocka_unit_test(test_the_legend_is_as_drawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
