# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer on the ranks that hpcgrid started."""
import json
import os
import time

import lightning as L
import torch
from lightning.fabric.plugins.environments import LightningEnvironment
from mnist import Net, accuracy, cell, load
from torch.utils.data import DataLoader, TensorDataset

config = cell()
world, nodes = int(os.environ.get("WORLD_SIZE", 1)), config.get("nodes", 1)
os.environ["NODE_RANK"] = str(int(os.environ.get("RANK", 0)) // (world // nodes))


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        optimizer = torch.optim.Adadelta(self.parameters(), lr=config["lr"])
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, config["gamma"])]

    def on_train_start(self):
        self.start = time.perf_counter()

    def on_train_batch_end(self, outputs, *_):
        self.loss = outputs["loss"]

    def on_train_end(self):
        self.final_loss = self.loss.item()
        self.train_s = time.perf_counter() - self.start


L.seed_everything(config.get("seed", 1))
data, module = TensorDataset(*load("train")), Module()
trainer = L.Trainer(max_epochs=config["epochs"], devices=world // nodes, num_nodes=nodes, strategy="ddp", plugins=[LightningEnvironment()],
                    logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(module, DataLoader(data, batch_size=config["batch_size"], shuffle=True))

if trainer.is_global_zero and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump({"train_s": module.train_s, "samples": config["epochs"] * len(data), "final_loss": module.final_loss,
                   "eval": {"accuracy": accuracy(module.net)}}, f)
