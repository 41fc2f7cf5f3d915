#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What this card can do, measured with PyTorch: FLOP/s of a large product in bf16, tf32 and fp32, bytes/s of a large copy (read and written).
Prints one JSON object."""
import json
import time

import torch


def best(work, tries=12):
    work()
    torch.cuda.synchronize()
    times = []
    for _ in range(tries):
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


out, n = {}, 8192
for name, dtype, precision in (("bf16", torch.bfloat16, "highest"), ("tf32", torch.float32, "high"), ("fp32", torch.float32, "highest")):
    torch.set_float32_matmul_precision(precision)
    a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
    out[name + "_flops"] = 2 * n**3 / best(lambda: a @ b)
source = torch.empty(1 << 28, device="cuda")
target = torch.empty_like(source)
out["bytes_per_s"] = 2 * source.numel() * 4 / best(lambda: target.copy_(source))
print(json.dumps(out))
