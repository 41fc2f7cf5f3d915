/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/terminal.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

static struct {
    SCREEN *screen; /* NULL: it is not open */
    bool colors, utf8;
    bool behind; /* it was in the background, and the screen is not what it was */
    struct termios before;
    struct sigaction stop_before; /* for SIGTSTP */
    char last_words[256];         /* what a terminal is sent before the process ends */
    MEVENT mouse;                 /* its last event */
} t;

/* How an ink looks; on terminals without colours, or with NO_COLOR, only the attribute. */
static const struct {
    short fg, bg;
    attr_t attr;
} looks[HG_INKS] = {
    [HG_INK_PLAIN] = { -1, -1, A_NORMAL },
    [HG_INK_FAINT] = { -1, -1, A_DIM },
    [HG_INK_STRONG] = { -1, -1, A_BOLD },
    [HG_INK_GOOD] = { COLOR_BLACK, COLOR_GREEN, A_NORMAL },
    [HG_INK_RUNNING] = { COLOR_BLACK, COLOR_CYAN, A_NORMAL },
    [HG_INK_QUEUED] = { COLOR_BLACK, COLOR_YELLOW, A_NORMAL },
    [HG_INK_HELD] = { COLOR_WHITE, COLOR_BLUE, A_NORMAL },
    [HG_INK_BAD] = { COLOR_WHITE, COLOR_RED, A_BOLD },
    [HG_INK_HEAT] = { COLOR_BLACK, COLOR_GREEN, A_NORMAL },
    [HG_INK_HEAT + 1] = { COLOR_BLACK, COLOR_CYAN, A_NORMAL },
    [HG_INK_HEAT + 2] = { COLOR_BLACK, COLOR_WHITE, A_NORMAL },
    [HG_INK_HEAT + 3] = { COLOR_BLACK, COLOR_YELLOW, A_NORMAL },
    [HG_INK_HEAT + 4] = { COLOR_WHITE, COLOR_RED, A_NORMAL },
};

static const char *capability(const char *name)
{
    const char *text = tigetstr(name);

    return text && text != (char *)-1 ? text : "";
}

static void add_words(const char *text)
{
    if (strlen(t.last_words) + strlen(text) < sizeof t.last_words)
        strcat(t.last_words, text);
}

/* Not from terminfo while a signal is handled: that may be in the middle of it. */
static void write_last_words(bool mouse)
{
    static const char *const names[] = { "sgr0", "cnorm", "rmkx", "rmcup" };

    t.last_words[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add_words(capability(names[i]));
    if (mouse)
        add_words(*capability("XM") ? tiparm(capability("XM"), 0) : "\033[?1000l");
}

/* Where the left button is pressed, not when it was released: over a slow line the two are far apart. */
static bool start_mouse(void)
{
    mouseinterval(0);
    return mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL) != 0;
}

static void start_colors(void)
{
    const char *no = getenv("NO_COLOR");

    t.colors = !(no && *no) && has_colors() && start_color() == OK && use_default_colors() == OK;
    for (short i = 0; t.colors && i < HG_INKS; i++)
        init_pair((short)(i + 1), looks[i].fg, looks[i].bg);
}

/* In the background a job must neither read nor write: it would be stopped. */
static bool is_in_front(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool hg_terminal_is_there(void)
{
    const char *term = getenv("TERM");

    return term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO) && is_in_front() &&
           tcgetattr(STDIN_FILENO, &t.before) == 0;
}

static void leave(void)
{
    if (is_in_front() && !isendwin())
        endwin();
}

static void catch_stop(void);

/* The handler of ncurses takes the terminal back when the process goes on, even if that is in the background. */
static void on_stop(int number)
{
    int error = errno;

    leave();
    t.behind = true;
    raise(number); /* here it stops: SA_RESETHAND */
    catch_stop();
    if (is_in_front())
        doupdate();
    errno = error;
}

static void catch_stop(void)
{
    struct sigaction action = { .sa_handler = on_stop,
                                .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART };

    sigaction(SIGTSTP, &action, NULL);
}

bool hg_terminal_open(void)
{
    if (!hg_terminal_is_there())
        return false;
    sigaction(SIGTSTP, NULL, &t.stop_before);
    setlocale(LC_CTYPE, "");
    t.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    t.screen = newterm(NULL, stderr, stdin);
    if (!t.screen) {
        setlocale(LC_CTYPE, "C");
        return false;
    }
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    start_colors();
    write_last_words(start_mouse());
    if (t.stop_before.sa_handler == SIG_DFL)
        catch_stop();
    return true;
}

