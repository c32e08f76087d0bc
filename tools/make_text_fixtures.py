#!/usr/bin/env python3
"""Writes tests/fixtures/texts: small random BERTs with tokenizers, and what Hugging Face makes of texts.

Usage: python tools/make_text_fixtures.py    (needs torch, transformers, sentence-transformers; made
                                              with torch 2.15, transformers 5.23, sentence-transformers 6.2)

Each is a model directory with expected.json beside:
  fill      {"cases": [{"text", "masks": [[{"id", "token", "probability"} x 5] x masks]}]}
  classify  {"labels", "cases": [{"text", "second" or null, "probabilities"}]}
  encoder   {"texts", "poolings": {name: vectors}, "saved": vectors as modules.json says (mean, normalized, 12 tokens)}
  dense     {"texts", "saved"}: first state, then a dense layer with tanh
"""
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer, models

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
FOLDER = ROOT / "texts"
TEXTS = ["the quick brown fox", "Low, lower, LOWEST!", "Hello world, it's the lazy dog; we don't jump over the fox.", "", "\u00e9t\u00e9 \u65e5\u672c\u8a9e"]
CONFIG = dict(vocab_size=230, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
              max_position_embeddings=24, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def tokenizer(folder):
    vocab = json.loads((ROOT / "tokenizers" / "folders" / "bert.json").read_text())["files"]["vocab.txt"]
    (folder / "vocab.txt").write_text(vocab)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}\n')
    CONFIG["vocab_size"] = vocab.count("\n")


def make(name, cls, seed, **options):
    torch.manual_seed(seed)
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer(folder)
    model = cls(transformers.BertConfig(**CONFIG, **options)).eval()
    for n, p in model.named_parameters():
        p.data = (torch.randn(p.shape) * (0.2 if "LayerNorm" in n else 0.6 if p.dim() > 1 else 0.3) + (1.0 if n.endswith("LayerNorm.weight") else 0.0)).to(torch.bfloat16).float()
    model.save_pretrained(folder)
    return folder, model, transformers.BertTokenizer.from_pretrained(folder)


def write(folder, expected):
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


@torch.no_grad()
def fill():
    folder, model, tok = make("fill", transformers.BertForMaskedLM, 1)
    cases = []
    for text in ["the quick [MASK] fox", "[MASK] world, it's the [MASK] dog", "[MASK]"]:
        x = tok(text, return_tensors="pt")
        logits = model(**x).logits[0][x["input_ids"][0] == tok.mask_token_id].double()
        masks = []
        for row in logits.softmax(-1):
            p, ids = row.topk(5)
            masks.append([{"id": i, "token": tok.decode([i]), "probability": q} for q, i in zip(p.tolist(), ids.tolist())])
        cases.append({"text": text, "masks": masks})
    write(folder, {"cases": cases})


@torch.no_grad()
def classify():
    labels = ["bad", "neutral", "good"]
    folder, model, tok = make("classify", transformers.BertForSequenceClassification, 2, id2label=dict(enumerate(labels)),
                              label2id={l: i for i, l in enumerate(labels)})
    cases = []
    for text, second in [(t, None) for t in TEXTS] + [("the fox", "a dog"), ("the quick brown fox jumps over the lazy dog", "it's the newest low lower lowest world we don't jump")]:
        x = tok(text, second, return_tensors="pt", truncation=True, max_length=CONFIG["max_position_embeddings"])
        cases.append({"text": text, "second": second, "probabilities": model(**x).logits[0].double().softmax(-1).tolist()})
    write(folder, {"labels": labels, "cases": cases})


def encoder():
    folder, model, tok = make("encoder", transformers.BertModel, 3)
    base = models.Transformer(str(folder))
    base.max_seq_length = 12
    poolings = {}
    for mode in ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"):
        pool = models.Pooling(CONFIG["hidden_size"], pooling_mode=mode)
        poolings[mode] = SentenceTransformer(modules=[base, pool], device="cpu").encode(TEXTS).tolist()
    whole = SentenceTransformer(modules=[base, models.Pooling(CONFIG["hidden_size"], pooling_mode="mean"), models.Normalize()], device="cpu")
    saved = whole.encode(TEXTS).tolist()
    target = FOLDER / "saved"
    shutil.rmtree(target, ignore_errors=True)
    whole.save(str(target), create_model_card=False)
    shutil.rmtree(folder)
    target.rename(folder)
    write(folder, {"texts": TEXTS, "poolings": poolings, "saved": saved})
    torch.manual_seed(4)
    dense = SentenceTransformer(modules=[base, models.Pooling(CONFIG["hidden_size"], pooling_mode="cls"),
                                         models.Dense(CONFIG["hidden_size"], 10)], device="cpu")
    saved = dense.encode(TEXTS).tolist()
    folder = FOLDER / "dense"
    shutil.rmtree(folder, ignore_errors=True)
    dense.save(str(folder), create_model_card=False)
    write(folder, {"texts": TEXTS, "saved": saved})


if __name__ == "__main__":
    fill()
    classify()
    encoder()
    for path in FOLDER.rglob("README.md"):
        path.unlink()
