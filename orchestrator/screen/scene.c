/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "results/metric.h"
#include "rundir/reasons.h"

/* How a state looks, in the order of the counts. A place shows the first of its cells' states. */
static const struct {
    enum hg_cell_state state;
    char letter;
    enum hg_ink ink;
} looks[] = {
    { HG_CELL_FAILED, 'F', HG_INK_BAD },      { HG_CELL_TIMEOUT, 'T', HG_INK_BAD },
    { HG_CELL_OOM, 'M', HG_INK_BAD },         { HG_CELL_NODE_FAIL, 'N', HG_INK_BAD },
    { HG_CELL_LOST, 'L', HG_INK_BAD },        { HG_CELL_REFUSED, 'X', HG_INK_BAD },
    { HG_CELL_CANCELLED, 'C', HG_INK_BAD },   { HG_CELL_RUNNING, 'r', HG_INK_RUNNING },
    { HG_CELL_ENDED, 'e', HG_INK_RUNNING },   { HG_CELL_AMBIGUOUS, '?', HG_INK_QUEUED },
    { HG_CELL_INTENDED, 's', HG_INK_QUEUED }, { HG_CELL_PENDING, 'p', HG_INK_QUEUED },
    { HG_CELL_WAITING, '.', HG_INK_PLAIN },   { HG_CELL_OK, 'o', HG_INK_GOOD },
    { HG_CELL_UNNEEDED, '-', HG_INK_FAINT },  { HG_CELL_REMOVED, 'x', HG_INK_FAINT },
};
#define N_LOOKS (sizeof looks / sizeof *looks)

static size_t look_of(const struct hg_run_cell *cell)
{
    size_t i = 0;

    while (i < N_LOOKS - 1 && (cell ? cell->state : HG_CELL_WAITING) != looks[i].state)
        i++;
    return i;
}

static const struct hg_run_cell *run_cell(const struct hg_scene *s, size_t cell)
{
    return hg_run_cell_find(s->state, s->board->cells[cell].batch, s->board->cells[cell].line);
}

size_t hg_scene_cell(const struct hg_scene *s, size_t row, size_t column)
{
    size_t first = hg_board_at(s->board, row, column), best = first;

    for (size_t i = first; i != HG_MAP_NONE; i = s->board->cells[i].next)
        if (look_of(run_cell(s, i)) < look_of(run_cell(s, best)))
            best = i;
    return best;
}

/* ---- The lines above the map ---- */

static int draw_count(struct hg_canvas *c, int line, int x, enum hg_ink ink, char letter,
                      const char *word, size_t n)
{
    if (!n)
        return x;
    x = hg_canvas_printf(c, line, x, ink, "%c", letter);
    return hg_canvas_printf(c, line, x, HG_INK_PLAIN, " %s%s%zu  ", word, *word ? " " : "", n);
}

/* What is done, then what needs a person. Returns the columns it takes. */
static int draw_counts(const struct hg_scene *s, struct hg_canvas *c, int line, bool words)
{
    int x = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < N_LOOKS; i++)
            if ((looks[i].state == HG_CELL_OK) == (pass == 0))
                x = draw_count(c, line, x, looks[i].ink, looks[i].letter,
                               words ? hg_cell_state_names[looks[i].state] : "",
                               s->state->counts[looks[i].state]);
    return draw_count(c, line, x, HG_INK_HELD, 'h', words ? "held" : "",
                      hg_run_count_held(s->state));
}

/* The letters with their words, or alone where there is no room. */
static void draw_legend(const struct hg_scene *s, struct hg_canvas *c, int line)
{
    struct hg_canvas wide;

    hg_canvas_init(&wide, 400, 1, false);
    draw_counts(s, c, line, draw_counts(s, &wide, 0, true) <= c->width + 2);
    hg_canvas_done(&wide);
}

