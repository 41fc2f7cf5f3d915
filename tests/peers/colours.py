#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Colours of series, those of the page (light, dark) and of files: how far apart are any two of them for people who see
all colours, and for those who lack one kind of cone (matrices of Machado, Oliveira and Fernandes 2009, severity 1)? Distance is
that of CIE 1976 L*a*b*; contrast with the background that of WCAG 2."""
import itertools
import re
import sys

SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))


def times(matrix, v):
    return [sum(a * b for a, b in zip(row, v)) for row in matrix]


def linear(text):
    parts = [int(text[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def lab(rgb):
    x, y, z = (max(c, 0) / white for c, white in zip(times(XYZ, rgb), (0.9505, 1.0, 1.089)))
    fx, fy, fz = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def contrast(a, b):
    x, y = (times(XYZ, linear(c))[1] for c in (a, b))
    return (max(x, y) + 0.05) / (min(x, y) + 0.05)


def check(name, colours, background):
    least = min((sum((a - b) ** 2 for a, b in zip(*pair)) ** 0.5, eye)
                for eye, matrix in SEEN.items()
                for pair in itertools.combinations([lab([min(max(c, 0), 1) for c in times(matrix, linear(h))])
                                                    for h in colours], 2))
    faintest = min(contrast(c, background) for c in colours)
    print(f"{name}: {least[0]:.0f} apart ({least[1]}), contrast {faintest:.1f}")
    return least[0] >= 24 and faintest >= 3 and len(colours) == 8


source = sys.argv[1]
style = open(f"{source}/orchestrator/render/html_style.c", encoding="utf-8").read().replace('"\n    "', "")
script = open(f"{source}/orchestrator/plot/gnuplot.c", encoding="utf-8").read()
palettes = re.findall(r"--back:(#\w+);.*?--c0:(#\w+);--c1:(#\w+);--c2:(#\w+);--c3:(#\w+);--c4:(#\w+);--c5:(#\w+);--c6:(#\w+);--c7:(#\w+)", style)
assert len(palettes) == 3, palettes
full = lambda c: c if len(c) == 7 else "#" + "".join(2 * x for x in c[1:])
ok = [check(name, p[1:], full(p[0])) for name, p in zip(("page, light", "page, dark", "page, print"), palettes)]
ok.append(check("files", re.search(r"colours\[HG_PLOT_COLOURS\] = \{(.*?)\}", script, re.S).group(1).replace('"', "").replace(" ", "").replace("\n", "").rstrip(",").split(","), "#ffffff"))
sys.exit(not all(ok))
