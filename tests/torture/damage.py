# SPDX-License-Identifier: Apache-2.0
"""Files that hpcgrid-worker reads, damaged: a bit flipped, or cut off."""
import gzip, json, os, random, re, shutil, sys

import lab, trainings
from trainings import WORKER, Training

SANITIZER = re.compile(r"Sanitizer|runtime error:")
TINY = {"model": "bert-tiny", "hidden": 4, "layers": 1, "heads": 1, "intermediate": 4, "vocab_size": 200, "positions": 64}
TEXT = dict(TINY, dataset="squad-v1.1", data=".", vocab="vocab.txt", seq_len=64, doc_stride=8, batch_size=4, steps=1, test_batch=4)
LENGTHS = dict(TINY, dataset="synthetic", samples=24, seq_len=16, length_min=8, batch_size=12, epochs=2, lr=1e-3, eval=False)
MNIST = {"data": ".", "batch_size": 2, "steps": 1}


class Subject:
    """A file that a cell reads. kind(at): what a byte of it is: "sum" (a checksum covers it: damage must be found), "shape" (damage must be
    found, or change nothing), "free" (any value is as good as another)."""

    def __init__(self, name, cell, kind, made=None, cut="sum"):
        self.name, self.cell, self.kind, self.made, self.cut = name, cell, kind, made, cut


def run(cwd, cell):
    """Exit code, what it printed, its result."""
    with open(cwd + "/c.json", "w") as f:
        json.dump(cell, f)
    if os.path.exists(cwd + "/r.json"):
        os.unlink(cwd + "/r.json")
    code, out, err = lab.call([WORKER, "train", "--cell", "c.json", "--result", "r.json"], cwd)
    with open(cwd + "/r.json") as f:
        return code, out + err, json.load(f)


def meaning(result):
    """What a damaged file could change."""
    return result.get("loss", {}).get("loss"), result.get("eval"), result["comparable"].get("dataset_hash") if "comparable" in result else None


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


# ---- What there is to damage ----

def weights(path):
    """A checkpoint's parameters as other programs write them: without checksums."""
    values, _ = trainings.tensors(path)
    raw = read(path)
    header = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])
    kept, data, out = {"__metadata__": {"format": "pt"}}, b"", {}
    for name, tensor in header.items():
        if name.startswith(("bert.", "qa_outputs.")):
            out[name] = dict(tensor, data_offsets=[len(data), len(data) + len(values[name])])
            data += values[name]
    text = json.dumps({**kept, **out}).encode()
    return len(text).to_bytes(8, "little") + text + data


def idx(values, *dims):
    return bytes([0, 0, 8, len(dims)]) + b"".join(d.to_bytes(4, "big") for d in dims) + bytes(values)


def squad(name, count):
    with open(f"{lab.SOURCE}/worker/samples/squad/{name}-v1.1-slice.json") as f:
        whole = json.load(f)
    article = whole["data"][0]
    paragraph = article["paragraphs"][0]
    short = {"context": paragraph["context"], "qas": sorted(paragraph["qas"], key=lambda q: len(q["question"]))[:count]}
    return json.dumps({"data": [{"title": article["title"], "paragraphs": [short]}], "version": "1.1"}).encode()