static void draw_top(const struct hg_scene *s, struct hg_canvas *c)
{
    const struct hg_run_state *state = s->state;
    size_t needed = state->cells - state->counts[HG_CELL_UNNEEDED] - state->counts[HG_CELL_REMOVED];
    size_t over = state->counts[HG_CELL_OK];
    int width = c->width / 4, full, x;

    for (int i = HG_CELL_FAILED; i <= HG_CELL_REFUSED; i++)
        over += state->counts[i];
    full = needed ? (int)((double)width * (double)over / (double)needed) : 0;
    x = hg_canvas_printf(c, 0, 0, HG_INK_STRONG, "%s", s->title);
    if (s->filter)
        x = hg_canvas_printf(c, 0, x, HG_INK_PLAIN, "  only %s", s->filter);
    hg_canvas_printf(c, 0, x, HG_INK_PLAIN, "  %s · submit %u · poll %u · cancel %u%s%s",
                     s->elapsed, state->submits, state->polls, state->cancels,
                     *state->transport ? " by " : "", state->transport);
    draw_legend(s, c, 1);
    x = hg_canvas_printf(c, 2, 0, HG_INK_STRONG, "%3.0f %% ",
                         needed ? floor(100 * (double)over / (double)needed) : 100);
    for (int i = 0; i < width; i++)
        x = hg_canvas_put(c, 2, x, 1, HG_INK_PLAIN, i < full ? "█" : "░");
    hg_canvas_printf(c, 2, x, HG_INK_PLAIN, " %zu/%zu  %s", over, needed, s->eta ? s->eta : "");
}

/* A message that does not fit into a line stands in place of the log. */
static bool is_long(const struct hg_scene *s, const struct hg_canvas *c)
{
    return s->message && hg_text_width(s->message) > (size_t)c->width;
}

/* Why cells wait, or what happened last; at most so many lines. */
static void draw_news(const struct hg_scene *s, struct hg_canvas *c, int line, int lines)
{
    if (s->message && !is_long(s, c)) {
        hg_canvas_put(c, line, 0, c->width, HG_INK_STRONG, s->message);
        return;
    }
    for (int i = 0; i < lines && (size_t)i < s->n_whys; i++) {
        const struct hg_reason *reason = hg_reason_find(s->whys[i].text);
        size_t more = i == lines - 1 ? s->n_whys - (size_t)lines : 0;
        int x = hg_canvas_printf(c, line + i, 0, HG_INK_PLAIN, "%zu wait: %s (%s)", s->whys[i].n,
                                 reason->text, s->whys[i].text);

        if (more)
            hg_canvas_printf(c, line + i, x, HG_INK_FAINT, "; %zu more reason%s", more,
                             hg_text_s(more));
    }
}

/* ---- The map ---- */

/* How columns stand: with whole labels, with labels of a few characters, or without a gap. */
enum density { WHOLE, CUT, TIGHT };
#define LABEL_CUT 4

/* The part of the board that is seen. */
struct part {
    size_t row, n_rows, column, n_columns;
    int labels; /* width of the rows' labels */
    enum density density;
};

static int width_at(const struct hg_board *b, size_t column, enum density density)
{
    const struct hg_board_column *k = &b->columns[column];
    int label = density == WHOLE                               ? k->label_width
                : density == CUT && k->label_width > LABEL_CUT ? LABEL_CUT
                : density == CUT                               ? k->label_width
                                                               : 0;

    if (!k->last || density == TIGHT)
        return 1;
    return (label > k->group ? label - k->group : 0) + 2;
}

/* A key's name is cut to what its values need, and what a short name takes. */
static int key_width(const struct hg_scene *s, const struct hg_canvas *c, size_t k)
{
    struct hg_buf name = HG_BUF_INIT;
    int width = s->board->key_widths[k], wanted, most = c->width >= 100 ? 16 : 6;

    hg_board_row_key(s->board, k, &name);
    wanted = (int)hg_text_width(hg_buf_str(&name));
    wanted = wanted < most ? wanted : most;
    hg_buf_done(&name);
    width = width > c->width / 4 ? c->width / 4 : width;
    return wanted > width ? wanted : width;
}

/* The page of columns that has the cursor, in so much room. */
static void find_columns(const struct hg_scene *s, struct part *p, int room)
{
    const struct hg_board *b = s->board;

    for (int d = WHOLE; d <= TIGHT; d++) {
        int used = 0;

        p->density = (enum density)d;
        p->column = 0;
        for (size_t i = 0; i < b->n_columns; i++) {
            int width = width_at(b, i, p->density);

            if (used && used + width > room + (p->density == TIGHT ? 0 : 1)) {
                if (d < TIGHT || i > s->column)
                    break;
                p->column = i;
                used = 0;
            }
            used += width;
            p->n_columns = i + 1 - p->column;
        }
        if (p->n_columns == b->n_columns)
            break;
    }
}

