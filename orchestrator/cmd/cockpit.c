/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cockpit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/words.h"
#include "cmd/forecast.h"
#include "cmd/picks.h"
#include "cmd/signals.h"
#include "cmd/state.h"
#include "results/result.h"
#include "rundir/resultfile.h"
#include "screen/scene.h"
#include "screen/terminal.h"

#define READ_S 0.03     /* reading results, between two keys */
#define TICK_S 1.0      /* logs and clocks are looked at so often */
#define SAID_S 20.0     /* how long a message stays without a key */
#define LOG_MAX 65536   /* bytes of a log's end */
#define KEPT_MAX 100    /* messages printed after the end */
#define TWICE_S 0.5     /* from one click to the next */
#define INPUT_MAX 400   /* bytes of a selector that is typed */
#define SELECT_IDS 3000 /* cells of one place that a command is given by their ids */

bool hg_cockpit_wanted = true;

/* What is known of a cell's result. */
struct measured {
    bool read;
    double value; /* of the metric; NaN: none */
};

enum asking { ASK_NOTHING, ASK_FILTER, ASK_SURE };

struct hg_cockpit {
    const struct hg_rundir *rd;
    const struct hg_run_state *state;
    struct hg_board *board;
    size_t shown_cells; /* of the run, less removed ones, when the board was loaded */
    struct hg_picks picks;
    char *filter;               /* NULL: all cells */
    struct measured **measured; /* by batch - 1, line */
    size_t *n_measured, n_batches;
    bool unread;  /* results are left to be read */
    double *heat; /* by cell of the board */
    bool hot;     /* the map shows them */
    struct hg_cockpit_news news;
    struct hg_eta *eta; /* NULL: the plan cannot be read */
    struct hg_buf left, log, prompt, input;
    size_t log_of; /* the cell of the log */
    double log_s;
    enum hg_scene_page page;
    size_t row, column, log_back;
    double clicked_s; /* when the cell under the cursor was clicked */
    enum asking asking;
    const char *sure_word; /* the command that waits for a yes */
    bool sure_all;
    char *retry;
};

static struct hg_words kept; /* messages */

/* At the end of a run watch opens another screen: the command that a key has started, and the message, are on this, too. */
static struct {
    const char *word; /* NULL: none */
    struct hg_proc proc;
    struct hg_buf said;
} job;
static struct hg_buf message;
static double said_s;

