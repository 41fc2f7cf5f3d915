#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MNIST RNN in PyTorch, as fast as plain PyTorch does it: pytorch.py DATA THREADS EPOCHS BATCH LR GAMMA

The same model, optimizer, schedule and batches as hpcgrid-worker's. The whole set is normalised and in memory before the clock
starts, batches are slices of a permutation, one epoch warms up. Prints samples/s, seconds and test accuracy.
"""
import gzip
import os
import sys
import time

import numpy as np
import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../templates/trainers"))
from mnist import Net  # noqa: E402


def load(folder, prefix):
    def read(stem):
        path = os.path.join(folder, stem)
        with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")) as f:
            return f.read()
    images = np.frombuffer(read(prefix + "-images-idx3-ubyte")[16:], np.uint8).reshape(-1, 28, 28)
    labels = np.frombuffer(read(prefix + "-labels-idx1-ubyte")[8:], np.uint8)
    x = (torch.tensor(images, dtype=torch.float32) / 255 - 0.1307) / 0.3081
    return x, torch.tensor(labels.astype(np.int64))


def epoch(net, optimizer, x, y, batch):
    for index in torch.randperm(len(x)).split(batch):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[index]), y[index]).backward()
        optimizer.step()


def main():
    folder, threads, epochs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    lr, gamma = float(sys.argv[5]), float(sys.argv[6])
    torch.set_num_threads(threads)
    torch.manual_seed(int(os.environ.get("SEED", "1")))
    x, y = load(folder, "train")
    warm = Net()
    epoch(warm, torch.optim.Adadelta(warm.parameters(), lr=lr), x[:20 * batch], y[:20 * batch], batch)
    net = Net()
    optimizer = torch.optim.Adadelta(net.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma)
    start = time.perf_counter()
    for _ in range(epochs):
        epoch(net, optimizer, x, y, batch)
        schedule.step()
    seconds = time.perf_counter() - start
    net.eval()
    x_test, y_test = load(folder, "t10k")
    with torch.no_grad():
        right = (net(x_test).argmax(1) == y_test).sum().item()
    print(f"{epochs * len(x) / seconds:.1f} {seconds:.3f} {right / len(x_test):.4f} {torch.__version__}")


if __name__ == "__main__":
    main()