def kinds_of_json(text):
    """Texts and numbers are free, names and signs are not."""
    kinds = ["shape"] * len(text)
    for match in re.finditer(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|\d+', text):
        if not match[2]:
            begin, end = match.span(1) if match[1] is not None else match.span()
            kinds[begin:end] = ["free"] * (end - begin)
    return kinds


def subjects(cwd):
    """Their files, made in cwd. Each is damaged alone."""
    saved = dict(LENGTHS, checkpoint=cwd + "/c.safetensors", checkpoint_every=3)
    Training(cwd, "bert", "single", 1)  # its vocabulary
    killed = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=rename", "-e", "inject=rename:signal=KILL:when=2"]

    def stop(cell, prefix, **more):
        with open(cwd + "/c.json", "w") as f:
            json.dump(cell, f)
        code, _, err = lab.call([WORKER, "train", "--cell", "c.json"], cwd, prefix, **more)
        if code == 0 or not os.path.exists(cell["checkpoint"]):
            sys.exit(f"no checkpoint to damage: exit code {code}\n{err}")

    stop(saved, killed)
    yield Subject("c.safetensors", saved, lambda at: "sum")
    yield Subject("c.safetensors", dict(LENGTHS, steps=1, init="c.safetensors"), lambda at: "sum")
    write(cwd + "/w.safetensors", weights(cwd + "/c.safetensors"))
    raw = read(cwd + "/w.safetensors")
    begin = 8 + int.from_bytes(raw[:8], "little")
    note = raw.index(b"__metadata__"), raw.index(b"}") + 1  # what nobody reads
    yield Subject("w.safetensors", dict(LENGTHS, steps=1, init="w.safetensors"),
                  lambda at: "free" if at >= begin or note[0] <= at < note[1] else "shape")
    parts = dict(LENGTHS, checkpoint=cwd + "/p.safetensors", checkpoint_every=3, checkpoint_shards=True, strategy="fsdp", batch_size=6)
    stop(parts, ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2"], env=dict(os.environ, HPCGRID_FAULT="kill:1:4:1"))
    parts["batch_size"] = 12  # one rank reads both parts
    for name in sorted(n for n in os.listdir(cwd) if n.startswith("p.safetensors") and not n.endswith(".tmp")):
        yield Subject(name, parts, lambda at: "sum")
    pixels = random.Random(1)
    for part, n in (("train", 4), ("t10k", 2)):
        write(f"{cwd}/{part}-images-idx3-ubyte", idx([pixels.randrange(256) for _ in range(784 * n)], n, 28, 28))
        write(f"{cwd}/{part}-labels-idx1-ubyte", idx([pixels.randrange(10) for _ in range(n)], n))
    for part in ("train", "t10k"):
        yield Subject(part + "-images-idx3-ubyte", MNIST, lambda at: "shape" if at < 16 else "free")
        yield Subject(part + "-labels-idx1-ubyte", MNIST, lambda at: "shape" if at < 8 else "free")
    for name in ("train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        write(f"{cwd}/{name}.gz", gzip.compress(read(f"{cwd}/{name}"), mtime=0))
        os.unlink(f"{cwd}/{name}")
        yield Subject(name + ".gz", MNIST, lambda at: "shape")
    for part, count in (("train", 3), ("dev", 2)):
        write(f"{cwd}/{part}-v1.1.json", squad(part, count))
    for part in ("train", "dev"):
        kinds = kinds_of_json(read(f"{cwd}/{part}-v1.1.json"))
        yield Subject(part + "-v1.1.json", TEXT, lambda at, kinds=kinds: kinds[at])
    yield Subject("vocab.txt", TEXT, lambda at: "free", cut="free")
    cached = dict(TEXT, cache="cache", eval=False)
    run(cwd, cached)
    yield Subject("cache/" + os.listdir(cwd + "/cache")[0], cached, lambda at: "sum", made="the features are built again")
    write(cwd + "/train-v1.1.json.gz", gzip.compress(read(cwd + "/train-v1.1.json"), mtime=0))
    os.unlink(cwd + "/train-v1.1.json")
    yield Subject("train-v1.1.json.gz", TEXT, lambda at: "shape")


# ---- The trials ----

def trial(book, cwd, s, good, clean, at, cut):
    path = f"{cwd}/{s.name}"
    bad = good[:at] if cut else good[:at] + bytes([good[at] ^ 1 << random.randrange(8)]) + good[at + 1:]
    kind = s.cut if cut else s.kind(at)
    write(path, bad)
    book.trial()
    where = f"flips {s.name} {'cut off at' if cut else 'byte'} {at} of {len(good)} ({kind}{'' if cut else f', {good[at]:#x} to {bad[at]:#x}'})"
    try:
        code, said, result = run(cwd, s.cell)
    except (OSError, ValueError) as e:
        code, said, result = "none", f"no result: {e}", {}
    base = os.path.basename(s.name)
    if SANITIZER.search(said):
        problem = "a sanitizer's report"
    elif code == 3:
        problem = None if base in said else "refused without its name"
        book.add("refused")
    elif code != 0:
        problem = f"exit code {code}"
    elif s.made:
        problem = None if s.made in said and meaning(result) == clean else "not found"
        book.add("made_again")
    elif kind == "sum":
        problem = "not found"
    elif meaning(result) == clean:
        problem = None
        book.add("no_effect")
    elif kind == "free":
        problem = None
        book.add("payload")
    else:
        problem = "loaded as something else"
    if problem:
        book.wrong(where, f"{problem}\n  {code} {said.strip()[:600]}")


def flips(book, work, trials):
    cwd = work + "/flips"
    os.makedirs(cwd)
    for s in subjects(cwd):
        base, path = f"{work}/files", f"{cwd}/{s.name}"
        good = read(path)
        shutil.copytree(cwd, base)
        code, said, result = run(cwd, s.cell)
        if code != 0:
            sys.exit(f"{s.name} undamaged: exit code {code}\n{said}")
        clean = meaning(result)
        everything = [(at, False) for at in range(len(good))] + [(at, True) for at in range(0, len(good), 16)]
        chosen = random.sample(everything, trials) if trials and trials < len(everything) else everything
        wrong = book.counts["wrong"]
        for at, cut in chosen:
            if s.cell.get("checkpoint"):  # a training that goes on, or ends, replaces it
                for name in os.listdir(base):
                    if "safetensors" in name:
                        shutil.copyfile(f"{base}/{name}", f"{cwd}/{name}")
            trial(book, cwd, s, good, clean, at, cut)
        shutil.rmtree(cwd)
        os.rename(base, cwd)
        print(f"flips {s.name}: {len(good)} bytes, {len(chosen)} tried, {book.counts['wrong'] - wrong} wrong", flush=True)
    shutil.rmtree(cwd)
