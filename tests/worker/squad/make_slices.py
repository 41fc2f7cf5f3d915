#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cut the small files of worker/samples/squad out of the complete ones.

    tests/worker/squad/make_slices.py FOLDER_WITH_SQUAD worker/samples/squad
"""
import json
import sys

from reference import load_json


def size(paragraph):
    return len(paragraph["context"])


def wide(paragraph):
    return sum(ord(c) > 127 for c in paragraph["context"])


def cut(squad, wanted):
    """The paragraphs that wanted(article number, paragraph number, paragraph) takes; articles without any go."""
    articles = []
    for a, article in enumerate(squad["data"]):
        kept = [p for i, p in enumerate(article["paragraphs"]) if wanted(a, i, p)]
        if kept:
            articles.append({"title": article["title"], "paragraphs": kept})
    return {"data": articles, "version": squad["version"]}


def first_questions(squad, n):
    left = [n]

    def wanted(a, i, p):
        left[0] -= len(p["qas"])
        return left[0] + len(p["qas"]) > 0
    return cut(squad, wanted)


def odd_ones(squad, first, extremes):
    paragraphs = [p for article in squad["data"] for p in article["paragraphs"]]
    chosen = sorted(paragraphs, key=size)[-extremes:] + sorted(paragraphs, key=wide)[-extremes:]
    ids = {p["qas"][0]["id"] for p in chosen if p["qas"]}
    return cut(squad, lambda a, i, p: (a < first and i == 0) or (p["qas"] and p["qas"][0]["id"] in ids))


def save(path, squad):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(squad, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def main():
    source, target = sys.argv[1:]
    save(target + "/dev-v1.1-slice.json", odd_ones(load_json(source + "/dev-v1.1.json.gz"), 4, 3))
    save(target + "/dev-v2.0-slice.json", odd_ones(load_json(source + "/dev-v2.0-without-plausible.json.gz"), 4, 1))
    save(target + "/train-v1.1-slice.json", first_questions(load_json(source + "/train-v1.1-first44articles.json.gz"), 128))


main()
