# SPDX-License-Identifier: Apache-2.0
"""The environments in which hpcgrid's commands take each of its agents, and an agent that is killed."""
import contextlib, json, os, tempfile, time

import centre, commands, lab

HERE = os.path.dirname(os.path.realpath(__file__))
FOLDER = lab.BUILD + "/orchestrator/"
VARIABLES = {"slurm": ("HPCGRID_SLURM_AGENT", FOLDER + "hpcgrid-slurm"), "cli": ("HPCGRID_CLI_AGENT", FOLDER + "hpcgrid-sbatch"),
             "rest": ("HPCGRID_REST_AGENT", FOLDER + "hpcgrid-rest")}  # by HPCGRID_TRANSPORT
COMMANDS = {"cli": ["submit", "resume", "cancel", "hold", "release"], "rest": ["submit", "resume", "cancel"]}  # that centre.py can answer


def built(transport):
    """Says so where it is not."""
    there = os.path.exists(VARIABLES[transport][1])
    if not there:
        print(f"{os.path.basename(VARIABLES[transport][1])} was not built", flush=True)
    return there


def taken(transport):
    variable, path = VARIABLES[transport]
    return {"HPCGRID_TRANSPORT": transport, variable: path}


@contextlib.contextmanager
def sbatch():
    """hpcgrid-sbatch; Slurm's commands are those of centre.py."""
    with tempfile.TemporaryDirectory() as work:
        for name in ("squeue", "sbatch", "scancel", "scontrol", "sacct"):
            os.symlink(HERE + "/centre.py", f"{work}/{name}")
        with open(work + "/slurm.conf", "w") as f:
            f.write("ClusterName=script\nAuthType=auth/none\n")
        yield {**taken("cli"), "CENTRE": work, "PATH": f"{work}:{os.environ['PATH']}", "SLURM_CONF": work + "/slurm.conf"}


def hand_on(env):
    """To the commands: sbatch's own environment is that of the job."""
    if "CENTRE" in env:
        with open(env["CENTRE"] + "/env", "w") as f:
            json.dump({k: env[k] for k in ("DAMAGE", "ANSWERS") if k in env}, f)


@contextlib.contextmanager
def rest():
    """hpcgrid-rest; a slurmrestd of centre.py is named by every matrix of commands.py made within."""
    server = centre.Server()
    commands.MATRIX["site"]["rest"] = {"url": server.url, "ambiguous_s": 1, "timeout_s": 2}
    try:
        yield {**taken("rest"), "SLURM_JWT": "e30.eyJzdW4iOiJ1In0.x"}
    finally:
        del commands.MATRIX["site"]["rest"]
        server.close()


# ---- One that is killed ----

WRAPPER = """#!/bin/sh
# One start in the order's trace, all others as ever.
mv '{0}/order' '{0}/given' 2>/dev/null && exec strace -D -q -o '{0}/trace' $(cat '{0}/given') '{1}' "$@"
exec '{1}' "$@"
"""


class Watched:
    """An agent that a command takes instead of its own, in a folder."""

    def __init__(self, work, env):
        self.dir = work
        variable, path = VARIABLES[env["HPCGRID_TRANSPORT"]]
        self.env = {**env, variable: work + "/agent"}
        with open(work + "/agent", "w") as f:
            f.write(WRAPPER.format(work, path))
        os.chmod(work + "/agent", 0o755)

    def order(self, *words):
        """For strace, of the next start."""
        for name in ("given", "trace"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.dir}/{name}")
        with open(self.dir + "/order", "w") as f:
            f.write(" ".join(words))

    def trace(self):
        """Its lines; the last one, how it ended, is written behind its end."""
        if not os.path.exists(self.dir + "/given"):
            return []
        end = time.monotonic() + 60
        while not (lines := commands.read(self.dir + "/trace").splitlines()) or "+++" not in lines[-1]:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.dir}/trace has no end")
            time.sleep(0.01)
        return lines

    def was_killed(self):
        return any("killed by SIGKILL" in line for line in self.trace())
