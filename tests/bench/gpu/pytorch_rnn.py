#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MNIST RNN in PyTorch on a GPU: pytorch_rnn.py DATA BATCH HOW; HOW: eager, graphs (compiled, CUDA graphs). The data set is on the device,
batches are slices of a permutation. Prints {"samples_per_s": median of the warm epochs}."""
import gzip
import json
import os
import statistics
import sys
import time

import numpy as np
import torch
from torch import nn

folder, batch, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def read(stem):
    path = os.path.join(folder, stem)
    with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")) as f:
        return f.read()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(28, 64, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(64)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        h = self.dropout1(self.batchnorm(self.rnn(x)[0][:, -1]))
        h = self.dropout2(torch.relu(self.fc1(h)))
        return torch.log_softmax(self.fc2(h), 1)


torch.manual_seed(1)
torch.set_float32_matmul_precision("highest")
torch.backends.cudnn.allow_tf32 = False
images = np.frombuffer(read("train-images-idx3-ubyte")[16:], np.uint8).reshape(-1, 28, 28)
labels = np.frombuffer(read("train-labels-idx1-ubyte")[8:], np.uint8)
x = ((torch.tensor(images, dtype=torch.float32) / 255 - 0.1307) / 0.3081).cuda()
y = torch.tensor(labels.astype(np.int64)).cuda()
net = Net().cuda()
optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0, foreach=True)


def loss_of(a, b):
    return nn.functional.nll_loss(net(a), b)


if how == "graphs":
    loss_of = torch.compile(loss_of, mode="reduce-overhead")


def epoch():
    torch.cuda.synchronize()
    begin = time.perf_counter()
    parts = [p for p in torch.randperm(len(x), device="cuda").split(batch) if len(p) == batch]
    for index in parts:
        loss_of(x[index], y[index]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return len(parts) * batch / (time.perf_counter() - begin)


for _ in range(3):
    epoch()
print(json.dumps({"samples_per_s": statistics.median(epoch() for _ in range(5)), "torch": torch.__version__}))
