#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Slurm of files, for agents: under the names squeue, sbatch, scancel, scontrol and sacct the commands that hpcgrid-sbatch starts, and
slurmrestd as far as hpcgrid-rest asks it (Server). The folder ANSWERS has its state, as commands.py keeps it: jobs, state, held. Answers are damaged
as garble.py says.
"""
import http.server, json, os, re, sys, threading

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import garble

TESTS = os.path.dirname(HERE)
CONFIG = """AuthInfo                = ttl=1
AccountingStorageType   = (null)
ClusterName             = script
MaxArraySize            = 1001
MaxJobCount             = 10000
MessageTimeout          = 1 sec
MinJobAge               = 300 sec
SLURM_VERSION           = 22.05.8
"""


def path(name):
    return os.environ["ANSWERS"] + "/" + name


def read(name):
    try:
        with open(path(name)) as f:
            return f.read()
    except FileNotFoundError:
        return ""


def write(name, text):
    with open(path(name), "w") as f:
        f.write(text)


def jobs():
    return [json.loads(line) for line in read("jobs").splitlines()]


def submit(key, tasks):
    """The number of the new job."""
    number = 17 + len(jobs())
    with open(path("jobs"), "a") as f:
        f.write(json.dumps({"key": key, "tasks": tasks, "job_id": number}) + "\n")
    return number


def tasks_of(job):
    first, _, last = job["tasks"].partition("-")
    return range(int(first), int(last or first) + 1)


def reason():
    return "JobHeldUser" if read("held") else "None"


# ---- Commands ----

def squeue(words):
    fields = [f.partition(":0") for f in words[words.index("-O") + 1].split(",")]
    state = read("state").strip()
    began = state != "PENDING"
    out = ""
    for job in jobs():
        for task in tasks_of(job):
            row = {"JobID": job["job_id"] * 100 + task, "ArrayJobID": job["job_id"], "ArrayTaskID": task, "State": state, "exit_code": 0, "RestartCnt": 0,
                   "SubmitTime": 1, "StartTime": 2 if began else "N/A", "EndTime": 3 if state in ("COMPLETED", "CANCELLED") else "N/A", "Reason": reason(),
                   "NodeList": "n1" if began else "", "Comment": f"hg-{job['key']} {job['tasks']}", "Name": "cell", "StdOut": ""}
            out += "".join(f"{row[name]}{end}" for name, _, end in fields) + "\n"
    return out, "", 0


def sbatch(words):
    if "--version" in words:
        return "slurm 22.05.8\n", "", 0
    given = dict(w[2:].partition("=")[::2] for w in words if w.startswith("--"))
    if "test-only" in given:
        return "", "sbatch: Job 4 to start at 2026-11-22T06:00:00 using 1 processors on nodes n1 in partition cpu\n", 0
    return f"{submit(re.search('hg-([0-9a-f]{32})', given['comment'])[1], given.get('array', '0'))}\n", "", 0


def scancel(words):
    write("state", "CANCELLED")
    return "", f"scancel: Terminating job {words[-1]}\n", 0


def scontrol(words):
    if words[0] in ("uhold", "release"):
        write("held", "yes" if words[0] == "uhold" else "")
        return "", "", 0
    what = words[-1]
    return {"config": CONFIG, "partition": "PartitionName=cpu Default=YES State=UP MaxTime=UNLIMITED TotalNodes=1 TotalCPUs=4 Nodes=n1\n",
            "node": "NodeName=n1 State=IDLE CPUTot=4 RealMemory=4000 Version=22.05.8\n"}[what], "", 0


def sacct(words):
    return "", "", 0


def command(name, words):
    with open(os.path.dirname(sys.argv[0]) + "/env") as f:  # sbatch's own is that of the job
        os.environ.update(json.load(f))
    rng = garble.now() if "--version" not in words else None
    kind = rng.choice(("out", "out", "err", "code", "killed", "failed", "unknown")) if rng else None
    if kind in ("failed", "unknown"):  # and it was not done
        out, err, code = "", {"failed": f"{name}: error: Batch job submission failed: Invalid partition name specified\n", "unknown": "?\n"}[kind], 1
    else:
        out, err, code = globals()[name](words)
    out, err = out.encode(), err.encode()
    if kind == "out":
        out = garble.text(rng, out)
    elif kind == "err":
        err = garble.text(rng, err + b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    elif kind == "code":
        code = rng.choice((1, 2, 127, 255))
    if rng:
        garble.note((name, kind, out, err, code))
    sys.stdout.buffer.write(out)
    sys.stdout.flush()
    sys.stderr.buffer.write(err)
    sys.stderr.flush()
    if kind == "killed":
        os.kill(os.getpid(), 9)
    sys.exit(code)


# ---- slurmrestd ----

def number(n):
    return {"set": True, "infinite": False, "number": n}


def job_object(job, task):
    state = read("state").strip()
    return {"array_job_id": number(job["job_id"]), "array_task_id": number(task), "array_task_string": "", "comment": f"hg-{job['key']} {job['tasks']}",
            "end_time": number(3 if state in ("COMPLETED", "CANCELLED") else 0), "exit_code": {"return_code": number(0), "signal": {"id": number(0)}},
            "job_id": job["job_id"] * 100 + task, "job_state": [state], "name": "cell", "nodes": "n1" if state != "PENDING" else "", "restart_cnt": 0,
            "start_time": number(2 if state != "PENDING" else 0), "state_description": "", "state_reason": reason(), "standard_output": "",
            "submit_time": number(1), "user_name": ""}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        what = self.path.split("/v0.0.42/")[-1].split("?")[0].strip("/")
        meta = {"meta": {"slurm": {"release": "24.11.5", "cluster": "script"}, "plugin": {"accounting_storage": "none"}}, "errors": []}
        if what == "openapi/v3":
            with open(TESTS + "/data/rest/GET_openapi_v3.json") as f:
                return json.load(f)
        if what == "partitions":
            return {**meta, "partitions": [{"name": "cpu", "nodes": {"configured": "n1", "total": 1}, "cpus": {"total": 4}, "partition": {"state": ["UP"]}}]}
        if what == "job/submit":
            job = body["job"]
            return {**meta, "job_id": submit(re.search("hg-([0-9a-f]{32})", job["comment"])[1], job.get("array", "0")), "step_id": "batch"}
        if self.command == "DELETE":
            write("state", "CANCELLED")
            return {**meta, "status": []}
        if what.startswith("job/"):
            write("held", "yes" if body.get("hold") else "")
            return meta
        return {**meta, "jobs": [job_object(job, task) for job in jobs() for task in tasks_of(job)]}

    def serve(self):
        rng = garble.now()
        kind = rng.choice(("value", "value", "value", "text", "text", "status", "length", "close", "undone", "headers")) if rng else None
        if kind == "undone":
            data, status = b'{"errors": [{"error": "x"}]}', rng.choice((200, 400, 404, 500, 502, 503, 504))
        else:
            answer, status = self.answer(), 200
            data = json.dumps(garble.value(rng, answer) if kind == "value" else answer).encode()
        if kind == "text":
            data = garble.text(rng, data)
        elif kind == "status":
            status = rng.choice((100, 204, 301, 307, 408, 429, 500, 502, 503, 504))
        if rng:
            garble.note((self.command, self.path, kind, status, data))
        self.close_connection = True
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
        if kind == "headers":
            head += rng.choice(("X" * 100000 + ": y\r\n", "\0\r\n", "Transfer-Encoding: chunked\r\n", "Content-Encoding: gzip\r\n", ": \r\n"))
        head += f"Content-Length: {len(data) + (rng.choice((-3, 10)) if kind == 'length' else 0)}\r\nConnection: close\r\n\r\n"
        if kind == "close":
            data = data[:rng.randrange(len(data))]
        try:
            self.wfile.write(head.encode() + data)
        except OSError:
            pass

    do_GET = do_POST = do_DELETE = serve


class Server:
    """On loopback; url."""

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    command(os.path.basename(sys.argv[0]), sys.argv[1:])
