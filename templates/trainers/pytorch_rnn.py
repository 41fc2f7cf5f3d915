# SPDX-License-Identifier: Apache-2.0
"""hpcgrid-worker's `rnn` by PyTorch: the same data, first weights, batches, optimizer and schedule (matrices/native-vs-pytorch.json)."""
import as_native
import torch
from mnist import Net, accuracy, cell, load
from torch.nn.parallel import DistributedDataParallel

config = cell()
device = as_native.join(config)
world = as_native.dist.get_world_size()


def law(name):
    return None if name.startswith("batchnorm") else (False, 32**-0.5 if name.startswith("fc2") else 64**-0.5)


net = Net()
net.dropout1.p = net.dropout2.p = 0.0
as_native.start(net, config.get("seed", 1), law)
net = net.to(device)
model = DistributedDataParallel(net) if world > 1 else net
optimizer = torch.optim.Adadelta(model.parameters(), lr=config["lr"])
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, config["gamma"])
x, y = (t.to(device) for t in load("train", config["dataset"]))

result = as_native.train(config, len(x), lambda ids: torch.nn.functional.cross_entropy(model(x[ids]), y[ids]), optimizer, after_epoch=schedule.step)
result["eval"] = {"accuracy": accuracy(net, config["dataset"])}
as_native.finish(result)
