# SPDX-License-Identifier: Apache-2.0
"""What other programs make of SQuAD, restated: windows, labels and answers as Hugging Face's run_qa (on its own fast tokenizer),
windows and labels as Google's run_squad. The yardstick for `hpcgrid-worker features`; needs `transformers` and `tokenizers`."""
import gzip
import json
import unicodedata


def load_json(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def questions(squad):
    """(id, question, context, answers) in the order of the file."""
    for article in squad["data"]:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                yield qa["id"], qa["question"], paragraph["context"], qa["answers"]


def fast_tokenizer(vocab_path):
    from transformers import BertTokenizerFast

    words = open(vocab_path, encoding="utf-8").read().split("\n")
    words = words[:-1] if words[-1] == "" else words
    return BertTokenizerFast(vocab={w: i for i, w in enumerate(words)}, do_lower_case=True)


# ---- Windows that overlap ----

def overlap_features(tokenizer, squad, max_length, stride, clamp):
    """One dict a window. clamp: stop the search for an answer's first token at the window's last one. run_qa does not: where
    the answer begins with that very token, it walks on over [SEP] and padding and labels the last position."""
    for number, (_, question, context, answers) in enumerate(questions(squad)):
        out = tokenizer(question.lstrip(), context, truncation="only_second", max_length=max_length, stride=stride,
                        return_overflowing_tokens=True, return_offsets_mapping=True, padding="max_length")
        for i, ids in enumerate(out["input_ids"]):
            offsets, kinds = out["offset_mapping"][i], out.sequence_ids(i)
            length = sum(out["attention_mask"][i])
            first = kinds.index(1) if 1 in kinds else length - 1
            last = length - 2
            start = end = 0
            if answers and first <= last:
                a = answers[0]["answer_start"]
                b = a + len(answers[0]["text"])
                if offsets[first][0] <= a and offsets[last][1] >= b:
                    s, e = first, last
                    while s < (last + 1 if clamp else len(offsets)) and offsets[s][0] <= a:
                        s += 1
                    while offsets[e][1] >= b:
                        e -= 1
                    start, end = s - 1, e + 1
            yield {"question": number, "context": first, "start": start, "end": end, "ids": ids[:length],
                   "offsets": [list(o) for o in offsets[first:last + 1]]}


def best(values, n):
    return sorted(range(len(values)), key=lambda i: (-values[i], -i))[:n]


def overlap_answers(squad, windows, v2, null_threshold):
    """The answer to every question, as run_qa finds them, from (window, logits of starts, logits of ends) in any order."""
    rows = list(questions(squad))
    found = [{"spans": [], "null": None} for _ in rows]
    for f, starts, ends in windows:
        q = found[f["question"]]
        null = starts[0] + ends[0]
        q["null"] = null if q["null"] is None else min(q["null"], null)
        for s in best(starts, 20):
            for e in best(ends, 20):
                a, b = s - f["context"], e - f["context"]
                if 0 <= a <= b < len(f["offsets"]) and b - a < 30:
                    q["spans"].append((starts[s] + ends[e], starts[s], ends[e], f["offsets"][a][0], f["offsets"][b][1]))
    answers = []
    for (_, _, context, _), q in zip(rows, found):
        spans = sorted(q["spans"], key=lambda s: -s[0])
        top = spans[0] if spans else (0.0, 0.0, 0.0, None, None)
        text = context[top[3]:top[4]] if spans else "empty"
        answers.append("" if v2 and q["null"] - top[1] - top[2] > null_threshold else text)
    return answers


# ---- Windows that advance ----

class GoogleTokenizer:
    def __init__(self, vocab_path):
        self.ids = {w.strip(): i for i, w in enumerate(open(vocab_path, encoding="utf-8"))}

    @staticmethod
    def is_single(c):
        o = ord(c)
        ranges = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
                  (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
        return any(a <= o <= b for a, b in ranges)

    @staticmethod
    def is_punct(c):
        o = ord(c)
        return 33 <= o <= 47 or 58 <= o <= 64 or 91 <= o <= 96 or 123 <= o <= 126 or unicodedata.category(c)[0] == "P"

    def words(self, text):
        cleaned = []
        for c in text:
            if c in "\t\n\r" or unicodedata.category(c) == "Zs":
                cleaned.append(" ")
            elif ord(c) not in (0, 0xFFFD) and unicodedata.category(c) not in ("Cc", "Cf"):
                cleaned.append(" " + c + " " if self.is_single(c) else c)
        for token in "".join(cleaned).split():
            token = "".join(c for c in unicodedata.normalize("NFD", token.lower()) if unicodedata.category(c) != "Mn")
            word = ""
            for c in token:
                if self.is_punct(c):
                    if word:
                        yield word
                    yield c
                    word = ""
                else:
                    word += c
            if word:
                yield word

    def pieces(self, word):
        if len(word) > 200:
            return ["[UNK]"]
        out, at = [], 0
        while at < len(word):
            for end in range(len(word), at, -1):
                piece = ("##" if at else "") + word[at:end]
                if piece in self.ids:
                    break
            else:
                return ["[UNK]"]
            out.append(piece)
            at = end
        return out

    def tokenize(self, text):
        return [p for w in self.words(text) for p in self.pieces(w)]

    def encode(self, tokens):
        return [self.ids[t] for t in tokens]


def advance_features(tokenizer, squad, max_length, stride, question_max=64):
    cache = {}
    for number, (_, question, context, answers) in enumerate(questions(squad)):
        if context not in cache:
            words, word_of = [], []
            blank = True
            for c in context:
                is_blank = c in " \t\r\n" or ord(c) == 0x202F
                if not is_blank and blank:
                    words.append("")
                if not is_blank:
                    words[-1] += c
                blank = is_blank
                word_of.append(len(words) - 1)
            first_token, tokens = [], []
            for w in words:
                first_token.append(len(tokens))
                tokens.extend(tokenizer.tokenize(w))
            cache = {context: (words, word_of, first_token, tokens)}
        words, word_of, first_token, tokens = cache[context]
        query = tokenizer.tokenize(question)[:question_max]
        answer = None
        if answers:
            begin = answers[0]["answer_start"]
            first_word, last_word = word_of[begin], word_of[begin + len(answers[0]["text"]) - 1]
            s = first_token[first_word]
            e = (first_token[last_word + 1] if last_word + 1 < len(words) else len(tokens)) - 1
            wanted = tokenizer.tokenize(answers[0]["text"])
            answer = next(((a, b) for a in range(s, e + 1) for b in range(e, a - 1, -1) if tokens[a:b + 1] == wanted), (s, e))
        room, at = max_length - len(query) - 3, 0
        while at < len(tokens):
            n = min(room, len(tokens) - at)
            start = end = 0
            if answer and at <= answer[0] and answer[1] < at + n:
                start, end = answer[0] - at + len(query) + 2, answer[1] - at + len(query) + 2
            yield {"question": number, "context": len(query) + 2, "start": start, "end": end,
                   "ids": tokenizer.encode(["[CLS]"] + query + ["[SEP]"] + tokens[at:at + n] + ["[SEP]"])}
            if at + n == len(tokens):
                break
            at += min(n, stride)
