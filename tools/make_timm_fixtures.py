#!/usr/bin/env python3
"""Writes tests/fixtures/timm: small random models of timm's, and CCT, and what PyTorch makes of them in float64.

Usage: python tools/make_timm_fixtures.py                 (needs torch, timm, safetensors; made with torch 2.15
                                                           and timm 1.0.31)
       python tools/make_timm_fixtures.py --check FOLDER  loads FOLDER/NAME, which heddle exported from the
                                                           fixture NAME, with timm and compares the outputs

A fixture NAME.safetensors holds, under timm's names (CCT: those of SHI-Labs' Compact-Transformers):
  the weights; config.json in the metadata, as timm.models.save_for_hf() writes it;
  pixel_values.K [images, channels, height, width], of K = 0 of the size in the config, of others of
  other sizes, whose positions are interpolated (dynamic_img_size);
  out.K.hidden_states.I, out.K.attentions.I [images, heads, queries, keys], out.K.logits or
  out.K.last_hidden_state; of two heads out.K.cls_logits and out.K.distillation_logits;
  of mixer, cct and the ViTs of WITH_GRADIENTS labels.K [images], loss [1], the mean over all images, and
  grad.PARAMETER, of ViTs under heddle's names.
Weights and pixels are exact in bf16, labels are i64, the rest was computed in f64 and stored in f32.
CCT is written here anew from its paper (arXiv 2104.05704), in plain PyTorch; ViTs with positions of columns and rows
are timm's with another _pos_embed, under heddle's config and names.
"""
import json
import math
import pathlib
import re
import sys
import tempfile

import timm
import torch
import torch.nn.functional as F
from image_model_fixtures import (FIXTURES, gain_or_shift, named_outputs, random_pixels, randomise, run, store,
                                  with_statistics)
from safetensors.torch import load_file
from timm.models._hub import save_config_for_hf
from timm.models.mlp_mixer import MlpMixer
from timm.models.vision_transformer import VisionTransformer
from torch import nn

FOLDER = FIXTURES / "timm"
VIT = dict(img_size=12, patch_size=4, embed_dim=24, depth=2, num_heads=3, mlp_ratio=1.7, num_classes=5,
           dynamic_img_size=True)
MIXER = dict(img_size=12, patch_size=4, embed_dim=24, num_blocks=2, mlp_ratio=(0.4, 1.7), num_classes=5)
CCT = dict(model_type="cct", hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
           image_size=14, num_channels=3, conv_width=6, num_labels=5)
MEAN = VIT | dict(global_pool="avg")
AXES = dict(model_type="vit", architectures=["ViTForImageClassification"], image_size=[12, 16], patch_size=4,
            hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, layer_norm_eps=1e-6,
            num_labels=5, antialiased_positions=True, two_dimensional_positions=True)
