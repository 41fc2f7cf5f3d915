# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face Transformers on the ranks that hpcgrid started."""
import json
import os
import time

import torch
from mnist import Net, accuracy, cell, load
from torch.utils.data import TensorDataset
from transformers import Trainer, TrainerCallback, TrainingArguments

config = cell()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Clock(TrainerCallback):
    def on_train_begin(self, *_, **__):
        self.start = time.perf_counter()

    def on_train_end(self, *_, **__):
        self.train_s = time.perf_counter() - self.start


arguments = TrainingArguments(output_dir=os.environ.get("HPCGRID_ATTEMPT", "."), num_train_epochs=config["epochs"], report_to=[],
                              per_device_train_batch_size=config["batch_size"], seed=config.get("seed", 1), save_strategy="no",
                              logging_strategy="epoch", disable_tqdm=True, use_cpu=not torch.cuda.is_available())
data, model, clock = TensorDataset(*load("train")), Model(), Clock()
optimizer = torch.optim.Adadelta(model.parameters(), lr=config["lr"])
steps = -(-len(data) // (config["batch_size"] * arguments.world_size))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: config["gamma"] ** (step // steps))
trainer = Trainer(model, arguments, train_dataset=data, optimizers=(optimizer, schedule), callbacks=[clock],
                  data_collator=lambda rows: {"x": torch.stack([x for x, _ in rows]), "labels": torch.stack([y for _, y in rows])})
trainer.train()

if trainer.is_world_process_zero() and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump({"train_s": clock.train_s, "samples": config["epochs"] * len(data), "final_loss": trainer.state.log_history[-2]["loss"],
                   "eval": {"accuracy": accuracy(model.net)}}, f)
