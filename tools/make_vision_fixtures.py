#!/usr/bin/env python3
"""Writes tests/fixtures/vision: small random models of images and what transformers makes of them in float64.

Usage: python tools/make_vision_fixtures.py                 (needs torch, transformers, safetensors; made with
                                                             torch 2.15 and transformers 5.23)
       python tools/make_vision_fixtures.py --check FOLDER  loads FOLDER/NAME, which heddle saved from the
                                                             fixture NAME, and compares the outputs

A fixture NAME.safetensors holds, under Hugging Face's names:
  the weights, as save_pretrained() writes them; config.json in the metadata;
  pixel_values.K [images, channels, height, width], of K = 0 of the size in the config, of others of
  other sizes, whose positions are interpolated (interpolate_pos_encoding); of Swin of other sizes than its own;
  out.K.hidden_states.I, out.K.attentions.I [images, heads, queries, keys], out.K.logits and what
  else the class gives; of Swin hidden states are those of stages, attentions those of every block, [windows of
  all images, heads, queries, keys];
  labels.K [images], of two heads distilled_labels.K too, loss [1], the mean over all images of all sizes (of
  two heads the sum of theirs), and grad.PARAMETER for every weight, under the names of the weights.
Weights and pixels are exact in bf16, labels are i64, the rest was computed in f64 and stored in f32.
"""
import sys

import torch
import transformers
from image_model_fixtures import (FIXTURES, as_saved, gain_or_shift, load_saved, named_outputs, random_pixels,
                                  randomise, run, store)

FOLDER = FIXTURES / "vision"
SMALL = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, num_labels=5,
             image_size=12, patch_size=4, num_channels=3)
# A Swin whose windows do not fill its grids, nor patches its images; one with a grid as small as a window.
SWIN = dict(embed_dim=12, depths=[2, 2], num_heads=[2, 3], window_size=3, mlp_ratio=2.0, num_labels=5, image_size=16,
            patch_size=2, num_channels=3)
SWIN_DEEP = SWIN | dict(embed_dim=8, depths=[1, 2, 1], num_heads=[1, 2, 2], window_size=4, mlp_ratio=1.5, image_size=39,
                        patch_size=3, num_channels=1, qkv_bias=False, hidden_act="gelu_new", layer_norm_eps=1e-3,
                        use_absolute_embeddings=True)
# name: class, config, sizes of images: (how many, height, width)
CASES = {
    "vit": ("ViTForImageClassification", SMALL, [(2, 12, 12), (1, 20, 16), (1, 11, 14)]),
    "vit_wide": ("ViTForImageClassification",
                 SMALL | dict(image_size=[10, 14], num_channels=1, qkv_bias=False, hidden_act="gelu_new",
                              layer_norm_eps=1e-3, num_hidden_layers=3), [(3, 10, 14)]),
    "vit_states": ("ViTModel", SMALL | dict(image_size=15, patch_size=5, pooler_output_size=10,
                                            pooler_act="relu"), [(2, 15, 15), (1, 10, 27)]),
    "deit": ("DeiTForImageClassification", SMALL | dict(num_attention_heads=2), [(2, 12, 12), (1, 9, 25)]),
    "deit_teacher": ("DeiTForImageClassificationWithTeacher", SMALL, [(2, 12, 12), (2, 16, 16)]),
    "swin": ("SwinForImageClassification", SWIN, [(2, 16, 16), (1, 12, 23)]),
    "swin_deep": ("SwinForImageClassification", SWIN_DEEP, [(1, 39, 39), (1, 42, 48)]),
    "swin_states": ("SwinModel", SWIN | dict(depths=[2, 1], window_size=4), [(1, 24, 24), (1, 16, 21)]),
}
OF_SWIN = [("attention.q_proj", "attention.self.query"), ("attention.k_proj", "attention.self.key"),
           ("attention.v_proj", "attention.self.value"),
           ("attention.relative_position_bias.", "attention.self."), ("encoder.layers.", "encoder.stages.")]
