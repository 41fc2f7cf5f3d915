#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BERT-base training steps with PyTorch and transformers on a GPU: pytorch.py FEATURES BATCH MODE PRECISION HOW
FEATURES: what `hpcgrid-worker features --dump` prints. MODE: max_length (all padded to 384), dynamic (to the longest of the batch).
PRECISION: bf16 (autocast, fp32 parameters), tf32, fp32. HOW: eager, compile, compile-dynamic, graphs (compiled, CUDA graphs). SDPA, fused AdamW,
batches on the device before the clock starts. Prints {"samples_per_s": median of the warm epochs}."""
import json
import os
import random
import statistics
import sys
import time

import torch
from transformers import BertConfig, BertForQuestionAnswering

features, batch, mode, precision, how = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
steps = int(os.environ.get("STEPS", "20"))
torch.manual_seed(1)
torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
device = torch.device("cuda")
rows = [json.loads(line) for line in open(features)]
model = BertForQuestionAnswering(BertConfig(attn_implementation="sdpa")).to(device)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)


def collate(part):
    longest = 384 if mode == "max_length" else max(len(r["ids"]) for r in part)
    ids = torch.zeros(len(part), longest, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, r in enumerate(part):
        n = len(r["ids"])
        ids[i, :n] = torch.tensor(r["ids"])
        types[i, r["context"]:n] = 1
        mask[i, :n] = 1
    b = dict(input_ids=ids, token_type_ids=types, attention_mask=mask, start_positions=torch.tensor([r["start"] for r in part]),
             end_positions=torch.tensor([r["end"] for r in part]))
    return {k: v.to(device) for k, v in b.items()}


def forward(b):
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
        return model(**b).loss


if how == "compile":
    forward = torch.compile(forward)
elif how == "compile-dynamic":
    forward = torch.compile(forward, dynamic=True)
elif how == "graphs":
    forward = torch.compile(forward, mode="reduce-overhead")


def epoch(number):
    random.Random(number).shuffle(rows)
    whole = [collate(rows[at:at + batch]) for at in range(0, len(rows) - batch + 1, batch)]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for b in whole:
        loss = forward(b)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return len(whole) * batch / (time.perf_counter() - begin)


for warm in range(3):
    epoch(warm)
epochs = max(3, steps * batch // len(rows))
print(json.dumps({"samples_per_s": statistics.median(epoch(3 + i) for i in range(epochs)), "torch": torch.__version__}))
