/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cells.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/colour.h"
#include "base/text.h"
#include "matrix/grid.h"
#include "plan/batch.h"
#include "typeset/plain.h"

#define SKIPS_SHOWN 20

static void print_warning(const char *line)
{
    struct hg_buf clean = HG_BUF_INIT, out = HG_BUF_INIT;

    hg_text_escape_lines(line, strlen(line), &clean);
    hg_colour_append_message(STDERR_FILENO, hg_buf_str(&clean), clean.len, &out);
    fprintf(stderr, "%s\n", hg_buf_str(&out));
    hg_buf_done(&clean);
    hg_buf_done(&out);
}

void hg_cells_print_warnings(const struct hg_cells_count *count)
{
    for (size_t i = 0; i < count->n_warnings; i++)
        print_warning(count->warnings[i]);
}

void hg_cells_print_skips(const struct hg_skips *skips, bool planned)
{
    size_t more = skips->n > SKIPS_SHOWN ? skips->n - SKIPS_SHOWN : 0;

    for (size_t i = 0; i < skips->n - more; i++) {
        struct hg_buf line = HG_BUF_INIT;

        hg_buf_printf(&line, "warning: cell %s %s skipped: %s", skips->items[i].name,
                      planned ? "is" : "would be", skips->items[i].why);
        print_warning(hg_buf_str(&line));
        hg_buf_done(&line);
    }
    if (more)
        fprintf(stderr, "warning: %zu more cell%s %s skipped\n", more, hg_text_s(more),
                !planned    ? "would be"
                : more == 1 ? "is"
                            : "are");
}

static void list_site(const struct hg_matrix *m, const char *name, uint64_t cells,
                      const char *select, struct hg_words *lines)
{
    struct hg_buf line = HG_BUF_INIT;

    hg_buf_printf(&line, "at %s%s: %llu cell%s; there: hpcgrid run ", name, select ? ", up to" : "",
                  (unsigned long long)cells, hg_text_s(cells));
    hg_text_quote_if_needed(m->doc.file, &line);
    hg_buf_printf(&line, " --site %s", name);
    if (select) {
        hg_buf_puts(&line, " --select ");
        hg_text_quote_if_needed(select, &line);
    }
    hg_words_push(lines, hg_buf_str(&line));
    hg_buf_done(&line);
}

void hg_cells_list_elsewhere(const struct hg_matrix *m, const struct hg_cells_count *count,
                             const char *select, struct hg_words *lines)
{
    struct hg_buf line = HG_BUF_INIT;

    for (size_t i = 0; count->by_site && i < m->several.n; i++)
        if (m->several.items[i].site != m->several.here && count->by_site[i])
            list_site(m, m->several.items[i].site->name, count->by_site[i], select, lines);
    if (lines->n) {
        hg_buf_puts(&line, "one report of all: hpcgrid report ");
        hg_text_quote_if_needed(m->doc.file, &line);
        hg_buf_puts(&line, ", or with the folders of the runs");
        hg_words_push(lines, hg_buf_str(&line));
    }
    hg_buf_done(&line);
}

const char *hg_cells_fate_name(enum hg_cell_fate fate)
{
    static const char *const words[] = {
        [HG_CELL_RUNS] = "runs",
        [HG_CELL_SKIPPED] = "skipped",
        [HG_CELL_EXCLUDED] = "excluded",
        [HG_CELL_MERGED] = "merged",
    };

    return words[fate];
}

void hg_cells_show_value(const json_t *value, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    if (json_is_string(value))
        hg_buf_puts(&text, json_string_value(value));
    else if (value)
        hg_json_dump(value, HG_JSON_COMPACT, &text);
    else
        hg_buf_puts(&text, "-");
    hg_clean_append(hg_buf_str(&text), 0, out);
    hg_buf_done(&text);
}

/* ---- Counts ---- */

static void line(const char *word, uint64_t n)
{
    printf("%-11s %8llu", word, (unsigned long long)n);
}

static const char *source_name(const struct hg_matrix *m, size_t i)
{
    const char *pointer = m->grid->sources.items[i].pointer;

    return *pointer ? pointer : "/workload";
}

static void print_made(const struct hg_matrix *m, const struct hg_cells_count *count)
{
    line("made", count->made);
    for (size_t i = 0; i < count->n_sources; i++)
        printf("%s%s %llu", i ? ", " : "   ", source_name(m, i),
               (unsigned long long)count->by_source[i]);
    putchar('\n');
}

static void print_excluded(const struct hg_matrix *m, const struct hg_cells_count *count)
{
    line("excluded", count->excluded);
    for (size_t i = 0; i < count->n_rules; i++)
        printf("%s%s %llu", i ? ", " : "   ", m->grid->rules.items[i].pointer,
               (unsigned long long)count->by_rule[i]);
    putchar('\n');
}

static void print_added(const struct hg_cells_count *count)
{
    line("added", count->added);
    printf("   baselines");
    if (count->added && count->added_unpriced < count->added)
        printf(", at most %.3g device-hours", count->added_device_s / 3600);
    if (count->added_unpriced)
        printf(", %llu without a time limit", (unsigned long long)count->added_unpriced);
    putchar('\n');
}

void hg_cells_print_count(const struct hg_matrix *m, const struct hg_cells_count *count)
{
    print_made(m, count);
    print_excluded(m, count);
    line("skipped", count->skipped);
    puts("   cannot run");
    if (count->elsewhere) {
        line("elsewhere", count->elsewhere);
        puts("   of other sites");
    }
    line("merged", count->merged);
    puts("   equal to an earlier one");
    print_added(count);
    line("cells", count->cells - count->added);
    printf("   and %llu added baseline%s\n", (unsigned long long)count->added,
           hg_text_s(count->added));
}

static json_t *by_site_json(const struct hg_matrix *m, const struct hg_cells_count *count)
{
    json_t *sites = json_object();

    for (size_t i = 0; i < m->several.n; i++)
        json_object_set_new(sites, m->several.items[i].site->name,
                            json_integer((json_int_t)count->by_site[i]));
    return sites;
}

json_t *hg_cells_count_json(const struct hg_matrix *m, const struct hg_cells_count *count)
{
    json_t *o = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I}", "made", (json_int_t)count->made,
        "excluded", (json_int_t)count->excluded, "skipped", (json_int_t)count->skipped, "merged",
        (json_int_t)count->merged, "added", (json_int_t)count->added, "cells",
        (json_int_t)(count->cells - count->added), "total", (json_int_t)count->cells,
        "without_baseline", (json_int_t)count->unbased, "added_device_s", count->added_device_s,
        "added_unpriced", (json_int_t)count->added_unpriced);
    json_t *rules = json_object(), *sources = json_object(), *warnings = json_array();

    for (size_t i = 0; i < count->n_rules; i++)
        json_object_set_new(rules, m->grid->rules.items[i].pointer,
                            json_integer((json_int_t)count->by_rule[i]));
    for (size_t i = 0; i < count->n_sources; i++)
        json_object_set_new(sources, source_name(m, i),
                            json_integer((json_int_t)count->by_source[i]));
    for (size_t i = 0; i < count->n_warnings; i++)
        json_array_append_new(warnings, hg_json_text(count->warnings[i]));
    if (count->by_site)
        json_object_set_new(o, "by_site", by_site_json(m, count));
    json_object_set_new(o, "made_by", sources);
    json_object_set_new(o, "excluded_by", rules);
    json_object_set_new(o, "warnings", warnings);
    return o;
}
