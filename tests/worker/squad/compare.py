#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold hpcgrid-worker's tokenizer, windows and labels against Hugging Face's and Google's, token by token.

    python3 -m venv v && v/bin/pip install tokenizers transformers
    v/bin/python tests/worker/squad/compare.py WORKER VOCAB SQUAD.json[.gz]...
"""
import json
import random
import subprocess
import sys
import unicodedata

from reference import GoogleTokenizer, advance_features, fast_tokenizer, load_json, overlap_features, questions

BLOCKS = [(0x20, 0x7E), (0x00, 0x1F), (0x7F, 0x24F), (0x250, 0x36F), (0x370, 0x52F), (0x591, 0x6FF), (0x900, 0xDFF), (0xE00, 0xFFF),
          (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x2BFF), (0x2E00, 0x2E7F), (0x3000, 0x30FF),
          (0x3400, 0x3500), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xE000, 0xE0FF), (0xF900, 0xFAFF), (0xFB00, 0xFEFF),
          (0xFFF0, 0xFFFD), (0x1D100, 0x1D1FF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x2B800, 0x2B930), (0xE0000, 0xE01FF),
          (0x10FF00, 0x10FFFF)]
PIECES = ["[SEP]", "[CLS]", "[MASK]", "[PAD]", "[UNK]", "[sep]", "[[SEP]]", "e\u0301", "\u0130", "\u03a3", "\u00df", "don't", "U.S.",
          "\u1e9b\u0323", "\ud55c\uad6d\uc5b4", "\u65e5\u672c\u8a9e", "\U0001f468\u200d\U0001f469", "naïve", "##ing", " ", "  ",
          "\u302e\u0315", "\U0001d165\U0001d16d", "x" * 99, "x" * 100, "x" * 101, "\u0344", "\u212b", "\ufb01", "≠", "\u037e"]


def hostile(n, seed=1):
    rng = random.Random(seed)
    for code in range(0x110000):
        if not 0xD800 <= code <= 0xDFFF:
            yield "a" + chr(code) + "b " + chr(code)
    for _ in range(n):
        out = []
        for _ in range(rng.randrange(1, 24)):
            if rng.random() < 0.3:
                out.append(rng.choice(PIECES))
            else:
                a, b = rng.choice(BLOCKS)
                out.append("".join(chr(rng.randint(a, b)) for _ in range(rng.randrange(1, 6))))
        yield "".join(out)
    yield "x" * 65536
    yield "é" * 65536
    yield "\u0301" * 65536 + "a"
    yield "\u302e\U0001d165" * 16384 + "a"
    yield "中" * 65536
    yield "." * 65536
    yield "\x00" * 65536 + "ab"
    yield "\U0001f600" * 65536
    yield ""


def tokenize(worker, vocab, texts, *options):
    lines = "".join(json.dumps(t) + "\n" for t in texts)
    out = subprocess.run([worker, "tokenize", "--vocab", vocab, *options], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def is_reordered(text):
    """Does NFD change the order of combining characters? Then the reference's offsets follow the place, ours the character."""
    kept = [c for c in text if unicodedata.category(c)[0] != "C"]
    return "".join(unicodedata.normalize("NFD", c) for c in kept) != unicodedata.normalize("NFD", "".join(kept))


def compare_tokens(worker, vocab, tokenizer, texts, name):
    ours = tokenize(worker, vocab, texts, "--offsets")
    theirs = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)
    ids = offsets = reordered = 0
    for i, text in enumerate(texts):
        if ours[i]["ids"] != theirs["input_ids"][i]:
            ids += 1
            if ids <= 5:
                print("  ids differ:", ascii(text)[:200], ours[i]["ids"][:20], theirs["input_ids"][i][:20])
        elif [tuple(o) for o in ours[i]["offsets"]] != theirs["offset_mapping"][i]:
            if is_reordered(text):
                reordered += 1
                continue
            offsets += 1
            if offsets <= 5:
                print("  offsets differ:", ascii(text)[:200], ours[i]["offsets"][:12], theirs["offset_mapping"][i][:12])
    tokens = sum(len(t) for t in theirs["input_ids"])
    print(f"{name}: {len(texts)} texts, {tokens} tokens: {ids} differ in ids, {offsets} in offsets, "
          f"{reordered} in offsets of reordered marks (as wanted)")
    return ids + offsets


def compare_features(ours, theirs, name, keys):
    ours, theirs = list(ours), list(theirs)
    bad = {k: sum(a[k] != b[k] for a, b in zip(ours, theirs)) for k in keys}
    for k in keys:
        shown = [(i, a[k], b[k]) for i, (a, b) in enumerate(zip(ours, theirs)) if a[k] != b[k]][:3]
        if shown:
            print("  ", k, [str(s)[:200] for s in shown])
    print(f"{name}: {len(ours)} features, reference {len(theirs)}; differences {bad}")
    return abs(len(ours) - len(theirs)) + sum(bad.values())


def dump(worker, vocab, path, *options):
    out = subprocess.run([worker, "features", "--vocab", vocab, "--data", path, "--dump", *options], stdout=subprocess.PIPE, check=True)
    return (json.loads(line) for line in out.stdout.splitlines())


def main():
    worker, vocab, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    tokenizer = fast_tokenizer(vocab)
    google = GoogleTokenizer(vocab)
    wrong = compare_tokens(worker, vocab, tokenizer, list(hostile(20000)), "hostile")
    for path in paths:
        squad = load_json(path)
        texts = list(dict.fromkeys(t for _, q, c, _ in questions(squad) for t in (q, c)))
        wrong += compare_tokens(worker, vocab, tokenizer, texts, path)
        ours = tokenize(worker, vocab, texts, "--rules", "google")
        differ = sum(o != google.encode(google.tokenize(t)) for o, t in zip(ours, texts))
        print(f"{path}: {differ} texts differ under Google's rules")
        wrong += differ
        for max_length, stride in ((384, 128), (96, 40), (512, 0)):
            options = ("--max-length", str(max_length), "--stride", str(stride or 1))
            keys = ("question", "context", "ids", "offsets", "start", "end")
            name = f"{path} {max_length}/{stride or 1}"
            theirs = list(overlap_features(tokenizer, squad, max_length, stride or 1, True))
            wrong += compare_features(dump(worker, vocab, path, *options), theirs, name + " overlap", keys)
            literal = overlap_features(tokenizer, squad, max_length, stride or 1, False)
            n = sum(a != b for a, b in zip(theirs, literal))
            print(f"{name} overlap: run_qa itself labels {n} features past their last token")
            wrong += compare_features(dump(worker, vocab, path, "--windows", "advance", *options),
                                      advance_features(google, squad, max_length, stride or 1), name + " advance",
                                      ("question", "context", "ids", "start", "end"))
    print("no difference" if not wrong else f"{wrong} differences")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
