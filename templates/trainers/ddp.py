# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DistributedDataParallel. No torchrun: hpcgrid starts the ranks and sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT."""
import json
import os
import time

import torch
import torch.distributed as dist
from mnist import Net, accuracy, cell, load
from torch.nn.parallel import DistributedDataParallel

config = cell()
cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()) if cuda else torch.device("cpu")
torch.manual_seed(config.get("seed", 1))

net = DistributedDataParallel(Net().to(device))
optimizer = torch.optim.Adadelta(net.parameters(), lr=config["lr"])
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, config["gamma"])
x, y = (t.to(device) for t in load("train"))

dist.barrier()
start = time.perf_counter()
for epoch in range(config["epochs"]):
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    share = order[: len(x) // world * world][rank::world].to(device)
    for index in share.split(config["batch_size"]):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[index]), y[index])
        loss.backward()
        optimizer.step()
    schedule.step()
final_loss = loss.item()  # waits for the GPU
train_s = time.perf_counter() - start

if rank == 0 and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump({"train_s": train_s, "samples": config["epochs"] * len(x), "final_loss": final_loss, "eval": {"accuracy": accuracy(net.module)}}, f)
dist.destroy_process_group()
