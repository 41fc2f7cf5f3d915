# SPDX-License-Identifier: Apache-2.0
"""What hpcgrid-worker trains, by PyTorch: pytorch_rnn.py or pytorch_bert.py, as the cell's model says."""
import importlib

from mnist import cell

importlib.import_module("pytorch_" + cell()["model"].split("-")[0])
