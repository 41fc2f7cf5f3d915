# SPDX-License-Identifier: Apache-2.0
"""Programs that end when their time is over, with all that they started: nothing stays on the GPU, and nobody waits for a program that has
left a descendant behind with its output open."""
import glob
import os
import signal
import subprocess
import tempfile


def end_session(leader):
    """End what belongs to the session of that process: mpirun gives each rank a process group of its own, a session they keep."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                fields = f.read().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except (OSError, IndexError):
            continue  # it has ended meanwhile


def run(words, env, limit, together=True):
    """Exit code (None: its time was over), standard output, standard error (together: the former has both)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        p = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT if together else err,
                             start_new_session=True)
        code = None
        try:
            code = p.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end_session(p.pid)
            p.wait()
        said = []
        for f in (out, err):
            f.seek(0)
            said.append(f.read().decode(errors="replace"))
        return code, said[0], said[1]
