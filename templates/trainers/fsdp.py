# SPDX-License-Identifier: Apache-2.0
"""PyTorch's FSDP2 (fully_shard): parameters, gradients and optimizer state are cut over the ranks."""
import json
import os
import time

import torch
import torch.distributed as dist
from mnist import Net, accuracy, cell, load
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

config = cell()
cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()) if cuda else torch.device("cpu")
torch.manual_seed(config.get("seed", 1))

net = Net().to(device)
fully_shard(net, mesh=init_device_mesh(device.type, (world,)))
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
final_loss = loss.item()
train_s = time.perf_counter() - start

result = {"train_s": train_s, "samples": config["epochs"] * len(x), "final_loss": final_loss, "eval": {"accuracy": accuracy(net)}}  # every rank takes part
if rank == 0 and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump(result, f)
dist.destroy_process_group()
