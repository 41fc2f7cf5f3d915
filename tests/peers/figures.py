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


def order_interval(v):
    """Between order statistics, with the coverage of the binomial distribution; beyond 97 % as Hettmansperger and Sheather."""
    v, n = np.log(np.sort(v)), len(v)
    level = {d: 1 - 2 * stats.binom.cdf(d - 1, n, 0.5) for d in range(1, n // 2 + 1)}
    d = max(d for d in level if level[d] >= 0.95)
    share = 0
    if level[d] > 0.97 and d + 1 in level:
        i = (level[d] - 0.95) / (level[d] - level[d + 1])
        share = (n - d) * i / (d + (n - 2 * d) * i)
    inner = d if share else d - 1
    return np.exp((1 - share) * v[d - 1] + share * v[inner]), np.exp((1 - share) * v[n - d] + share * v[n - 1 - inner])


def center(v, median):
    return np.median(v) if median else stats.gmean(v)


def interval(v, median):
    """The mean of the logarithms by scipy's own one-sample interval, or the median by order statistics."""
    if len(v) < (6 if median else 3):
        return None
    if median:
        return order_interval(v)
    low, high = stats.ttest_1samp(np.log(v), 0).confidence_interval(0.95)
    return np.exp(low), np.exp(high)


def ratio(a, b, median):
    """Of geometric means by scipy's Welch; of medians from the halves of both intervals, with Welch's degrees of freedom."""
    if len(a) < 3 or len(b) < 3:
        return None
    if not median:
        low, high = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(0.95)
        return np.exp(low), np.exp(high)
    x, y, value = np.log(order_interval(a)), np.log(order_interval(b)), np.log(np.median(a) / np.median(b))
    ends = []
    for sign, half_a, half_b in ((-1, np.log(np.median(a)) - x[0], y[1] - np.log(np.median(b))), (1, x[1] - np.log(np.median(a)), np.log(np.median(b)) - y[0])):
        e = [half / stats.t.ppf(0.975, len(v) - 1) for half, v in ((half_a, a), (half_b, b))]
        df = (e[0] ** 2 + e[1] ** 2) ** 2 / (e[0] ** 4 / (len(a) - 1) + e[1] ** 4 / (len(b) - 1))
        ends.append(np.exp(value + sign * stats.t.ppf(0.975, df) * np.hypot(*e)))
    return tuple(ends)


def check_interval(name, point, member, wanted):
    found = point.get(member + "_interval")
    if wanted is None:
        assert found is None, (name, found)
    else:
        near(name + " low", found[0], wanted[0])
        near(name + " high", found[1], wanted[1])


def tables(rng):
    """Values, intervals, speedups and efficiencies of random repeats."""
    times, least = {}, rng.choice([1, 6])
    for nodes in (1, 2, 4, 8):
        n = int(rng.integers(least, 12))
        spread = rng.choice([0.0005, 0.02, 0.3])
        times[nodes] = np.exp(rng.normal(np.log(1000 / nodes ** 0.8), spread, n))
    rate = rng.random() < 0.5
    metric = "samples_per_s" if rate else "train_s"
    results = [{"cell": {"nodes": nodes, "gpus_per_node": 2, "epochs": 3, "repeat": i + 1}, metric: float(1e6 / t if rate else t)}
               for nodes, v in times.items() for i, t in enumerate(v)]
    rng.shuffle(results)
    out = report(results, "--metric", metric, baseline={"nodes": 1})
    median = all(len(v) >= 6 for v in times.values())
    assert out["statistic"] == ("median" if median else "geometric mean"), out["statistic"]
    for point in out["tables"][0]["points"]:
        p = point["row"]["nodes"]
        v = np.array([1e6 / t if rate else t for t in times[p]])
        base = np.array([1e6 / t if rate else t for t in times[1]])
        near("value", point["value"], center(v, median))
        check_interval("value", point, "value", interval(v, median))
        speedup = center(v, median) / center(base, median) if rate else center(base, median) / center(v, median)
        near("speedup", point["speedup"], speedup)
        near("efficiency", point["efficiency"], speedup / p)
        near("serial", point.get("serial_fraction"), (1 / speedup - 1 / p) / (1 - 1 / p) if p > 1 else None)
        if p > 1:
            check_interval("speedup", point, "speedup", ratio(v, base, median) if rate else ratio(base, v, median))


LAWS = {"amdahl": lambda p, f: np.log(f + (1 - f) / p), "usl": lambda p, s, k: np.log((1 + s * (p - 1) + k * p * (p - 1)) / p),
        "gustafson": lambda p, s: -np.log(p - s * (p - 1))}
NAMES = {"amdahl": ["serial_fraction"], "usl": ["contention", "coherency"], "gustafson": ["serial_fraction"]}


def as_published(v, silent=False):
    """Their mean as people publish it (silent: without sd), and what it says of the runs' logarithms: mean, squares, runs, degrees of freedom."""
    mean, sd = np.mean(v), np.std(v, ddof=1)
    if silent:
        return {"n": len(v), "train_s": mean}, (np.log(mean), 0, len(v), 0)
    return {"n": len(v), "sd": sd, "train_s": mean}, (np.log(mean), (len(v) - 1) * (sd / mean) ** 2, len(v), len(v) - 1)


def curve(rng, law, truth, cv, weak):
    """Runs of a noisy curve, one to five on each number of devices, some as published means; their logarithms (per unit of work): mean, squares,
    runs, degrees of freedom."""
    moments, results, publish = {}, [], rng.random() < 0.5
    for p in (1, 2, 3, 4, 6, 8, 12, 16):
        y, work = np.log(100) + LAWS[law](float(p), *truth) + rng.normal(0, cv, int(rng.integers(1, 6))), p if weak else 1
        cell = {"nodes": p, "epochs": 1, **({"problem_size": p} if weak else {})}
        if publish and len(y) > 1 and rng.random() < 0.7:
            row, m = as_published(np.exp(y) * work, rng.random() < 0.3)
            results.append({"cell": cell, **row})
            moments[p] = (m[0] - np.log(work), *m[1:])
        else:
            results += [{"cell": {**cell, "repeat": i + 1}, "train_s": float(np.exp(v) * work)} for i, v in enumerate(y)]
            moments[p] = (y.mean(), ((y - y.mean()) ** 2).sum(), len(y), len(y) - 1)
    return moments, report(results, baseline={"nodes": 1, **({"problem_size": 1} if weak else {})}, report={"rows": ["nodes"]})["tables"][0]


def laws(rng):
    """Fits, errors, intervals, lack of fit and predictions of noisy curves."""
    weak = rng.random() < 0.3
    law, truth = ("gustafson", [rng.uniform(0.05, 0.3)]) if weak else ("usl", [rng.uniform(0.05, 0.2), rng.choice([0, rng.uniform(1e-4, 5e-3)])])
    moments, table = curve(rng, law, truth, rng.choice([0.005, 0.03]), weak)
    series = table["scaling"][0]
    x, (y, squares, runs, df) = np.array(list(moments), float), np.array(list(moments.values())).T
    pure, freedom, total = squares.sum(), df.sum(), runs.sum()
    for law in ("gustafson",) if weak else ("amdahl", "usl"):
        h, fit = LAWS[law], series.get(law)
        if fit is None:
            assert series["withheld"][law], series
            continue
        slopes = lambda x, *b: np.stack([(b[0] + e[0] + h(x, *(b + e)[1:])).imag for e in 1e-20j * np.eye(len(b))], -1) / 1e-20
        b, c = optimize.curve_fit(lambda x, a, *b: a + h(x, *b), x, y, p0=[np.log(100)] + [0.05, 0.001][:len(NAMES[law])], jac=slopes, xtol=1e-14, ftol=1e-14,
                                  sigma=1 / np.sqrt(runs), absolute_sigma=True)
        rest = (runs * (y - b[0] - h(x, *b[1:])) ** 2).sum()
        below = len(x) - len(b)
        lack = stats.f.sf(rest / below / (pure / freedom), below, freedom) < 0.01
        assert lack == fit.get("lack_of_fit", False), (lack, fit)
        df, variance = (below, rest / below) if lack else (below + freedom, (rest + pure) / (below + freedom))
        for i, name in enumerate(NAMES[law], 1):
            error = np.sqrt(c[i, i] * variance)
            assert abs(fit[name] - b[i]) < 1e-5 * error, (fit, b)
            near(name + " error", fit[name + "_error"], error * stats.t.ppf(stats.norm.cdf(1), df), 1e-4)
            near(name + " low", fit[name + "_interval"][0] - b[i], -error * stats.t.ppf(0.975, df), 1e-4)
        if law == "amdahl":
            continue
        assert lack == ("predicted" not in series), series
        if lack:
            continue
        line = slopes(32.0, *b)
        half = stats.t.ppf(0.975, df) * np.sqrt(variance * (1 + line @ c @ line))
        time = np.exp(b[0] + h(32.0, *b[1:])) * (32 if weak else 1)
        base = table["points"][0]["value"]
        predicted = series["predicted"]
        near("predicted time", predicted["train_s"], time, 1e-5)
        near("predicted low", predicted["train_s_interval"][0], time * np.exp(-half), 1e-5)
        near("predicted speedup", predicted["speedup"], base * (32 if weak else 1) / time, 1e-5)
        near("predicted high", predicted["speedup_interval"][1], base * (32 if weak else 1) / time * np.exp(half), 1e-5)


def coverage(rng, law, truth, counts, runs, cv, draws, publish):
    """How often true coefficients and a further run lie within what the report says of the series that it fits; from runs, or published means."""
    spread, weak = np.sqrt(np.log1p(cv * cv)), law == "gustafson"
    amount = lambda p: {"problem_size": p} if weak else {}
    results, rest = [], {}
    for s in range(draws):
        for p in counts:
            cell = {"nodes": p, "strategy": f"s{s}", "epochs": 1, **amount(p)}
            t = np.exp(np.log(100) + LAWS[law](float(p), *truth) + rng.normal(0, spread, runs)) * (p if weak else 1)
            results += [{"cell": cell, **as_published(t)[0]}] if publish else [{"cell": {**cell, "repeat": i + 1}, "train_s": v} for i, v in enumerate(t)]
    table = report(results, baseline={"nodes": 1, **amount(1)}, report={"rows": ["nodes"], "columns": ["strategy"]})["tables"][0]
    fitted = [s for s in table["scaling"] if law in s]
    errors = [abs(s[law][n] - t) <= s[law][n + "_error"] for s in fitted for n, t in zip(NAMES[law], truth)]
    predicted = [s["predicted"]["train_s_interval"] for s in table["scaling"] if s.get("predicted", {}).get("law", "").lower() == law]
    last = 2 * counts[-1]
    new = np.exp(np.log(100) + LAWS[law](float(last), *truth) + rng.normal(0, spread, len(predicted))) * (last if weak else 1)
    return len(fitted), errors, [low <= t <= high for (low, high), t in zip(predicted, new)]


def promises(rng):
    """Coverage over several truths, device counts, runs and spreads, through the program and with what it withholds."""
    for law, truth in (("amdahl", [0.1]), ("usl", [0.05, 0.001]), ("usl", [0.1, 0]), ("gustafson", [0.15])):
        errors, ahead = [], []
        for counts in ([1, 2, 4, 8], [1, 2, 4, 8, 16], [1, 2, 4, 8, 16, 32]):
            for runs, cv in ((1, 0.01), (3, 0.03), (5, 0.1)):
                _, e, a = coverage(rng, law, truth, counts, runs, cv, 240, runs > 3)
                errors += e
                ahead += a
        print(law, truth, "within ±:", np.mean(errors), "of", len(errors), "predicted:", np.mean(ahead) if ahead else "-", "of", len(ahead))
        assert 0.64 <= np.mean(errors) <= 0.72, (law, truth, np.mean(errors))
        assert not ahead or 0.93 <= np.mean(ahead) <= 0.97, (law, truth, np.mean(ahead))


def added(a, b):
    """Sum of two variances, with Satterthwaite's degrees of freedom."""
    (x, f), (y, g) = a, b
    return x + y, (x + y) ** 2 / (x ** 2 / f + y ** 2 / g)


def write_set(rng, name, v):
    """A set of one cell, its runs or their published mean; the moments of their logarithms."""
    rows, y = [{"cell": {"nodes": 1, "repeat": i + 1}, "train_s": float(t)} for i, t in enumerate(v)], np.log(v)
    moments = y.mean(), ((y - y.mean()) ** 2).sum(), len(v), len(v) - 1
    if rng.random() < 0.4:
        row, moments = as_published(v)
        rows = [{"cell": {"nodes": 1}, **row}]
    with open(name + ".json", "w") as f:
        json.dump({"schema": "hpcgrid-results/1", "name": name, "results": rows}, f)
    return moments


def comparison(rng):
    """Ratios and verdicts of two runs."""
    a, b = (np.exp(rng.normal(np.log(m), 0.02, n)) for m, n in ((10, int(rng.integers(3, 9))), (10 * rng.choice([0.8, 1, 1.04, 1.3]), int(rng.integers(3, 9)))))
    (x, squares, _, _), (y, others, _, _) = (write_set(rng, name, v) for name, v in (("a", a), ("b", b)))
    done = subprocess.run([HPCGRID, "compare", "a.json", "b.json", "--json"], capture_output=True, text=True)
    cell = json.loads(done.stdout)["cells"][0]
    # geometric means at every n; one cell: its own noise, both sides pooled
    df = len(a) + len(b) - 2
    half = stats.t.ppf(0.975, df) * np.sqrt((squares + others) / df * (1 / len(a) + 1 / len(b)))
    speed = np.exp(x - y)
    assert [cell["a"]["n"], cell["b"]["n"]] == [len(a), len(b)], cell
    low, high = speed * np.exp(-half), speed * np.exp(half)
    near("speed", cell["speed"], speed)
    near("low", cell["interval"][0], low)
    near("high", cell["interval"][1], high)
    # beyond the tolerance and the repeats' noise, and beyond the 3 % that two whole runs differ by
    noise = (squares + others) / df * (1 / len(a) + 1 / len(b)), df
    p = max(2 * stats.t.cdf(-max(0, beyond) / np.sqrt(v[0]), v[1])
            for beyond, v in ((abs(x - y) - np.log(1.05), noise), (abs(x - y), added(noise, (2 * 0.03 ** 2, 1e6)))))
    verdict = ("faster" if speed > 1 else "slower") if p <= 0.05 else "same" if low >= 1 / 1.05 and high <= 1.05 else "unclear"
    assert cell["verdict"] == verdict and done.returncode == (verdict == "slower"), (cell, verdict, done.returncode)


def history(rng):
    """The change of one cell over eight runs, and its interval as their repeats, the assumed 3 % and their scatter give it."""
    count, at, jump = 8, int(rng.integers(3, 6)), rng.choice([0.7, 1.5])
    names = [f"h{i}" for i in range(count)]
    means, squares, runs, freedom = np.array([write_set(rng, name, np.exp(rng.normal(np.log(10 * (jump if i >= at else 1)), 0.02, int(rng.integers(3, 9)))))
                                              for i, name in enumerate(names)]).T
    done = subprocess.run([HPCGRID, "history", *(name + ".json" for name in names), "--json"], capture_output=True, text=True)
    changes = json.loads(done.stdout)["listings"][1]["rows"]
    assert [c["since"] for c in changes] == [names[at]], changes
    d, rest = means[at:].mean() - means[:at].mean(), sum(((part - part.mean()) ** 2).sum() for part in (means[:at], means[at:]))
    scatter, df = rest / (count - 2), count - 2
    share = 4 / (4 + df)
    prior = added((squares.sum() / freedom.sum() * np.mean(1 / runs), freedom.sum()), (0.03 ** 2, 1e6))
    total = added((share * prior[0], prior[1]), ((1 - share) * scatter, df))
    total = total[0], min(total[1], df / (1 - share) ** 2)
    variance, df = max(total, (scatter, df), key=lambda v: 1 / np.sqrt(v[0]) / (1 + 2 / v[1]))
    half = stats.t.ppf(0.975, df) * np.sqrt(variance * (1 / at + 1 / (count - at)))
    near("change", changes[0]["speed"], np.exp(-d))
    near("change low", changes[0]["speed_low"], np.exp(-d - half))
    near("change high", changes[0]["speed_high"], np.exp(-d + half))


rng = np.random.default_rng(20240601)
for _ in range(60):
    tables(rng)
    laws(rng)
    comparison(rng)
for _ in range(20):
    history(rng)
promises(rng)
print(checked, "figures agree")
