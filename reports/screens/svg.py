#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A terminal's cells, as `tmux capture-pane -e -p` writes them on stdin, as a picture on stdout: svg.py COLUMNS ROWS"""
import re
import sys
from html import escape

WIDTH, HEIGHT = 8, 17  # of a cell
COLOURS = ["#1c1c1c", "#e06c60", "#87b36b", "#d9a441", "#6a9fd4", "#b48ead", "#5fb3b3", "#d8d8d8"]
NBSP = "\u00a0"  # a blank that is not taken together with its neighbours
BRIGHT = ["#6c6c6c", "#ff8a7e", "#a5d18a", "#f2c063", "#8ebcf0", "#d0a9c9", "#82d2d2", "#ffffff"]


def colour(state, key, default):
    value = state.get(key)
    return default if value is None else (COLOURS + BRIGHT)[value]


def set_style(state, codes):
    for code in map(int, codes.split(";") if codes else ["0"]):
        if code == 0:
            state.clear()
        elif code in (1, 2, 7):
            state[code] = True
        elif code in (22, 27):
            for key in (1, 2) if code == 22 else (7,):
                state.pop(key, None)
        elif code in (39, 49):
            state.pop("fg" if code == 39 else "bg", None)
        elif 30 <= code % 60 <= 47 and code % 10 < 8 and code < 108:
            state["fg" if code % 60 < 40 else "bg"] = code % 10 + (8 if code >= 90 else 0)
        else:
            sys.exit(f"svg.py: unknown style {code}")


def run(text, column, row, state):
    ink, paper = colour(state, "fg", COLOURS[7]), colour(state, "bg", None)
    if 7 in state:
        ink, paper = paper or COLOURS[0], ink
    x, y, width = column * WIDTH, row * HEIGHT, len(text) * WIDTH
    if paper:
        yield f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" fill="{paper}"/>'
    if text.strip():
        weight = ' font-weight="bold"' if 1 in state else ""
        faint = ' opacity="0.6"' if 2 in state else ""
        yield f'<text x="{x}" y="{y + 13}" textLength="{width}" fill="{ink}"{weight}{faint}>{escape(text).replace(" ", NBSP)}</text>'


columns, rows = int(sys.argv[1]), int(sys.argv[2])
lines = sys.stdin.read().split("\n")[:rows]
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {columns * WIDTH + 16} {rows * HEIGHT + 16}" '
      'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">')
print(f'<rect x="-8" y="-8" width="{columns * WIDTH + 16}" height="{rows * HEIGHT + 16}" rx="6" fill="{COLOURS[0]}"/>')
style = {}
for row, line in enumerate(lines):
    column = 0
    for codes, text in re.findall(r"\x1b\[([0-9;]*)m|([^\x1b]+)", line):
        if not text:
            set_style(style, codes)
            continue
        print("\n".join(run(text, column, row, style)))
        column += len(text)
print("</svg>")
