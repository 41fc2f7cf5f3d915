# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: their options, the counting, the last line.

A class of faults is a program NAME [--hours H] [--trials N] [--seed S] that prints a line for each thing that went wrong, ends with one line
of JSON (Book.close) and with exit code 1 if anything went wrong. `run` runs several and makes the table.
"""
import argparse, json, os, random, subprocess, time

BUILD = os.path.realpath(os.environ.get("HPCGRID_BUILD", "build/dev"))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
HPCGRID = BUILD + "/orchestrator/hpcgrid"
# On which "exactly once" rests: C files of orchestrator/ with the functions (None: all), for `coverage --branches` and `mutants`.
CODE = {
    "journal": {"rundir/journal.c": None, "rundir/events.c": None},
    "lock": {"rundir/lock.c": None, "rundir/owner.c": None},
    "claim": {"rundir/claim.c": None},
    "quoting": {"base/text.c": ("hg_text_quote", "hg_text_quote_if_needed", "hg_text_control", "hg_text_escape", "hg_text_escape_lines"),
                "plan/script.c": ("is_plain", "header", "header_extra", "load_modules")},
}


def above_0(kind):
    """A type for argparse."""
    def number(text):
        n = kind(text)
        if not n > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return n
    number.__name__ = kind.__name__  # as argparse names it
    return number


def options(text, **words):
    """What the command line says, checked; words: positional arguments, name to all that they may be. Without --hours and --trials, everything once."""
    p = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hours", type=above_0(float), metavar="H", help="go on for so long")
    p.add_argument("--trials", type=above_0(int), metavar="N", help="so many trials, of each kind where there are several")
    p.add_argument("--seed", type=int, metavar="S", default=random.randrange(1 << 30))
    for name, known in words.items():
        p.add_argument(name, nargs="*", help="some of " + " ".join(known))
    o = p.parse_args()
    for name, known in words.items():
        for word in getattr(o, name):
            if word not in known:
                p.error(f"no {name[:-1]} {word}; there are {' '.join(known)}")
    if not os.path.exists(HPCGRID):
        p.error(f"there is no {HPCGRID}: build it, or name another build in HPCGRID_BUILD")
    return o


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
    """Exit code ("hangs": it ran into the limit), stdout, stderr; line ends stay what they are."""
    try:
        p = subprocess.run([*prefix, *args], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, **more)
        return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return "hangs", str(e.stdout), str(e.stderr)


def hg(cwd, *args):
    return call([HPCGRID, *args], cwd)
