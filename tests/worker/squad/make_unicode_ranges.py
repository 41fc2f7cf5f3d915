#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write worker/data/unicode_ranges.def: which code points the uncased BERT tokenizer of Hugging Face's `tokenizers` drops,
takes for white space, for a mark or for punctuation. Found by asking it about every code point.

    python3 -m venv v && v/bin/pip install tokenizers
    v/bin/python tests/worker/squad/make_unicode_ranges.py > worker/data/unicode_ranges.def
"""
import unicodedata

import tokenizers
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

clean = BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
strip = BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
cjk = BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
split = BertPreTokenizer()


def kind(code):
    c = chr(code)
    cleaned = clean.normalize_str("a" + c + "b")
    if cleaned == "ab":
        return "PRIVATE" if unicodedata.category(c) == "Co" else "DROP"
    if cleaned == "a b":
        return "SPACE"
    if len(split.pre_tokenize_str("a" + c + "b")) == 3:
        return "PUNCT"
    if strip.normalize_str("a" + c + "b") == "ab":
        return "MARK"
    if cjk.normalize_str(c) != c:
        return "CJK"
    return None


def main():
    ranges = []
    for code in range(0x110000):
        if 0xD800 <= code <= 0xDFFF:
            continue
        k = kind(code)
        if k and ranges and ranges[-1][0] == k and ranges[-1][2] == code - 1:
            ranges[-1][2] = code
        elif k:
            ranges.append([k, code, code])
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Classes of code points for the uncased BERT tokenizer: WK_RANGE(class, first, last), ascending. They are what Hugging")
    print(f" * Face's tokenizers {tokenizers.__version__} does, which knows the categories of Unicode 8; a table of our own gives the same ids with every")
    print(" * version of utf8proc. Made by tests/worker/squad/make_unicode_ranges.py; do not edit. */")
    print("/* clang-format off */")
    for i in range(0, len(ranges), 4):
        print(" ".join("WK_RANGE(%s, 0x%x, 0x%x)" % tuple(r) for r in ranges[i:i + 4]))


main()
