/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SCREEN_SCENE_H
#define HG_SCREEN_SCENE_H

#include "rundir/runstate.h"
#include "screen/board.h"
#include "screen/canvas.h"

/* What `watch` shows, as data; where each thing stands follows from it and the size alone. */

enum hg_scene_page { HG_SCENE_MAP, HG_SCENE_LOG, HG_SCENE_HELP };

/* All members are lent; texts that are NULL are left out. */
struct hg_scene {
    const char *title;
    const char *elapsed;
    const struct hg_board *board;
    const struct hg_run_state *state;
    const struct hg_run_why *whys;
    size_t n_whys;
    const char *eta;
    const char *filter;  /* the selector that the board was loaded with */
    const char *message; /* shown instead of the reasons */
    const char *prompt;  /* shown instead of the keys */
    const char *log;     /* lines, the newest last */
    size_t log_back;     /* lines scrolled back */
    const double *heat; /* by cell of the board, NaN: no value; NULL: cells are coloured by state */
    const char *metric; /* what heat has */
    enum hg_scene_page page;
    size_t row, column; /* of the cursor */
};

#define HG_SCENE_WIDTH_MIN 40
#define HG_SCENE_HEIGHT_MIN 10

/* Draw it on an empty canvas. Returns how far the log is scrolled back: log_back, or less where it begins. */
size_t hg_scene_draw(const struct hg_scene *s, struct hg_canvas *c);

/* Which place of the matrix is drawn at a line and column of such a canvas. False: none. */
bool hg_scene_find(const struct hg_scene *s, const struct hg_canvas *c, int line, int column,
                   size_t *board_row, size_t *board_column);

/* The cell that stands for those of a place: the one that needs a person most. HG_MAP_NONE: there is none. */
size_t hg_scene_cell(const struct hg_scene *s, size_t row, size_t column);

#endif
