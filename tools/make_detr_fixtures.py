#!/usr/bin/env python3
"""Writes tests/fixtures/vision/detr*.safetensors: small random DETRs and what transformers makes of them in float64.

Usage: python tools/make_detr_fixtures.py                 (needs torch, transformers, safetensors, scipy; made with
                                                           torch 2.15 and transformers 5.23; detr_normed 5.24)
       python tools/make_detr_fixtures.py --check FOLDER  loads FOLDER/NAME, which heddle saved from the fixture
                                                           NAME, and compares the outputs

A fixture NAME.safetensors holds, under Hugging Face's names:
  the weights, as save_pretrained() writes them; config.json in the metadata;
  pixel_values.K [images, channels, height, width], never padded;
  out.K.NAME: logits and pred_boxes [images, queries, ..], last_hidden_state, and {encoder,decoder}_hidden_states.I,
  {encoder,decoder,cross}_attentions.I [images, heads, queries, keys];
  labels.I [objects] and boxes.I [objects, 4] of image I of pixel_values.0; loss [1], by transformers' own loss
  function (matcher included), of the last layer, and of detr_auxiliary and detr_normed of each (of copies of the
  stream, as in facebookresearch/detr, which heddle's layer_losses means; and as transformers has it, by
  auxiliary_loss); grad.PARAMETER for every weight but those of frozen norms.
tests/fixtures/vision/detr_timm.json holds the names and shapes of the weights of a DETR over timm's resnet50.
Weights and pixels are exact in bf16, labels are i64, the rest was computed in f64 and stored in f32.
"""
import json
import sys

import torch
import transformers
from image_model_fixtures import (FIXTURES, as_saved, gain_or_shift, load_saved, named_outputs, random_pixels,
                                  randomise, run, store)
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

FOLDER = FIXTURES / "vision"
SMALL = dict(num_queries=6, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
             decoder_attention_heads=4, encoder_ffn_dim=14, decoder_ffn_dim=18, num_labels=3)
BASIC = dict(embedding_size=5, hidden_sizes=[6, 8], depths=[1, 2], layer_type="basic", out_features=["stage2"])
BOTTLENECK = dict(embedding_size=5, hidden_sizes=[8, 12, 16], depths=[1, 1, 1], layer_type="bottleneck",
                  out_features=["stage3"])
SWIN = dict(image_size=32, patch_size=2, embed_dim=6, depths=[1, 2], num_heads=[1, 2], window_size=3, mlp_ratio=2.0,
            out_features=["stage2"])
# name: class, config, backbone, sizes of images: (how many, height, width)
CASES = {
    "detr": ("DetrForObjectDetection", SMALL, BASIC, [(3, 27, 35), (1, 50, 20)]),
    "detr_auxiliary": ("DetrForObjectDetection", SMALL | dict(activation_function="gelu", class_cost=2,
                       eos_coefficient=0.2, bbox_loss_coefficient=3, d_model=12, num_queries=7), BASIC,
                       [(3, 34, 25)]),
    "detr_states": ("DetrModel", SMALL | dict(position_embedding_type="learned", encoder_layers=1, decoder_layers=2),
                    BOTTLENECK, [(2, 64, 49), (1, 36, 90)]),
    "detr_swin": ("DetrModel", SMALL | dict(encoder_layers=1, decoder_layers=1), SWIN, [(2, 28, 19), (1, 10, 32)]),
    "detr_normed": ("DetrForObjectDetection", SMALL | dict(auxiliary_loss=True, decoder_layers=3, d_model=8), BASIC,
                    [(3, 30, 22), (1, 20, 41)]),
}
# Of the images of pixel_values.0: (class, centre x, y, width, height); more than one of a class, and none at all.
OBJECTS = [[(0, .3, .4, .2, .3), (2, .7, .5, .4, .6), (0, .25, .8, .1, .15)], [(1, .5, .5, .9, .8)], []]


def trained(model):
    """Pairs of name and tensor: the weights and the statistics of frozen norms."""
    tensors = list(model.named_parameters()) + list(model.named_buffers())
    return [(name, p) for name, p in tensors
            if "num_batches" not in name and "empty_weight" not in name and not name.endswith("_index")]