void hg_terminal_close(void)
{
    if (!t.screen)
        return;
    leave();
    sigaction(SIGTSTP, &t.stop_before, NULL);
    delscreen(t.screen);
    t.screen = NULL;
    setlocale(LC_CTYPE, "C");
}

void hg_terminal_abandon(void)
{
    if (!t.screen || !is_in_front())
        return;
    (void)!write(STDERR_FILENO, t.last_words, strlen(t.last_words));
    tcsetattr(STDIN_FILENO, TCSANOW, &t.before);
}

void hg_terminal_canvas(struct hg_canvas *c)
{
    hg_canvas_init(c, COLS, LINES, t.utf8);
}

static void put_mark(int y, int x, const struct hg_mark *mark)
{
    attr_t attr = looks[mark->ink].attr | (mark->cursor ? A_REVERSE | A_BOLD : A_NORMAL);
    wchar_t text[2] = { (wchar_t)mark->cp, L'\0' };
    cchar_t cell;

    if (setcchar(&cell, text, attr, t.colors ? (short)(mark->ink + 1) : 0, NULL) == OK)
        mvadd_wch(y, x, &cell);
}

void hg_terminal_show(const struct hg_canvas *c)
{
    if (!is_in_front()) {
        t.behind = true;
        return;
    }
    if (t.behind) {
        reset_prog_mode();
        clearok(curscr, TRUE);
        t.behind = false;
    }
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++)
            if (c->marks[y * c->width + x].cp)
                put_mark(y, x, &c->marks[y * c->width + x]);
    refresh();
}

static int read_mouse(void)
{
    if (getmouse(&t.mouse) != OK)
        return HG_PRESS_NONE;
    return t.mouse.bstate & BUTTON4_PRESSED   ? HG_PRESS_WHEEL_UP
           : t.mouse.bstate & BUTTON5_PRESSED ? HG_PRESS_WHEEL_DOWN
           : t.mouse.bstate & BUTTON1_PRESSED ? HG_PRESS_CLICK
                                              : HG_PRESS_NONE;
}

void hg_terminal_pointer(int *line, int *column)
{
    *line = t.mouse.y;
    *column = t.mouse.x;
}

static int read_key(void)
{
    static const struct {
        int code, key;
    } known[] = {
        { KEY_UP, HG_PRESS_UP },         { KEY_DOWN, HG_PRESS_DOWN },
        { KEY_LEFT, HG_PRESS_LEFT },     { KEY_RIGHT, HG_PRESS_RIGHT },
        { KEY_PPAGE, HG_PRESS_PAGE_UP }, { KEY_NPAGE, HG_PRESS_PAGE_DOWN },
        { KEY_HOME, HG_PRESS_HOME },     { KEY_END, HG_PRESS_END },
        { KEY_ENTER, HG_PRESS_ENTER },   { KEY_BACKSPACE, HG_PRESS_ERASE },
        { KEY_RESIZE, HG_PRESS_SIZE },
    };
    wint_t code;
    int rc = is_in_front() ? get_wch(&code) : ERR;

    if (rc == ERR)
        return HG_PRESS_NONE;
    if (rc != KEY_CODE_YES)
        return code == '\n' || code == '\r' ? HG_PRESS_ENTER
               : code == 27                 ? HG_PRESS_ESCAPE
               : code == 8 || code == 127   ? HG_PRESS_ERASE
                                            : (int)code;
    if (code == KEY_MOUSE)
        return read_mouse();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((int)code == known[i].code)
            return known[i].key;
    return HG_PRESS_NONE;
}

int hg_terminal_key(double wait_s, int fd)
{
    struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
                            { .fd = STDIN_FILENO, .events = POLLIN } };
    int limit_ms = wait_s > 0 ? (int)(wait_s * 1000) + 1 : 0;
    int key = read_key();

    if (key != HG_PRESS_NONE)
        return key;
    if (poll(fds, is_in_front() ? 2 : 1, limit_ms) > 0 && fds[1].revents & ~POLLIN)
        poll(fds, 1, limit_ms); /* the terminal is gone */
    return read_key();
}
