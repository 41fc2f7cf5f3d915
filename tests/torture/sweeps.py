# SPDX-License-Identifier: Apache-2.0
"""Sweeps on a real Slurm (`hpcgrid box`) while its daemons, nodes and jobs, and hpcgrid itself, fail at random; and what must hold when the
faults have ended."""
import collections, glob, json, os, random, re, shutil, signal, subprocess, sys, tempfile, threading, time

import agents, commands, lab
from lab import BUILD, HPCGRID, call

NODES = 4
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
ACCOUNTING = bool(shutil.which("slurmdbd", path=PATH) and shutil.which("mariadbd", path=PATH))
BOUND_S = 900  # after the last fault a run has ended: Slurm takes up to five minutes to notice that a start or an end got lost, a node a minute
FINAL = ("failed", "timeout", "oom", "node_fail", "cancelled", "lost")

# Appends lines "WORD PID ATTEMPT", WORD one of start, beat, end.
CELL = r"""exec >>"$1" 3<> <(:)
say() { printf '%s %s %s\n' "$1" $$ "${HPCGRID_ATTEMPT##*/}"; }
say start
for ((n = $2 * 2; n > 0; n--)); do
    read -rt 0.5 -u 3
    say beat
done
say end
"""


def kill(pid, what=signal.SIGKILL):
    """False: it was gone already."""
    try:
        os.kill(pid, what)
        return True
    except ProcessLookupError:
        return False


def wait(seconds, what):
    """Until what() is true; seconds: for a machine that is busy with other things."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def processes(*words):
    """Pids of those that have each word as a part of their arguments or environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as c, open(f"/proc/{pid}/environ", "rb") as e:
                text = c.read() + b"\0" + e.read() + b"\0"
        except OSError:
            continue
        if int(pid) != os.getpid() and all(word.encode() in text for word in words):
            found.append(int(pid))
    return found


