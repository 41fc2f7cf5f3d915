# SPDX-License-Identifier: Apache-2.0
"""What a broken program answers: a good answer damaged, the same way for the same random generator; and which of the answers of a command are.

DAMAGE in the environment is {"at", "n", "seed"}: n answers from number `at` on (from 0) are damaged; they are counted in the file `asked` of the
folder ANSWERS, and those that were damaged are kept in `said`.
"""
import json, os, random

WORDS = ["", "0", "-1", "18446744073709551616", "1e400", "null", "[]", "{}", '"', "\\u0000", "\0", "\xff", "%s%n", "N/A", "0-99999999", "\n", "\r\n",
         "slurm_load_jobs error: Unexpected message received", "Invalid user id", "warning: something\n"]
VALUES = [None, True, -1, 0.5, 2 ** 32 + 5, 2 ** 62, 1e300, "", "x" * 70000, "17", "\u0000", [], {}, [[]], [None], {"id": 1}]


def places(o):
    """Every place of a JSON value, as (container, key)."""
    for key in (list(o) if isinstance(o, dict) else range(len(o)) if isinstance(o, list) else []):
        yield o, key
        yield from places(o[key])


def value(rng, o):
    """Another type or size of a value somewhere in it, or a member less."""
    o = json.loads(json.dumps(o))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        all_places = list(places(o))
        if not all_places:
            break
        inside, key = rng.choice(all_places)
        others = [v for v in VALUES if type(v) is not type(inside[key]) or v in (-1, 2 ** 32 + 5, 2 ** 62)]
        if rng.random() < .3:
            del inside[key]
        else:
            inside[key] = rng.choice(others)
    return o


def text(rng, data):
    """Bytes changed, taken away, put in, repeated or cut off."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        n = rng.randint(0, 40)
        word = rng.choice(WORDS).encode("latin-1")
        kind = rng.randrange(6)
        if kind == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at:at + n]
        elif kind == 2:
            data[at:at] = data[at:at + n]
        elif kind == 3:
            data[at:at + n] = word
        elif kind == 4:
            data[at:at] = word
        else:
            del data[at:]
    return bytes(data)


def now():
    """A random generator if this answer is to be damaged, else None."""
    order = json.loads(os.environ.get("DAMAGE") or "{}")
    if not order:
        return None
    path = os.environ["ANSWERS"] + "/asked"
    with open(path, "a+") as f:
        f.write(".")
        k = f.tell() - 1
    return random.Random(order["seed"] * 1000 + k) if order["at"] <= k < order["at"] + order["n"] else None


def note(what):
    with open(os.environ["ANSWERS"] + "/said", "a") as f:
        f.write(f"{what!r}"[:2000] + "\n")


def error(rng, number):
    """The bytes of an error, for what was not done."""
    data = json.dumps({"id": number, "error": value(rng, {"code": rng.choice(("again", "ambiguous", "env")), "errno": 11, "message": "x", "site": ""})})
    note(("error", data))
    return data.encode() + b"\n"


def line(rng, answer, before):
    """The bytes that an agent writes instead of this answer (an object), and whether it ends then."""
    good = json.dumps(answer).encode() + b"\n"
    kind = rng.choice(("value", "value", "value", "text", "text", "cut", "dies", "mute", "id", "twice", "late", "both", "long", "noise"))
    ends = False
    if kind == "value":
        data = json.dumps({"id": answer["id"], **value(rng, {k: v for k, v in answer.items() if k != "id"})}).encode() + b"\n"
    elif kind == "text":
        data = text(rng, good[:-1]) + b"\n"
    elif kind == "cut":
        data = good[:rng.randrange(len(good) - 1)] + b"\n"
    elif kind == "dies":
        data, ends = good[:rng.randrange(len(good) - 1)], True
    elif kind == "mute":
        data, ends = b"", True
    elif kind == "id":
        data = json.dumps({**answer, "id": rng.choice((None, "1", answer["id"] + 1, answer["id"] + 0.5, [answer["id"]]))}).encode() + b"\n"
    elif kind == "twice":
        data = good + good
    elif kind == "late":  # the answer to the question before
        data = json.dumps(before or {**answer, "id": answer["id"] - 1}).encode() + b"\n"
    elif kind == "both":
        data = json.dumps({**answer, "error": rng.choice((None, "x", {}, {"code": 3, "errno": "x", "message": ["x"]}))}).encode() + b"\n"
    elif kind == "long":
        data = json.dumps({**answer, "ok": {**answer["ok"], "site": "y" * 3000000}}).encode() + b"\n"
    else:
        data = b"slurm: warning: the clock is wrong\n" + good
    note((kind, data))
    return data, ends
