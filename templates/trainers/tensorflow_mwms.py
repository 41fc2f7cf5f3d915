# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's MultiWorkerMirroredStrategy. Two dense layers instead of the LSTM. It wants every rank's address in TF_CONFIG, made here of
MASTER_ADDR (the first node) and Slurm's list of nodes."""
import json
import os
import subprocess
import time

import numpy as np
from mnist import cell, load

config = cell()
rank, world, port = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["MASTER_PORT"])
if world > 1:
    hosts = subprocess.run(["scontrol", "show", "hostnames", os.environ["SLURM_STEP_NODELIST"]], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    workers = [f"{hosts[r * len(hosts) // world]}:{port + r}" for r in range(world)]  # ranks fill a node before the next
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})

import tensorflow as tf  # noqa: E402, reads TF_CONFIG

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[int(os.environ["LOCAL_RANK"]) % len(gpus)], "GPU")
tf.keras.utils.set_random_seed(config.get("seed", 1))
strategy = tf.distribute.MultiWorkerMirroredStrategy() if world > 1 else tf.distribute.get_strategy()
batch = config["batch_size"] * world
(x, y), (x_test, y_test) = ((a.numpy() for a in load(part)) for part in ("train", "t10k"))
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=1).batch(batch, drop_remainder=True).with_options(options)

with strategy.scope():
    net = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(10)])
    net.compile(tf.keras.optimizers.Adadelta(config["lr"]), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))

decay = tf.keras.callbacks.LearningRateScheduler(lambda epoch: config["lr"] * config["gamma"] ** epoch)
start = time.perf_counter()
history = net.fit(data, epochs=config["epochs"], callbacks=[decay], verbose=0)
train_s = time.perf_counter() - start

result = {"train_s": train_s, "samples": config["epochs"] * len(x), "final_loss": history.history["loss"][-1],
          "eval": {"accuracy": float(np.mean(net(x_test).numpy().argmax(1) == y_test))}}  # every rank takes part
if rank == 0 and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump(result, f)
