# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Accelerate, without `accelerate launch`: it finds the ranks that hpcgrid started in the environment."""
import json
import os
import time

import torch
from accelerate import Accelerator
from mnist import Net, accuracy, cell, load
from torch.utils.data import DataLoader, TensorDataset

config = cell()
torch.manual_seed(config.get("seed", 1))
accelerator = Accelerator(cpu=not torch.cuda.is_available())
net = Net()
optimizer = torch.optim.Adadelta(net.parameters(), lr=config["lr"])
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, config["gamma"])
data = TensorDataset(*load("train"))
net, optimizer, batches = accelerator.prepare(net, optimizer, DataLoader(data, batch_size=config["batch_size"], shuffle=True))

accelerator.wait_for_everyone()
start = time.perf_counter()
for epoch in range(config["epochs"]):
    for x, y in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        accelerator.backward(loss)
        optimizer.step()
    schedule.step()
final_loss = loss.item()
train_s = time.perf_counter() - start

if accelerator.is_main_process and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump({"train_s": train_s, "samples": config["epochs"] * len(data), "final_loss": final_loss,
                   "eval": {"accuracy": accuracy(accelerator.unwrap_model(net))}}, f)
accelerator.end_training()
