# SPDX-License-Identifier: Apache-2.0
"""hpcgrid-worker's BERT for questions by PyTorch and Transformers: the same sequences (hpcgrid-worker cuts them), first weights, batches,
optimizer and schedule (matrices/native-vs-pytorch.json, squad-learns.json). padding max_length: to seq_len, as the labs; packed: to the longest of
the batch. `init`: the first weights. Unless `eval` is false, hpcgrid-worker scores the trained weights: its answers are those of Transformers' run_qa."""
import json
import os
import subprocess
from pathlib import Path

import as_native
import torch
from mnist import cell, shipped
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel
from transformers import BertConfig, BertForQuestionAnswering, get_linear_schedule_with_warmup

SIZES = {"bert-tiny": (2, 128), "bert-mini": (4, 256), "bert-small": (4, 512), "bert-medium": (8, 512), "bert-base": (12, 768), "bert-large": (24, 1024)}
config = cell()
device = as_native.join(config)
world = as_native.dist.get_world_size()
longest = config.get("seq_len", 384)
padded = config.get("padding", "packed") == "max_length"


def read_features():
    folder = shipped("squad") if config["dataset"] == "squad-slice" else Path(os.environ["HPCGRID_DATA"]) / "squad"
    command = ["hpcgrid-worker", "features", "--dump", "--data", min(folder.glob("train-v1.1*")), "--vocab", shipped("vocab") / "bert-base-uncased-vocab.txt",
               "--max-length", str(longest), "--stride", str(config.get("doc_stride", 128))]
    command += ["--questions", str(config["samples"])] if "samples" in config else []
    return [json.loads(line) for line in subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()]


def law(name):
    return (True, 0.02) if name.endswith("weight") and "LayerNorm" not in name else None


def loss_of(ids):
    rows = [features[i] for i in ids]
    tokens = torch.zeros(len(rows), longest if padded else max(len(r["ids"]) for r in rows), dtype=torch.long)
    types, mask = torch.zeros_like(tokens), torch.zeros_like(tokens)
    for i, r in enumerate(rows):
        tokens[i, : len(r["ids"])], mask[i, : len(r["ids"])] = torch.tensor(r["ids"]), 1
        types[i, r["context"] : len(r["ids"])] = 1
    mask = mask.to(device)
    out = model(input_ids=tokens.to(device), token_type_ids=types.to(device), attention_mask=mask)
    losses = []
    for logits, label in ((out.start_logits, "start"), (out.end_logits, "end")):
        logits = logits if padded else logits.masked_fill(mask == 0, -torch.inf)  # the frameworks' softmax counts the padding
        losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor([r[label] for r in rows], device=device)))
    return sum(losses) / 2


def score(net):
    """EM and F1 on the development set, by a training of one step that changes nothing."""
    folder = Path(os.environ["HPCGRID_ATTEMPT"])
    weights, cell_file, result = folder / "trained.safetensors", folder / "score.json", folder / "scored.json"
    save_file(net.state_dict(), weights)
    cell_file.write_text(json.dumps({k: config[k] for k in ("model", "dataset", "seq_len", "doc_stride", "test_samples") if k in config}
                                    | {"init": str(weights), "steps": 1, "samples": 1, "batch_size": 1, "lr": 0}))
    subprocess.run(["hpcgrid-worker", "train", "--config", cell_file, "--result", result], check=True,
                   env=os.environ | {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"})  # of this rank alone
    weights.unlink()
    return json.loads(result.read_text())["eval"]


features = read_features()
layers, hidden = SIZES[config["model"]]
net = BertForQuestionAnswering(BertConfig(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=hidden // 64, intermediate_size=4 * hidden,
                                          hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="sdpa")).train()
as_native.start(net, config.get("seed", 1), law)
with torch.no_grad():
    net.bert.embeddings.word_embeddings.weight[0] = 0
if "init" in config:
    net.load_state_dict(load_file(os.path.expandvars(config["init"])), strict=False)
net = net.to(device)
model = DistributedDataParallel(net) if world > 1 else net
optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"], weight_decay=config.get("weight_decay", 0.01))
steps = config["epochs"] * -(-len(features) // (world * config["batch_size"]))
schedule = get_linear_schedule_with_warmup(optimizer, -int(-config.get("warmup", 0) * steps // 1), steps)

result = as_native.train(config, len(features), loss_of, optimizer, after_step=schedule.step)
if config.get("eval", True) and as_native.dist.get_rank() == 0:
    result["eval"] = score(net)
as_native.finish(result)