def parent(pid):
    """Pid and name of its parent."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            ppid = int(f.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{ppid}/comm") as f:
            return ppid, f.read().strip()
    except OSError:
        return 0, ""


def missing():
    """What there is not to start a Slurm; None: all is there."""
    return next((f"{p} is not installed" for p in ("slurmctld", "slurmd", "munged") if not shutil.which(p, path=PATH)), None)


def options(text):
    """Options. Leaves where there is no Slurm to start. The environment is as outside of any job."""
    commands.outside()
    if missing():
        print(missing())
        sys.exit(77)
    return lab.options(text)


class Sweep:
    """One matrix on a box of its own, in a folder of its own. faults: names of its methods fault_NAME. transports: each start of hpcgrid takes one
    of these."""

    def __init__(self, book, cells, seconds, faults, accounting=False, transports=("slurm",)):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of close
        self.book, self.cells, self.faults, self.accounting, self.transports = book, cells, faults, accounting, transports
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="torture-"))
        self.name = os.path.basename(self.dir).lower().replace("_", "")
        self.spec = ["--name", self.name, "--nodes", f"cpu:{NODES}x0/8", *(["--accounting"] if accounting else []),
                     *(word for s in ("MessageTimeout=5", "AuthInfo=ttl=8,cred_expire=8", "SlurmdTimeout=5") for word in ("--set", s))]
        self.driver, self.server, self.undo, self.helpers = None, None, [], []
        self.down, self.judged, self.sizes = set(), None, []
        os.mkdir(self.dir + "/ran")
        with open(self.dir + "/cell", "w") as f:
            f.write(CELL)
        with open(self.dir + "/r.json", "w") as f:
            json.dump({"hpcgrid": 1, "name": "r", "site": {"launcher": "srun", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
                       "workload": {"command": ["bash", self.dir + "/cell", self.dir + "/ran/{{i}}", str(seconds)], "launch": [], "time": "10m"},
                       "retry": {"LOST": 1, "NODE_FAIL": 1}, "axes": {"i": {"range": [1, cells]}}}, f)
        self.step("0")
        rc, out, err = call([HPCGRID, "box", "up", *self.spec], self.dir, limit=BOUND_S)
        if rc != 0:
            sys.exit(err)
        self.conf = re.search(r"SLURM_CONF=(\S+)", out)[1]
        self.env = dict(os.environ, SLURM_CONF=self.conf, LC_ALL="C", HPCGRID_LOG="warn")
        if "rest" in transports:
            self.serve()

    def wrong(self, text, word=None):
        self.book.wrong(f"sweep {self.book.counts.get('sweeps', 0)} ({self.dir})", text, word)

    # ---- hpcgrid ----

    def hg(self, *args, limit=BOUND_S, **env):
        return call([HPCGRID, *args], self.dir, limit=limit, env={**self.env, **env})

    def drive(self, word, operand="r"):
        """In the background, with a clock that can be set; asan wants to be the first library, and this one is no rival."""
        self.taken = random.choice(self.transports)
        env = dict(self.env, **agents.taken(self.taken), LD_PRELOAD=BUILD + "/tests/libwrongclock.so", CLOCK_AHEAD_FILE=self.dir + "/clock",
                   ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
        with open(self.dir + "/out", "a") as out, open(self.dir + "/log", "a") as log:
            print(f"---- {word}", file=log, flush=True)
            self.driver = subprocess.Popen([HPCGRID, word, operand], cwd=self.dir, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=log)

    def drive_on(self):
        if self.driver is None:
            self.drive("resume")

    def ended(self):
        """True: the driver has ended by itself."""
        if self.driver is None or self.driver.poll() is None:
            return False
        if self.driver.returncode not in (0, 1) and self.judged != self.driver:
            self.judged = self.driver
            self.wrong(f"hpcgrid ended with {self.driver.returncode}:\n{self.tail('log')}")
        return True

    def tail(self, name):
        with open(f"{self.dir}/{name}") as f:
            return f.read()[-1500:]

    def states(self):
        """Cells of the journal; empty: there is no journal."""
        return json.loads(self.hg("status", "r", "--json", "--cells", "--no-poll")[1] or "{}").get("list", [])

    # ---- Slurm ----

    def slurm(self, *args):
        """Its answer; None: it has none."""
        rc, out, _ = call(args, self.dir, limit=30, env=self.env)
        return out.split() if rc == 0 else None

    def serve(self):
        """A slurmrestd, as SlurmUser, for hpcgrid-rest."""
        version = call(["slurmrestd", "-V"], self.dir, env={**self.env, "PATH": PATH})[1]
        plugins = "openapi/v0.0.38" if " 22.05" in version else "slurmctld"
        self.env["SLURMRESTD_URL"] = "unix:" + self.dir + "/rest.sock"
        with open(self.dir + "/rest.log", "w") as log:
            self.server = subprocess.Popen(["slurmrestd", "-a", "rest_auth/local", "-s", plugins, self.env["SLURMRESTD_URL"]], cwd=self.dir, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log, env={**self.env, "PATH": PATH, "SLURMRESTD_SECURITY": "disable_user_check"})
        if not wait(60, lambda: os.path.exists(self.dir + "/rest.sock") or self.server.poll() is not None) or self.server.poll() is not None:
            sys.exit(f"slurmrestd does not start\n{self.tail('rest.log')}")

    def jobs(self, *states):
        return self.slurm("squeue", "-h", "-r", "-t", ",".join(states), "-o", "%i")

    def box(self):
        return json.loads(self.hg("box", "status", self.name, "--json")[1])

    def pid(self, daemon):
        return next(d["pid"] for d in self.box()["daemons"] if d["name"] == daemon)

    def heal(self):
        """Start what is dead again. Does not wait until all nodes answer: some may be drained."""
        self.down.clear()
        self.helpers.append(subprocess.Popen([HPCGRID, "box", "up", *self.spec], cwd=self.dir, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def administer(self):
        """What an administrator does. Slurm drains a node that is at work on a job that it starts there a second time; slurmctld does not start
        without munged."""
        if all(h.poll() is not None for h in self.helpers) and self.box()["state"] != "up":
            self.heal()
        for node in set(self.slurm("sinfo", "-h", "-N", "-t", "drain,down", "-o", "%N") or []):
            self.slurm("scontrol", "update", "nodename=" + node, "state=resume")

    def on_node(self, node):
        """Pids of all jobs of a node, their slurmstepds first."""
        jobs = processes("SLURMD_NODENAME=" + node + "\0", "SLURM_CONF=" + self.conf + "\0")
        return [p for p, name in map(parent, jobs) if name == "slurmstepd"] + jobs

    # ---- Faults: each does one thing. Returns what undoes it, None; False: it was not possible now ----

    def stop(self, daemon, seconds):
        if daemon in self.down or not kill(self.pid(daemon)):
            return False
        self.down.add(daemon)
        return self.heal, seconds

    def node(self):
        return f"cpu-{random.randint(1, NODES)}"

    def answers(self):
        return not self.down & {"slurmctld", "munged"}

    def fault_controller(self):
        return self.stop("slurmctld", 6)

    def fault_munge(self):
        return self.stop("munged", 6)

    def fault_accounting(self):
        return self.stop("slurmdbd", 12)

    def fault_slurmd(self):
        return self.stop("slurmd-" + self.node(), 12)

    def fault_reboot(self):
        node = self.node()
        if self.stop("slurmd-" + node, 12) is False:
            return False
        for _ in range(2):
            for pid in self.on_node(node):
                kill(pid)
        return self.heal, 12

    def fault_freeze(self):
        """A slurmd, or the controller, answers late."""
        daemon = random.choice(["slurmctld", "slurmd-" + self.node()])
        if daemon in self.down:
            return False
        pid = self.pid(daemon)
        return kill(pid, signal.SIGSTOP) and (lambda: kill(pid, signal.SIGCONT), 8)

    def fault_drain(self):
        node = self.node()
        if not self.answers() or self.slurm("scontrol", "update", "nodename=" + node, "state=drain", "reason=torture") is None:
            return False
        return lambda: self.slurm("scontrol", "update", "nodename=" + node, "state=resume"), 12

    def a_job(self, *states):
        found = self.jobs(*states) if self.answers() else None
        return random.choice(found) if found else None

    def fault_requeue(self):
        job = self.a_job("R")
        return None if job and self.slurm("scontrol", "requeue", job) is not None else False

    def fault_cancel(self):
        job = self.a_job("R", "PD")
        return None if job and self.slurm("scancel", job) is not None else False

    def fault_driver(self):
        """hpcgrid, and its agent or not."""
        if self.driver is None or self.driver.poll() is not None:
            return False
        mine = self.own_agents()
        kill(self.driver.pid)
        self.driver.wait()
        self.driver = None
        for pid in mine if random.random() < 0.5 else ():
            kill(pid)
        return self.drive_on, 3

    def own_agents(self):
        """Pids of the driver's."""
        return [p for p in processes("SLURM_CONF=" + self.conf + "\0") if parent(p)[0] == self.driver.pid]

    def fault_agent(self):
        if self.driver is None or self.driver.poll() is not None or not [p for p in self.own_agents() if kill(p)]:
            return False
        self.book.add("agent_" + self.taken)
        return None

    def fault_exec(self):
        """`hpcgrid exec` of a running job."""
        found = processes(HPCGRID + "\0exec\0", "SLURM_CONF=" + self.conf + "\0")
        return None if found and kill(random.choice(found)) else False

    def step(self, seconds):
        with open(self.dir + "/clock.new", "w") as f:
            f.write(seconds)
        os.rename(self.dir + "/clock.new", self.dir + "/clock")

    def fault_clock(self):
        """hpcgrid's and its agent's."""
        self.step(str(random.choice([-600, 600])))
        return lambda: self.step("0"), 12

    # ---- A sweep ----

    def one_fault(self):
        name = random.choice(self.faults)
        done = getattr(self, "fault_" + name)()
        if done is False:
            return False
        self.book.trial()
        self.book.add(name)
        if done:
            self.undo.append((time.monotonic() + random.uniform(0, done[1]), done[0]))
        return True

    def repair(self, now):
        due = [u for u in self.undo if u[0] <= now]
        self.undo = [u for u in self.undo if u[0] > now]
        for _, what in due:
            what()

    def run(self, most, gap):
        """At most so many faults, one every gap seconds, then the end, and what must hold."""
        self.book.add("sweeps")
        self.book.add("cells", self.cells)
        with self:
            self.drive("run", "r.json")
            threading.Thread(target=self.watch, args=(self.driver,), daemon=True).start()
            self.fail(most, gap)
            self.come_to_an_end()
            self.count()

    def __enter__(self):
        self.wrong_before = self.book.counts["wrong"]
        return self

    def __exit__(self, kind, *_):
        """Its files are kept if anything went wrong."""
        self.close()
        if kind is None and self.book.counts["wrong"] == self.wrong_before:
            shutil.rmtree(self.dir)

    def afresh(self):
        """As if nothing had run."""
        shutil.rmtree(self.dir + "/ran")
        shutil.rmtree(self.dir + "/reports", ignore_errors=True)
        os.mkdir(self.dir + "/ran")

    def fail(self, most, gap):
        if not wait(BOUND_S, lambda: os.listdir(self.dir + "/ran") or self.ended()):
            sys.exit(f"no cell begins\n{self.tail('log')}")
        due, done = 0, 0
        while done < most and not self.book.over():
            now = time.monotonic()
            self.repair(now)
            if self.ended():
                if {c["state"] for c in self.states()} == {"ok"}:
                    break
                self.book.add("retries")
                self.drive("retry")
            if now >= due and len(self.undo) < 4 and self.one_fault():
                due, done = now + random.uniform(0.5, 1.5) * gap, done + 1
            time.sleep(0.1)

    def come_to_an_end(self):
        """No more faults: the run ends within the bound, every cell with a result or a reason; retry brings the rest home."""
        self.repair(float("inf"))
        last = time.monotonic()
        self.heal()
        self.drive_on()
        while not self.ended():
            self.administer()
            if time.monotonic() > last + BOUND_S:
                self.wrong(f"hpcgrid still drives {BOUND_S} s after the last fault\n{self.tail('log')}")
                kill(self.driver.pid)
                return
            wait(1, self.ended)
        self.book.counts["longest_end_s"] = max(self.book.counts.get("longest_end_s", 0), round(time.monotonic() - last, 1))
        cells = self.states()
        if len(cells) != self.cells:
            self.wrong(f"{len(cells)} of {self.cells} cells in the journal", "lost")
        for c in cells:
            if c["state"] != "ok":
                self.book.add("ended_otherwise")
                if c["state"] not in FINAL or not c["text"]:
                    self.wrong(f"{c['id']} is {c['state']} ({c['text']!r}) at the end", None if c["state"] in FINAL else "lost")
        if any(c["state"] != "ok" for c in cells):
            rc, _, err = self.hg("retry", "r")
            if rc != 0:
                self.wrong(f"retry ends with {rc}\n{err[-1500:]}")

    def count(self):
        """What the cells wrote, hpcgrid's books and Slurm's queue: nothing lost, nothing doubled, nothing left."""
        if not wait(BOUND_S, self.quiet):
            self.wrong(f"still at work: {processes(self.dir + '/cell')}, queued: {self.jobs('PD')}")
        attempts = collections.defaultdict(set)
        for folder, _, files in os.walk(self.dir + "/reports/r/001/cells"):
            if "result.json" in files:
                with open(folder + "/result.json") as f:
                    result = json.load(f)
                if result["status"] == "ok":
                    attempts[result["id"]].add(os.path.basename(folder))
        good = set().union(*attempts.values())
        self.book.add("starts", sum(self.copies(n, good) for n in os.listdir(self.dir + "/ran")))
        for name, which in attempts.items():
            if len(which) > 1:
                self.wrong(f"{name} has good results {sorted(which)}")
        ok = {c["id"] for c in self.states() if c["state"] == "ok"}
        if len(ok) != self.cells:
            self.wrong(f"{len(ok)} of {self.cells} cells came home", "lost")
        collected = {r["id"] for r in json.loads(self.hg("collect", "r", "--json")[1])["results"] if r["status"] == "ok"}
        report = json.loads(self.hg("report", "r", "--format", "json")[1])["cells_complete"]
        if not ok == collected == set(attempts) or report != len(ok):
            self.wrong(f"the books differ: status {len(ok)}, collect {len(collected)}, report {report}, attempts {len(attempts)}")
        rc, out, err = self.hg("fsck", "r")
        if rc != 0:
            self.wrong(f"fsck: {rc} {out[-300:]}{err[-900:]}")
        for path in [self.dir + "/log", *glob.glob(self.dir + "/reports/r/001/logs/*")]:
            text = commands.read(path)
            if any(word in text for word in commands.BAD):
                self.wrong(f"{path}: {text[-1500:]}")
        if self.accounting:
            self.records(ok)
        left = [n for n in os.listdir(self.dir + "/reports/r/001") if re.match(r"lock|cancel|hold|release", n)]
        if left:
            self.wrong(f"left in the run's folder: {left}")

    def records(self, ok):
        """What Slurm says: each cell's jobs began one behind the other, none behind one that completed, and each ran its cell at most once."""
        jobs = self.begun_jobs()
        self.book.add("jobs", sum(map(len, jobs.values())))
        if self.book.counts["jobs"] < self.book.counts["starts"]:
            self.wrong(f"{self.book.counts['starts']} starts in {self.book.counts['jobs']} jobs", "doubled")
        for cell in ok - set(jobs):
            self.wrong(f"Slurm has no job of {cell}", "lost")
        for cell, began in jobs.items():
            for one, other in zip(sorted(began), sorted(began)[1:]):
                if other[0] < one[1] or one[2] == "COMPLETED":
                    self.wrong(f"{cell}: job {other} behind {one}", "doubled")

    def begun_jobs(self):
        """Cell to (begin, end, state) of its jobs; whose a job was stands in its claim."""
        cells, jobs = {}, collections.defaultdict(list)
        for folder, _, files in os.walk(self.dir + "/reports/r/001/cells"):
            for name in {"claim.json", "claim.taken.json"} & set(files):
                claim = json.loads(commands.read(f"{folder}/{name}"))
                cells[f"{claim['array_job_id']}_{claim['array_task_id']}"] = os.path.basename(folder).rsplit(".", 2)[0]
        if not wait(BOUND_S, lambda: set(cells) <= {job for job, _, _, end in self.sacct() if end != "Unknown"}):  # slurmdbd comes behind
            self.wrong(f"sacct lacks {sorted(set(cells) - {row[0] for row in self.sacct()})}")
        for job, state, begin, end in self.sacct():
            if job in cells and begin != "Unknown":
                jobs[cells[job]].append((begin, end, state))
        return jobs

    def sacct(self):
        """Array task, state, begin, end of each job, those that were requeued too."""
        return [line.split("|") for line in self.slurm("sacct", "-n", "-P", "-D", "-X", "-S", "now-1day", "-o", "JobID,State,Start,End") or [] if "|" in line]

    def quiet(self):
        self.administer()
        return not processes(self.dir + "/cell") and self.jobs("PD") == []

    def copies(self, name, good):
        """How often the cell began. Once a later copy has begun, no earlier one is at work; once a good one has ended, none begins."""
        begun, home, problem = [], False, None
        with open(f"{self.dir}/ran/{name}") as f:
            for line in f:
                word, *copy = line.split()
                if word == "start":
                    begun.append(copy)
                    problem = f"{copy} began after a good end" if home else problem
                elif copy != begun[-1]:
                    problem = f"{copy} was at work beside {begun[-1]}"
                home = home or word == "end" and copy[1] in good
        if problem:
            self.wrong(f"cell {name}: {problem}", "doubled")
        return len(begun)

    def close(self):
        """The box, and with it everything that was started here."""
        for p in filter(None, (self.driver, self.server)):
            if p.poll() is None:
                p.kill()
                p.wait()
        for h in self.helpers:
            h.wait()
        shutil.copytree(os.path.dirname(self.conf) + "/log", self.dir + "/box-log", dirs_exist_ok=True)
        rc, _, err = self.hg("box", "down", self.name)
        if rc != 0 or os.path.exists(self.conf):
            self.wrong(f"box down: {rc} {err}")
        if not wait(60, lambda: not processes(self.conf) and not processes(self.dir)):
            for pid in set(processes(self.conf) + processes(self.dir)):
                self.wrong(f"left behind: {pid}, a child of {parent(pid)}")
                kill(pid)

    # ---- The driver's own size ----

    def watch(self, driver):
        """Its RSS (kB) and number of descriptors, from a quarter of the cells begun until all are: the tables at the end take more."""
        proc = f"/proc/{driver.pid}"
        while driver.poll() is None:
            try:
                with open(proc + "/status") as f:
                    rss = re.search(r"VmRSS:\s*(\d+) kB", f.read())
                size = int(rss[1]), len(os.listdir(proc + "/fd"))
            except (OSError, TypeError):
                return  # it has ended
            if self.cells / 4 <= len(os.listdir(self.dir + "/ran")) < self.cells:
                self.sizes.append(size)
            time.sleep(0.03)

    def grown(self):
        """By how much RSS (kB) and descriptors grew from the first quarter of the looks to the last; None: there were too few. The least of each
        counts: while an answer of Slurm is journalled it holds that, and a file is open for a moment."""
        part = len(self.sizes) // 4
        return [min(b) - min(a) for a, b in zip(zip(*self.sizes[:part]), zip(*self.sizes[-part:]))] if part else None
