#!/usr/bin/env python3
"""Draws the validation losses of training runs as an SVG chart.

usage: tools/plot_log.py OUT.svg NAME=RUN/log.jsonl [NAME=...]
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 360, 56, 40, 16, 150
COLOURS = ["#1b6ca8", "#c4572b", "#3a7d44", "#7b4fa3", "#8a6d1f", "#555555"]


def series(path):
    """Validation losses by kind: {"snapshot": [(update, loss)], ...}."""
    out = {}
    for line in open(path, encoding="utf-8"):
        entry = json.loads(line)
        if "validation" in entry:
            out.setdefault(entry["validation"], []).append((entry["update"], entry["loss"]))
    return out


def svg(curves):
    """The chart of [(name, [(update, loss)])]."""
    last = max(x for _, points in curves for x, _ in points)
    low = int(min(y for _, points in curves for _, y in points) * 10) / 10
    high = min(low + 2.0, math.ceil(5 * max(y for _, points in curves for _, y in points)) / 5)
    fx = lambda x: LEFT + x / last * (WIDTH - LEFT - RIGHT)
    fy = lambda y: TOP + (high - min(y, high)) / (high - low) * (HEIGHT - TOP - BOTTOM)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for i in range(6):
        y = low + (high - low) * i / 5
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{fy(y):.1f}" y2="{fy(y):.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{fy(y) + 4:.1f}" text-anchor="end">{y:.2f}</text>')
        x = last * i / 5
        lines.append(f'<text x="{fx(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:.0f}</text>')
    lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">updates; '
                 'vertical: validation loss, nats per target token</text>')
    for i, (name, points) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{fx(x):.1f},{fy(y):.1f}" for x, y in points if y <= high)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
                     f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + 16 + 18 * i}" fill="{colour}">{name}</text>')
    return "\n".join(lines + ["</svg>"]) + "\n"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    curves = []
    for argument in sys.argv[2:]:
        name, path = argument.split("=", 1)
        curves += [(f"{name} {kind}".strip(), points) for kind, points in series(path).items()]
    open(sys.argv[1], "w", encoding="utf-8").write(svg(curves))


if __name__ == "__main__":
    main()
