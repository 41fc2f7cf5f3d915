# SPDX-License-Identifier: Apache-2.0
"""hpcgrid-worker as one more trainer of the same matrix: it must not see the key `trainer`."""
import json
import os

config = json.load(open(os.environ["HPCGRID_CELL"]))
config.pop("trainer")
config = {"model": "rnn", "dataset": "mnist-slice", "strategy": "ddp" if os.environ["WORLD_SIZE"] != "1" else "single"} | config
if "init" in config:
    config["init"] = os.path.expandvars(config["init"])
path = os.path.join(os.environ["HPCGRID_ATTEMPT"], f"native-{os.environ['RANK']}.json")
with open(path, "w") as f:
    json.dump(config, f)
os.execvp("hpcgrid-worker", ["hpcgrid-worker", "train", "--cell", path, "--result", os.environ["HPCGRID_RESULT"]])
