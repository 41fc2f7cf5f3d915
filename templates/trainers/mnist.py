# SPDX-License-Identifier: Apache-2.0
"""What a user already has: a model and its data. The same as hpcgrid-worker's `rnn` on `mnist-slice`."""
import gzip
import json
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
FOLDERS = [HERE / "../../worker/samples", HERE / "../.."]  # in the source tree, installed


def shipped(name):
    return next(folder / name for folder in FOLDERS if (folder / name).exists())


def load(part, dataset="mnist-slice"):
    folder = shipped("mnist") if dataset == "mnist-slice" else Path(os.environ["HPCGRID_DATA"]) / dataset
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as images, gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as labels:
        x = np.frombuffer(images.read()[16:], np.uint8).reshape(-1, 28, 28)
        y = np.frombuffer(labels.read()[8:], np.uint8)
    return (torch.tensor(x, dtype=torch.float32) / 255 - 0.1307) / 0.3081, torch.tensor(y.astype(np.int64))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(28, 64, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(64)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        h = self.dropout1(self.batchnorm(self.rnn(x)[0][:, -1]))
        return self.fc2(self.dropout2(torch.relu(self.fc1(h))))


def cell():
    """The values of this cell, from hpcgrid; without it, to try the script alone."""
    path = os.environ.get("HPCGRID_CELL")
    return json.load(open(path)) if path else {"epochs": 1, "batch_size": 64, "lr": 1.0, "gamma": 0.7}


def accuracy(net, dataset="mnist-slice"):
    x, y = load("t10k", dataset)
    net.eval()
    with torch.no_grad():
        return (net(x.to(next(net.parameters()).device)).argmax(1).cpu() == y).double().mean().item()