static void set_message(const char *text)
{
    hg_buf_clear(&message);
    hg_buf_puts(&message, text);
    said_s = hg_clock_mono_s();
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A line for the person, until the next key. */
static void say(const char *fmt, ...)
{
    struct hg_buf text = HG_BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    hg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    set_message(hg_buf_str(&text));
    hg_buf_done(&text);
}

/* What the program says meanwhile: shown, and printed again at the end. */
static void take_line(const char *line)
{
    const char *text = strncmp(line, "hpcgrid: ", 9) == 0 ? line + 9 : line;

    set_message(text);
    if (kept.n < KEPT_MAX)
        hg_words_push(&kept, line);
}

/* ---- The cells ---- */

static bool is_shown(void *context, int batch, uint32_t line)
{
    const struct hg_cockpit *c = context;
    const struct hg_run_cell *cell = hg_run_cell_find(c->state, batch, line);

    return !(cell && cell->state == HG_CELL_REMOVED) && hg_picks_has(&c->picks, batch, line);
}

static size_t count_shown(const struct hg_run_state *state)
{
    return state->cells - state->counts[HG_CELL_REMOVED];
}

/* Room for what is known of each cell of the run. */
static void make_room(struct hg_cockpit *c)
{
    size_t n = c->state->batches.n;

    c->measured = hg_realloc(c->measured, (n + 1) * sizeof *c->measured);
    c->n_measured = hg_realloc(c->n_measured, (n + 1) * sizeof *c->n_measured);
    for (; c->n_batches < n; c->n_batches++) {
        c->measured[c->n_batches] = NULL;
        c->n_measured[c->n_batches] = 0;
    }
    for (size_t b = 0; b < n; b++) {
        size_t cells = c->state->batches.items[b].n;

        c->measured[b] = hg_realloc(c->measured[b], (cells + 1) * sizeof **c->measured);
        for (; c->n_measured[b] < cells; c->n_measured[b]++)
            c->measured[b][c->n_measured[b]] = (struct measured){ .value = NAN };
    }
}

/* Load the cells that picks says; c->board stays if that fails. */
static int load_board(struct hg_cockpit *c, struct hg_err *err)
{
    struct hg_board *b = hg_board_load(c->rd, is_shown, c, err);

    if (!b)
        return -1;
    hg_board_free(c->board);
    c->board = b;
    c->shown_cells = count_shown(c->state);
    c->row = c->column = 0;
    c->log_of = HG_MAP_NONE;
    c->heat = hg_realloc(c->heat, (b->n + 1) * sizeof *c->heat);
    make_room(c);
    return 0;
}

static void set_filter(struct hg_cockpit *c, const char *text)
{
    struct hg_picks old = c->picks;
    char *filter = *text ? hg_strdup(text) : NULL, *before = c->filter;
    struct hg_err err = HG_ERR_INIT;

    if (hg_picks_make(&c->picks, c->rd->path, c->state, filter, &err) == 0) {
        c->filter = filter;
        if (load_board(c, &err) == 0) {
            hg_picks_done(&old);
            free(before);
            return;
        }
    }
    hg_picks_done(&c->picks);
    c->picks = old;
    c->filter = before;
    free(filter);
    say("%s%s%s", err.text, *err.hint ? "; " : "", err.hint);
}

/* ---- What is known of results ---- */

static struct hg_attempt_files *newest(struct hg_attempt_group *g, const struct hg_board_cell *cell,
                                       const char *id)
{
    struct hg_attempt_list list;

    return hg_attempt_list(g, cell->batch, cell->line, id, &list, NULL) == 0 && list.n
               ? &list.items[list.n - 1]
               : NULL;
}

static void read_result(struct hg_cockpit *c, struct hg_attempt_group *g, size_t i,
                        struct measured *m)
{
    const struct hg_board_cell *cell = &c->board->cells[i];
    struct hg_attempt_files *files = newest(g, cell, hg_board_id(c->board, i));
    const char *metric = hg_board_metric(c->board);
    struct hg_err ignored = HG_ERR_INIT;
    struct hg_result result = { 0 };
    json_t *entry = files ? hg_resultfile_read(g, files, NULL, NULL, false, &ignored) : NULL;

    m->read = true;
    if (!entry)
        return;
    result.entry = entry;
    m->value = hg_result_number(&result, metric ? metric : "train_s");
    if (isnan(m->value) && !metric)
        m->value = hg_result_number(&result, "wall_s");
    json_decref(entry);
}

/* Results of cells that are good now, for a short time; the rest comes later. */
static void read_results(struct hg_cockpit *c)
{
    struct hg_attempt_group g = { .rd = c->rd, .quick = true };
    double end = hg_clock_mono_s() + READ_S;

    c->unread = false;
    for (size_t i = 0; i < c->board->n; i++) {
        const struct hg_board_cell *at = &c->board->cells[i];
        struct measured *m = &c->measured[at->batch - 1][at->line];
        const struct hg_run_cell *cell = hg_run_cell_find(c->state, at->batch, at->line);

        if (!cell || cell->state != HG_CELL_OK) {
            m->read = false;
            m->value = NAN;
        } else if (!m->read && hg_clock_mono_s() < end) {
            read_result(c, &g, i, m);
        }
        c->unread = c->unread || (cell && cell->state == HG_CELL_OK && !m->read);
        c->heat[i] = m->value;
    }
    hg_attempt_group_forget(&g);
}

static void estimate(struct hg_cockpit *c)
{
    double now_s = hg_clock_wall_s();

    hg_buf_clear(&c->left);
    if (!c->eta || !hg_state_open(c->state) || !hg_eta_look(c->eta, c->state, now_s, false))
        return;
    hg_buf_puts(&c->left, "≈ ");
    hg_eta_append(c->eta, now_s, &c->left);
}

/* ---- The log of the cell under the cursor ---- */

/* Append a stream's lines: of a line that was written over, what stands at last; no steering of the terminal. */
static void append_lines(const struct hg_buf *text, struct hg_buf *out)
{
    const char *p = hg_buf_str(text), *end = p + text->len;

    for (const char *nl; p < end; p = nl + 1) {
        const char *cr;

        nl = memchr(p, '\n', (size_t)(end - p));
        nl = nl ? nl : end;
        cr = nl > p ? memrchr(p, '\r', (size_t)(nl - p - 1)) : NULL;
        for (p = cr ? cr + 1 : p; p < nl; p++)
            if (*p == '\033' && p + 1 < nl && p[1] == '[')
                for (p += 2; p < nl && (unsigned char)(*p - 0x40) > 0x3e;)
                    p++;
            else if (*p)
                hg_buf_append(out, *p == '\t' ? " " : p, 1);
        hg_buf_puts(out, "\n");
    }
}

/* On the map the stream that says why a cell failed, or else how far it is; as a page both. */
static void read_log(struct hg_cockpit *c, size_t i)
{
    const struct hg_board_cell *at = &c->board->cells[i];
    const struct hg_run_cell *cell = hg_run_cell_find(c->state, at->batch, at->line);
    struct hg_attempt_group g = { .rd = c->rd, .quick = true };
    struct hg_attempt_files *files = newest(&g, at, hg_board_id(c->board, i));
    const char *names[] = { "out.log", "err.log" };
    bool bad = cell && hg_cell_is_bad(cell);

    for (size_t k = 0; k < 2 && files; k++) {
        struct hg_buf text = HG_BUF_INIT;

        hg_attempt_read_tail(&g, files, names[c->page == HG_SCENE_MAP && bad ? 1 - k : k], LOG_MAX,
                             &text);
        append_lines(&text, &c->log);
        hg_buf_done(&text);
        if (c->page == HG_SCENE_MAP && c->log.len)
            break;
    }
    hg_attempt_group_forget(&g);
}

static void refresh_log(struct hg_cockpit *c, const struct hg_scene *s)
{
    size_t cell = hg_scene_cell(s, c->row, c->column);
    double now = hg_clock_mono_s();

    if (cell == c->log_of && now - c->log_s < TICK_S)
        return;
    c->log_of = cell;
    c->log_s = now;
    hg_buf_clear(&c->log);
    if (cell != HG_MAP_NONE)
        read_log(c, cell);
}

/* ---- Drawing ---- */

static void draw(struct hg_cockpit *c)
{
    const struct hg_run_state *state = c->state;
    double end = hg_state_open(state) ? hg_clock_wall_s() : state->last_t;
    char elapsed[32];
    struct hg_scene s = {
        .board = c->board,
        .state = state,
        .whys = c->news.whys,
        .n_whys = c->news.n_whys,
        .eta = hg_buf_str(&c->left),
        .filter = c->filter,
        .page = c->page,
        .row = c->row,
        .column = c->column,
        .log_back = c->log_back,
        .heat = c->hot ? c->heat : NULL,
        .metric = hg_board_metric(c->board) ? hg_board_metric(c->board) : "train_s",
        .message = message.len ? hg_buf_str(&message) : NULL,
        .prompt = c->prompt.len ? hg_buf_str(&c->prompt) : NULL,
        .elapsed = elapsed,
    };
    struct hg_buf title = HG_BUF_INIT, away = HG_BUF_INIT;
    struct hg_canvas canvas;

    if (message.len && hg_clock_mono_s() - said_s > SAID_S)
        s.message = NULL;
    if (c->news.away_s > 5)
        hg_buf_printf(&away, "Slurm has not answered for %.0f s", c->news.away_s);
    s.message = !s.message && away.len ? hg_buf_str(&away) : s.message;
    hg_text_duration_format(state->first_t > 0 ? end - state->first_t : 0, elapsed);
    hg_buf_printf(&title, "%s/%03d", c->rd->name, c->rd->number);
    s.title = hg_buf_str(&title);
    refresh_log(c, &s);
    s.log = hg_buf_str(&c->log);
    hg_terminal_canvas(&canvas);
    c->log_back = hg_scene_draw(&s, &canvas);
    hg_terminal_show(&canvas);
    hg_canvas_done(&canvas);
    hg_buf_done(&title);
    hg_buf_done(&away);
}

/* ---- Commands ---- */

/* The cells of the place under the cursor as a selector, or what is shown; NULL: all. *n counts them. Yours. */
static char *select_cells(const struct hg_cockpit *c, bool all, size_t *n)
{
    struct hg_buf text = HG_BUF_INIT;

    *n = all ? c->board->n : 0;
    if (all)
        return c->filter ? hg_strdup(c->filter) : NULL;
    for (size_t i = hg_board_at(c->board, c->row, c->column); i != HG_MAP_NONE;
         i = c->board->cells[i].next)
        if (++*n <= SELECT_IDS)
            hg_buf_printf(&text, "%s%s", *n > 1 ? "|" : "id=", hg_board_id(c->board, i));
    return hg_buf_detach(&text);
}

static void start_job(struct hg_cockpit *c, const char *word, const char *select)
{
    struct hg_err err = HG_ERR_INIT;
    char *self = hg_fs_self(&err);
    const char *argv[] = { self, word, c->rd->path, select ? "--select" : NULL, select, NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;

    spec.argv = argv;
    spec.in = spec.out = HG_PROC_NULL;
    spec.err = HG_PROC_PIPE;
    spec.new_session = true;
    hg_buf_clear(&job.said);
    if (self && hg_proc_start(&spec, &job.proc, &err) == 0) {
        fcntl(job.proc.err, F_SETFL, O_NONBLOCK);
        job.word = word;
        say("%s ...", word);
    } else {
        set_message(err.text);
    }
    free(self);
}

/* Its messages as one line; true: it has ended. */
static bool end_job(void)
{
    struct hg_buf text = HG_BUF_INIT;
    char chunk[1024];
    ssize_t n;
    int status;

    while ((n = read(job.proc.err, chunk, sizeof chunk)) > 0)
        hg_buf_append(&job.said, chunk, (size_t)n);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    close(job.proc.err);
    hg_proc_wait(job.proc.pid, 5, &status, NULL);
    hg_buf_printf(&text, "%s: ", job.word);
    for (const char *p = hg_buf_str(&job.said); *p;) {
        size_t len = strcspn(p, "\n");

        p += strncmp(p, "hpcgrid: ", 9) == 0 ? 9 : 0;
        len = strcspn(p, "\n");
        hg_buf_append(&text, p, len);
        p += len + (p[len] == '\n');
        hg_buf_puts(&text, *p ? "; " : "");
    }
    job.word = NULL;
    set_message(hg_buf_str(&text));
    hg_buf_done(&text);
    return true;
}

static void command(struct hg_cockpit *c, const char *word, bool all)
{
    size_t n;
    char *select = select_cells(c, all, &n);

    if (n == 0) {
        say("no cell here");
    } else if (strcmp(word, "retry") == 0 && !c->news.driven) {
        free(c->retry);
        c->retry = select ? select : hg_strdup("");
        return;
    } else if (job.word) {
        say("%s is still at work", job.word);
    } else {
        start_job(c, word, select);
    }
    free(select);
}

/* What ends jobs, and what concerns many cells, is asked for twice. */
static void ask_command(struct hg_cockpit *c, const char *word, bool all)
{
    size_t n;
    char *select = select_cells(c, all, &n);

    free(select);
    c->sure_word = word;
    c->sure_all = all;
    if (!all && n > SELECT_IDS) {
        say("%s: more than %d cells here; filter them (/) and press the capital letter", word,
            SELECT_IDS);
    } else if (n && (all || strcmp(word, "cancel") == 0)) {
        c->asking = ASK_SURE;
        hg_buf_clear(&c->prompt);
        hg_buf_printf(&c->prompt, "%s %zu cell%s? y or n", word, n, hg_text_s(n));
    } else {
        command(c, word, all);
    }
}

/* ---- Keys ---- */

static void stop_asking(struct hg_cockpit *c)
{
    c->asking = ASK_NOTHING;
    hg_buf_clear(&c->prompt);
}

static void show_input(struct hg_cockpit *c)
{
    hg_buf_clear(&c->prompt);
    hg_buf_printf(&c->prompt, "only cells: %s_", hg_buf_str(&c->input));
}

static void type_filter(struct hg_cockpit *c, int key)
{
    if (key == HG_PRESS_ENTER) {
        stop_asking(c);
        set_filter(c, hg_buf_str(&c->input));
        return;
    }
    if (key == HG_PRESS_ESCAPE) {
        stop_asking(c);
        return;
    }
    if (key == HG_PRESS_ERASE) {
        while (c->input.len && ((unsigned char)c->input.data[--c->input.len] & 0xc0) == 0x80)
            ;
        if (c->input.data)
            c->input.data[c->input.len] = '\0';
    } else if (key >= ' ' && key < HG_PRESS_UP && c->input.len < INPUT_MAX) {
        hg_canvas_append((uint32_t)key, &c->input);
    }
    show_input(c);
}

static void move(size_t *at, size_t n, long by)
{
    long to = (long)*at + by;

    *at = to < 0 ? 0 : to >= (long)n ? n - 1 : (size_t)to;
}

/* False: it is not a key that moves. */
static bool move_key(struct hg_cockpit *c, int key)
{
    long page = 10, notch = 3,
         by = key == HG_PRESS_UP           ? -1
              : key == HG_PRESS_DOWN       ? 1
              : key == HG_PRESS_WHEEL_UP   ? -notch
              : key == HG_PRESS_WHEEL_DOWN ? notch
              : key == HG_PRESS_PAGE_UP    ? -page
              : key == HG_PRESS_PAGE_DOWN  ? page
                                           : 0;

    if (c->page == HG_SCENE_LOG && (key == HG_PRESS_HOME || key == HG_PRESS_END))
        by = key == HG_PRESS_HOME ? -LOG_MAX : LOG_MAX;
    if (by && c->page == HG_SCENE_LOG)
        move(&c->log_back, LOG_MAX, -by); /* drawing stops at its first line */
    else if (by)
        move(&c->row, c->board->n_rows, by);
    else if (key == HG_PRESS_LEFT || key == HG_PRESS_RIGHT)
        move(&c->column, c->board->n_columns, key == HG_PRESS_LEFT ? -1 : 1);
    else if (key == HG_PRESS_HOME)
        c->row = c->column = 0;
    else if (key == HG_PRESS_END)
        c->row = c->board->n_rows - 1;
    else
        return false;
    return true;
}

/* Arrange the board anew; the cursor stays on its cell. */
static void arrange(struct hg_cockpit *c, int key)
{
    size_t cell = hg_board_at(c->board, c->row, c->column);
    const char *name = key == 'x' ? hg_board_turn(c->board) : hg_board_sort(c->board, key == 'S');

    c->row = cell != HG_MAP_NONE ? c->board->cells[cell].row : 0;
    c->column = cell != HG_MAP_NONE ? c->board->cells[cell].column : 0;
    if (key == 'x')
        say(name ? "%s is a column now" : "rows and columns as in the report", name);
    else
        say(name ? "%s are sorted by %s" : "%s have one axis only", key == 'S' ? "columns" : "rows",
            name);
}

static void turn_page(struct hg_cockpit *c, enum hg_scene_page page)
{
    c->page = c->page == page ? HG_SCENE_MAP : page;
    c->log_back = 0;
    c->log_of = HG_MAP_NONE;
}

/* Move to the cell; at the second click show its log. */
static void click(struct hg_cockpit *c)
{
    struct hg_scene s = { .board = c->board, .page = c->page, .row = c->row, .column = c->column };
    double now_s = hg_clock_mono_s();
    bool twice = now_s - c->clicked_s < TWICE_S;
    struct hg_canvas canvas;
    int line, column;

    hg_terminal_pointer(&line, &column);
    hg_terminal_canvas(&canvas);
    if (hg_scene_find(&s, &canvas, line, column, &c->row, &c->column)) {
        c->clicked_s = now_s;
        if (twice && c->row == s.row && c->column == s.column)
            turn_page(c, HG_SCENE_LOG);
    }
    hg_canvas_done(&canvas);
}

static void command_key(struct hg_cockpit *c, int key)
{
    static const struct {
        char key;
        const char *word;
    } known[] = { { 'h', "hold" }, { 'r', "release" }, { 'c', "cancel" }, { 't', "retry" } };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (key == known[i].key || key == known[i].key - 32)
            ask_command(c, known[i].word, key < 'a');
}

static void press(struct hg_cockpit *c, int key)
{
    if (c->asking == ASK_FILTER) {
        type_filter(c, key);
        return;
    }
    if (c->asking == ASK_SURE) {
        stop_asking(c);
        if (key == 'y')
            command(c, c->sure_word, c->sure_all);
        return;
    }
    if (key == HG_PRESS_SIZE || move_key(c, key))
        return;
    hg_buf_clear(&message);
    if (key == HG_PRESS_CLICK)
        click(c);
    else if (key == 'q')
        hg_signals_stop = SIGINT;
    else if (key == '?')
        turn_page(c, HG_SCENE_HELP);
    else if (key == 'l' || key == HG_PRESS_ENTER)
        turn_page(c, HG_SCENE_LOG);
    else if (key == HG_PRESS_ESCAPE)
        turn_page(c, c->page);
    else if (key == 's' || key == 'S' || key == 'x')
        arrange(c, key);
    else if (key == 'm')
        c->hot = !c->hot;
    else if (key == '/' || key == 'f') {
        c->asking = ASK_FILTER;
        show_input(c);
    } else {
        command_key(c, key);
    }
}

/* ---- From outside ---- */

bool hg_cockpit_possible(void)
{
    return hg_cockpit_wanted && hg_terminal_is_there();
}

struct hg_cockpit *hg_cockpit_open(const struct hg_rundir *rd, const struct hg_run_state *state)
{
    struct hg_cockpit *c;
    struct hg_err err = HG_ERR_INIT;

    if (!hg_cockpit_wanted || !hg_terminal_open())
        return NULL;
    c = hg_alloc_zeroed(1, sizeof *c);
    c->rd = rd;
    c->state = state;
    c->picks.all = true;
    hg_log_divert(take_line);
    hg_signals_last = hg_terminal_abandon;
    c->eta = hg_eta_open(rd, NULL);
    if (load_board(c, &err) < 0) {
        hg_cockpit_close(c);
        hg_warn("no full screen: %s", err.text);
        return NULL;
    }
    return c;
}

void hg_cockpit_close(struct hg_cockpit *c)
{
    if (!c)
        return;
    hg_terminal_close();
    hg_signals_last = NULL;
    hg_log_divert(NULL);
    for (size_t i = 0; i < kept.n; i++)
        fprintf(stderr, "%s\n", kept.items[i]);
    hg_words_done(&kept);
    for (size_t b = 0; b < c->n_batches; b++)
        free(c->measured[b]);
    free(c->measured);
    free(c->n_measured);
    free(c->heat);
    hg_eta_free(c->eta);
    hg_buf_done(&c->left);
    hg_buf_done(&c->log);
    hg_buf_done(&c->prompt);
    hg_buf_done(&c->input);
    hg_board_free(c->board);
    hg_picks_done(&c->picks);
    free(c->filter);
    free(c->retry);
    free(c);
}

void hg_cockpit_show(struct hg_cockpit *c, const struct hg_cockpit_news *news)
{
    c->news = *news;
    c->state = news->state;
    if (count_shown(c->state) != c->shown_cells) /* cells were added or removed */
        set_filter(c, c->filter ? c->filter : "");
    c->shown_cells = count_shown(c->state);
    make_room(c);
    read_results(c);
    estimate(c);
}

void hg_cockpit_wait(struct hg_cockpit *c, double wait_s)
{
    double end = hg_clock_mono_s() + wait_s;

    do {
        double left = fmax(end - hg_clock_mono_s(), 0);
        int key;

        draw(c);
        key = hg_terminal_key(c->unread ? 0 : fmin(left, TICK_S), job.word ? job.proc.err : -1);
        while (key != HG_PRESS_NONE && !hg_signals_stop) { /* all that were typed, then draw once */
            press(c, key);
            key = hg_terminal_key(0, -1);
        }
        if (c->unread) {
            read_results(c);
            estimate(c);
        }
        if ((job.word && end_job()) || c->retry) {
            draw(c);
            return;
        }
    } while (!hg_signals_stop && hg_clock_mono_s() < end);
}

char *hg_cockpit_retry(struct hg_cockpit *c)
{
    char *retry = c->retry;

    c->retry = NULL;
    return retry;
}
