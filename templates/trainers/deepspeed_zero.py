# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's ZeRO, stage 2. No deepspeed launcher: hpcgrid starts the ranks and sets what it reads. On CPUs: DS_ACCELERATOR=cpu."""
import json
import os
import time

import deepspeed
import torch
import torch.distributed as dist
from mnist import Net, accuracy, cell, load

config = cell()
cuda = torch.cuda.is_available()
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # of CPUs: it would be compiled while the ranks wait
deepspeed.init_distributed("nccl" if cuda else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(config.get("seed", 1))

net = Net()
engine, optimizer, _, _ = deepspeed.initialize(
    model=net, optimizer=torch.optim.Adadelta(net.parameters(), lr=config["lr"]),
    config={"train_micro_batch_size_per_gpu": config["batch_size"], "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": config.get("zero_stage", 2), "reduce_scatter": cuda}})  # gloo has no reduce-scatter
x, y = (t.to(engine.device) for t in load("train"))

dist.barrier()
start = time.perf_counter()
for epoch in range(config["epochs"]):
    for group in optimizer.param_groups:
        group["lr"] = config["lr"] * config["gamma"] ** epoch
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    share = order[: len(x) // world * world][rank::world].to(engine.device)
    for index in share.split(config["batch_size"]):
        loss = torch.nn.functional.cross_entropy(engine(x[index]), y[index])
        engine.backward(loss)
        engine.step()
final_loss = loss.item()  # waits for the GPU
train_s = time.perf_counter() - start

if rank == 0 and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump({"train_s": train_s, "samples": config["epochs"] * len(x), "final_loss": final_loss, "eval": {"accuracy": accuracy(net)}}, f)
dist.destroy_process_group()
