# SPDX-License-Identifier: Apache-2.0
"""JAX: jax.distributed on the ranks that hpcgrid started, the batch cut over all devices. Another model than the others': two dense layers."""
import json
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from mnist import cell, load

config = cell()
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if world > 1:
    jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", world, rank)
mesh = jax.make_mesh((jax.device_count(),), ("data",))
spread, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
x, y = (t.numpy() for t in load("train"))
keys = jax.random.split(jax.random.key(config.get("seed", 1)), 2)
params = {"w1": jax.random.normal(keys[0], (784, 64)) * 0.05, "b1": jnp.zeros(64), "w2": jax.random.normal(keys[1], (64, 10)) * 0.1, "b2": jnp.zeros(10)}
params = jax.device_put(params, everywhere)


def logits(p, x):
    return jnp.maximum(x.reshape(len(x), -1) @ p["w1"] + p["b1"], 0) @ p["w2"] + p["b2"]


def loss_of(p, x, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(p, x)), y[:, None], 1).mean()


@jax.jit
def step(p, x, y):
    loss, gradient = jax.value_and_grad(loss_of)(p, x, y)
    return jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), loss


start = time.perf_counter()
batch = config["batch_size"] * world
for epoch in range(config["epochs"]):
    order = np.random.default_rng(epoch).permutation(len(x))
    for at in range(0, len(x) - batch + 1, batch):
        mine = order[at:at + batch][rank::world]
        params, loss = step(params, *(jax.make_array_from_process_local_data(spread, a[mine]) for a in (x, y)))
final_loss = float(loss)
train_s = time.perf_counter() - start

x_test, y_test = (t.numpy() for t in load("t10k"))
right = float((jnp.argmax(logits(jax.device_get(params), x_test), 1) == y_test).mean())
if rank == 0 and "HPCGRID_RESULT" in os.environ:
    with open(os.environ["HPCGRID_RESULT"], "w") as f:
        json.dump({"train_s": train_s, "samples": config["epochs"] * len(x), "final_loss": final_loss, "eval": {"accuracy": right},
                   "comparable": {"model": "mlp"}}, f)
