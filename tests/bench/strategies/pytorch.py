#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MNIST RNN under PyTorch's DistributedDataParallel over gloo: pytorch.py DATA RANKS EPOCHS BATCH

The model and the way of feeding it are those of tests/bench/rnn/pytorch.py; every rank has one thread. Prints samples/s of all ranks.
"""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "rnn"))
import pytorch as rnn  # noqa: E402


def work(rank, world, port, folder, epochs, batch, out):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    x, y = rnn.load(folder, "train")
    net = torch.nn.parallel.DistributedDataParallel(rnn.Net())
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)
    rnn.epoch(net, optimizer, x[:20 * batch], y[:20 * batch], batch)
    n = len(x) // world
    dist.barrier()
    start = time.monotonic()
    for _ in range(epochs):
        part = torch.randperm(len(x))[rank::world][:n]
        rnn.epoch(net, optimizer, x[part], y[part], batch)
    dist.barrier()
    if rank == 0:
        out.append(epochs * n * world / (time.monotonic() - start))
    dist.destroy_process_group()


if __name__ == "__main__":
    folder, world, epochs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    rates = mp.Manager().list()
    mp.spawn(work, (world, port, folder, epochs, batch, rates), nprocs=world)
    print(f"{rates[0]:.0f}")
