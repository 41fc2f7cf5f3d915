#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BERT training steps with PyTorch and transformers: pytorch.py FEATURES THREADS BATCH MODE [LAYERS]
FEATURES: what `hpcgrid-worker features --dump` prints. MODE: max_length (all padded to 384), dynamic (to the longest of the batch).
Two epochs; prints samples/s of the second and the peak of the process's memory in MiB."""
import json
import random
import resource
import sys
import time

import torch
from transformers import BertConfig, BertForQuestionAnswering

features, threads, batch, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
layers = int(sys.argv[5]) if len(sys.argv) > 5 else 12
torch.set_num_threads(threads)
torch.manual_seed(1)
rows = [json.loads(line) for line in open(features)]
model = BertForQuestionAnswering(BertConfig(num_hidden_layers=layers, attn_implementation="sdpa"))
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)


def collate(part):
    longest = 384 if mode == "max_length" else max(len(r["ids"]) for r in part)
    ids = torch.zeros(len(part), longest, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, r in enumerate(part):
        n = len(r["ids"])
        ids[i, :n] = torch.tensor(r["ids"])
        types[i, r["context"]:n] = 1
        mask[i, :n] = 1
    return dict(input_ids=ids, token_type_ids=types, attention_mask=mask,
                start_positions=torch.tensor([r["start"] for r in part]), end_positions=torch.tensor([r["end"] for r in part]))


for epoch in range(2):
    random.Random(epoch).shuffle(rows)
    begin = time.perf_counter()
    for at in range(0, len(rows), batch):
        loss = model(**collate(rows[at:at + batch])).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
print(len(rows) / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
