#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loss curve of bert-tiny on real questions from PyTorch and transformers, in fp64: golden_curve.json.
  python3 golden_curve.py WORKER [FOLDER]
WORKER is a built hpcgrid-worker: it cuts the questions into sequences (tests/worker/squad holds those against Hugging Face's). The
rest is done here: the weights that hpcgrid-worker starts from and the order of its batches by the formulas in its headers
(templates/trainers/as_native.py), the model, the loss, clipping, AdamW and the schedule by PyTorch and transformers."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
import transformers
from transformers import BertConfig, BertForQuestionAnswering, get_linear_schedule_with_warmup

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "../../templates/trainers"))
from as_native import draw, order  # noqa: E402

DATA = HERE.parent.parent / "worker/samples"
CELL = {"model": "bert-tiny", "dataset": "squad-slice", "samples": 64, "batch_size": 8, "epochs": 5, "lr": 5e-4, "warmup": 0.1,
        "weight_decay": 0.01, "clip_norm": 1, "dropout": False, "eval": False, "seed": 3}
MAX_LENGTH, HIDDEN, LAYERS = 384, 128, 2


def make(dtype):
    config = BertConfig(hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HIDDEN // 64, intermediate_size=4 * HIDDEN,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = BertForQuestionAnswering(config).to(dtype)
    with torch.no_grad():
        for index, (name, w) in enumerate(model.named_parameters()):
            if w.dim() == 1:
                w.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
                continue
            values = (0.02 * draw(CELL["seed"], index, w.numel(), True)).astype(np.float32).reshape(w.shape)
            if "word_embeddings" in name:
                values[0] = 0
            w.copy_(torch.from_numpy(values))
    return model.train()


def collate(rows):
    ids = torch.zeros(len(rows), MAX_LENGTH, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, r in enumerate(rows):
        n = len(r["ids"])
        ids[i, :n] = torch.tensor(r["ids"])
        types[i, r["context"]:n] = 1
        mask[i, :n] = 1
    return dict(input_ids=ids, token_type_ids=types, attention_mask=mask, start_positions=torch.tensor([r["start"] for r in rows]),
                end_positions=torch.tensor([r["end"] for r in rows]))


def loss_of(model, rows, packed):
    out = model(**collate(rows))
    if not packed:
        return out.loss
    parts = [-torch.log_softmax(logits[i, :len(r["ids"])], -1)[r[label]] for i, r in enumerate(rows)
             for logits, label in ((out.start_logits, "start"), (out.end_logits, "end"))]
    return sum(parts) / len(parts)


def train(features, dtype, packed):
    model, batch = make(dtype), CELL["batch_size"]
    steps = CELL["epochs"] * -(-len(features) // batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=CELL["lr"], weight_decay=CELL["weight_decay"])
    schedule = get_linear_schedule_with_warmup(optimizer, int(np.ceil(CELL["warmup"] * steps)), steps)
    losses = []
    for epoch in range(CELL["epochs"]):
        ids = order(CELL["seed"], epoch, len(features))
        for at in range(0, len(ids), batch):
            loss = loss_of(model, [features[i] for i in ids[at:at + batch]], packed)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CELL["clip_norm"])
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    return losses


def main():
    command = [sys.argv[1], "features", "--data", DATA / "squad/train-v1.1-slice.json", "--vocab", DATA / "vocab/bert-base-uncased-vocab.txt",
               "--questions", str(CELL["samples"]), "--dump"]
    features = [json.loads(line) for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()]
    golden = {"made_with": f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}", "cell": CELL, "features": len(features)}
    for name, packed in (("max_length", False), ("packed", True)):
        golden[name] = train(features, torch.float64, packed)
        single = train(features, torch.float32, packed)
        golden[f"{name}_pytorch_fp32_is_off_by"] = max(abs(a - b) / a for a, b in zip(golden[name], single))
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else HERE)
    (folder / "golden_curve.json").write_text(json.dumps(golden, indent=1) + "\n")


main()
