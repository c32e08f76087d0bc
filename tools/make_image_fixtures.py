#!/usr/bin/env python3
"""Writes tests/fixtures/images: small drawn JPEG and PNG files, and what Pillow makes of them.

Usage: python tools/make_image_fixtures.py    (needs Pillow, numpy, transformers, timm, torchvision; made with
                          Pillow 13.0, transformers 5.23, timm 1.0.31, torchvision 0.29)

images.json: "files", each with its size and the CRC-32 of its pixels after convert("RGB"); "turned", each
with EXIF data in hexadecimal, where they are put into 420.jpg, and what ImageOps.exif_transpose() makes of it; "resized",
each with a size before and after, the filter, and the CRC-32 of what Image.resize() makes of noise();
"prepared", each with what a model's folder says, a size, and what the library makes of noise(): the CRC-32 of
its 8 bits, and every 97th of the pixel values.
augment.json: "operations", each with a magnitude and the CRC-32 of what torchvision makes of noise() that was
changed(), with green where nothing is; "magnitudes", those of its policies at each level; "cifar10",
AutoAugment's policy.
"""
import io
import json
import pathlib
import random
import struct
import zlib

import numpy as np
import timm.data
import torch
import transformers
from PIL import Image, ImageDraw, ImageOps
from torchvision.transforms import InterpolationMode, autoaugment

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "images"


def noise(height, width, seed):
    """Bytes of a linear congruential generator, its upper eight bits; tests/vision draws the same."""
    state, values = seed, bytearray()
    for _ in range(height * width * 3):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append(state >> 24)
    return Image.frombytes("RGB", (width, height), bytes(values))


