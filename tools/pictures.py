#!/usr/bin/env python3
"""Makes the pictures of docs/: trains small models, writes pages with heddle, takes screenshots in headless Chromium.

usage: ./dev pictures [--check] [--only NAME]...

What a picture shows is the same each time: generated sentences, one seed, f32 on one thread, times of the log replaced.
A picture that comes out as it was stays as it is. docs/pictures.sha256 holds the checksums of the pictures and of all
that they were made from; the test tools/pictures compares them.

  --check  writes nothing; fails if a picture differs from docs in more than 2 % of its pixels
"""
import argparse
import base64
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import time
import zlib

import picture_corpus
import plot_log
from chromium import Chromium

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, "build", "pictures")
HEDDLE = os.path.join(ROOT, "build", "bin", "heddle")
MOST_DIFFERENT, SAME = 0.02, 0.0005  # shares of pixels
SENTENCE = "Today a woman in a red jacket is reading an old book."
# Pages whose C++ has no asset of its own, and what makes the data of the others.
SOURCES = ["heddle/inspect/pages/page.cc", "heddle/inspect/run_history.cc", "heddle/inspect/attention_maps.cc",
           "heddle/inspect/pages/explanation_page.cc", "heddle/inspect/analysis.cc", "heddle/inspect/positions.cc",
           "heddle/inspect/decoding_steps.cc", "tools/pictures.py", "tools/picture_corpus.py", "tools/plot_log.py"]

TRAIN = """--preset tiny --source-lang en --target-lang de --vocab-size 640 --d-model 64 --encoder-layers 2 --decoder-layers 2
  --encoder-ffn-dim 128 --decoder-ffn-dim 128 --batch-tokens 500 --embedding-dropout 0.05 --schedule linear
  --warmup-updates 60 --max-updates 300 --validate-every 25 --log-every 4 --label-smoothing 0.1 --ema-decay 0 --average none
  --precision f32 --threads 1 --seed 1""".split()
RUNS = {"sentences": "--learning-rate 4e-3 --dropout 0.05", "slower": "--learning-rate 1e-3 --dropout 0.05",
        "more-dropout": "--learning-rate 4e-3 --dropout 0.3"}

CLICK = """(async (words) => { for (const word of words) {
  const button = [...document.querySelectorAll("button")].find((b) => b.textContent.startsWith(word));
  if (!button) throw new Error("no button " + word);
  button.click();
  await new Promise((done) => setTimeout(done, 100));
} document.activeElement.blur(); })"""


def clicks(*words):
    return f"{CLICK}({json.dumps(words)})"


TO_VIEW = 'document.querySelector("#view").scrollIntoView(), window.scrollBy(0, -130)'

# Name, page, width, height, dark, what is done before.
PICTURES = [("report", "report", 900, 1120, False, None),
            ("compare", "compare", 900, 1050, False, clicks("logarithmic")),
            ("attention", "attention", 1180, 980, False, None),
            ("attention-phone-dark", "attention", 390, 1000, True, TO_VIEW),
            ("explain", "explain", 1000, 1400, False, None),
            ("decoding", "decoding", 1180, 1000, False, clicks("next", "next", "next", "next")),
            ("positions", "positions", 1000, 900, False, None),
            ("analyze", "analyze", 1000, 1150, False, None)]


def heddle(*words, text=None):
    done = subprocess.run([HEDDLE, *words], input=text, capture_output=True, text=True, cwd=WORK)
    if done.returncode:
        sys.exit(f"pictures: heddle {' '.join(words)}: {done.stderr.strip()}")


def say(text):
    print(f"pictures: {text}", flush=True)


# --- pages ----------------------------------------------------------------------------------------

def with_even_times(run):
    """Replaces what differs from machine to machine: seconds and speed."""
    draw, path = random.Random(1), os.path.join(WORK, run, "log.jsonl")
    with open(path, encoding="utf-8") as log:
        lines = [json.loads(line) for line in log]
    for line in lines:
        line["seconds"] = line["update"] * 0.05
        if "tokens_per_second" in line:
            line["tokens_per_second"] = 12000 + 600 * draw.random()
            line.pop("share_of_peak", None)
    with open(path, "w", encoding="utf-8") as log:
        log.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    path = os.path.join(WORK, run, "state", "manifest.json")
    with open(path, encoding="utf-8") as manifest:
        state = json.load(manifest)
    state["content"]["seconds"] = 0  # those of the log are more
    with open(path, "w", encoding="utf-8") as manifest:
        json.dump(state, manifest)


def write_pages():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    picture_corpus.write_corpus(os.path.join(WORK, "text"))
    for name, flags in RUNS.items():
        begin = time.time()
        heddle("train", *TRAIN, *flags.split(), "--data", "text", "--out", name)
        with_even_times(name)
        say(f"trained {name} in {time.time() - begin:.0f} s")
    heddle("compare", "sentences", "--page", "report.html")
    heddle("compare", *RUNS, "--page", "compare.html")
    heddle("attention", "sentences", "--text", SENTENCE, "--page", "attention.html")
    heddle("explain", "sentences", "--text", "A woman is reading her book.", "--kind", "encoder", "--layer", "1",
           "--head", "2", "--page", "explain.html")
    heddle("translate", "sentences", "--beam", "4", "--page", "decoding.html", text=SENTENCE + "\n")
    heddle("positions", "--page", "positions.html")
    heddle("analyze", "base", "--length", "128", "--page", "analyze.html")


# --- images ---------------------------------------------------------------------------------------

PIXELS = """const pixels = async (data) => {
  const image = new Image();
  image.src = "data:image/png;base64," + data;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  const g = canvas.getContext("2d", {willReadFrequently: true});
  g.drawImage(image, 0, 0);
  return g.getImageData(0, 0, image.width, image.height);
};"""

