#!/usr/bin/env python3
"""Writes tests/fixtures/resnet: small random ResNets and what transformers makes of them in float64.

Usage: python tools/make_resnet_fixtures.py                 (needs torch, transformers, safetensors; made with
                                                             torch 2.15 and transformers 5.23)
       python tools/make_resnet_fixtures.py --check FOLDER  loads FOLDER/NAME, which heddle saved from the
                                                             fixture NAME, and compares the outputs

A fixture NAME.safetensors holds, under Hugging Face's names:
  the weights and buffers, as save_pretrained() writes them; config.json in the metadata;
  pixel_values.K [images, channels, height, width];
  out.K.hidden_states.I (of a backbone out.K.feature_maps.I) [pixels of all images, channels],
  out.K.logits, out.K.pooler_output;
  of models with classes, for the images of K = 0: labels [images], loss.MODE [1] (their mean) and
  grad.MODE.PARAMETER, of MODE eval and train, and after.BUFFER: what one pass of training leaves.
Weights, buffers and pixels are exact in bf16, the rest was computed in f64 and stored in f32.
"""
import json
import math
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "resnet"
SMALL = dict(embedding_size=6, hidden_sizes=[6, 8, 12], depths=[1, 2, 1], layer_type="basic", num_labels=5)
# name: class, config, sizes of images: (how many, height, width)
CASES = {
    "basic": ("ResNetForImageClassification", SMALL, [(3, 32, 32), (1, 37, 45)]),
    "bottleneck": ("ResNetForImageClassification",
                   SMALL | dict(hidden_sizes=[16, 24], depths=[2, 1], layer_type="bottleneck",
                                downsample_in_first_stage=True), [(4, 33, 31), (2, 16, 70)]),
    "early": ("ResNetForImageClassification",
              SMALL | dict(hidden_sizes=[16, 24], depths=[1, 2], layer_type="bottleneck",
                           downsample_in_bottleneck=True, hidden_act="gelu", num_channels=1), [(4, 27, 30)]),
    "states": ("ResNetModel", SMALL, [(2, 24, 24), (1, 41, 19)]),
    "backbone": ("ResNetBackbone", SMALL | dict(out_features=["stem", "stage1", "stage2", "stage3"]),
                 [(2, 29, 32)]),
}


def randomise(model, generator):
    """No gain, bias or statistic is trivial; exact in bf16."""
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if name.endswith("num_batches_tracked"):
            p.fill_(7)
            continue
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if name.endswith("running_var"):
            x = (1 + 0.2 * x).abs() + 0.1
        elif "normalization" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif x.dim() >= 2:
            x = x * math.sqrt(2 / p[0].numel())
        else:
            x = 0.3 * x
        p.data.copy_(x.to(torch.bfloat16))


def as_saved(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        return load_file(pathlib.Path(folder) / "model.safetensors"), config


def rows(x):
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def outputs(out, k):
    tensors = {}
    if getattr(out, "feature_maps", None) is not None:
        tensors = {f"feature_maps.{i}": rows(x) for i, x in enumerate(out.feature_maps)}
    elif out.hidden_states is not None:
        tensors = {f"hidden_states.{i}": rows(x) for i, x in enumerate(out.hidden_states)}
    if getattr(out, "logits", None) is not None:
        tensors["logits"] = out.logits
    if getattr(out, "pooler_output", None) is not None:
        tensors["pooler_output"] = out.pooler_output.flatten(1)
    return {f"out.{k}.{name}": x.detach().clone() for name, x in tensors.items()}


def gradients(model, pixels, labels, mode):
    model.train(mode == "train")
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(pixel_values=pixels).logits, labels)
    loss.backward()
    tensors = {f"grad.{mode}.{n}": p.grad.clone() for n, p in model.named_parameters()}
    return tensors | {f"loss.{mode}": loss.detach().reshape(1)}


def make(name, class_name, fields, sizes, seed):
    cls = getattr(transformers, class_name)
    generator = torch.Generator().manual_seed(seed)
    model = cls(cls.config_class(**fields)).double().eval()
    randomise(model, generator)
    weights, config = as_saved(model)
    tensors, labels = {}, None
    for k, (count, height, width) in enumerate(sizes):
        pixels = torch.randn(count, model.config.num_channels, height, width, generator=generator,
                             dtype=torch.float64).to(torch.bfloat16).double()
        tensors[f"pixel_values.{k}"] = pixels
        with torch.no_grad():
            tensors |= outputs(model(pixel_values=pixels, output_hidden_states=True), k)
    if "Classification" in class_name:
        pixels = tensors["pixel_values.0"]
        labels = torch.arange(len(pixels)) * 3 % fields["num_labels"]
        for mode in ("eval", "train"):
            tensors |= gradients(model, pixels, labels, mode)
        tensors |= {f"after.{n}": b.double().reshape(-1) for n, b in model.named_buffers()}
    counters = {n: x for n, x in weights.items() if x.dtype == torch.int64}
    tensors = {k: x.detach().to(torch.float32).contiguous().clone()
               for k, x in (weights | tensors).items() if k not in counters}
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.safetensors"
    save_file(tensors | counters | ({} if labels is None else {"labels": labels}), path,
              {"config": json.dumps(config)})
    path.chmod(0o644)


def check(folder):
    for name, (class_name, _, sizes) in CASES.items():
        expected = load_file(FOLDER / f"{name}.safetensors")
        model, info = getattr(transformers, class_name).from_pretrained(
            folder / name, output_loading_info=True, dtype=torch.float64)
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            assert not info[kind], f"{name}: {kind}: {info[kind]}"
        worst = 0.0
        for k in range(len(sizes)):
            with torch.no_grad():
                out = model.eval()(pixel_values=expected[f"pixel_values.{k}"].double(),
                                   output_hidden_states=True)
            for key, x in outputs(out, k).items():
                worst = max(worst, ((x - expected[key]).abs().max() / expected[key].abs().max()).item())
        assert worst < 1e-6, (name, worst)
        print(f"{name}: {class_name}: {worst:.1e}")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(pathlib.Path(sys.argv[2]))
    for seed, (name, case) in enumerate(CASES.items(), 1):
        make(name, *case, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
