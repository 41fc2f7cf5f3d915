# SPDX-License-Identifier: Apache-2.0
"""Tables of random result sets, computed by numpy and scipy and held against `hpcgrid report --format json`."""
import json
import subprocess
import sys

import numpy as np
from scipy import optimize, stats

HPCGRID = sys.argv[1]
checked = 0


def near(name, found, wanted, tolerance=1e-9):
    global checked
    checked += 1
    if wanted is None or not np.isfinite(wanted):
        assert found is None, (name, found, wanted)
    else:
        assert found is not None and abs(found - wanted) <= tolerance * max(1e-12, abs(wanted)), (name, found, wanted)


def report(results, *options, **members):
    text = json.dumps({"schema": "hpcgrid-results/1", "name": "x", "results": results, **members})
    done = subprocess.run([HPCGRID, "report", "-", "--format", "json", *options], input=text, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def interval(v):
    """The mean of the logarithms by scipy's own one-sample interval."""
    if len(v) < 3:
        return None
    low, high = stats.ttest_1samp(np.log(v), 0).confidence_interval(0.95)
    return np.exp(low), np.exp(high)


def welch(a, b):
    if len(a) < 3 or len(b) < 3:
        return None
    low, high = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(0.95)
    return np.exp(low), np.exp(high)


def check_interval(name, point, member, wanted):
    found = point.get(member + "_interval")
    if wanted is None:
        assert found is None, (name, found)
    else:
        near(name + " low", found[0], wanted[0])
        near(name + " high", found[1], wanted[1])


def tables(rng):
    """Medians, intervals, speedups and efficiencies of random repeats."""
    times = {}
    for nodes in (1, 2, 4, 8):
        n = int(rng.integers(1, 9))
        spread = rng.choice([0.0005, 0.02, 0.3])
        times[nodes] = np.exp(rng.normal(np.log(1000 / nodes ** 0.8), spread, n))
    rate = rng.random() < 0.5
    metric = "samples_per_s" if rate else "train_s"
    results = [{"cell": {"nodes": nodes, "gpus_per_node": 2, "epochs": 3, "repeat": i + 1}, metric: float(1e6 / t if rate else t)}
               for nodes, v in times.items() for i, t in enumerate(v)]
    rng.shuffle(results)
    out = report(results, "--metric", metric, baseline={"nodes": 1})
    for point in out["tables"][0]["points"]:
        p = point["row"]["nodes"]
        v = np.array([1e6 / t if rate else t for t in times[p]])
        base = np.array([1e6 / t if rate else t for t in times[1]])
        near("median", point["value"], np.median(v))
        check_interval("value", point, "value", interval(v))
        speedup = np.median(v) / np.median(base) if rate else np.median(base) / np.median(v)
        near("speedup", point["speedup"], speedup)
        near("efficiency", point["efficiency"], speedup / p)
        near("serial", point.get("serial_fraction"), (1 / speedup - 1 / p) / (1 - 1 / p) if p > 1 else None)
        if p > 1:
            check_interval("speedup", point, "speedup", welch(v, base) if rate else welch(base, v))


def least_squares(x, y):
    """Coefficients not below zero, their standard errors, and the covariance, as curve_fit sees them."""
    keep = np.ones(x.shape[1], bool)
    while True:
        b = np.linalg.lstsq(x[:, keep], y, rcond=None)[0]
        if (b >= 0).all() or not keep.any():
            break
        keep[np.flatnonzero(keep)[np.argmin(b)]] = False
    full = np.zeros(x.shape[1])
    full[keep] = b
    _, covariance = optimize.curve_fit(lambda _, *c: x[:, keep] @ np.array(c), None, y, p0=b)
    return full, keep, covariance


def laws(rng):
    """Fits, errors, knees and predictions of a noisy curve."""
    p = np.array([2, 3, 4, 6, 8, 12, 16], float)
    sigma, kappa = rng.uniform(0.01, 0.2), rng.choice([0, rng.uniform(1e-4, 5e-3)])
    speedup = p / (1 + sigma * (p - 1) + kappa * p * (p - 1)) * np.exp(rng.normal(0, 0.01, len(p)))
    results = [{"cell": {"nodes": 1, "epochs": 1}, "train_s": 100.0}]
    results += [{"cell": {"nodes": int(n), "epochs": 1}, "train_s": 100.0 / s} for n, s in zip(p, speedup)]
    series = report(results, baseline={"nodes": 1})["tables"][0]["scaling"][0]
    assert series["kind"] == "strong"
    x, y = 1 - 1 / p, 1 / speedup - 1 / p
    f = optimize.curve_fit(lambda x, f: f * x, x, y)
    near("serial", series["amdahl"]["serial_fraction"], f[0][0], 1e-7)
    near("serial error", series["amdahl"]["serial_fraction_error"], np.sqrt(f[1][0, 0]), 1e-6)
    near("amdahl knee", series["amdahl"]["knee_devices_ratio"], (1 - f[0][0]) / f[0][0], 1e-6)
    x, y = np.column_stack([p - 1, p * (p - 1)]), p / speedup - 1
    b, keep, covariance = least_squares(x, y)
    near("sigma", series["usl"]["contention"], b[0], 1e-7)
    assert abs(series["usl"]["coherency"] - b[1]) < 1e-9, (series["usl"], b)
    errors = iter(np.sqrt(np.diag(covariance)))
    for name, free in zip(("contention_error", "coherency_error"), keep):
        near(name, series["usl"].get(name), next(errors) if free else None, 1e-5)
    if b[1] > 0:
        best = optimize.minimize_scalar(lambda q: -q / (1 + b[0] * (q - 1) + b[1] * q * (q - 1)) ** 2, bounds=(1, 1e4), method="bounded",
                                        options={"xatol": 1e-9})
        near("knee", series["usl"]["knee_devices_ratio"], best.x, 1e-4)
    x0 = np.array([31.0, 32 * 31.0])[keep]
    freedom = len(p) - keep.sum()
    fitted = 1 + x0 @ b[keep]
    rest = y - x @ b
    half = stats.t.ppf(0.975, freedom) * np.sqrt(rest @ rest / freedom + x0 @ covariance @ x0)
    predicted = series["predicted"]
    near("predicted", predicted["speedup"], 32 / fitted, 1e-7)
    near("predicted low", predicted["speedup_interval"][0], 32 / (fitted + half), 1e-6)
    near("predicted high", predicted["speedup_interval"][1], 32 / (fitted - half), 1e-6)
    near("predicted time", predicted["train_s"], 100 * fitted / 32, 1e-7)


def comparison(rng):
    """Ratios and verdicts of two runs."""
    a, b = (np.exp(rng.normal(np.log(m), 0.02, n)) for m, n in ((10, int(rng.integers(3, 9))), (10 * rng.choice([0.8, 1, 1.04, 1.3]), int(rng.integers(3, 9)))))
    for name, v in (("a", a), ("b", b)):
        with open(name + ".json", "w") as f:
            json.dump({"schema": "hpcgrid-results/1", "name": name,
                       "results": [{"cell": {"nodes": 1, "repeat": i + 1}, "train_s": float(t)} for i, t in enumerate(v)]}, f)
    done = subprocess.run([HPCGRID, "compare", "a.json", "b.json", "--json"], capture_output=True, text=True)
    cell = json.loads(done.stdout)["cells"][0]
    low, high = welch(a, b)
    near("speed", cell["speed"], np.median(a) / np.median(b))
    near("low", cell["interval"][0], low)
    near("high", cell["interval"][1], high)
    verdict = "faster" if low > 1.05 else "slower" if high < 1 / 1.05 else "same" if low >= 1 / 1.05 and high <= 1.05 else "unclear"
    assert cell["verdict"] == verdict and done.returncode == (verdict == "slower"), (cell, verdict, done.returncode)


rng = np.random.default_rng(20240601)
for _ in range(60):
    tables(rng)
    laws(rng)
    comparison(rng)
print(checked, "figures agree")
