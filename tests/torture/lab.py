# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: their options, the counting, the last line.

A class of faults is a program NAME [--hours H] [--trials N] [--seed S] that prints a line for each thing that went wrong, ends with one line
of JSON (Book.close) and with exit code 1 if anything went wrong. `run` runs several and makes the table.
"""
import argparse, json, os, random, subprocess, time

BUILD = os.path.realpath(os.environ.get("HPCGRID_BUILD", "build/dev"))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
HPCGRID = BUILD + "/orchestrator/hpcgrid"


def arguments(text, **more):
    """The parser; more: positional arguments, name to help. Without --hours and --trials, everything once."""
    p = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hours", type=float, metavar="H", help="go on for so long")
    p.add_argument("--trials", type=int, metavar="N", help="so many trials, of each kind where there are several")
    p.add_argument("--seed", type=int, metavar="S", default=random.randrange(1 << 30))
    for name, text in more.items():
        p.add_argument(name, nargs="*", help=text)
    return p


class Book:
    """Counts trials and what went wrong."""

    def __init__(self, name, options, what):
        self.counts = {"class": name, "what": what, "seed": options.seed, "trials": 0, "wrong": 0}
        self.begun = time.monotonic()
        self.end = self.begun + options.hours * 3600 if options.hours else None
        random.seed(options.seed)

    def trial(self, n=1):
        self.counts["trials"] += n

    def add(self, word, n=1):
        """Another count of the last line, say "killed", "lost" or "doubled"."""
        self.counts[word] = self.counts.get(word, 0) + n

    def wrong(self, where, text, word=None):
        """word: also count it there."""
        self.counts["wrong"] += 1
        if word:
            self.add(word)
        print(f"WRONG {where}: {text}", flush=True)

    def over(self):
        return self.end is not None and time.monotonic() >= self.end

    def rounds(self, trials):
        """0, 1, 2 … until --hours are over; without them so many trials."""
        n = 0
        while not self.over() if self.end else n < trials:
            yield n
            n += 1

    def close(self):
        """The last line; the exit code."""
        self.counts["wall_s"] = round(time.monotonic() - self.begun, 1)
        print(json.dumps(self.counts), flush=True)
        return 1 if self.counts["wrong"] else 0


def call(args, cwd, prefix=(), limit=60, **more):
    """Exit code ("hangs": it ran into the limit), stdout, stderr."""
    try:
        p = subprocess.run([*prefix, *args], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, errors="replace", **more)
        return p.returncode, p.stdout, p.stderr
    except subprocess.TimeoutExpired as e:
        return "hangs", str(e.stdout), str(e.stderr)


def hg(cwd, *args):
    return call([HPCGRID, *args], cwd)