static struct part find_part(const struct hg_scene *s, const struct hg_canvas *c, int lines)
{
    struct part p = { 0 };
    size_t most = lines > 0 ? (size_t)lines : 1;

    for (size_t k = 0; k < s->board->n_row_keys; k++)
        p.labels += key_width(s, c, k) + 1;
    if (p.labels > c->width / 2)
        p.labels = c->width / 2;
    find_columns(s, &p, c->width - p.labels);
    p.row = s->row / most * most;
    p.n_rows = s->board->n_rows - p.row < most ? s->board->n_rows - p.row : most;
    return p;
}

static void draw_labels(const struct hg_scene *s, struct hg_canvas *c, int line,
                        const struct part *p, size_t row, bool keys)
{
    int x = 0;

    for (size_t k = 0; k < s->board->n_row_keys && x < p->labels; k++) {
        struct hg_buf text = HG_BUF_INIT;
        int width = key_width(s, c, k);

        if (keys)
            hg_board_row_key(s->board, k, &text);
        else
            hg_board_row_label(s->board, row, k, &text);
        hg_canvas_put(c, line, x, width < p->labels - 1 - x ? width : p->labels - 1 - x,
                      keys || row == s->row ? HG_INK_STRONG : HG_INK_PLAIN, hg_buf_str(&text));
        hg_buf_done(&text);
        x += width + 1;
    }
}

static void draw_header(const struct hg_scene *s, struct hg_canvas *c, int line,
                        const struct part *p)
{
    const struct hg_board *b = s->board;
    int x = p->labels, begin = x;

    draw_labels(s, c, line, p, 0, true);
    for (size_t i = p->column; i < p->column + p->n_columns; i++) {
        struct hg_buf label = HG_BUF_INIT;
        bool first = i == p->column || b->columns[i - 1].last;

        begin = first ? x : begin;
        x += width_at(b, i, p->density);
        hg_board_column_label(b, i, &label);
        if (p->density == TIGHT ? i == s->column : b->columns[i].last)
            hg_canvas_put(c, line, begin, p->density == TIGHT ? c->width : x - begin - 1,
                          HG_INK_STRONG, hg_buf_str(&label));
        hg_buf_done(&label);
    }
}

/* Least and most of the values; false: there are none. */
static bool heat_range(const struct hg_scene *s, double *min, double *max)
{
    *min = INFINITY;
    *max = -INFINITY;
    for (size_t i = 0; s->heat && i < s->board->n; i++)
        if (!isnan(s->heat[i])) {
            *min = fmin(*min, s->heat[i]);
            *max = fmax(*max, s->heat[i]);
        }
    return *min <= *max;
}

static struct hg_mark mark_of(const struct hg_scene *s, size_t cell, double min, double max)
{
    const struct hg_run_cell *own = run_cell(s, cell);
    size_t look = look_of(own);
    double value = s->heat ? s->heat[cell] : NAN, at;

    if (own && hg_cell_is_held(own))
        return (struct hg_mark){ .cp = 'h', .ink = HG_INK_HELD };
    if (isnan(value))
        return (struct hg_mark){ .cp = (uint32_t)looks[look].letter,
                                 .ink = (uint8_t)(s->heat ? HG_INK_FAINT : looks[look].ink) };
    at = max > min ? (value - min) / (max - min) : 0;
    return (struct hg_mark){
        .cp = (uint32_t)('0' + (int)(at * 9.999)),
        .ink = (uint8_t)(HG_INK_HEAT + (int)((hg_metric_direction(s->metric) > 0 ? 1 - at : at) *
                                             (HG_HEATS - 0.001))),
    };
}

static void draw_row(const struct hg_scene *s, struct hg_canvas *c, int line, const struct part *p,
                     size_t row, double min, double max)
{
    int x = p->labels;

    draw_labels(s, c, line, p, row, false);
    for (size_t i = p->column; i < p->column + p->n_columns && x < c->width; i++) {
        size_t cell = hg_scene_cell(s, row, i);
        struct hg_mark *mark = &c->marks[line * c->width + x];

        if (cell != HG_MAP_NONE)
            *mark = mark_of(s, cell, min, max);
        mark->cursor = row == s->row && i == s->column;
        x += width_at(s->board, i, p->density);
    }
}

