#!/usr/bin/env python3
"""Checks that transformers loads what heddle exports and computes the same.

Usage: python tools/check_export.py HEDDLE MODEL...      (needs torch and transformers)

HEDDLE is the program; each MODEL a model directory or training run. Each is exported in f32 and
loaded by transformers' AutoModel classes; its logits (or hidden states) over random ids must be
those of `heddle forward` on MODEL itself within 2e-5 of the largest, no weight may be missing or
left over, and of a translator each line of --lines must come out as `heddle translate` has it; of
another model AutoTokenizer must have the ids and texts of `heddle tokenizer`.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

TEXTS = ["the old man", "  two  spaces ", " a", "", " ", "tab\there", "\u00fcber na\u00efve caf\u00e9 \u00df", "\u65e5\u672c\u8a9e \U0001f600", "<s> a </s>",
         "[MASK] [CLS]", "it's don't , . !", "aaa aaaa 123 1234"]
LINES = ["the old man reads a book", "two dogs run in the garden", "a woman drinks water"]


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    model_class = getattr(transformers, config["architectures"][0])
    model, info = model_class.from_pretrained(folder, output_loading_info=True,
                                              attn_implementation="eager")
    ignored = {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"}
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        left = set(info[kind]) - ignored
        assert not left, f"{kind}: {sorted(left)[:5]}"
    return config, model.eval()


def folder_of(path):
    """A run's best model, or the folder itself."""
    return pathlib.Path(path) / "best" if (pathlib.Path(path) / "best").exists() else path


def inputs_of(config):
    generator = torch.Generator().manual_seed(1)
    tokens = config["vocab_size"]
    ids = {"input_ids": torch.randint(1, tokens, (3, 7), generator=generator)}
    ids["attention_mask"] = torch.ones_like(ids["input_ids"])
    if config.get("is_encoder_decoder"):
        tokens = config.get("decoder_vocab_size") or tokens
        ids["decoder_input_ids"] = torch.randint(1, tokens, (3, 5), generator=generator)
    return ids


def compare(heddle, model_dir, exported, folder):
    config, model = load(exported)
    inputs = inputs_of(config)
    save_file(inputs, folder / "in.safetensors")
    subprocess.run([heddle, "forward", model_dir, "--input", folder / "in.safetensors",
                    "--output", folder / "out.safetensors", "--threads", "1"], check=True)
    ours = load_file(folder / "out.safetensors")
    with torch.no_grad():
        theirs = model(**inputs)
    worst = 0.0
    for name, x in ours.items():
        # A translator's columns change places, see marian_tensors(): its states are permuted.
        if config["model_type"] == "marian" and name != "logits":
            continue
        y = theirs[name]
        worst = max(worst, ((x - y).abs().max() / y.abs().max()).item())
    assert worst < 2e-5, worst
    return config, model, worst, sorted(ours)


def compare_texts(heddle, model_dir, exported, model, lines):
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    text = subprocess.run([heddle, "translate", model_dir, "--precision", "f32", "--threads", "1"],
                          input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    for line, expected in zip(lines, text.stdout.splitlines()):
        out = model.generate(**tokenizer(line, return_tensors="pt"))
        actual = tokenizer.decode(out[0], skip_special_tokens=True)
        assert actual == expected.strip(), (line, expected, actual)
    return len(lines)


def compare_tokenizers(heddle, model_dir, exported):
    """Ids and texts of AutoTokenizer on the exported folder are those of `heddle tokenizer`."""
    def run(command, lines):
        done = subprocess.run([heddle, "tokenizer", command, model_dir], input="\n".join(lines) + "\n",
                              capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[:len(lines)]

    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    ids = [[int(i) for i in line.split()] for line in run("encode", TEXTS)]
    texts = run("decode", [" ".join(map(str, i)) for i in ids])
    for text, i, back in zip(TEXTS, ids, texts):
        theirs = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert theirs == i, (text, theirs, i)
        assert tokenizer.decode(i, skip_special_tokens=True) == back, (text, back)
    return len(TEXTS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("heddle")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--lines", help="a file of sentences to translate")
    flags = parser.parse_args()
    torch.set_num_threads(1)
    lines = pathlib.Path(flags.lines).read_text().splitlines() if flags.lines else LINES
    for model_dir in flags.models:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            exported = folder / "exported"
            subprocess.run([flags.heddle, "export", model_dir, "--out", exported], check=True,
                           stdout=subprocess.DEVNULL)
            config, model, worst, names = compare(flags.heddle, model_dir, exported, folder)
            report = f"{model_dir}: {config['model_type']}, {', '.join(names)}: {worst:.1e}"
            if config["model_type"] == "marian" and (exported / "source.spm").exists():
                count = compare_texts(flags.heddle, model_dir, exported, model, lines)
                report += f", {count} equal translations"
            elif (exported / "tokenizer_config.json").exists() and config["model_type"] != "marian":
                report += f", {compare_tokenizers(flags.heddle, folder_of(model_dir), exported)} equal texts as ids"
            print(report)


if __name__ == "__main__":
    sys.exit(main())