WITH_GRADIENTS = ("vit_mean", "vit_gap", "vit_axes", "vit_axes_token")
# name: architecture, arguments, sizes of images: (how many, height, width)
CASES = {
    "vit": ("vit_tiny_patch16_224", VIT, [(2, 12, 12), (1, 20, 16), (1, 8, 16)]),
    "vit_wide": ("vit_base_patch32_384", VIT | dict(img_size=(20, 12), in_chans=1, qkv_bias=False, depth=3,
                                                    act_layer="gelu_tanh"), [(2, 20, 12), (1, 12, 28)]),
    "vit_states": ("vit_small_patch16_224", VIT | dict(num_classes=0), [(2, 12, 12)]),
    "deit": ("deit_tiny_distilled_patch16_224", VIT, [(2, 12, 12), (1, 16, 8)]),
    "deit_plain": ("deit_small_patch16_224", VIT, [(2, 12, 12)]),
    "mixer": ("mixer_b16_224", MIXER, [(3, 12, 12)]),
    "mixer_wide": ("mixer_b16_224", MIXER | dict(img_size=(12, 20), in_chans=1, num_blocks=3, embed_dim=17,
                                                 act_layer="relu"), [(3, 12, 20)]),
    "resnet": ("resnet18", dict(channels=(8, 6, 10, 12), layers=(1, 2, 1, 1), num_classes=5),
               [(1, 33, 40), (1, 35, 32)]),
    "resnet_wide": ("resnet50", dict(channels=(3, 4, 5, 6), layers=(1, 1, 2, 1), num_classes=5, in_chans=1),
                    [(1, 40, 40)]),
    "swin": ("swin_tiny_patch4_window7_224",
             dict(img_size=(16, 24), patch_size=2, window_size=2, embed_dim=12, depths=(2, 2), num_heads=(2, 3),
                  num_classes=5), [(2, 16, 24)]),
    "swin_wide": ("swin_base_patch4_window12_384",
                  dict(img_size=16, patch_size=2, window_size=4, embed_dim=8, depths=(1, 2), num_heads=(1, 2),
                       num_classes=5, mlp_ratio=1.5, qkv_bias=False), [(2, 16, 16)]),
    "cct": ("cct", CCT, [(2, 14, 14)]),
    "cct_sine": ("cct", CCT | dict(positional_embedding="sine", conv_layers=1, num_hidden_layers=3, image_size=9,
                                   pool_kernel=2, pool_padding=0), [(2, 9, 9), (1, 11, 6)]),
    "resnet_silu": ("resnet26", dict(channels=(2, 3, 4, 5), layers=(1, 1, 1, 1), num_classes=5, act_layer="silu"),
                    [(1, 40, 33)]),
    "vit_mean": ("vit_tiny_patch16_224", MEAN, [(2, 12, 12), (1, 20, 16)]),
    "vit_gap": ("vit_base_patch16_gap_224", VIT, [(2, 12, 12), (1, 8, 16)]),
    "vit_mean_states": ("vit_small_patch16_224", MEAN | dict(class_token=False, num_classes=0), [(2, 12, 12)]),
    "vit_axes": ("vit_axes", AXES | dict(pooling="mean", class_token=False), [(2, 12, 16), (1, 20, 16), (1, 8, 24)]),
    "vit_axes_token": ("vit_axes", AXES, [(2, 12, 16), (1, 20, 8)]),
}