# The share of pixels in which two images differ by more than a fifth of a channel; 1 for other sizes.
DIFFERENCE = "(async (one, two) => {" + PIXELS + """
  const a = await pixels(one), b = await pixels(two);
  if (a.width !== b.width || a.height !== b.height) return 1;
  let count = 0;
  for (let i = 0; i < a.data.length; i += 4) {
    if ([0, 1, 2].some((k) => Math.abs(a.data[i + k] - b.data[i + k]) > 50)) ++count;
  }
  return count / (a.width * a.height);
})"""

# An image in at most 128 colours, the commonest that are not alike; the others go to the nearest of them.
PALETTE = "(async (one) => {" + PIXELS + """
  const {data, width, height} = await pixels(one), counts = new Map();
  const at = (i) => data[i] << 16 | data[i + 1] << 8 | data[i + 2];
  for (let i = 0; i < data.length; i += 4) counts.set(at(i), (counts.get(at(i)) || 0) + 1);
  const parts = (c) => [c >> 16, c >> 8 & 255, c & 255];
  const far = (a, b) => a.reduce((sum, x, k) => sum + (x - b[k]) ** 2, 0);
  const palette = [], index = new Map();
  for (const [c] of [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])) {
    if (palette.length < 128 && palette.every((p) => far(p, parts(c)) > 90)) palette.push(parts(c));
  }
  for (const c of counts.keys()) {
    let best = 0;
    palette.forEach((p, k) => { if (far(p, parts(c)) < far(palette[best], parts(c))) best = k; });
    index.set(c, best);
  }
  const bytes = [];
  for (let i = 0; i < data.length; i += 4) bytes.push(String.fromCharCode(index.get(at(i))));
  return {width, height, palette, pixels: btoa(bytes.join(""))};
})"""


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def small_png(browser, png):
    """The same picture with a palette."""
    q = browser.run(f"{PALETTE}({json.dumps(base64.b64encode(png).decode())})")
    pixels, width = base64.b64decode(q["pixels"]), q["width"]
    rows = b"".join(b"\0" + pixels[y * width:(y + 1) * width] for y in range(q["height"]))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, q["height"], 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", bytes(x for color in q["palette"] for x in color)) +
            chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def difference(browser, png, path):
    if not os.path.exists(path):
        return 1.0
    with open(path, "rb") as old:
        images = [base64.b64encode(image).decode() for image in (png, old.read())]
    return browser.run(f"{DIFFERENCE}({json.dumps(images[0])}, {json.dumps(images[1])})")


def take(browser, page, width, height, is_dark, script):
    browser.open(os.path.join(WORK, page + ".html"), width, height, is_dark)
    if script:
        browser.run(script)
    return small_png(browser, browser.screenshot())


# --- all of them ----------------------------------------------------------------------------------

def checksums():
    """sha256sum's lines for the pictures and what they were made from."""
    pages = [open(os.path.join(WORK, f"{page}.html"), encoding="utf-8").read() for page in {p[1] for p in PICTURES}]
    assets = "pages"
    used = [f"{assets}/{name}" for name in os.listdir(os.path.join(ROOT, assets))
            if any(open(os.path.join(ROOT, assets, name), encoding="utf-8").read() in page for page in pages)]
    files = used + SOURCES + [f"docs/{p[0]}.png" for p in PICTURES] + ["docs/multi30k-en-de.json", "docs/multi30k-en-de.svg"]
    return "".join(f"{hashlib.sha256(open(os.path.join(ROOT, f), 'rb').read()).hexdigest()}  {f}\n" for f in sorted(files))


def draw_curves(is_check):
    """docs/multi30k-en-de.svg, from the losses that those runs of 30 to 100 minutes logged."""
    docs = os.path.join(ROOT, "docs")
    with open(os.path.join(docs, "multi30k-en-de.json"), encoding="utf-8") as figures:
        svg = plot_log.svg(list(json.load(figures).items()))
    path = os.path.join(docs, "multi30k-en-de.svg")
    with open(path, encoding="utf-8") as old:
        is_same = old.read() == svg
    say(f"multi30k-en-de.svg: {'as it was' if is_same else 'differs' if is_check else 'written'}")
    if not is_same and not is_check:
        with open(path, "w", encoding="utf-8") as out:
            out.write(svg)
    return is_same


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", action="append", choices=[p[0] for p in PICTURES])
    flags = parser.parse_args()
    begin, differing = time.time(), []
    write_pages()
    with Chromium() as browser:
        for name, page, *view in PICTURES:
            if flags.only and name not in flags.only:
                continue
            png = take(browser, page, *view)
            path = os.path.join(ROOT, "docs", name + ".png")
            share = difference(browser, png, path)
            with open(os.path.join(WORK, name + ".png"), "wb") as out:
                out.write(png)
            if not flags.check and share > SAME:
                shutil.copy(os.path.join(WORK, name + ".png"), path)
            if share > MOST_DIFFERENT:
                differing.append(name)
            end = "as it was" if share <= SAME else "" if flags.check else f"written, {len(png) // 1024} KiB"
            say(f"{name}.png: {100 * share:.2f} % of its pixels differ {end}".rstrip())
    is_curve_same = draw_curves(flags.check)
    if flags.check and (differing or not is_curve_same):
        sys.exit(f"pictures: {', '.join(differing) or 'multi30k-en-de.svg'} no longer shows the pages: run ./dev pictures; "
                 f"what came out is in build/pictures")
    if not flags.check and not flags.only:
        with open(os.path.join(ROOT, "docs", "pictures.sha256"), "w", encoding="utf-8") as out:
            out.write(checksums())
    say(f"done in {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
