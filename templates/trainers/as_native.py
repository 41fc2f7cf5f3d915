# SPDX-License-Identifier: Apache-2.0
"""What makes a PyTorch training compute what hpcgrid-worker does: its first weights and its order of samples, both functions of the seed
(worker/backends/rng.h), and its loss curve. Two curves then differ by rounding alone, where nothing is dropped out."""
import json
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

SITE_INIT, SITE_ORDER = 1 << 16, 2 << 16
LOW = np.uint64(0xffffffff)


def philox(seed, c0, c1, c2, c3):
    """Philox4x32 with 10 rounds (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3"); counters may be arrays."""
    c0, c1, c2, c3 = (np.asarray(c, dtype=np.uint64) for c in np.broadcast_arrays(c0, c1, c2, c3))
    k0, k1 = seed & 0xffffffff, seed >> 32
    for _ in range(10):
        a, b = np.uint64(0xd2511f53) * c0, np.uint64(0xcd9e8d57) * c2
        c0, c1, c2, c3 = (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0), b & LOW, (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1), a & LOW
        k0, k1 = (k0 + 0x9e3779b9) & 0xffffffff, (k1 + 0xbb67ae85) & 0xffffffff
    return c0, c1, c2, c3


def draw(seed, index, n, normal):
    """n numbers for a model's parameter `index`: normal (Box and Muller), or uniform in (-1, 1)."""
    units = [(w.astype(np.float64) + 0.5) / 2**32 for w in philox(seed, np.arange((n + 3) // 4), SITE_INIT + index, 0, 0)]
    if not normal:
        return 2 * np.stack(units, axis=1).reshape(-1)[:n] - 1
    pairs = [(np.sqrt(-2 * np.log(units[k])), 2 * np.pi * units[k + 1]) for k in (0, 2)]
    return np.stack([f(angle) * radius for radius, angle in pairs for f in (np.cos, np.sin)], axis=1).reshape(-1)[:n]


def order(seed, epoch, n):
    words = philox(seed, np.arange(n), SITE_ORDER, epoch, 0)
    high, low, ids = words[0].tolist(), words[1].tolist(), list(range(n))
    for i in range(n - 1, 0, -1):
        k = (high[i] << 32 | low[i]) * (i + 1) >> 64
        ids[i], ids[k] = ids[k], ids[i]
    return ids


def start(net, seed, law):
    """law(name) says how a parameter is drawn: (normal, scale); None: it keeps PyTorch's value, which is a constant."""
    with torch.no_grad():
        for index, (name, p) in enumerate(net.named_parameters()):
            if law(name):
                normal, scale = law(name)
                p.copy_(torch.from_numpy((scale * draw(seed, index, p.numel(), normal)).astype(np.float32).reshape(p.shape)))


def join(config):
    """Joins the ranks that hpcgrid started. Returns this rank's device."""
    if config.get("precision", "fp32") != "fp32" or config.get("dropout", True):
        sys.exit("as hpcgrid-worker only in fp32 and without dropout: set \"precision\": \"fp32\", \"dropout\": false")
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()) if cuda else torch.device("cpu")


def train(config, n, loss_of, optimizer, after_step=None, after_epoch=None):
    """The loop. loss_of(ids): the mean loss of these of n samples. Returns the result as hpcgrid-worker would write it."""
    rank, world, batch = dist.get_rank(), dist.get_world_size(), config["batch_size"]
    orders = [order(config.get("seed", 1), epoch, n) for epoch in range(config["epochs"])]
    losses, epoch_steps = [], -(-n // (world * batch))
    dist.barrier()
    begin = time.perf_counter()
    for ids in orders:
        share = (ids + ids[: -n % world])[rank::world]  # filled up with the first ones, so that all ranks have as many
        for at in range(0, len(share), batch):
            optimizer.zero_grad()
            loss = loss_of(share[at : at + batch])
            loss.backward()
            optimizer.step()
            after_step and after_step()
            losses.append(loss.detach())
        after_epoch and after_epoch()
    curve = torch.stack(losses)
    dist.all_reduce(curve)
    curve = (curve / world).tolist()  # waits for the GPU
    train_s = time.perf_counter() - begin
    samples = config["epochs"] * n
    return {"train_s": train_s, "samples": samples, "samples_per_s": samples / train_s, "final_loss": sum(curve[-epoch_steps:]) / epoch_steps,
            "loss": {"step": list(range(1, len(curve) + 1)), "loss": curve},
            "comparable": {"precision": "fp32", "tf32": False, "global_batch": world * batch, "samples": n, "epochs": config["epochs"], "dropout": False,
                           "dataset": config["dataset"]}}


def finish(result):
    if dist.get_rank() == 0 and "HPCGRID_RESULT" in os.environ:
        with open(os.environ["HPCGRID_RESULT"], "w") as f:
            json.dump(result, f)
    dist.destroy_process_group()
