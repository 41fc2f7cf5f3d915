#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make golden_rnn.json and golden_rnn.f32 with PyTorch, which shares no code with hpcgrid-worker.

Run by hand where PyTorch and NumPy are installed:  python3 tests/worker/golden_rnn.py
Everything is computed in float64. Weights follow a formula that tests/worker/golden.c repeats; batches are the first
images of worker/samples/mnist in their order; dropout masks come from Philox4x32-10 as worker/backends/rng.h defines it,
written here a second time.
"""
import gzip
import json
import math
import os

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "worker", "samples", "mnist")
ROWS, STEPS, SEED = 8, 10, 7
DROPOUT_SITE = 3 << 16


def images(prefix, first, n):
    with gzip.open(os.path.join(DATA, prefix + "-images-idx3-ubyte.gz")) as f:
        pixels = np.frombuffer(f.read()[16 + 784 * first:16 + 784 * (first + n)], np.uint8)
    with gzip.open(os.path.join(DATA, prefix + "-labels-idx1-ubyte.gz")) as f:
        labels = np.frombuffer(f.read()[8 + first:8 + first + n], np.uint8)
    x = (pixels.reshape(n, 28, 28) / 255.0 - 0.1307) / 0.3081
    return torch.tensor(x, dtype=torch.float64), torch.tensor(labels.astype(np.int64))


def philox(seed, c0, c1, c2, c3):
    k0, k1 = seed & 0xffffffff, seed >> 32
    for _ in range(10):
        a, b = 0xd2511f53 * c0, 0xcd9e8d57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & 0xffffffff, (a >> 32) ^ c3 ^ k1, a & 0xffffffff
        k0, k1 = (k0 + 0x9e3779b9) & 0xffffffff, (k1 + 0xbb67ae85) & 0xffffffff
    return c0, c1, c2, c3


def mask(place, first, rows, cols, p, step):
    m = np.empty((rows, cols))
    for r in range(rows):
        for c in range(0, cols, 8):
            words = philox(SEED, c // 8, DROPOUT_SITE + place, first + r, step)
            bits = [half for word in words for half in (word & 0xffff, word >> 16)]
            m[r, c:c + 8] = [0 if b < round(p * 2**16) else 1 / (1 - p) for b in bits]
    return torch.tensor(m)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(28, 64, batch_first=True)
        self.batchnorm = torch.nn.BatchNorm1d(64)
        self.fc1 = torch.nn.Linear(64, 32)
        self.fc2 = torch.nn.Linear(32, 10)

    def forward(self, x, masks=None):
        h = self.batchnorm(self.rnn(x)[0][:, -1])
        h = h if masks is None else h * masks[0]
        h = torch.relu(self.fc1(h))
        return self.fc2(h if masks is None else h * masks[1])


def set_weights(net):
    with torch.no_grad():
        for p, (name, tensor) in enumerate(net.named_parameters()):
            values = [math.sin(0.37 * (i + 1) + p) for i in range(tensor.numel())]
            scale, shift = (0.1, 1.0) if name == "batchnorm.weight" else (0.15, 0.0)
            tensor.copy_(torch.tensor(values, dtype=torch.float64).reshape(tensor.shape) * scale + shift)


def train(dropout):
    net = Net().double()
    set_weights(net)
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0, rho=0.9, eps=1e-6)
    losses, first = [], {}
    for step in range(STEPS):
        x, y = images("train", step * ROWS, ROWS)
        masks = [mask(0, step * ROWS, ROWS, 64, 0.25, step), mask(1, step * ROWS, ROWS, 32, 0.5, step)]
        optimizer.zero_grad()
        logits = net(x, masks if dropout else None)
        loss = torch.nn.functional.nll_loss(torch.log_softmax(logits, 1), y)
        loss.backward()
        if step == 0:
            first = {"logits": logits.detach().flatten().tolist(),
                     "gradients": torch.cat([p.grad.flatten() for p in net.parameters()])}
        optimizer.step()
        losses.append(loss.item())
    return net, losses, first


def main():
    assert philox(0, 0, 0, 0, 0) == (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)
    net, losses, first = train(False)
    _, losses_dropout, first_dropout = train(True)
    x, y = images("t10k", 0, ROWS)
    net.eval()
    logits = net(x).detach()
    golden = {
        "torch": torch.__version__.split("+")[0],
        "rows": ROWS,
        "seed": SEED,
        "logits": first["logits"],
        "losses": losses,
        "losses_dropout": losses_dropout,
        "eval_logits": logits.flatten().tolist(),
        "eval_loss": torch.nn.functional.cross_entropy(logits, y, reduction="sum").item(),
        "running_mean": net.batchnorm.running_mean.tolist(),
        "running_var": net.batchnorm.running_var.tolist(),
    }
    with open(os.path.join(HERE, "golden_rnn.json"), "w") as f:
        json.dump(golden, f, indent=1)
        f.write("\n")
    params = torch.cat([p.detach().flatten() for p in net.parameters()])
    torch.cat([first["gradients"], first_dropout["gradients"], params]).numpy().astype("<f4").tofile(
        os.path.join(HERE, "golden_rnn.f32"))


if __name__ == "__main__":
    main()
