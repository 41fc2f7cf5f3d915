#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the golden files that the tests of worker/data are held against: what Hugging Face's tokenizer, run_qa's windows and
post-processing, Google's windows, and the official evaluation scripts make of the small parts of SQuAD.

    python3 -m venv v && v/bin/pip install tokenizers transformers
    v/bin/python tests/worker/squad/make_goldens.py VOCAB worker/samples/squad tests/worker/squad
"""
import json
import random
import re
import string
import struct
import sys
import unicodedata
import zlib

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from compare import BLOCKS, PIECES, is_reordered
from reference import (GoogleTokenizer, advance_features, fast_tokenizer, load_json, overlap_answers, overlap_features,
                       questions)

# ---- Tokens ----

CLEAN = BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
STRIP = BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)

LONG = [("x", 65536), ("é", 65536), ("\u0301", 65536), ("中", 1000), (".", 1000), ("\x00", 65536), ("\U0001f600", 65536)]


def texts(squad):
    rng = random.Random(7)
    yield from PIECES
    for _, question, _, _ in questions(squad):
        yield question
    for p in squad["data"][-1]["paragraphs"]:
        yield p["context"]
    for _ in range(200):
        out = ""
        for _ in range(rng.randrange(1, 12)):
            a, b = rng.choice(BLOCKS)
            out += rng.choice(PIECES[:26]) if rng.random() < 0.3 else "".join(chr(rng.randint(a, b)) for _ in range(rng.randrange(1, 5)))
        if not is_reordered(out):
            yield out


def is_newer(c):
    """A character whose category came after Unicode 8: the original follows the Python it runs on, the worker its own table."""
    return (len(BertPreTokenizer().pre_tokenize_str("a" + c + "b")) == 3) != GoogleTokenizer.is_punct(c) or \
        (STRIP.normalize_str("a" + c + "b") == "ab") != (unicodedata.category(c) == "Mn") or \
        (unicodedata.category(c) == "Cf") != (CLEAN.normalize_str(c) == "" and unicodedata.category(c) not in ("Cc", "Co"))


def token_goldens(tokenizer, google, squad):
    for text in texts(squad):
        out = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        entry = {"text": text, "ids": out["input_ids"], "offsets": [n for o in out["offset_mapping"] for n in o]}
        other = google.encode(google.tokenize(text))
        if any(map(is_newer, text)):
            entry["google"] = None
        elif other != entry["ids"]:
            entry["google"] = other
        yield entry
    for unit, n in LONG:
        ids = tokenizer(unit * n + "a b", add_special_tokens=False)["input_ids"]
        yield {"unit": unit, "times": n, "n": len(ids), "crc": crc(ids)}


# ---- Features ----

def crc(numbers):
    return zlib.crc32(struct.pack("<%dI" % len(numbers), *numbers))


def feature_goldens(tokenizer, google, folder):
    for name in ("dev-v1.1-slice", "dev-v2.0-slice", "train-v1.1-slice"):
        squad = load_json(f"{folder}/{name}.json")
        for windows in ("overlap", "advance"):
            for max_length, stride in ((384, 128), (96, 40)):
                made = (overlap_features(tokenizer, squad, max_length, stride, True) if windows == "overlap"
                        else advance_features(google, squad, max_length, stride))
                yield {"file": name, "windows": windows, "max_length": max_length, "stride": stride,
                       "features": [[f["question"], len(f["ids"]), f["start"], f["end"], crc(f["ids"])] for f in made]}


# ---- Scores, as the official scripts ----

def normalize(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(prediction, truth, v2):
    a, b = normalize(prediction).split(), normalize(truth).split()
    if v2 and (not a or not b):
        return float(a == b)
    same = sum(min(a.count(w), b.count(w)) for w in set(a))
    if same == 0:
        return 0.0
    precision, recall = same / len(a), same / len(b)
    return 2 * precision * recall / (precision + recall)


def rows_of(squad, predictions, v2):
    """(id, has an answer, EM, F1) of what counts."""
    for id_, _, _, answers in questions(squad):
        truths = [a["text"] for a in answers]
        if v2:
            truths = [t for t in truths if normalize(t)] or [""]
        if id_ in predictions:
            p = predictions[id_]
            yield id_, bool(answers), float(max(normalize(p) == normalize(t) for t in truths)), max(f1(p, t, v2) for t in truths)
        elif not v2:
            yield id_, True, 0.0, 0.0


def figures(rows):
    return {"n": len(rows), "em": 100 * sum(r[2] for r in rows) / len(rows), "f1": 100 * sum(r[3] for r in rows) / len(rows)}


def score(squad, predictions, v2):
    return figures(list(rows_of(squad, predictions, v2)))


def best_threshold(rows, column, predictions, na, unanswerable):
    """Predictions are let in one by one, the surest first, equal ones in the order of the file; the first best sum stays."""
    by_id = {r[0]: r for r in rows}
    total = most = unanswerable
    threshold = 0.0
    for id_ in sorted(na, key=na.get):
        if id_ in by_id:
            total += by_id[id_][column] if by_id[id_][1] else -1 if predictions[id_] else 0
            if total > most:
                most, threshold = total, na[id_]
    return 100 * most / len(rows), threshold


def na_golden(squad, predictions, threshold):
    """Numbers of eighths, so that equal ones occur; in another order than the questions."""
    ids = sorted([q[0] for q in questions(squad)] + ["foreign"], key=lambda i: zlib.crc32(i.encode()))
    answered = {q[0] for q in questions(squad) if q[3]}
    na = {i: (zlib.crc32(i.encode() + b"na") % (6 if i in answered else 9)) / 8 for i in ids}
    rows = list(rows_of(squad, predictions, True))
    unanswerable = sum(q[0] not in answered for q in questions(squad))
    (em, em_at), (f, f_at) = (best_threshold(rows, column, predictions, na, unanswerable) for column in (2, 3))
    cut = [r if na[r[0]] <= threshold else (r[0], r[1], float(not r[1]), float(not r[1])) for r in rows]
    return {"numbers": na, "threshold": threshold, **figures(cut), "best_em": em, "best_em_threshold": em_at, "best_f1": f, "best_f1_threshold": f_at}


NORMAL = ["The  Cat's\tmat", "a", "an the a", "THE end-of the", "thé the\u0301", "Σίσυφος ΣΑΣ Σ", "\u0130stanbul", "x_a_the", "٣ a٣ the²", "«a» (the)",
          "the\u00a0a\u3000an b", "\u2028the\u2029", "a\u200bthe", "\U0001f600 the\U0001f600a", "", " \n ", "...", "an-the", "Ⅷ the Ⅷa", "ªa ºthe",
          "ΑΣ. ΑΣ'Α ΑΣ\u0301", "5 7", "A B 5 C"]


def score_goldens(folder):
    rng = random.Random(3)
    yield {"normalized": [[t, normalize(t)] for t in NORMAL]}
    for name, v2 in (("dev-v1.1-slice", False), ("dev-v2.0-slice", True)):
        squad = load_json(f"{folder}/{name}.json")
        predictions = {}
        for id_, question, context, answers in questions(squad):
            words = context.split()
            at = rng.randrange(len(words))
            choices = [" ".join(words[at:at + rng.randrange(1, 8)]), ""]
            if answers:
                choices += [answers[-1]["text"], "The " + answers[0]["text"].upper() + "!", answers[0]["text"] + " " + words[at]] * 2
            if rng.random() < 0.95:
                predictions[id_] = rng.choice(choices)
        predictions["foreign"] = "x"
        yield {"file": name, "predictions": predictions, **score(squad, predictions, v2), **({"na": na_golden(squad, predictions, 0.5)} if v2 else {})}


# ---- Answers from logits ----

def logit(feature, position, which):
    """A number both sides can make: multiples of 1/16, so that equal scores occur."""
    x = (feature * 2654435761 + position * 40503 + which * 974711 + 12345) & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 2246822519 & 0xFFFFFFFF
    x ^= x >> 13
    return (x >> 8) % 512 / 16 - 16


def answer_goldens(tokenizer, folder):
    for name, v2, padded, shift in (("dev-v1.1-slice", False, False, 0), ("dev-v1.1-slice", False, True, 0), ("dev-v2.0-slice", True, False, 8)):
        squad = load_json(f"{folder}/{name}.json")

        def logits(i, f):
            return [[logit(i, k, which) + (shift if k == 0 else 0) for k in range(128 if padded else len(f["ids"]))] for which in (1, 2)]

        windows = enumerate(overlap_features(tokenizer, squad, 128, 32, True))
        answers = overlap_answers(squad, ((f, *logits(i, f)) for i, f in windows), v2, 0)
        yield {"file": name, "padded": padded, "shift": shift, "answers": answers}


def save(path, entries):
    with open(path, "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(e, separators=(",", ":")) for e in entries) + "\n]\n")


def main():
    vocab, folder, target = sys.argv[1:]
    tokenizer, google = fast_tokenizer(vocab), GoogleTokenizer(vocab)
    save(target + "/golden_tokens.json", token_goldens(tokenizer, google, load_json(folder + "/dev-v1.1-slice.json")))
    save(target + "/golden_features.json", feature_goldens(tokenizer, google, folder))
    save(target + "/golden_scores.json", score_goldens(folder))
    save(target + "/golden_answers.json", answer_goldens(tokenizer, folder))


main()
