"""What the scripts share that write fixtures of models of images (make_{vision,timm,resnet,detr}_fixtures.py): random
weights, the file, and the check of what heddle saved.

A script has CASES (of each name what it is made of), make(name, *case, seed) that stores a fixture, and
outputs_of(folder, *case): of the model that heddle saved there a function of (pixels, k) that gives
{out.K.NAME: tensor}; None if no other program reads that model.
"""
import json
import math
import pathlib
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"


def gain_or_shift(name, x):
    """Of a norm: near 1 and near 0."""
    return 0.2 * x + (1.0 if name.endswith("weight") else 0.0)


def randomise(tensors, generator, rule):
    """Weights that make attention uneven and no bias or gain trivial; exact in bf16. tensors: pairs of name and tensor;
    rule(name, x): what becomes of normal x; None: as weights or biases do."""
    for name, p in tensors:
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        y = rule(name, x)
        if y is None:
            y = 1.3 * x * math.sqrt(2 / (p.shape[0] + p[0].numel())) if x.dim() >= 2 else 0.3 * x
        p.data.copy_(y.to(torch.bfloat16))


def with_statistics(model):
    """Pairs of name and tensor: the weights and the running statistics of norms."""
    return list(model.named_parameters()) + [(k, b) for k, b in model.named_buffers() if "running" in k]


def random_pixels(shape, generator, dtype=torch.float32):
    """[images, channels, height, width], exact in bf16. dtype: what they are drawn in."""
    return torch.randn(*shape, generator=generator, dtype=dtype).to(torch.bfloat16).double()


def as_saved(model):
    """The weights and the config that save_pretrained() writes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        return load_file(pathlib.Path(folder) / "model.safetensors"), config


def named_outputs(tensors, k):
    return {f"out.{k}.{name}": x.detach().clone() for name, x in tensors.items()}


def store(path, tensors, config):
    """Floats in f32, integers as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {k: x.detach().to(torch.float32 if x.is_floating_point() else x.dtype).contiguous().clone()
               for k, x in tensors.items()}
    save_file(tensors, path, {"config": json.dumps(config)})
    path.chmod(0o644)


def load_saved(cls, folder, may_lack=(), **more):
    """A model of transformers from what heddle saved: all weights that are needed and no others. may_lack: parts of the
    names of weights that nothing reads."""
    model, info = cls.from_pretrained(folder, output_loading_info=True, dtype=torch.float64, **more)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        keys = [key for key in info[kind] if not any(part in key for part in may_lack)]
        assert not keys, f"{folder}: {kind}: {keys}"
    return model.eval()


def worst_difference(expected, outputs):
    """Of all images, of the largest magnitude."""
    worst, k = 0.0, 0
    while f"pixel_values.{k}" in expected:
        with torch.no_grad():
            out = outputs(expected[f"pixel_values.{k}"].double(), k)
        assert set(out) == {key for key in expected if key.startswith(f"out.{k}.")}
        for key, x in out.items():
            worst = max(worst, ((x - expected[key]).abs().max() / expected[key].abs().max()).item())
        k += 1
    assert k > 0
    return worst


def run(directory, cases, make, outputs_of):
    """Makes the fixtures in the directory, or, with --check FOLDER, compares what heddle saved in FOLDER/NAME."""
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        for name, case in cases.items():
            saved = pathlib.Path(sys.argv[2]) / name
            outputs = outputs_of(saved, *case) if saved.is_dir() else None
            if outputs is None:
                print(f"{name}: not compared")
                continue
            expected = load_file(directory / f"{name}.safetensors")
            with safe_open(saved / "model.safetensors", "pt") as file:
                assert all(key in expected for key in file.keys())
            worst = worst_difference(expected, outputs)
            assert worst < 1e-6, (name, worst)
            print(f"{name}: {case[0]}: {worst:.1e}")
        return 0
    for seed, (name, case) in enumerate(cases.items(), 1):
        make(name, *case, seed)
    return 0
