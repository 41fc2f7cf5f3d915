#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MNIST RNN in PyTorch, as fast as it goes on a CPU: pytorch.py DATA THREADS EPOCHS BATCH LR GAMMA [MODE]

The same model, first weights, order, optimizer, schedule and batches as hpcgrid-worker's. The whole set is normalised and in memory before the clock
starts. MODE: eager (torch's LSTM, which is oneDNN's); unrolled (one product of all steps' inputs, then a step at a time, which inductor can
fuse); -compile and -bf16 behind it. Prints the first batch's loss without dropout; one epoch warms up; then, for every line read, trains
EPOCHS anew and prints samples/s, seconds and test accuracy.
"""
import gzip
import os
import sys
import time

import numpy as np
import torch
from torch import nn

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../templates/trainers"))
import as_native  # noqa: E402
from mnist import Net  # noqa: E402

folder, threads, epochs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
lr, gamma, mode = float(sys.argv[5]), float(sys.argv[6]), (sys.argv[7] if len(sys.argv) > 7 else "eager").split("-")


def load(prefix):
    def read(stem):
        path = os.path.join(folder, stem)
        with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")) as f:
            return f.read()
    images = np.frombuffer(read(prefix + "-images-idx3-ubyte")[16:], np.uint8).reshape(-1, 28, 28)
    labels = np.frombuffer(read(prefix + "-labels-idx1-ubyte")[8:], np.uint8)
    x = (torch.tensor(images, dtype=torch.float32) / 255 - 0.1307) / 0.3081
    return x, torch.tensor(labels.astype(np.int64))


def last_output(lstm, x):
    gates = nn.functional.linear(x.transpose(0, 1), lstm.weight_ih_l0, lstm.bias_ih_l0 + lstm.bias_hh_l0)  # (steps, batch, 4 hidden)
    h = c = torch.zeros(len(x), lstm.hidden_size)
    for step in gates:
        i, f, g, o = (step + h @ lstm.weight_hh_l0.t()).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


class Unrolled(Net):
    def forward(self, x):
        h = self.dropout1(self.batchnorm(last_output(self.rnn, x)))
        return self.fc2(self.dropout2(torch.relu(self.fc1(h))))


def law(name):
    return None if name.startswith("batchnorm") else (False, 32**-0.5 if name.startswith("fc2") else 64**-0.5)


def loss_of(net, x, y):
    with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in mode):
        return nn.functional.cross_entropy(net(x), y)


if "compile" in mode:
    loss_of = torch.compile(loss_of, dynamic=False)


def epoch(net, optimizer, x, y, number):
    for index in torch.tensor(as_native.order(1, number, len(x))).split(batch):
        optimizer.zero_grad()
        loss_of(net, x[index], y[index]).backward()
        optimizer.step()


def fresh():
    net = Unrolled() if "unrolled" in mode else Net()
    as_native.start(net, 1, law)
    return net, torch.optim.Adadelta(net.parameters(), lr=lr, foreach=True)


def train(x, y):
    net, optimizer = fresh()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma)
    start = time.perf_counter()
    for number in range(epochs):
        epoch(net, optimizer, x, y, number)
        schedule.step()
    return net, time.perf_counter() - start


def main():
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    x, y = load("train")
    net, _ = fresh()
    net.dropout1.p = net.dropout2.p = 0.0
    first = as_native.order(1, 0, len(x))[:batch]
    print(loss_of(net, x[first], y[first]).item(), flush=True)
    epoch(*fresh(), x, y, 0)
    print("warm", flush=True)
    x_test, y_test = load("t10k")
    for _ in sys.stdin:
        net, seconds = train(x, y)
        net.eval()
        with torch.no_grad():
            right = (net(x_test).argmax(1) == y_test).sum().item()
        print(f"{epochs * len(x) / seconds:.1f} {seconds:.3f} {right / len(x_test):.4f}", flush=True)


if __name__ == "__main__":
    main()
