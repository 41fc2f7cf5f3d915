# SPDX-License-Identifier: Apache-2.0
"""hpcgrid's commands on small runs of four cells whose Slurm is a script: the state each begins with, and what must hold after a fault in it,
when it has been given again without one."""
import json, os, random, re, shutil, sys, tempfile, time

from lab import HPCGRID, call, hg

CELLS = 4
MATRIX = {"hpcgrid": 1, "name": "m", "site": {"launcher": "", "heartbeat_s": 1, "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
          "workload": {"command": ["sh", "-c", "echo ran >>$ANSWERS/ran.$0; echo '{\"train_s\": 1}' >$HPCGRID_RESULT; [ $0 != 3 ]", "{{i}}"],
                       "cwd": "/", "launch": [], "time": "5m"}, "axes": {"i": [1, 2, 3, 4]}}
AGENT = r'''#!/usr/bin/env python3
import json, os, subprocess, sys
base = os.environ["ANSWERS"] + "/"
def jobs():
    with open(base + "jobs") as f:
        return [json.loads(line) for line in f]
for line in sys.stdin:
    q = json.loads(line)
    op = q["op"]
    a = {"hello": {"protocol": 1, "agent": "x", "library": "22.05.8", "conf": "x"}, "probe": {"start_s": 0, "nodes": ""},
         "limits": {"max_array_size": 1001, "max_jobs": 10000, "min_job_age_s": 300, "ambiguous_s": 1, "message_timeout_s": 1,
                    "accounting": False, "version": "22.05.8", "cluster": "script"}}.get(op)
    if op == "submit":
        with open(base + "requests", "a") as f:
            f.write(json.dumps(q["job"]) + "\n")
        with open(base + "jobs", "a") as f:
            f.write(json.dumps({"key": q["job"]["key"], "tasks": q["job"].get("array", "0"), "job_id": 17 + len(jobs())}) + "\n")
        a = {"job_id": 16 + len(jobs()), "site": ""}
        if open(base + "state").read() == "COMPLETED":
            tasks = q["job"].get("array", "0").split("-")
            for i in range(int(tasks[0]), int(tasks[-1]) + 1):
                job = dict(os.environ, SLURM_JOB_ID=str(a["job_id"]), SLURM_JOB_NODELIST="n1", SLURM_RESTART_COUNT="0", SLURM_ARRAY_TASK_ID=str(i))
                subprocess.run([q["job"]["script"], *q["job"]["args"]], env=job, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    elif op == "cancel":
        open(base + "state", "w").write("CANCELLED")
    elif op == "hold":
        open(base + "held", "w").write("yes" if q["held"] else "")
    elif op == "poll":
        state = open(base + "state").read().strip()
        reason = "JobHeldUser" if os.path.exists(base + "held") and open(base + "held").read() else "None"
        a = {"jobs": [dict(j, state=state, reason=reason, nodes="n1" if state != "PENDING" else "", restarts=0, exit_status=0, submit_s=1,
                           start_s=2 if state != "PENDING" else 0, end_s=3 if state in ("COMPLETED", "CANCELLED") else 0) for j in jobs()]}
    print(json.dumps({"id": q["id"], "rpcs": 1, "ok": a if a is not None else {}}), flush=True)
'''


BAD = ("AddressSanitizer", "runtime error:", "LeakSanitizer", "Assertion", "Fatal glibc error")


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def submitted(cwd):
    with open(cwd + "/jobs") as f:
        return [json.loads(line)["tasks"] for line in f]


# ---- States a command begins with: folders, made once ----

def begin(cwd):
    os.makedirs(cwd, exist_ok=True)
    json.dump(MATRIX, open(cwd + "/m.json", "w"))
    open(cwd + "/jobs", "w").close()
    open(cwd + "/state", "w").write("PENDING")


def queued(cwd):
    begin(cwd)
    os.environ["ANSWERS"] = cwd
    need(hg(cwd, "submit", "m.json"), 0)


def task(cwd, i, restarts=0):
    os.environ.update(SLURM_JOB_ID="17", SLURM_JOB_NODELIST="n1", SLURM_RESTART_COUNT=str(restarts), SLURM_ARRAY_TASK_ID=str(i))
    return [HPCGRID, "exec", "--run", cwd + "/reports/m/001", "--batch", "1", "--submission", "1", "--offset", "0"]


def done(cwd):
    queued(cwd)
    for i in range(CELLS):
        call(task(cwd, i), cwd)
    outside()
    open(cwd + "/state", "w").write("COMPLETED")


def ended(cwd):
    done(cwd)
    need(hg(cwd, "resume", "m"), 1)


def held(cwd):
    queued(cwd)
    need(hg(cwd, "hold", "m"), 0)


def ending(cwd):
    """A job ends as soon as it is submitted."""
    begin(cwd)
    open(cwd + "/state", "w").write("COMPLETED")


def outside():
    """Of any job."""
    for name in [n for n in os.environ if n.startswith("SLURM_")] + ["HPCGRID_REPORTS"]:
        os.environ.pop(name, None)


def need(result, code):
    if result[0] != code:
        sys.exit(f"without a fault: exit code {result[0]} instead of {code}\n{result[1]}{result[2]}")


# ---- What must hold behind a fault ----

def nothing(cwd, rc):
    return None


def sound(cwd):
    code, out, err = hg(cwd, "fsck", "m")
    return None if code == 0 else f"fsck: {out[-300:]}{err[-900:]}"


def all_queued(cwd, rc):
    """Submitted again, every cell is queued once."""
    if rc == 0 and submitted(cwd) != ["0-3"]:
        return f"claims to have submitted, Slurm has {submitted(cwd)}"
    end = time.monotonic() + 60
    while True:  # what is in doubt is settled a few seconds later
        code, out, err = hg(cwd, "submit", "m.json")
        if code != 0:
            return f"submit afterwards: {code} {out[-300:]}{err[-900:]}"
        if not re.search("intended|ambiguous", err):
            break
        if time.monotonic() > end:
            return f"still in doubt: {err[-900:]}"
        time.sleep(0.5)
    if submitted(cwd) != ["0-3"]:
        return f"submitted: {submitted(cwd)}"
    return sound(cwd)


def all_ended(cwd, rc):
    """Driven again, the books say three are good and one failed; nothing was submitted again."""
    code, out, err = hg(cwd, "resume", "m")
    if code != 1:
        return f"resume afterwards: {code} {out[-300:]}{err[-900:]}"
    counts = json.loads(hg(cwd, "status", "m", "--json")[1])["counts"]
    if counts != {"ok": 3, "failed": 1}:
        return f"counts {counts}"
    if submitted(cwd) != ["0-3"]:
        return f"submitted: {submitted(cwd)}"
    return sound(cwd)


def all_cancelled(cwd, rc):
    """Cancelled again, no cell is left, and no other one was sent."""
    for _ in range(2):
        code, out, err = hg(cwd, "cancel", "m")
    if code != 0:
        return f"cancel afterwards: {code} {out[-300:]}{err[-900:]}"
    counts = json.loads(hg(cwd, "status", "m", "--json")[1])["counts"]
    if counts != {"cancelled": CELLS} or submitted(cwd) != ["0-3"]:
        return f"counts {counts}, submitted {submitted(cwd)}"
    return sound(cwd)


def all_held(cwd, rc, word="hold"):
    """The same word again is obeyed, and nothing was submitted or ended."""
    code, out, err = hg(cwd, word, "m")
    if code != 0:
        return f"{word} afterwards: {code} {out[-300:]}{err[-900:]}"
    with open(cwd + "/held") as f:
        if (f.read() == "yes") != (word == "hold") or submitted(cwd) != ["0-3"]:
            return f"{word} did not reach Slurm; submitted: {submitted(cwd)}"
    return sound(cwd)


def all_retried(cwd, rc):
    """Driven on, the failed cell was sent once more, or not at all; then it still can be."""
    code, out, err = hg(cwd, "resume", "m")
    if code == 1 and len(submitted(cwd)) == 1:
        code, out, err = hg(cwd, "retry", "m")
    counts = json.loads(hg(cwd, "status", "m", "--json")[1])["counts"]
    if code != 1 or counts != {"ok": 3, "failed": 1} or submitted(cwd) != ["0-3", "0"]:
        return f"afterwards: {code} {counts} {submitted(cwd)} {out[-300:]}{err[-900:]}"
    return sound(cwd)


def all_run(cwd, rc):
    """Run again, every cell was sent once."""
    code, out, err = hg(cwd, "run", "m.json")
    counts = json.loads(hg(cwd, "status", "m", "--json")[1])["counts"]
    if code != 1 or counts != {"ok": 3, "failed": 1} or submitted(cwd) != ["0-3"]:
        return f"run afterwards: {code} {counts} {submitted(cwd)} {out[-300:]}{err[-900:]}"
    return sound(cwd)


def came_home(cwd, rc):
    """The job of cell 1 ran; Slurm starts it again when it failed, and it has one good result."""
    for n in range(1, 4):
        if rc == 0:
            break
        rc = call(task(cwd, 0, n), cwd)[0]
    outside()
    good = [p for p in results(cwd) if json.load(open(p)).get("status") == "ok"]
    if rc != 0 or len(good) != 1:
        return f"exit code {rc}, good results: {good}"
    return sound(cwd)


def results(cwd):
    for folder, _, files in os.walk(cwd + "/reports/m/001/cells"):
        if "result.json" in files:
            yield folder + "/result.json"


COMMANDS = {  # name: state, words, after, wanted exit code
    "check": (begin, ["check", "m.json"], nothing, 0),
    "expand": (begin, ["expand", "m.json"], nothing, 0),
    "explain": (begin, ["explain", "m.json", "i=2"], nothing, 0),
    "plan": (begin, ["plan", "m.json", "--out", "p"], lambda cwd, rc: plan_again(cwd, rc), 0),
    "submit": (begin, ["submit", "m.json"], all_queued, 0),
    "exec": (queued, None, came_home, 0),
    "resume": (done, ["resume", "m"], all_ended, 1),
    "status": (ended, ["status", "m"], nothing, 0),
    "report": (ended, ["report", "m"], nothing, 1),
    "csv": (ended, ["report", "m", "--format", "csv"], nothing, 1),
    "page": (ended, ["report", "m", "--format", "html", "--out", "page.html"], nothing, 1),
    "logs": (ended, ["logs", "m", "i=1"], nothing, 0),
    "trace": (ended, ["trace", "m"], nothing, 0),
    "collect": (ended, ["collect", "m"], all_ended, 1),
    "compact": (ended, ["collect", "m", "--compact"], all_ended, 1),
    "cancel": (queued, ["cancel", "m"], all_cancelled, 0),
    "hold": (queued, ["hold", "m"], all_held, 0),
    "release": (held, ["release", "m"], lambda cwd, rc: all_held(cwd, rc, "release"), 0),
    "retry": (ended, ["retry", "m"], all_retried, 1),
    "run": (ending, ["run", "m.json"], all_run, 1),
}


def plan_again(cwd, rc):
    if rc != 0 and os.path.exists(cwd + "/p/plan.json"):
        missing = [n for n in ("matrix.json", "site.json", "batches/1.cells.jsonl", "batches/1.sh") if not os.path.exists(f"{cwd}/p/{n}")]
        return f"the plan that is left lacks {missing}" if missing else None
    return None


class Command:
    """One of COMMANDS, its state made and kept in work; each trial has it afresh."""

    def __init__(self, name, work):
        self.name, self.cwd, self.base = name, work + "/t", work + "/" + name
        self.exit_code = COMMANDS[name][3]
        os.environ["ANSWERS"] = self.cwd
        COMMANDS[name][0](self.cwd)  # folders know their place
        shutil.copytree(self.cwd, self.base, symlinks=True)

    def fresh(self):
        """Its words, with a state as if never used."""
        shutil.rmtree(self.cwd)
        shutil.copytree(self.base, self.cwd, symlinks=True)
        outside()
        return task(self.cwd, 0) if self.name == "exec" else [HPCGRID, *COMMANDS[self.name][1]]

    def check(self, rc):
        """What is wrong behind a fault that ended it with rc; None: nothing."""
        return COMMANDS[self.name][2](self.cwd, rc)

    def judge(self, rc, out, err):
        """The same behind a fault of its agent, of which it knows: it must not claim what is not so, and give a reason."""
        if rc not in (0, 1, 2, 3, 4):
            return f"exit code {rc}"
        if any(word in err for word in BAD):
            return "a sanitizer's report"
        if rc > 1 and not err.strip():
            return f"exit code {rc} without a reason"
        if rc == 0 and self.name == "cancel" and read(self.cwd + "/state") != "CANCELLED" or rc == 0 and self.name == "hold" and read(self.cwd + "/held") != "yes":
            return "claims what was not done"
        unsure = any(words in out + err for words in ("not known whether", "waiting for room"))
        return self.check(1 if unsure else rc)

    def done(self):
        shutil.rmtree(self.cwd)
        shutil.rmtree(self.base)


def set_up(work):
    """The environment of all commands, with an agent in work."""
    outside()
    agent = work + "/agent"
    with open(agent, "w") as f:
        f.write(AGENT)
    os.chmod(agent, 0o755)
    os.environ.update(HPCGRID_SLURM_AGENT=agent, LC_ALL="C")


def each(names):
    """A Command for every name, or for all."""
    with tempfile.TemporaryDirectory() as work:
        set_up(work)
        for name in names or COMMANDS:
            command = Command(name, os.path.realpath(work))
            yield command
            command.done()


def try_some(options, book, name, faults, trial):
    """trial(fault) for all faults, --trials of them, or, for --hours, ten; a line of what came of it."""
    most = options.trials or (10 if options.hours else 0)
    chosen = random.sample(faults, most) if 0 < most < len(faults) else faults
    wrong = book.counts["wrong"]
    for fault in chosen:
        trial(fault)
    print(f"{name:12} {len(faults):6} faults {len(chosen):6} tried {book.counts['wrong'] - wrong:4} wrong", flush=True)


def series(options, book, names, choices, trial, prefix=""):
    """trial(command, fault) for faults that choices(command) lists."""
    for command in each(names):
        try_some(options, book, prefix + command.name, choices(command), lambda fault: trial(command, fault))