class CctBlock(nn.Module):
    """x += attention(pre_norm(x)); x = norm1(x); x += mlp(x)."""

    def __init__(self, d, heads, hidden):
        super().__init__()
        self.heads = heads
        self.pre_norm, self.norm1 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.self_attn = nn.Module()
        self.self_attn.qkv, self.self_attn.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.linear1, self.linear2 = nn.Linear(d, hidden), nn.Linear(hidden, d)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (y.reshape(n, t, self.heads, -1).transpose(1, 2)
                   for y in self.self_attn.qkv(self.pre_norm(x)).split(d, dim=-1))
        self.weights = torch.softmax(q @ k.mT / math.sqrt(d // self.heads), dim=-1)
        x = x + self.self_attn.proj((self.weights @ v).transpose(1, 2).reshape(n, t, d))
        x = self.norm1(x)
        return x + self.linear2(F.gelu(self.linear1(x)))


class Cct(nn.Module):
    """Convolution, ReLU and max-pool make the tokens; a softmax over them weighs what is classified."""

    def __init__(self, c):
        super().__init__()
        d, layers = c["hidden_size"], c.get("conv_layers", 2)
        widths = [c["num_channels"]] + [c.get("conv_width", 64)] * (layers - 1) + [d]
        self.pool = dict(kernel_size=c.get("pool_kernel", 3), stride=2, padding=c.get("pool_padding", 1))
        self.tokenizer = nn.Module()
        self.tokenizer.conv_layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, 1, 1, bias=False)) for a, b in zip(widths, widths[1:]))
        self.classifier = top = nn.Module()
        self.is_learned = c.get("positional_embedding", "learnable") == "learnable"
        if self.is_learned:
            edge = c["image_size"]
            for _ in range(layers):
                edge = (edge - 1) // 2 + 1
            top.positional_emb = nn.Parameter(torch.zeros(1, edge * edge, d))
        top.attention_pool = nn.Linear(d, 1)
        top.blocks = nn.ModuleList(CctBlock(d, c["num_attention_heads"], c["intermediate_size"])
                                   for _ in range(c["num_hidden_layers"]))
        top.norm, top.fc = nn.LayerNorm(d), nn.Linear(d, c["num_labels"])

    def positions(self, n, d):
        if self.is_learned:
            return self.classifier.positional_emb
        angle = torch.arange(n).double()[:, None] / 10000 ** (2 * (torch.arange(d) // 2).double() / d)
        return torch.where(torch.arange(d) % 2 == 0, angle.sin(), angle.cos())[None]

    def embed(self, x):
        for layer in self.tokenizer.conv_layers:
            x = F.max_pool2d(F.relu(layer(x)), **self.pool)
        x = x.flatten(2).mT
        return x + self.positions(*x.shape[1:])

    def head(self, x):
        top = self.classifier
        return top.fc((torch.softmax(top.attention_pool(x), dim=1).mT @ x).squeeze(1))


class AxesVit(VisionTransformer):
    """Each patch has the vector of its column and that of its row, half the width each (arXiv 2010.11929, appendix
    D.4); a class token has none."""

    def __init__(self, c):
        is_mean = c.get("pooling") == "mean"
        super().__init__(img_size=c["image_size"], patch_size=c["patch_size"], embed_dim=c["hidden_size"],
                         depth=c["num_hidden_layers"], num_heads=c["num_attention_heads"],
                         mlp_ratio=c["intermediate_size"] / c["hidden_size"], num_classes=c["num_labels"],
                         class_token=c.get("class_token", True), global_pool="avg" if is_mean else "token",
                         fc_norm=False, pos_embed="none", dynamic_img_size=True)
        (rows, columns), half = self.patch_embed.grid_size, c["hidden_size"] // 2
        self.column_embeddings = nn.Parameter(torch.zeros(columns, half))
        self.row_embeddings = nn.Parameter(torch.zeros(rows, half))

    def _pos_embed(self, x):
        """Of other sizes the map of all cells is interpolated, which is the same as each axis by itself. (torch 2.15
        interpolates an axis beside one of size 1 wrongly.)"""
        n, rows, columns, _ = x.shape
        own_rows, own_columns = self.patch_embed.grid_size
        cells = torch.cat([self.column_embeddings[None].expand(own_rows, -1, -1),
                           self.row_embeddings[:, None].expand(-1, own_columns, -1)], dim=-1)
        if (rows, columns) != (own_rows, own_columns):
            cells = F.interpolate(cells.permute(2, 0, 1)[None].contiguous(), size=(rows, columns), mode="bicubic",
                                  antialias=True)[0].permute(1, 2, 0)
        x = (x + cells).flatten(1, 2)
        return x if self.cls_token is None else torch.cat([self.cls_token.expand(n, -1, -1), x], dim=1)


def under_our_names(tensors):
    """Tensors of timm's ViTs under the names that heddle has for them."""
    pairs = [(r"^(fc_norm|norm)\.", "layernorm."), (r"^blocks", "encoder.layer"), (r"norm1", "layernorm_before"),
             (r"norm2", "layernorm_after"), (r"attn\.proj", "attention.output.dense"),
             (r"mlp\.fc1", "intermediate.dense"), (r"mlp\.fc2", "output.dense"),
             (r"^patch_embed\.proj", "patch_embeddings.projection"), (r"^pos_embed", "position_embeddings"),
             (r"^(?=cls_token|patch_emb|position_emb|column_emb|row_emb)", "embeddings."), (r"^", "vit."),
             (r"^vit\.head", "classifier")]
    ours = {}
    for name, x in tensors.items():
        for theirs, here in pairs:
            name = re.sub(theirs, here, name)
        if "attn.qkv" not in name:
            ours[name] = x
            continue
        for part, rows in zip(("query", "key", "value"), x.chunk(3)):
            ours[name.replace("attn.qkv", f"attention.attention.{part}")] = rows
    return ours


def rule(name, x):
    if "running_var" in name:
        return x.abs() + 0.2
    if "norm" in name or x.dim() == 1 and "bn" in name:
        return gain_or_shift(name, x)
    is_position = "token" in name and x.dim() == 3 or "pos" in name or "_embeddings" in name or "bias_table" in name
    return 0.5 * x if is_position else None


OWN = {"cct": Cct, "vit_axes": AxesVit}  # which timm has not


def window_weights_of(block):
    """The same of Swin's, window by window."""
    def hook(attn, inputs, kwargs, _):
        x, mask = inputs[0], kwargs.get("mask")
        n, t, _ = x.shape
        q, k, _ = attn.qkv(x).reshape(n, t, 3, attn.num_heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT * attn.scale + attn._get_rel_pos_bias()
        if mask is not None:
            scores = scores + mask.repeat(n // len(mask), 1, 1)[:, None]
        block.weights = torch.softmax(scores, dim=-1)
    return hook


def weights_of(block):
    """A forward hook of timm's attention that leaves its weights in the block."""
    def hook(attn, inputs, _):
        x = inputs[0]
        n, t, _ = x.shape
        q, k, _ = attn.qkv(x).reshape(n, t, 3, attn.num_heads, -1).permute(2, 0, 3, 1, 4)
        block.weights = torch.softmax(q @ k.mT * attn.scale, dim=-1)
    return hook


def forward(model, pixels):
    """What heddle gives, by its name."""
    if isinstance(model, Cct):
        states, attentions, x = [], [], model.embed(pixels)
        for block in model.classifier.blocks:
            states.append(x)
            x = block(x)
            attentions.append(block.weights)
        states.append(x)
        out = {"logits": model.head(model.classifier.norm(x))}
    elif hasattr(model, "layers"):
        def rows(x):
            return x.flatten(1, 2)
        blocks = [block for layer in model.layers for block in layer.blocks]
        hooks = [b.attn.register_forward_hook(window_weights_of(b), with_kwargs=True) for b in blocks]
        x, states = model.patch_embed(pixels), []
        for layer in model.layers:
            x = layer.downsample(x)
            states.append(rows(x))
            x = layer.blocks(x)
        states.append(rows(x))
        out = {"logits": model.forward_head(model.norm(x))}
        attentions = [b.weights for b in blocks]
        for hook in hooks:
            hook.remove()
    elif hasattr(model, "maxpool"):
        def rows(x):
            return x.flatten(2).mT
        x = model.maxpool(model.act1(model.bn1(model.conv1(pixels))))
        states, attentions = [rows(x)], []
        for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
            x = layer(x)
            states.append(rows(x))
        out = {"logits": model.forward_head(x)}
    else:
        states, attentions, hooks = [], [], []
        for block in model.blocks:
            if not states and not hooks:
                hooks.append(block.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0])))
            hooks.append(block.register_forward_hook(lambda _, inputs, x: states.append(x)))
            if hasattr(block, "attn"):
                hooks.append(block.attn.register_forward_hook(weights_of(block)))
        last = model.forward_features(pixels)
        attentions = [block.weights for block in model.blocks if hasattr(block, "attn")]
        if hasattr(model, "head_dist"):
            cls, dist = model.head(last[:, 0]), model.head_dist(last[:, 1])
            out = {"logits": model.forward_head(last), "cls_logits": cls, "distillation_logits": dist}
        elif model.num_classes == 0:
            pooled = {"pooler_output": model.forward_head(last)} if model.global_pool == "avg" else {}
            out = {"last_hidden_state": last} | pooled
        else:
            out = {"logits": model.forward_head(last)}
        for hook in hooks:
            hook.remove()
    return (out | {f"hidden_states.{i}": x for i, x in enumerate(states)}
            | {f"attentions.{i}": x for i, x in enumerate(attentions)})


def config_of(model, architecture, arguments):
    if architecture in OWN:
        return arguments
    if isinstance(model, MlpMixer):  # create_model() makes those of published sizes only
        size = torch.Size([arguments.get("in_chans", 3)]) + model.stem.img_size
        rest = {k: v for k, v in arguments.items() if k != "num_classes"}
        return dict(architecture=architecture, num_classes=model.num_classes, num_features=model.num_features,
                    global_pool="avg", model_args=rest,
                    pretrained_cfg=dict(input_size=list(size), interpolation="bicubic", crop_pct=0.875,
                                        crop_mode="squash", mean=[0.5] * 3, std=[0.5] * 3, fixed_input_size=True,
                                        first_conv="stem.proj", classifier="head", num_classes=model.num_classes))
    with tempfile.NamedTemporaryFile() as file:
        save_config_for_hf(model, file.name)
        return json.loads(pathlib.Path(file.name).read_text())


def make_model(architecture, arguments):
    if architecture in OWN:
        return OWN[architecture](arguments)
    if architecture.startswith("mixer"):
        layer = {"relu": nn.ReLU}.get(arguments.get("act_layer"), nn.GELU)
        return MlpMixer(**(arguments | dict(act_layer=layer)))
    return timm.create_model(architecture, **arguments)


def make(name, architecture, arguments, sizes, seed):
    model = make_model(architecture, arguments).double().eval()
    generator = torch.Generator().manual_seed(seed)
    randomise(with_statistics(model), generator, rule)
    channels = arguments.get("in_chans", 3)
    tensors, total, images = {}, 0, 0
    for k, (count, height, width) in enumerate(sizes):
        pixels = random_pixels((count, channels, height, width), generator)
        out = forward(model, pixels)
        tensors |= {f"pixel_values.{k}": pixels} | named_outputs(out, k)
        if architecture != "cct" and not architecture.startswith("mixer") and name not in WITH_GRADIENTS:
            continue
        labels = tensors[f"labels.{k}"] = (torch.arange(count) * 3 + k) % 5
        total = total + F.cross_entropy(out["logits"], labels, reduction="sum")
        images += count
    if images > 0:
        (total / images).backward()
        tensors["loss"] = (total / images).detach().reshape(1)
        grads = {n: p.grad for n, p in model.named_parameters() if n != "classifier.attention_pool.bias"}
        if name in WITH_GRADIENTS:
            grads = under_our_names(grads)
        tensors |= {"grad." + n: g for n, g in grads.items()}
    weights = model.state_dict()
    if isinstance(model, AxesVit):
        weights = under_our_names(weights)
    store(FOLDER / f"{name}.safetensors", tensors | weights, config_of(model, architecture, arguments))


def load(folder):
    """What heddle exported, as timm loads it."""
    config = json.loads((folder / "config.json").read_text())
    if not config["architecture"].startswith("mixer"):
        is_vit = config["architecture"].startswith(("vit", "deit"))
        other = dict(dynamic_img_size=True) if is_vit else {}
        return timm.create_model(f"local-dir:{folder}", pretrained=True, **other)
    args = config["model_args"]
    model = make_model(config["architecture"], args | dict(num_classes=config["num_classes"]))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model


def outputs_of(folder, architecture, *_):
    if architecture in OWN:
        return None
    model = load(folder).double().eval()
    return lambda pixels, k: named_outputs(forward(model, pixels), k)


if __name__ == "__main__":
    sys.exit(run(FOLDER, CASES, make, outputs_of))
