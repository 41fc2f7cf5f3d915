# SPDX-License-Identifier: Apache-2.0
"""Lightning Fabric: the loop is yours, the ranks are hpcgrid's (LightningEnvironment reads them from the environment)."""
import json
import os
import time

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments import LightningEnvironment
from mnist import Net, accuracy, cell, load
from torch.utils.data import DataLoader, TensorDataset

config = cell()
world, nodes = int(os.environ.get("WORLD_SIZE", 1)), config.get("nodes", 1)
os.environ["NODE_RANK"] = str(int(os.environ.get("RANK", 0)) // (world // nodes))
fabric = Fabric(accelerator="auto", devices=world // nodes, num_nodes=nodes, strategy="ddp", plugins=[LightningEnvironment()])
fabric.launch()
fabric.seed_everything(config.get("seed", 1))
net = Net()
net, optimizer = fabric.setup(net, torch.optim.Adadelta(net.parameters(), lr=config["lr"]))
schedule = torch.optim.lr_scheduler.StepLR(optimizer.optimizer, 1, config["gamma"])
data = TensorDataset(*load("train"))
batches = fabric.setup_dataloaders(DataLoader(data, batch_size=config["batch_size"], shuffle=True))

fabric.barrier()
start = time.perf_counter()
for epoch in range(config["epochs"]):
    for x, y in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        fabric.backward(loss)
        optimizer.step()
    schedule.step()
final_loss = loss.item()
train_s = time.perf_counter() - start

if fabric.is_global_zero and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump({"train_s": train_s, "samples": config["epochs"] * len(data), "final_loss": final_loss, "eval": {"accuracy": accuracy(net.module)}}, f)
