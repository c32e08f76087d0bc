#!/usr/bin/env python3
"""Writes tests/fixtures/vision/detr*.safetensors: small random DETRs and what transformers makes of them in float64.

Usage: python tools/make_detr_fixtures.py                 (needs torch, transformers, safetensors, scipy; made with
                                                           torch 2.15 and transformers 5.23)
       python tools/make_detr_fixtures.py --check FOLDER  loads FOLDER/NAME, which heddle saved from the fixture
                                                           NAME, and compares the outputs

A fixture NAME.safetensors holds, under Hugging Face's names:
  the weights, as save_pretrained() writes them; config.json in the metadata;
  pixel_values.K [images, channels, height, width], never padded;
  out.K.NAME: logits and pred_boxes [images, queries, ..], last_hidden_state, and {encoder,decoder}_hidden_states.I,
  {encoder,decoder,cross}_attentions.I [images, heads, queries, keys];
  labels.I [objects] and boxes.I [objects, 4] of image I of pixel_values.0; loss [1], by transformers' own loss
  function (matcher included), of the last layer, and of detr_auxiliary of each (of copies of the stream, as in
  facebookresearch/detr, not as transformers 5 has it); grad.PARAMETER for every weight but those of frozen norms.
tests/fixtures/vision/detr_timm.json holds the names and shapes of the weights of a DETR over timm's resnet50.
Weights and pixels are exact in bf16, labels are i64, the rest was computed in f64 and stored in f32.
"""
import json
import math
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "vision"
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
}
# Of the images of pixel_values.0: (class, centre x, y, width, height); more than one of a class, and none at all.
OBJECTS = [[(0, .3, .4, .2, .3), (2, .7, .5, .4, .6), (0, .25, .8, .1, .15)], [(1, .5, .5, .9, .8)], []]


def randomise(model, generator):
    """Weights that make attention uneven and no bias or gain trivial; exact in bf16."""
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if "num_batches" in name or "empty_weight" in name or name.endswith("_index"):
            continue
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if name.endswith("running_var"):
            x = 0.5 + x.abs()
        elif "norm" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif "embeddings" in name:
            x = 0.8 * x
        elif x.dim() >= 2:
            x = 1.3 * x * math.sqrt(2 / (p.shape[0] + p[0].numel()))
        else:
            x = 0.3 * x
        p.data.copy_(x.to(torch.bfloat16))


def as_saved(model):
    """The weights and the config that save_pretrained() writes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        return load_file(pathlib.Path(folder) / "model.safetensors"), config


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
    return {f"out.{k}.{name}": x.detach().clone() for name, x in tensors.items()}


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
    randomise(model, generator)
    tensors, integers = {}, {}
    for k, (count, height, width) in enumerate(sizes):
        pixels = torch.randn(count, 3, height, width, generator=generator).to(torch.bfloat16).double()
        out = forward(model, pixels)
        tensors |= {f"pixel_values.{k}": pixels} | outputs(out, k)
        if k > 0 or class_name == "DetrModel":
            continue
        labels = [dict(class_labels=torch.tensor([o[0] for o in some], dtype=torch.int64),
                       boxes=torch.tensor([o[1:] for o in some], dtype=torch.float64).reshape(-1, 4))
                  for some in OBJECTS[:count]]
        for i, of_image in enumerate(labels):
            integers[f"labels.{i}"] = of_image["class_labels"]
            tensors[f"boxes.{i}"] = of_image["boxes"]
        loss = loss_of(model, out, labels, name == "detr_auxiliary")
        loss.backward()
        tensors["loss"] = loss.reshape(1)
        tensors |= {"grad." + saved_name(n): p.grad for n, p in model.named_parameters()}
    weights, config = as_saved(model)
    config["auxiliary_loss"] = name == "detr_auxiliary"
    tensors = {k: x.detach().to(torch.float32).contiguous() for k, x in (weights | tensors).items()}
    path = FOLDER / f"{name}.safetensors"
    save_file(tensors | integers, path, {"config": json.dumps(config)})
    path.chmod(0o644)


def write_timm_names():
    model = transformers.DetrForObjectDetection(transformers.DetrConfig())
    weights, config = as_saved(model)
    shapes = {name: list(x.shape) for name, x in weights.items()}
    path = FOLDER / "detr_timm.json"
    path.write_text(json.dumps({"config": config, "shapes": shapes}))


def check(folder):
    for name, (class_name, _, _, sizes) in CASES.items():
        expected = load_file(FOLDER / f"{name}.safetensors")
        config = getattr(transformers, class_name).config_class.from_pretrained(folder / name)
        config.auxiliary_loss = False
        model, info = getattr(transformers, class_name).from_pretrained(
            folder / name, config=config, output_loading_info=True, attn_implementation="eager", dtype=torch.float64)
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            keys = [key for key in info[kind] if ".swin.layernorm." not in key]  # whose output nothing reads
            assert not keys, f"{name}: {kind}: {keys}"
        worst = 0.0
        for k in range(len(sizes)):
            with torch.no_grad():
                out = forward(model.eval(), expected[f"pixel_values.{k}"].double())
            for key, x in outputs(out, k).items():
                worst = max(worst, ((x - expected[key]).abs().max() / expected[key].abs().max()).item())
        assert worst < 1e-6, (name, worst)
        print(f"{name}: {class_name}: {worst:.1e}")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(pathlib.Path(sys.argv[2]))
    for seed, (name, case) in enumerate(CASES.items(), 1):
        make(name, *case, seed)
    write_timm_names()
    return 0


if __name__ == "__main__":
    sys.exit(main())