def drawing(height, width):
    """Soft colours with sharp edges."""
    y, x = np.mgrid[0:height, 0:width]
    soft = np.stack([255 * x / width, 255 * y / height, 127 + 127 * np.sin((x + y) / 5)], axis=-1)
    image = Image.fromarray(soft.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    draw.ellipse([width // 4, height // 5, width // 2, height // 2], fill=(240, 30, 20))
    draw.rectangle([width // 2, height // 2, width - 3, height - 4], fill=(10, 60, 200))
    return image


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def write_png(path, width, height, depth, colour, rows, interlace=0, before=b""):
    """A PNG file of rows as they lie in it, for what Pillow does not write."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    data = b"".join(b"\0" + row for row in rows)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before +
                     chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def interlaced_rows(pixels):
    """The seven passes of Adam7, a row after the other."""
    rows = []
    for top, left, down, right in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2),
                                   (0, 1, 2, 2), (1, 0, 2, 1)):
        part = pixels[top::down, left::right]
        rows += [row.tobytes() for row in part if row.size]
    return rows


def write_files():
    picture = drawing(37, 45)
    for name, options in {
            "420": dict(quality=75, subsampling=2), "422": dict(quality=90, subsampling=1),
            "444": dict(quality=60, subsampling=0), "progressive": dict(quality=80, progressive=True)}.items():
        picture.save(FOLDER / f"{name}.jpg", **options)
    picture.convert("L").save(FOLDER / "grey.jpg", quality=80)
    picture.convert("CMYK").save(FOLDER / "cmyk.jpg", quality=80)
    picture.save(FOLDER / "rgb.png")
    picture.convert("L").save(FOLDER / "grey.png")
    picture.convert("1").save(FOLDER / "one_bit.png")
    picture.quantize(13).save(FOLDER / "palette.png", transparency=3)
    alpha = Image.fromarray((np.arange(37 * 45) % 256).astype(np.uint8).reshape(37, 45))
    with_alpha = picture.copy()
    with_alpha.putalpha(alpha)
    with_alpha.save(FOLDER / "rgba.png")
    with_alpha.convert("LA").save(FOLDER / "grey_alpha.png")
    deep = np.asarray(drawing(9, 11)).astype(">u2") * 257 - 100 * (np.asarray(drawing(9, 11)) > 0)
    write_png(FOLDER / "sixteen_bit.png", 11, 9, 16, 2, [row.astype(">u2").tobytes() for row in deep])
    write_png(FOLDER / "interlaced.png", 45, 37, 8, 2, interlaced_rows(np.asarray(picture)), interlace=1)
    # What must be refused: an animation, and a header that asks for four thousand million pixels.
    write_png(FOLDER / "animation.png.bad", 2, 1, 8, 0, [b"\x01\x02"],
              before=chunk(b"acTL", struct.pack(">II", 2, 0)))
    write_png(FOLDER / "vast.png.bad", 65535, 65535, 8, 2, [b""])
    vast = bytearray((FOLDER / "420.jpg").read_bytes())
    frame = vast.index(b"\xff\xc0")
    vast[frame + 5:frame + 9] = b"\xff\xff\xff\xff"
    (FOLDER / "vast.jpg.bad").write_bytes(vast)


def exif(order, kind, value):
    """An APP1 segment: a maker, the orientation and a resolution, the directory behind what it refers to."""
    number = struct.pack(order + {3: "HH", 4: "I"}[kind], *((value, 0) if kind == 3 else (value,)))
    entries = [struct.pack(order + "HHII", 0x10f, 2, 6, 8), struct.pack(order + "HHI", 0x112, kind, 1) + number,
               struct.pack(order + "HHIHH", 0x128, 3, 1, 2, 0)]
    directory = struct.pack(order + "H", len(entries)) + b"".join(entries) + bytes(4)
    tiff = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", 14) + b"maker\0" + directory
    return b"\xff\xe1" + struct.pack(">H", len(tiff) + 8) + b"Exif\0\0" + tiff


def turned():
    whole = (FOLDER / "420.jpg").read_bytes()
    behind_jfif = 4 + struct.unpack(">H", whole[4:6])[0]
    for value in range(10):
        for order, kind, at in (("<", 3, 2), (">", 3, behind_jfif), (">", 4, 2)):
            segment = exif(order, kind, value)
            image = ImageOps.exif_transpose(Image.open(io.BytesIO(whole[:at] + segment + whole[at:]))).convert("RGB")
            yield dict(exif=segment.hex(), at=at, height=image.height, width=image.width, crc=crc(image))


def crc(image):
    return zlib.crc32(image.tobytes())


NORMAL = dict(do_normalize=True, image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
SCALED = NORMAL | dict(do_resize=True, do_rescale=True, rescale_factor=1 / 255)
# Class, preprocessor_config.json; the second of each kind as older files have it.
PROCESSORS = [
    ("ViTImageProcessorPil", SCALED | dict(image_processor_type="ViTImageProcessor", resample=2,
                                           size={"height": 24, "width": 20})),
    ("ViTImageProcessorPil", NORMAL | dict(feature_extractor_type="ViTFeatureExtractor", do_resize=True,
                                           resample=3, size=24)),
    ("DeiTImageProcessorPil", NORMAL | dict(feature_extractor_type="DeiTFeatureExtractor", do_resize=True,
                                            resample=3, size=27, do_center_crop=True, crop_size=24)),
    ("ConvNextImageProcessorPil", SCALED | dict(image_processor_type="ConvNextImageProcessor", resample=3,
                                                size={"shortest_edge": 21}, crop_pct=0.875)),
    ("ConvNextImageProcessorPil", NORMAL | dict(feature_extractor_type="ConvNextFeatureExtractor", do_resize=True,
                                                resample=3, size=24, crop_pct=0.8)),
    ("BitImageProcessorPil", SCALED | dict(image_processor_type="BitImageProcessor", resample=3,
                                           size={"shortest_edge": 19}, do_center_crop=True,
                                           crop_size={"height": 25, "width": 12})),
    ("DetrImageProcessorPil", SCALED | dict(image_processor_type="DetrImageProcessor", resample=2,
                                            size={"shortest_edge": 30, "longest_edge": 41})),
    ("DetrImageProcessorPil", NORMAL | dict(feature_extractor_type="DetrFeatureExtractor", do_resize=True,
                                            size=30, max_size=41)),
]
TIMM = [
    dict(input_size=[3, 24, 24], interpolation="bicubic", crop_pct=0.9, crop_mode="center",
         mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5]),
    dict(input_size=[3, 20, 20], interpolation="bilinear", crop_pct=0.875, mean=[0.485, 0.456, 0.406],
         std=[0.229, 0.224, 0.225]),
    dict(input_size=[3, 18, 22], interpolation="bicubic", crop_pct=0.95, crop_mode="squash",
         mean=[0, 0, 0], std=[1, 1, 1]),
]


def by_transformers(name, config, image):
    processor = getattr(transformers, name)(**{k: v for k, v in config.items() if not k.endswith("_type")})
    more = dict(do_pad=False) if name.startswith("Detr") else {}
    bits = processor(image, do_rescale=False, do_normalize=False, return_tensors="np", **more)["pixel_values"][0]
    return bits.astype(np.uint8), processor(image, return_tensors="np", **more)["pixel_values"][0]


def by_timm(config, image):
    data = dict(config, crop_mode=config.get("crop_mode", "center"))
    values = timm.data.create_transform(**data)(image)
    mean, std = (torch.tensor(data[k])[:, None, None] for k in ("mean", "std"))
    return ((values * std + mean) * 255).round().to(torch.uint8).numpy(), values.numpy()


def prepared():
    rng = random.Random(9)
    for seed, (name, config) in enumerate(PROCESSORS * 3 + [(None, c) for c in TIMM * 3]):
        size = [rng.randint(8, 60), rng.randint(8, 60)]
        image = noise(*size, seed)
        bits, values = by_transformers(name, config, image) if name else by_timm(config, image)
        yield {"config" if name else "timm": config, "seed": seed, "from": size, "to": list(bits.shape[1:]),
               "crc": zlib.crc32(np.ascontiguousarray(bits.transpose(1, 2, 0)).tobytes()),
               "values": [float(v) for v in values.reshape(-1)[::97]]}


def changed(image, kind):
    values = np.asarray(image).astype(int)
    if kind == "dim":
        values = values * np.array([60, 110, 7]) // 256 + np.array([20, 90, 200])
    if kind == "grey":
        values = values[..., :1].repeat(3, -1)
    if kind == "even":
        values = values * 0 + 77
    return Image.fromarray(values.astype(np.uint8))


# Beside levels of the policies, what is easily got wrong: right angles, none, all, threshold at a level.
EXTRA = {"Rotate": [0, 90, -90, 135, 60], "ShearX": [0, 0.99], "ShearY": [-0.99], "TranslateX": [40, -3.9],
         "TranslateY": [0.9], "Brightness": [-1, 0, 5], "Color": [-1, 0, 1.7], "Contrast": [-1, 0, 3],
         "Sharpness": [-1, 0, 0.99, 6], "Posterize": [1, 8, 2], "Solarize": [0, 255, 256, 128]}


def operations():
    rng = random.Random(3)
    policy = autoaugment.RandAugment()
    for name in list(policy._augmentation_space(31, (32, 32))) + ["Invert"]:
        for i in range(18):
            size = [rng.randint(1, 40), rng.randint(1, 40)] if i % 3 else [32, 32]
            space = policy._augmentation_space(31, size)
            magnitudes, signed = space.get(name, (torch.tensor(0.0), False))
            magnitude = float(magnitudes[rng.randint(0, 30)]) if magnitudes.ndim else 0.0
            magnitude *= rng.choice([-1, 1]) if signed else 1
            if i % 6 == 5 and name in EXTRA:
                magnitude = rng.choice(EXTRA[name])
            kind = ["noise", "dim", "noise", "grey", "dim", "even"][rng.randint(0, 5)]
            image = changed(noise(*size, i), kind)
            result = autoaugment._apply_op(image, name, magnitude, InterpolationMode.NEAREST, [0, 200, 7])
            yield {"op": name, "magnitude": magnitude, "seed": i, "size": size, "kind": kind, "crc": crc(result)}
        for magnitude in EXTRA.get(name, []):
            image = changed(noise(32, 32, 1), "dim")
            result = autoaugment._apply_op(image, name, magnitude, InterpolationMode.NEAREST, [0, 200, 7])
            yield {"op": name, "magnitude": magnitude, "seed": 1, "size": [32, 32], "kind": "dim",
                   "crc": crc(result)}


def magnitudes():
    spaces = [(31, False, lambda size: autoaugment.RandAugment()._augmentation_space(31, size)),
              (10, False, lambda size: autoaugment.AutoAugment()._augmentation_space(10, size)),
              (31, True, lambda size: autoaugment.TrivialAugmentWide()._augmentation_space(31))]
    for levels, is_wide, space in spaces:
        for size in [(32, 32), (1, 3), (28, 37), (224, 96), (384, 333)]:
            for name, (values, signed) in space(size).items():
                if values.ndim and (size == (32, 32) or name.startswith("Translate")):
                    yield {"op": name, "levels": levels, "wide": is_wide, "size": list(size), "signed": signed,
                           "values": values.double().tolist()}


def cifar10():
    policies = autoaugment.AutoAugment()._get_policies(autoaugment.AutoAugmentPolicy.CIFAR10)
    for steps in policies:
        yield [[name, probability, -1 if level is None else level] for name, probability, level in steps]


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    write_files()
    files = []
    for path in sorted(FOLDER.iterdir()):
        if path.suffix == ".bad":
            continue
        image = Image.open(path).convert("RGB")
        files.append(dict(file=path.name, height=image.height, width=image.width, crc=crc(image)))
    rng = random.Random(7)
    resized = []
    for seed in range(60):
        sizes = [rng.randint(1, 70) for _ in range(4)]
        if seed % 10 == 0:
            sizes[2] = sizes[0]
        if seed % 15 == 0:
            sizes[3] = sizes[1]
        for name, method in (("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)):
            image = noise(sizes[0], sizes[1], seed).resize((sizes[3], sizes[2]), method)
            resized.append({"seed": seed, "from": sizes[:2], "to": sizes[2:], "filter": name, "crc": crc(image)})
    parts = (",\n  ".join(json.dumps(row) for row in part) for part in (files, turned(), resized, prepared()))
    (FOLDER / "images.json").write_text(
        '{"files": [\n  %s\n],\n"turned": [\n  %s\n],\n"resized": [\n  %s\n],\n"prepared": [\n  %s\n]}\n' % tuple(parts))
    parts = (",\n  ".join(json.dumps(row) for row in part) for part in (operations(), magnitudes(), cifar10()))
    (FOLDER / "augment.json").write_text(
        '{"operations": [\n  %s\n],\n"magnitudes": [\n  %s\n],\n"cifar10": [\n  %s\n]}\n' % tuple(parts))


main()