/* Returns the line behind it. */
static int draw_map(const struct hg_scene *s, struct hg_canvas *c, int line, int lines,
                    struct part *p)
{
    double min, max;

    heat_range(s, &min, &max);
    *p = find_part(s, c, lines);
    draw_header(s, c, line, p);
    for (size_t i = 0; i < p->n_rows; i++)
        draw_row(s, c, line + 1 + (int)i, p, p->row + i, min, max);
    return line + 1 + (int)p->n_rows;
}

/* ---- Below the map ---- */

/* "── ddp 2x2, run 3: failed: exit code 3 ──── rows 1-5/75" */
static void draw_cell(const struct hg_scene *s, struct hg_canvas *c, int line, const struct part *p)
{
    size_t cell = hg_scene_cell(s, s->row, s->column);
    const struct hg_run_cell *own = cell == HG_MAP_NONE ? NULL : run_cell(s, cell);
    struct hg_buf text = HG_BUF_INIT, place = HG_BUF_INIT;
    const char *why = own ? hg_run_text(s->state, own) : "";
    int x;

    for (x = 0; x < c->width; x++)
        hg_canvas_put(c, line, x, 1, HG_INK_FAINT, "─");
    if (cell != HG_MAP_NONE) {
        hg_board_append_name(s->board, cell, &text);
        hg_buf_printf(
            &text, ": %s%s%s%s%s", hg_cell_state_names[looks[look_of(own)].state],
            own && hg_cell_is_held(own) ? ", held" : "", *why ? ": " : "",
            own && own->state == HG_CELL_PENDING && *why ? hg_reason_find(why)->text : why, " ");
    }
    if (s->heat && cell != HG_MAP_NONE && !isnan(s->heat[cell]))
        hg_buf_printf(&text, "%s %.4g ", s->metric, s->heat[cell]);
    if (p->n_rows < s->board->n_rows)
        hg_buf_printf(&place, " rows %zu-%zu/%zu", p->row + 1, p->row + p->n_rows,
                      s->board->n_rows);
    if (p->n_columns < s->board->n_columns)
        hg_buf_printf(&place, " columns %zu-%zu/%zu", p->column + 1, p->column + p->n_columns,
                      s->board->n_columns);
    x = c->width - (int)place.len;
    hg_canvas_put(c, line, x, (int)place.len, HG_INK_FAINT, hg_buf_str(&place));
    if (cell != HG_MAP_NONE)
        hg_canvas_put(c, line, 2, 1, HG_INK_PLAIN, " ");
    hg_canvas_put(c, line, 3, x - 3, HG_INK_STRONG, hg_buf_str(&text));
    hg_buf_done(&text);
    hg_buf_done(&place);
}

