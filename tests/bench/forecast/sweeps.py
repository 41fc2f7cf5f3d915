# SPDX-License-Identifier: Apache-2.0
# Sweeps of known laws and noise: results of earlier runs are written as hpcgrid exec would, `hpcgrid plan --forecast` forecasts the next run,
# whose times then follow from the same law with other noise.
import heapq, json, math, os, random, shutil, statistics, subprocess, sys

hpcgrid, rounds = sys.argv[1], int(sys.argv[2])
TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


# name, axes of the earlier runs, of the forecast one, repeats, earlier runs, share of the earlier cells that were measured, seconds of a cell
KINDS = [
    ("the same matrix, one run before", {"lr": [1, 2, 4]}, None, 3, 1, 1, lambda c: 100 + 30 * c["lr"]),
    ("the same matrix, three runs before", {"lr": [1, 2, 4], "model": ["a", "b"]}, None, 2, 3, 1,
     lambda c: (1 if c["model"] == "a" else 7) * (20 + c["lr"])),
    ("the same matrix, no repeats", {"lr": list(range(1, 21))}, None, 1, 1, 1, lambda c: 60 * c["lr"] ** 0.5),
    ("other epochs, no start-up", {"epochs": [1, 2, 4, 8, 16]}, {"epochs": [3, 6, 12, 24]}, 2, 1, 1, lambda c: 50 * c["epochs"]),
    ("other epochs, start-up of two epochs", {"epochs": [1, 2, 4, 8, 16, 32]}, {"epochs": [3, 6, 12, 24]}, 2, 1, 1,
     lambda c: 20 + 10 * c["epochs"]),
    ("twice the nodes, Amdahl", {"nodes": [1, 2, 4, 8]}, {"nodes": [16]}, 5, 1, 1, lambda c: 1000 * (0.05 + 0.95 / c["nodes"])),
    ("twice the nodes, all of them", {"nodes": [1, 2, 3, 4, 6, 8]}, {"nodes": [1, 2, 4, 8, 12, 16]}, 3, 1, 1,
     lambda c: 1000 * (1 + 0.03 * (c["nodes"] - 1) + 0.002 * c["nodes"] * (c["nodes"] - 1)) / c["nodes"]),
    ("the rest of a grid, half measured", {"epochs": [1, 2, 4, 8], "model": ["a", "b", "c"], "width": [64, 128, 256]}, None, 1, 1, 0.5,
     lambda c: {"a": 1, "b": 3, "c": 10}[c["model"]] * c["epochs"] * (c["width"] / 64) ** 1.5 * 5),
]


def matrix(axes, repeats, running):
    return {"hpcgrid": 1, "name": "m", "limits": {"running": running}, "repeats": repeats, "axes": axes,
            "site": {"launcher": "srun", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
            "workload": {"command": ["true"], "cpus_per_task": 1}}


def run(*words):
    return subprocess.run([hpcgrid, *words], check=True, capture_output=True, text=True).stdout


def cells(folder):
    for batch in json.load(open(folder + "/plan.json"))["batches"]:
        for line, text in enumerate(open(f"{folder}/batches/{batch['number']}.cells.jsonl")):
            yield batch["number"], line, json.loads(text)


def measured(folder, share, seconds):
    key = json.load(open(folder + "/plan.json"))["run_key"]
    for batch, line, record in cells(folder):
        if random.random() > share:
            continue
        path = f"{folder}/cells/{batch}-{line // 250:03d}/{record['id']}.0.0"
        os.makedirs(path)
        body = json.dumps({"schema": "hpcgrid-result/2", "run_key": key, "id": record["id"], "attempt": "0.0", "status": "ok",
                           "cell": record["cell"], "wall_s": seconds(record["cell"])})[:-1]
        open(path + "/result.json", "w").write(f'{body},"crc":"{crc32c(body.encode()):08x}"}}\n')


def simulate(kind):
    _, before, after, repeats, runs, share, law = kind
    noise, running = random.choice([0.01, 0.03, 0.1]), random.choice([1, 3, 8])
    shutil.rmtree("reports", ignore_errors=True)

    def sweep():  # whole sweeps differ, too
        shift = random.gauss(0, 0.03)
        return lambda cell: law(cell) * math.exp(shift + random.gauss(0, noise))

    json.dump(matrix(before, repeats, running), open("m.json", "w"))
    for number in range(runs):
        run("plan", "m.json", "--out", f"reports/m/{number + 1:03d}")
        measured(f"reports/m/{number + 1:03d}", share, sweep())
    json.dump(matrix(after or before, repeats, running), open("m.json", "w"))
    forecast = json.loads(run("plan", "m.json", "--forecast", "--json"))["forecast"]
    run("plan", "m.json", "--out", "reports/next/001")
    seconds, free, hours, last = sweep(), [0.0] * running, 0.0, 0.0
    for _, _, record in cells("reports/next/001"):
        took = seconds(record["cell"])
        hours += took * record["cell"].get("nodes", 1) / 3600
        last = max(last, heapq.heapreplace(free, free[0] + took) + took)
    if "by the time limit, at most" in forecast["cells"] or "low" not in forecast["seconds"]:
        return None
    return [(abs(math.log(forecast[key]["value"] / real)), forecast[key]["low"] <= real <= forecast[key]["high"])
            for key, real in (("device_hours", hours), ("seconds", last))]


def row(name, sweeps, none):
    figures = []
    for i in range(2):
        figures += ["%.1f %%" % (100 * statistics.median(s[i][0] for s in sweeps)), "%.0f %%" % (100 * statistics.mean(s[i][1] for s in sweeps))]
    print(f"{name:<44} {len(sweeps):>6} {none:>5} {figures[0]:>9} {figures[1]:>7} {figures[2]:>9} {figures[3]:>7}")


random.seed(16)
print(f"{'':<57} {'device-hours':>17} {'duration':>17}")
print(f"{'sweeps forecast from':<44} {'sweeps':>6} {'none':>5} {'error':>9} {'holds':>7} {'error':>9} {'holds':>7}")
total, unknown = [], 0
for kind in KINDS:
    sweeps = [simulate(kind) for _ in range(rounds)]
    known = [s for s in sweeps if s]
    row(kind[0], known, rounds - len(known))
    total += known
    unknown += rounds - len(known)
row("all; error: median", total, unknown)
