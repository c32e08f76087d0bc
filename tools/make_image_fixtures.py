#!/usr/bin/env python3
"""Writes tests/fixtures/images: small drawn JPEG and PNG files, and what Pillow makes of them.

Usage: python tools/make_image_fixtures.py    (needs Pillow and numpy; made with Pillow 13.0)

images.json: "files", each with its size and the CRC-32 of its pixels after convert("RGB"); "resized",
each with a size before and after, the filter, and the CRC-32 of what Image.resize() makes of noise().
"""
import json
import pathlib
import random
import struct
import zlib

import numpy as np
from PIL import Image, ImageDraw

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


def crc(image):
    return zlib.crc32(image.tobytes())


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
    lines = [json.dumps(row) for row in files], [json.dumps(row) for row in resized]
    (FOLDER / "images.json").write_text('{"files": [\n  %s\n],\n"resized": [\n  %s\n]}\n' %
                                        tuple(",\n  ".join(part) for part in lines))


main()
