# SPDX-License-Identifier: Apache-2.0
"""Small trainings of hpcgrid-worker that fail on purpose: their cells, their ranks, what their checkpoints hold."""
import hashlib, json, os, random, signal, subprocess, time

import lab

WORKER = lab.BUILD + "/worker/hpcgrid-worker"
LIMIT_S = 180  # what takes longer hangs
SHARDED = ("fsdp", "deepspeed", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3")
STRATEGIES = ("single", "dp", "ddp", *SHARDED)
# batch_size is that of all ranks.
MODELS = {
    "rnn": {"dataset": "mnist-slice", "samples": 120, "batch_size": 24, "epochs": 2},
    "bert": {"model": "bert-tiny", "hidden": 8, "layers": 2, "heads": 2, "vocab_size": 200, "positions": 128, "dataset": "squad-slice",
             "samples": 2, "vocab": "vocab.txt", "seq_len": 128, "doc_stride": 24, "batch_size": 12, "epochs": 3, "lr": 1e-3, "warmup": 0.1},
}
# What a checkpoint holds that may differ: times, and the sums over these.
TIMES = ("train.step_s", "train.epoch_s", "hpcgrid.checksums")
# A rank. $VICTIM: the one that strace watches, with the words $TRACE; $AT_CHECKPOINT: only where it touches files of this training.
RANK = """#!/bin/bash
rank=${OMPI_COMM_WORLD_RANK:-0}
echo $$ >pid.$rank
[ "$rank" = "${VICTIM-}" ] || exec "$@"
paths=()
if [ -n "$AT_CHECKPOINT" ]; then
    for name in keep keep/c.safetensors keep/c.safetensors.$$.tmp c.json r.json keep/c.safetensors.{1..20}.rank$rank{,.$$.tmp}; do
        paths+=(-P "$PWD/$name")
    done
fi
exec strace -D -f -y -qq -o trace $TRACE "${paths[@]}" "$@"
"""
LETTERS = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + c for c in LETTERS), *(f"[unused{i}]" for i in range(59))]


def environment():
    """Of all trainings. MPI keeps its files in TMPDIR, also when it is killed."""
    for name in [n for n in os.environ if n.startswith(("HPCGRID_", "SLURM_", "OMPI_", "PMIX_")) or n in ("RANK", "WORLD_SIZE")]:
        if name != "HPCGRID_BUILD":
            del os.environ[name]
    os.environ.update(HPCGRID_LOG="warn", OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", OMPI_MCA_btl="self,vader", LC_ALL="C",
                      OMPI_MCA_mpi_yield_when_idle="1", ASAN_OPTIONS="detect_leaks=0", OMPI_MCA_odls_base_sigkill_timeout="2")


def tensors(path):
    """Of a checkpoint and its parts: name to bytes, and the state."""
    with open(path, "rb") as f:
        raw = f.read()
    begin = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:begin])
    state = json.loads(header.pop("__metadata__")["hpcgrid"])
    found = {name: raw[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]] for name, t in header.items()}
    for part in (state.get("parts") or {"files": []})["files"]:  # in the order of the ranks
        for name, values in tensors(f"{os.path.dirname(path)}/{part['name']}")[0].items():
            found[name] = found.get(name, b"") + values
    return found, state


