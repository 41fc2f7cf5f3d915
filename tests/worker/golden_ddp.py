#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make golden_ddp.json with PyTorch's DistributedDataParallel over gloo.

Run by hand where PyTorch and NumPy are installed:  python3 tests/worker/golden_ddp.py
The model, weights and dropout masks are those of golden_rnn.py, in float64. Rank r of N takes images
(step N + r) 8 to (step N + r) 8 + 7. Losses are means over the ranks; bucket sizes are what DDP itself says. With an argument the
numbers are printed, not written: tests/peers compares them with the file.
"""
import json
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import golden_rnn as rnn  # noqa: E402

STEPS, CAPS_MIB = 6, [25, 0.02]


def train(world, rank, cap):
    net = rnn.Net().double()
    rnn.set_weights(net)
    if rank > 0:  # rank 0's values count
        with torch.no_grad():
            for p in net.parameters():
                p.add_(1)
    ddp = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=cap)
    optimizer = torch.optim.Adadelta(ddp.parameters(), lr=1.0, rho=0.9, eps=1e-6)
    losses = []
    for step in range(STEPS):
        first = (step * world + rank) * rnn.ROWS
        x, y = rnn.images("train", first, rnn.ROWS)
        masks = [rnn.mask(0, first, rnn.ROWS, 64, 0.25, step), rnn.mask(1, first, rnn.ROWS, 32, 0.5, step)]
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(torch.log_softmax(ddp(x, masks), 1), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach() / world
        dist.all_reduce(mean)
        losses.append(mean.item())
    said = ddp._get_ddp_logging_data()
    sizes = {k: [int(n) for n in str(said[k]).split(",") if n.strip()] for k in ("bucket_sizes", "rebuilt_bucket_sizes")}
    return {"world": world, "cap_mib": cap, "losses": losses, "first_bytes": sizes["bucket_sizes"],
            "rebuilt_bytes": sizes["rebuilt_bucket_sizes"]}


def work(rank, world, port, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    for cap in CAPS_MIB:
        result = train(world, rank, cap)
        if rank == 0:
            out.append(result)
    dist.destroy_process_group()


def main():
    cases = mp.Manager().list()
    for world in (1, 2, 3):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        mp.spawn(work, (world, port, cases), nprocs=world)
    golden = {"torch": torch.__version__.split("+")[0], "rows": rnn.ROWS, "seed": rnn.SEED, "cases": list(cases)}
    if len(sys.argv) > 1:
        json.dump(golden, sys.stdout)
        return
    with open(os.path.join(rnn.HERE, "golden_ddp.json"), "w") as f:
        json.dump(golden, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