def rule(name, x):
    if name.endswith("running_var"):
        return 0.5 + x.abs()
    if "norm" in name:
        return gain_or_shift(name, x)
    return 0.8 * x if "embeddings" in name else None


def saved_name(name):
    name = name.replace("backbone.model.", "backbone.conv_encoder.model.").replace("o_proj", "out_proj")
    return name.replace(".mlp.fc", ".fc")


def forward(model, pixels):
    return model(pixel_values=pixels, output_hidden_states=True, output_attentions=True)


def outputs(out, k):
    tensors = {}
    for name in ("encoder_hidden_states", "decoder_hidden_states", "encoder_attentions", "decoder_attentions",
                 "cross_attentions"):
        tensors |= {f"{name}.{i}": x for i, x in enumerate(getattr(out, name))}
    for name in ("logits", "pred_boxes", "last_hidden_state"):
        if getattr(out, name, None) is not None:
            tensors[name] = getattr(out, name)
    return named_outputs(tensors, k)


def own_loss(model, pixels, labels):
    torch.set_default_dtype(torch.float64)
    loss = model(pixel_values=pixels, labels=labels).loss
    torch.set_default_dtype(torch.float32)
    return loss


def loss_of(model, out, labels, every_layer):
    states = torch.stack([model.model.decoder.layernorm(x) for x in out.decoder_hidden_states[1:-1]]
                         + [out.last_hidden_state])
    classes, boxes = model.class_labels_classifier(states), model.bbox_predictor(states).sigmoid()
    model.config.auxiliary_loss = every_layer
    torch.set_default_dtype(torch.float64)  # of the weights of classes
    loss = ForObjectDetectionLoss(classes[-1], labels, "cpu", boxes[-1], model.config, classes, boxes)[0]
    torch.set_default_dtype(torch.float32)
    model.config.auxiliary_loss = False
    return loss


def make(name, class_name, fields, backbone, sizes, seed):
    cls = getattr(transformers, class_name)
    backbone_class = transformers.SwinConfig if "embed_dim" in backbone else transformers.ResNetConfig
    config = cls.config_class(backbone_config=backbone_class(**backbone), use_timm_backbone=False, **fields)
    config._attn_implementation = "eager"
    model = cls(config).double().eval().requires_grad_(True)
    generator = torch.Generator().manual_seed(seed)
    randomise(trained(model), generator, rule)
    tensors = {}
    for k, (count, height, width) in enumerate(sizes):
        pixels = random_pixels((count, 3, height, width), generator)
        out = forward(model, pixels)
        tensors |= {f"pixel_values.{k}": pixels} | outputs(out, k)
        if k > 0 or class_name == "DetrModel":
            continue
        labels = [dict(class_labels=torch.tensor([o[0] for o in some], dtype=torch.int64),
                       boxes=torch.tensor([o[1:] for o in some], dtype=torch.float64).reshape(-1, 4))
                  for some in OBJECTS[:count]]
        for i, of_image in enumerate(labels):
            tensors[f"labels.{i}"] = of_image["class_labels"]
            tensors[f"boxes.{i}"] = of_image["boxes"]
        is_normed = model.config.auxiliary_loss
        loss = (own_loss(model, pixels, labels) if is_normed
                else loss_of(model, out, labels, name == "detr_auxiliary"))
        loss.backward()
        tensors["loss"] = loss.reshape(1)
        tensors |= {"grad." + saved_name(n): p.grad for n, p in model.named_parameters()}
    weights, config = as_saved(model)
    if name == "detr_auxiliary":
        config["layer_losses"] = True
    store(FOLDER / f"{name}.safetensors", weights | tensors, config)


def write_timm_names():
    model = transformers.DetrForObjectDetection(transformers.DetrConfig())
    weights, config = as_saved(model)
    shapes = {name: list(x.shape) for name, x in weights.items()}
    path = FOLDER / "detr_timm.json"
    path.write_text(json.dumps({"config": config, "shapes": shapes}))


def outputs_of(folder, class_name, *_):
    cls = getattr(transformers, class_name)
    config = cls.config_class.from_pretrained(folder)
    model = load_saved(cls, folder, (".swin.layernorm.",), config=config, attn_implementation="eager")
    return lambda pixels, k: outputs(forward(model, pixels), k)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        write_timm_names()
    sys.exit(run(FOLDER, CASES, make, outputs_of))
