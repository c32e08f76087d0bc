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
import math
import sys

import torch
import transformers
from image_model_fixtures import (FIXTURES, as_saved, gain_or_shift, load_saved, named_outputs, random_pixels,
                                  randomise, run, store, with_statistics)

FOLDER = FIXTURES / "resnet"
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


def rule(name, x):
    if name.endswith("running_var"):
        return (1 + 0.2 * x).abs() + 0.1
    if "normalization" in name:
        return gain_or_shift(name, x)
    return x * math.sqrt(2 / x[0].numel()) if x.dim() >= 2 else None


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
    return named_outputs(tensors, k)


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
    randomise(with_statistics(model), generator, rule)
    for buffer, counter in model.named_buffers():
        if buffer.endswith("num_batches_tracked"):
            counter.fill_(7)
    weights, config = as_saved(model)
    tensors = {}
    for k, (count, height, width) in enumerate(sizes):
        pixels = random_pixels((count, model.config.num_channels, height, width), generator, torch.float64)
        tensors[f"pixel_values.{k}"] = pixels
        with torch.no_grad():
            tensors |= outputs(model(pixel_values=pixels, output_hidden_states=True), k)
    if "Classification" in class_name:
        pixels = tensors["pixel_values.0"]
        tensors["labels"] = torch.arange(len(pixels)) * 3 % fields["num_labels"]
        for mode in ("eval", "train"):
            tensors |= gradients(model, pixels, tensors["labels"], mode)
        tensors |= {f"after.{n}": b.double().reshape(-1) for n, b in model.named_buffers()}
    store(FOLDER / f"{name}.safetensors", weights | tensors, config)


def outputs_of(folder, class_name, *_):
    model = load_saved(getattr(transformers, class_name), folder)
    return lambda pixels, k: outputs(model(pixel_values=pixels, output_hidden_states=True), k)


if __name__ == "__main__":
    sys.exit(run(FOLDER, CASES, make, outputs_of))