static void draw_wrapped(struct hg_canvas *c, int line, int lines, const char *text)
{
    for (int end = line + lines; *text && line < end; line++) {
        size_t n = 0, space = 0;

        while (text[n] && n < (size_t)c->width) {
            space = text[n] == ' ' ? n : space;
            n++;
        }
        while (text[n] && !space && n && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--; /* not within a character */
        n = text[n] && space ? space : n;
        hg_canvas_printf(c, line, 0, HG_INK_STRONG, "%.*s", (int)n, text);
        text += n + (text[n] == ' ');
    }
}

/* The newest lines of the log at the bottom, or lines before them. Returns how many are below. */
static size_t draw_log(const struct hg_scene *s, struct hg_canvas *c, int line, int lines)
{
    const char *log = s->log ? s->log : "", *end = log + strlen(log);
    size_t back = s->page == HG_SCENE_LOG ? s->log_back : 0, below, most;
    int n = 0;

    for (const char *p = log; *p; p++)
        n += *p == '\n';
    most = n > lines ? (size_t)(n - lines) : 0;
    below = back = back < most ? back : most;
    n = n < lines ? n : lines;
    while (end > log && n > 0) {
        const char *begin = end - 1;
        struct hg_buf text = HG_BUF_INIT;

        while (begin > log && begin[-1] != '\n')
            begin--;
        hg_buf_append(&text, begin, (size_t)(end - 1 - begin));
        if (back)
            back--;
        else
            hg_canvas_put(c, line + --n, 0, c->width, HG_INK_PLAIN, hg_buf_str(&text));
        hg_buf_done(&text);
        end = begin;
    }
    return below;
}

static void draw_keys(const struct hg_scene *s, struct hg_canvas *c)
{
    static const char *const keys[] = {
        "? help",   "q quit",  "l log",    "/ filter", "h hold", "r release",
        "c cancel", "t retry", "m metric", "s sort",   "x axes",
    };
    int x = 0, line = c->height - 1;

    if (s->prompt) {
        hg_canvas_put(c, line, 0, c->width, HG_INK_STRONG, s->prompt);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (x + (int)strlen(keys[i]) > c->width)
            return;
        hg_canvas_put(c, line, x, 1, HG_INK_STRONG, keys[i]);
        x = hg_canvas_put(c, line, x + 1, c->width, HG_INK_FAINT, keys[i] + 1) + 2;
    }
}

static void draw_help(struct hg_canvas *c)
{
    static const char *const lines[] = {
        "arrows, PgUp, PgDn, Home, End   move in the matrix or log",
        "l or Enter    log of the cell under the cursor, and back",
        "/    only cells of a selector: nodes=2..8,strategy!=dp",
        "mouse  click: move; twice: log; wheel; Shift selects text",
        "h r c t  hold, release, cancel, retry what is at the cursor",
        "H R C T  the same for all cells shown",
        "s S  sort rows, columns by the next axis",
        "x    take the next axis of the rows to the columns, or back",
        "m    colour by metric (0 least, 9 most), or by state",
        "q or Ctrl-C   leave; the jobs go on",
    };
    int y = 0;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        hg_canvas_put(c, y++, 0, c->width, HG_INK_PLAIN, lines[i]);
    y++;
    for (size_t i = 0; i < N_LOOKS; i += 4, y++)
        for (size_t k = 0; k < 4; k++) {
            int x =
                hg_canvas_printf(c, y, (int)k * 14, looks[i + k].ink, "%c", looks[i + k].letter);

            hg_canvas_printf(c, y, x, HG_INK_PLAIN, " %s", hg_cell_state_names[looks[i + k].state]);
        }
}

/* ---- All of it ---- */

static bool is_small(const struct hg_canvas *c)
{
    return c->width < HG_SCENE_WIDTH_MIN || c->height < HG_SCENE_HEIGHT_MIN;
}

/* The line where the map begins, behind the news. */
static int map_top(const struct hg_canvas *c)
{
    return c->height >= 30 ? 6 : 4;
}

/* Lines for its rows: below them the log has some. */
static int map_lines(const struct hg_canvas *c)
{
    return c->height - map_top(c) - (c->height >= 30 ? c->height / 4 : 3) - 3;
}

bool hg_scene_find(const struct hg_scene *s, const struct hg_canvas *c, int line, int column,
                   size_t *board_row, size_t *board_column)
{
    int first = map_top(c) + 1, end;
    struct part p;

    if (is_small(c) || s->page != HG_SCENE_MAP)
        return false;
    p = find_part(s, c, map_lines(c));
    if (line < first || line >= first + (int)p.n_rows || column < p.labels)
        return false;
    end = p.labels;
    for (size_t i = p.column; i < p.column + p.n_columns; i++) {
        end += width_at(s->board, i, p.density);
        if (column < end) {
            *board_row = p.row + (size_t)(line - first);
            *board_column = i;
            return true;
        }
    }
    return false;
}

size_t hg_scene_draw(const struct hg_scene *s, struct hg_canvas *c)
{
    int top = map_top(c), line;
    struct part p = { 0 };

    if (is_small(c)) {
        hg_canvas_put(c, 0, 0, c->width, HG_INK_PLAIN, "too small: 60x15 is fine");
        return s->log_back;
    }
    if (s->page == HG_SCENE_HELP) {
        draw_help(c);
        return 0;
    }
    draw_keys(s, c);
    draw_top(s, c);
    draw_news(s, c, 3, top - 3);
    if (s->page == HG_SCENE_LOG) {
        p = find_part(s, c, 1);
        p.n_rows = s->board->n_rows;
        p.n_columns = s->board->n_columns;
        line = top;
    } else {
        line = draw_map(s, c, top, map_lines(c), &p);
    }
    draw_cell(s, c, line, &p);
    if (!is_long(s, c))
        return draw_log(s, c, line + 1, c->height - line - 2);
    draw_wrapped(c, line + 1, c->height - line - 2, s->message);
    return s->log_back;
}
