#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden numbers of a small BERT from PyTorch and transformers, in fp64: golden_bert.json, and golden_bert.f32 with gradients
and parameters. Run it with a Python that has torch and transformers:  python3 golden_bert.py [FOLDER]
Weights and batches are formulas, so that the test makes the same ones without reading them."""
import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers
from transformers import BertConfig, BertForQuestionAnswering

SIZE = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 48, "vocab_size": 100, "positions": 64}
LENGTHS, KEYS, MAX_LENGTH = [7, 40, 23], [4, 0, 11], 48
LR, DECAY, STEPS = 1e-3, 0.01, 10


def make(act):
    config = BertConfig(
        vocab_size=SIZE["vocab_size"], hidden_size=SIZE["hidden"], num_hidden_layers=SIZE["layers"],
        num_attention_heads=SIZE["heads"], intermediate_size=SIZE["intermediate"],
        max_position_embeddings=SIZE["positions"], hidden_act=act, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = BertForQuestionAnswering(config).double()
    with torch.no_grad():
        for p, (name, w) in enumerate(model.named_parameters()):
            i = torch.arange(1, w.numel() + 1, dtype=torch.float64)
            ones = name.endswith("LayerNorm.weight")
            w.copy_((torch.sin(0.37 * i + p) * (0.1 if ones else 0.15) + float(ones)).reshape(w.shape))
    return model


def batch(step):
    """Sequences as tests/worker/bert.h makes them; keys move on by a step."""
    n = len(LENGTHS)
    ids = torch.zeros(n, MAX_LENGTH, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    starts, ends = torch.zeros(n, dtype=torch.long), torch.zeros(n, dtype=torch.long)
    for s, (length, key) in enumerate(zip(LENGTHS, KEYS)):
        key += step
        starts[s] = key * 7 % length
        ends[s] = starts[s] + (length - 1 - starts[s]) // 2
        for i in range(length):
            ids[s, i] = 1 + (key * 31 + i * 17) % (SIZE["vocab_size"] - 1)
            types[s, i] = int(i > length // 3)
        mask[s, :length] = 1
    return dict(input_ids=ids, token_type_ids=types, attention_mask=mask, start_positions=starts, end_positions=ends)


def logits_of(out):
    return torch.stack([out.start_logits, out.end_logits], dim=-1).detach().reshape(-1).tolist()


def packed_loss(out, b):
    """The softmax of a sequence over its own tokens only."""
    total = 0.0
    for s, length in enumerate(LENGTHS):
        for logits, label in ((out.start_logits, b["start_positions"]), (out.end_logits, b["end_positions"])):
            total = total - torch.log_softmax(logits[s, :length], -1)[label[s]] / 2
    return total / len(LENGTHS)


def gradients(model):
    return np.concatenate([w.grad.reshape(-1).numpy() for w in model.parameters()])


def train(act, packed):
    model = make(act)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=DECAY)
    losses, first = [], None
    for step in range(STEPS):
        b = batch(step)
        out = model(**b)
        loss = packed_loss(out, b) if packed else out.loss
        optimizer.zero_grad()
        loss.backward()
        if first is None:
            first = (logits_of(out), gradients(model))
        optimizer.step()
        losses.append(loss.item())
    params = np.concatenate([w.detach().reshape(-1).numpy() for w in model.parameters()])
    return losses, first[0], first[1], params


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    golden = {"made_with": f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}", "max_length": MAX_LENGTH}
    arrays = []
    for key, act, packed in (("erf", "gelu", False), ("tanh", "gelu_pytorch_tanh", False), ("packed", "gelu", True)):
        losses, logits, grads, params = train(act, packed)
        golden["losses_" + key] = losses
        if key != "packed":
            golden["logits_" + key] = logits
        if key == "erf":
            arrays += [grads, params]
        if key == "packed":
            arrays += [grads]
    golden["parameters"] = len(arrays[0])
    golden["gelu"] = [[x, x * 0.5 * math.erfc(-x / math.sqrt(2)), torch.nn.functional.gelu(torch.tensor(x, dtype=torch.float64), approximate="tanh").item()]
                      for x in (-7.5, -5.0, -2.7, -1.0, -0.1, 0.0, 1e-4, 0.5, 1.0, 3.0, 6.0)]
    (folder / "golden_bert.json").write_text(json.dumps(golden, indent=1) + "\n")
    np.concatenate(arrays).astype("<f4").tofile(folder / "golden_bert.f32")


main()
