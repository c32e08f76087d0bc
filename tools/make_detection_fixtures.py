#!/usr/bin/env python3
"""Writes tests/fixtures/average_precision.json: random objects, boxes that a detector might find,
and what pycocotools (2.0.11) makes of them.
usage: tools/make_detection_fixtures.py    needs pycocotools and numpy"""
import contextlib
import io
import json
import os

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def make_case(seed, images, classes, whole, most_found):
    """Objects of all sizes, some in crowds, some with an area of their own; found ones are moved, of
    another class, twice there, or made up. `whole`: whole pixels and few scores, so that many are
    equal."""
    rng = np.random.default_rng(seed)

    def numbers(values):
        return [int(round(v)) if whole else round(float(v), 3) for v in values]

    truths, found = [], []
    for image in range(1, images + 1):
        for _ in range(rng.integers(0, 7)):
            w, h = np.exp(rng.uniform(1.5, 5.6, 2))
            x, y = rng.uniform(0, 400, 2)
            x, y, w, h = numbers([x, y, w + 1, h + 1])
            area = w * h * (rng.uniform(0.3, 1) if rng.random() < 0.2 else 1)
            label = int(rng.integers(0, classes - 1))  # the last class has no objects
            truths.append([image, x, y, w, h, label, int(rng.random() < 0.12), float(area)])
            for _ in range(rng.integers(0, 3)):
                shift = rng.normal(0, rng.choice([0.02, 0.1, 0.3]), 4)
                box = numbers([x + shift[0] * w, y + shift[1] * h, w * np.exp(shift[2]), h * np.exp(shift[3])])
                box[2:] = [max(1, v) for v in box[2:]]
                other = label if rng.random() < 0.85 else int(rng.integers(0, classes))
                found.append([image, *box, other, rng.random()])
        for _ in range(rng.integers(0, most_found)):
            x, y = rng.uniform(0, 400, 2)
            w, h = np.exp(rng.uniform(1.5, 5, 2))
            found.append([image, *numbers([x, y, w + 1, h + 1]), int(rng.integers(0, classes)), rng.random()])
    for f in found:
        f[6] = round(f[6], 1) if whole else round(f[6], 6)
    rng.shuffle(found)
    return {"images": images, "classes": classes, "truths": truths, "found": found}


def with_odd_truths(case):
    """Some truths as files have them that nobody cleaned: flat, turned inside out, far outside, or of
    an area of 0 or below."""
    for n, truth in enumerate(case["truths"]):
        if n % 9 == 0:
            truth[3] = 0
        elif n % 9 == 2:
            truth[3], truth[4] = -truth[3], -truth[4]
        elif n % 9 == 4:
            truth[1] -= 5000
        elif n % 9 == 6:
            truth[7] = 0.0
        elif n % 9 == 8:
            truth[7] = -4.0
    return case


def evaluate(case):
    coco = COCO()
    coco.dataset = {
        "info": {},
        "images": [{"id": i} for i in range(1, case["images"] + 1)],
        "categories": [{"id": c + 1, "name": str(c)} for c in range(case["classes"])],
        "annotations": [
            {"id": n + 1, "image_id": i, "bbox": [x, y, w, h], "category_id": c + 1, "iscrowd": crowd, "area": area}
            for n, (i, x, y, w, h, c, crowd, area) in enumerate(case["truths"])
        ],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        coco.createIndex()
        results = coco.loadRes(
            [{"image_id": i, "bbox": [x, y, w, h], "category_id": c + 1, "score": s} for i, x, y, w, h, c, s in case["found"]]
        )
        e = COCOeval(coco, results, "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    p = e.eval["precision"]  # [threshold, recall, class, size, count]

    def mean(values):
        values = values[values > -1]
        return float(values.mean()) if values.size else -1.0

    classes = range(case["classes"])
    return {
        "stats": [float(v) for v in e.stats],
        "class_ap": [mean(p[:, :, c, 0, 2]) for c in classes],
        "class_ap50": [mean(p[0, :, c, 0, 2]) for c in classes],
        "curve50": [float(v) for v in p[0, :, 0, 0, 2]],
    }


def main():
    cases = []
    for seed, images, classes, whole, most in [(1, 25, 4, False, 6), (2, 30, 3, True, 6), (3, 3, 3, True, 160), (4, 12, 2, False, 2)]:
        cases.append(make_case(seed, images, classes, whole, most))
    cases.append(with_odd_truths(make_case(5, 15, 2, False, 3)))
    for case in cases:
        case["want"] = evaluate(case)
    path = os.path.join(ROOT, "tests/fixtures/average_precision.json")
    with open(path, "w") as file:
        file.write("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]\n")
    print(path, os.path.getsize(path), [c["want"]["stats"][:3] for c in cases])


if __name__ == "__main__":
    main()
