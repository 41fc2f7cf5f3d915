#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the answers of hpcgrid-worker's evaluation against those of PyTorch's model and Hugging Face's post-processing.

    answers.py CONFIG CHECKPOINT VOCAB SQUAD.json[.gz] PREDICTIONS.json [THRESHOLD]

CONFIG is the cell that made CHECKPOINT and PREDICTIONS. The model is transformers' BertForQuestionAnswering on padded sequences; a cell with
"windows": "advance" is held against transformers' own squad_metrics (which version 5 has no more), any other against run_qa as restated in
reference.py. Prints JSON: questions, how many answers differ, how many differ by white space alone, and those that differ."""
import json
import sys
import tempfile

import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForQuestionAnswering

from reference import fast_tokenizer, load_json, overlap_answers, overlap_features, questions

BATCH = 16


def load_model(path):
    """Sizes are those of the tensors; heads have 64 values."""
    tensors = {name: t for name, t in load_file(path).items() if name.startswith(("bert.", "qa_outputs."))}
    words, places = (tensors[f"bert.embeddings.{kind}_embeddings.weight"].shape for kind in ("word", "position"))
    layers = 1 + max(int(name.split(".")[3]) for name in tensors if name.startswith("bert.encoder.layer."))
    config = BertConfig(vocab_size=words[0], hidden_size=words[1], num_hidden_layers=layers, num_attention_heads=words[1] // 64,
                        intermediate_size=tensors["bert.encoder.layer.0.intermediate.dense.weight"].shape[0], max_position_embeddings=places[0])
    model = BertForQuestionAnswering(config)
    missing = model.load_state_dict(tensors, strict=False)
    if missing.missing_keys or missing.unexpected_keys:
        sys.exit(f"{path}: {missing}")
    return model.eval()


def with_logits(model, windows, length):
    """(window, starts, ends) of every window: of all its length places, as a model sees a padded sequence."""
    for at in range(0, len(windows), BATCH):
        part = windows[at:at + BATCH]
        ids = torch.zeros(len(part), length, dtype=torch.long)
        kinds, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for i, w in enumerate(part):
            n = len(w["ids"])
            ids[i, :n], kinds[i, w["context"]:n], mask[i, :n] = torch.tensor(w["ids"]), 1, 1
        with torch.no_grad():
            out = model(input_ids=ids, token_type_ids=kinds, attention_mask=mask)
        yield from zip(part, out.start_logits.tolist(), out.end_logits.tolist())


def run_qa(model, squad, config, vocab, v2, threshold):
    length = config.get("seq_len", 384)
    windows = list(overlap_features(fast_tokenizer(vocab), squad, length, config.get("doc_stride", 128), True))
    return overlap_answers(squad, with_logits(model, windows, length), v2, threshold)


def squad_metrics(model, squad, config, vocab, v2, threshold):
    from transformers import BertTokenizer
    from transformers.data.metrics.squad_metrics import compute_predictions_logits
    from transformers.data.processors.squad import SquadExample, SquadResult, squad_convert_examples_to_features

    length, tokenizer = config.get("seq_len", 384), BertTokenizer(vocab, do_lower_case=True)
    examples = [SquadExample(id_, question, context, None, None, "", answers) for id_, question, context, answers in questions(squad)]
    features = squad_convert_examples_to_features(examples, tokenizer, length, config.get("doc_stride", 128), 64, False, tqdm_enabled=False)
    windows = [{"ids": f.input_ids[:sum(f.attention_mask)], "context": f.input_ids.index(tokenizer.sep_token_id) + 1} for f in features]
    results = [SquadResult(f.unique_id, starts, ends) for f, (_, starts, ends) in zip(features, with_logits(model, windows, length))]
    with tempfile.TemporaryDirectory() as out:
        names = [f"{out}/{name}.json" for name in ("answers", "n_best", "odds")]
        found = compute_predictions_logits(examples, features, results, 20, 30, True, *names, False, v2, threshold, tokenizer)
    return [found[e.qas_id] for e in examples]


def only(squad, ids):
    """The same, with these questions."""
    for article in squad["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = [qa for qa in paragraph["qas"] if qa["id"] in ids]
    return squad


def main():
    config, checkpoint, vocab, squad, predictions = sys.argv[1:6]
    config, predictions = load_json(config), load_json(predictions)
    squad = only(load_json(squad), predictions)
    v2 = any(not answers for *_, answers in questions(squad))
    post = squad_metrics if config.get("windows") == "advance" else run_qa
    theirs = post(load_model(checkpoint), squad, config, vocab, v2, float(sys.argv[6]) if len(sys.argv) > 6 else 0.0)
    rows = [(id_, predictions[id_], answer) for (id_, *_), answer in zip(questions(squad), theirs)]
    differ = [row for row in rows if row[1] != row[2]]
    spaces = sum("".join(a.split()) == "".join(b.split()) for _, a, b in differ)
    print(json.dumps({"questions": len(rows), "empty": sum(not r[1] for r in rows), "differ": len(differ), "by_spaces": spaces, "which": differ}, ensure_ascii=False))


main()
