# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's fast tokenizer on the same data: its call alone (median of three), and with run_qa's labels. Without the time Python
takes to start, import, read JSON and build the tokenizer."""
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../worker/squad"))
from reference import fast_tokenizer, load_json, questions  # noqa: E402

tokenizer = fast_tokenizer(sys.argv[1])
rows = list(questions(load_json(sys.argv[2])))


def call():
    return tokenizer([q.lstrip() for _, q, _, _ in rows], [c for _, _, c, _ in rows], truncation="only_second", max_length=384, stride=128,
                     return_overflowing_tokens=True, return_offsets_mapping=True)


def label(out):
    spans = []
    for i, sample in enumerate(out["overflow_to_sample_mapping"]):
        offsets, kinds, answers = out["offset_mapping"][i], out.sequence_ids(i), rows[sample][3]
        a, b = answers[0]["answer_start"], answers[0]["answer_start"] + len(answers[0]["text"])
        first, last = kinds.index(1), len(kinds) - 2
        if offsets[first][0] > a or offsets[last][1] < b:
            spans.append((0, 0))
            continue
        while first <= last and offsets[first][0] <= a:
            first += 1
        while offsets[last][1] >= b:
            last -= 1
        spans.append((first - 1, last + 1))
    return spans


times = []
for _ in range(3):
    start = time.process_time()
    out = call()
    middle = time.process_time()
    label(out)
    times.append((middle - start, time.process_time() - start))
times.sort()
print(f"Hugging Face's fast tokenizer, the call only:{times[1][0]}")
print(f"  and labels as run_qa makes them:{times[1][1]}")
