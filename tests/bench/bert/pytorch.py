#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BERT training steps with PyTorch and transformers, as fast as they go on a CPU: pytorch.py FEATURES THREADS BATCH MODE [LAYERS]
FEATURES: what `hpcgrid-worker features --dump` prints. MODE: max_length (all padded to 384), dynamic (to the longest of the batch), packed (no
padding: the batch is one row of tokens, attention goes sequence by sequence). Behind it -compile: inductor compiles each layer (the same code for
all of them), -whole: the model; -bf16: autocast. Weights and order are hpcgrid-worker's of seed 1. Prints the first batch's loss without dropout
and trains an epoch that does not count; then, for every line read, trains one and prints its samples/s and the peak of the process's memory in MiB."""
import json
import os
import resource
import sys
import time

import torch
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence
from transformers import AttentionInterface, BertConfig, BertForQuestionAnswering

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../templates/trainers"))
import as_native  # noqa: E402

features, threads, batch, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split("-")
padding = mode[0]
lengths = []  # of the sequences of this batch


@torch.compiler.disable
def by_sequence(module, query, key, value, mask, dropout=0.0, **_):
    parts = [scaled_dot_product_attention(*qkv, dropout_p=dropout) for qkv in zip(*(x.split(lengths, 2) for x in (query, key, value)))]
    return torch.cat(parts, 2).transpose(1, 2), None


def law(name):
    return (True, 0.02) if name.endswith("weight") and "LayerNorm" not in name else None


torch.set_num_threads(threads)
torch.manual_seed(1)
AttentionInterface.register("by_sequence", by_sequence)
rows = [json.loads(line) for line in open(features)]
model = BertForQuestionAnswering(BertConfig(num_hidden_layers=int(sys.argv[5]) if len(sys.argv) > 5 else 12,
                                            attn_implementation="by_sequence" if padding == "packed" else "sdpa"))
as_native.start(model, 1, law)
with torch.no_grad():
    model.bert.embeddings.word_embeddings.weight[0] = 0
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
if "compile" in mode:
    for layer in model.bert.encoder.layer:
        layer.compile(dynamic=padding != "max_length")
if "whole" in mode:
    model.compile(dynamic=padding != "max_length")


def pad(parts):
    whole = pad_sequence(parts, batch_first=True)
    return torch.nn.functional.pad(whole, (0, 384 - whole.shape[1])) if padding == "max_length" else whole


def loss_of(part):
    global lengths
    lengths = [len(r["ids"]) for r in part]
    ids = [torch.tensor(r["ids"]) for r in part]
    types = [(torch.arange(len(r["ids"])) >= r["context"]).long() for r in part]
    if padding == "packed":
        batch = dict(input_ids=torch.cat(ids)[None], token_type_ids=torch.cat(types)[None],
                     position_ids=torch.cat([torch.arange(n) for n in lengths])[None])
    else:
        batch = dict(input_ids=pad(ids), token_type_ids=pad(types), attention_mask=pad([torch.ones_like(x) for x in ids]))
    with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in mode):
        out = model(**batch)
    logits = [x.float() for x in (out.start_logits, out.end_logits)]
    if padding == "packed":
        logits = [pad_sequence(x[0].split(lengths), batch_first=True, padding_value=-torch.inf) for x in logits]
    elif padding == "dynamic":  # a softmax over the tokens, as packed; over padding too where that is always the same
        logits = [x.masked_fill(batch["attention_mask"] == 0, -torch.inf) for x in logits]
    return sum(cross_entropy(x, torch.tensor([r[side] for r in part])) for x, side in zip(logits, ("start", "end"))) / 2


def epoch(number):
    whole = [rows[i] for i in as_native.order(1, number, len(rows))]
    begin = time.perf_counter()
    for at in range(0, len(whole), batch):
        optimizer.zero_grad()
        loss_of(whole[at:at + batch]).backward()
        optimizer.step()
    return len(whole) / (time.perf_counter() - begin)


model.eval()
with torch.no_grad():
    print(loss_of([rows[i] for i in as_native.order(1, 0, len(rows))[:batch]]).item())
model.train()
epoch(0)
print("warm", flush=True)
for number, _ in enumerate(sys.stdin, 1):
    print(epoch(number), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)