def dead(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def stopped(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "Tt"
    except OSError:
        return False


class Training:
    """In a folder of its own; `start` begins it or goes on."""

    def __init__(self, cwd, model, strategy, ranks, every=1000, shards=False):
        self.cwd, self.model, self.strategy, self.ranks, self.every, self.shards = cwd, model, strategy, ranks, every, shards
        self.path = cwd + "/keep/c.safetensors"
        os.makedirs(cwd, exist_ok=True)
        with open(cwd + "/rank.sh", "w") as f:
            f.write(RANK)
        os.chmod(cwd + "/rank.sh", 0o755)
        with open(cwd + "/vocab.txt", "w") as f:
            f.write("\n".join(VOCABULARY) + "\n")

    def __str__(self):
        return f"{self.model} {self.strategy} {self.ranks}{' shards' if self.shards else ''}"

    def processes(self):
        return 1 if self.strategy == "dp" else self.ranks

    def cell(self, **more):
        cell = dict(MODELS[self.model], strategy=self.strategy, eval=False, checkpoint=self.path, checkpoint_every=self.every, **more)
        cell["batch_size"] //= self.ranks
        if self.strategy == "dp":
            cell["dp_devices"] = self.ranks
        if self.shards:
            cell["checkpoint_shards"] = True
        return cell

    def pids(self):
        found = []
        for rank in range(self.processes()):
            try:
                with open(f"{self.cwd}/pid.{rank}") as f:
                    found.append(int(f.read()))
            except (OSError, ValueError):
                pass
        return found

    def start(self, kill_all=None, **variables):
        """Exit code ("hangs", "killed"), what it printed. kill_all: this rank stops, then everything is killed; variables: of the environment."""
        for name in [n for n in os.listdir(self.cwd) if n.startswith(("pid.", "trace", "r.json"))]:
            os.unlink(f"{self.cwd}/{name}")
        with open(self.cwd + "/c.json", "w") as f:
            json.dump(self.cell(), f)
        words = ["./rank.sh", WORKER, "train", "--cell", self.cwd + "/c.json", "--result", self.cwd + "/r.json"]
        if self.processes() > 1:
            words = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(self.ranks), *words]
        tmp = self.cwd + "/tmp"
        os.makedirs(tmp, exist_ok=True)
        env = dict(os.environ, TMPDIR=tmp, OMPI_MCA_btl_vader_backing_directory=tmp, **{k: str(v) for k, v in variables.items()})
        with open(self.cwd + "/log", "w+", errors="replace") as log:
            p = subprocess.Popen(words, cwd=self.cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            code = self.wait(p, kill_all)
            log.seek(0)
            return code, log.read()

    def wait(self, p, kill_all):
        end, pause = time.monotonic() + LIMIT_S, 0.002
        while p.poll() is None:
            if kill_all is not None and any(stopped(pid) for pid in self.pids()[kill_all:kill_all + 1]):
                self.kill(p)
                return "killed"
            if time.monotonic() > end:
                left = [pid for pid in self.pids() if not dead(pid)]
                self.kill(p)
                return "hangs" if left else "launcher hangs"
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        while any(not dead(pid) for pid in self.pids()):
            if time.monotonic() > end:
                self.kill(p)
                return "hangs"
            time.sleep(pause)
        return p.returncode

    def kill(self, p):
        for pid in (p.pid, *self.pids()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        p.wait()
        while any(not dead(pid) for pid in self.pids()):
            time.sleep(0.01)

    def result(self):
        try:
            with open(self.cwd + "/r.json") as f:
                return json.load(f)
        except FileNotFoundError:
            return None

    def saved(self):
        """The state of the checkpoint that is there, or None."""
        return tensors(self.path)[1] if os.path.exists(self.path) else None

    def outcome(self):
        """Losses, parameters and optimizer to the bit, by name."""
        return {name: hashlib.md5(values).hexdigest() for name, values in tensors(self.path)[0].items() if name not in TIMES}

    def loads(self):
        """None, or what `inspect` says of the checkpoint that is there."""
        code, out, err = lab.call([WORKER, "inspect", self.path], self.cwd)
        return None if code == 0 else f"inspect: {code} {err[-400:]}"


def any_training(cwd):
    """One of those whose next start has the same bits."""
    strategy = random.choice(STRATEGIES)
    ranks = 1 if strategy == "single" else random.randint(1, 4)
    return Training(cwd, random.choice(list(MODELS)), strategy, ranks, random.randint(1, 4), strategy in SHARDED and random.random() < 0.5)