RENAMED = [("attention.q_proj", "attention.attention.query"), ("attention.k_proj", "attention.attention.key"),
           ("attention.v_proj", "attention.attention.value"), ("attention.o_proj", "attention.output.dense"),
           ("mlp.fc1", "intermediate.dense"), ("mlp.fc2", "output.dense"), ("layers.", "encoder.layer.")]

# Its softmax is in f32 whatever the model computes in.
plain_softmax = torch.nn.functional.softmax
torch.nn.functional.softmax = lambda x, dim=-1, dtype=None: plain_softmax(x, dim=dim)


def saved_name(name):
    for now, before in (OF_SWIN if ".blocks." in name or ".downsample." in name else []) + RENAMED:
        name = name.replace(now, before)
    return name.replace("encoder.stages.", "encoder.layers.")


def rule(name, x):
    if "norm" in name:
        return gain_or_shift(name, x)
    return 0.5 * x if "token" in name or "position" in name else None


def forward(model, pixels, k):
    other = {"interpolate_pos_encoding": True} if k > 0 else {}
    maps = []
    hooks = []
    for name, module in model.named_modules():
        if type(module).__name__ == "SwinLayer":  # which keeps the windows of the images before
            module.window_size = model.config.window_size
            module.shift_size = int(name.split(".")[-1]) % 2 * (module.window_size // 2)
            hooks.append(module.attention.register_forward_hook(lambda m, i, out: maps.append(out[1])))
    out = model(pixel_values=pixels, output_hidden_states=True, output_attentions=True, **other)
    for hook in hooks:
        hook.remove()
    if maps:
        out.attentions = tuple(maps)
    return out


def outputs(out, k):
    tensors = {f"hidden_states.{i}": x for i, x in enumerate(out.hidden_states)}
    tensors |= {f"attentions.{i}": x for i, x in enumerate(out.attentions)}
    for name in ("logits", "cls_logits", "distillation_logits", "last_hidden_state", "pooler_output"):
        if getattr(out, name, None) is not None:
            tensors[name] = getattr(out, name)
    return named_outputs(tensors, k)


def loss_of(out, labels):
    """The sum over the images, and which labels it is of."""
    def entropy(logits, of):
        return torch.nn.functional.cross_entropy(logits, of, reduction="sum")
    if hasattr(out, "distillation_logits"):
        other = (labels + 1) % out.logits.shape[1]
        return (entropy(out.cls_logits, labels) + entropy(out.distillation_logits, other),
                {"labels": labels, "distilled_labels": other})
    return entropy(out.logits, labels), {"labels": labels}


def make(name, class_name, fields, sizes, seed):
    cls = getattr(transformers, class_name)
    config = cls.config_class(**fields)
    config._attn_implementation = "eager"
    model = cls(config).double().eval()
    generator = torch.Generator().manual_seed(seed)
    randomise(model.named_parameters(), generator, rule)
    tensors, labels, total, images = {}, {}, 0, 0
    for k, (count, height, width) in enumerate(sizes):
        pixels = random_pixels((count, config.num_channels, height, width), generator)
        out = forward(model, pixels, k)
        tensors |= {f"pixel_values.{k}": pixels} | outputs(out, k)
        if class_name.endswith("Model"):
            continue
        loss, asked = loss_of(out, (torch.arange(count) * 3 + k) % config.num_labels)
        labels |= {f"{key}.{k}": x for key, x in asked.items()}
        total, images = total + loss, images + count
    if images > 0:
        (total / images).backward()
        tensors["loss"] = (total / images).detach().reshape(1)
        tensors |= {"grad." + saved_name(n): p.grad for n, p in model.named_parameters()}
    weights, config = as_saved(model)
    assert class_name.endswith("Model") or set(weights) == {k[5:] for k in tensors if k.startswith("grad.")}
    store(FOLDER / f"{name}.safetensors", weights | tensors | labels, config)


def outputs_of(folder, class_name, *_):
    model = load_saved(getattr(transformers, class_name), folder, attn_implementation="eager")
    return lambda pixels, k: outputs(forward(model, pixels, k), k)


if __name__ == "__main__":
    sys.exit(run(FOLDER, CASES, make, outputs_of))
