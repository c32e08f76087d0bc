"""Curves as SVG, readable on light and dark pages: a mean a run, thin lines for its seeds."""
from html import escape
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 48, 170, 14, 40
STYLE = """<style>
svg { --ground: #fff; --ink: #222; --faint: #ddd; }
.c0 { --line: #1b6ca8; } .c1 { --line: #c4572b; } .c2 { --line: #3a7d44; } .c3 { --line: #7b4fa3; } .c4 { --line: #8a6d1f; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #16181c; --ink: #ddd; --faint: #3a3d44; }
  .c0 { --line: #6cb6f0; } .c1 { --line: #f09a70; } .c2 { --line: #7fcf8c; } .c3 { --line: #c49cf0; } .c4 { --line: #dcc06a; }
}
rect { fill: var(--ground); } text { fill: var(--ink); font: 12px sans-serif; }
.grid { stroke: var(--faint); } path { fill: none; stroke: var(--line); }
.name { fill: var(--line); font-weight: bold; }
</style>"""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2")


def mean(curves):
    """Of curves with points at the same updates."""
    return [[points[0][0], sum(p[1] for p in points) / len(points)] for points in zip(*curves)]


def steps(low, high):
    """Round numbers that divide the range in three to seven."""
    rough = (high - low) / 5
    unit = 10 ** math.floor(math.log10(rough))
    unit *= next(m for m in (1, 2, 5, 10) if m * unit >= rough)
    return [i * unit for i in range(math.ceil(low / unit - 1e-9), math.floor(high / unit + 1e-9) + 1)]


def spread(places, gap, lowest):
    """Heights of labels, moved apart so that none lies on another."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, here in zip(order, order[1:]):
        moved[here] = max(moved[here], moved[before] + gap)
    for i, here in enumerate(reversed(order)):  # up again where they would leave the picture
        moved[here] = min(moved[here], lowest - i * gap)
    return moved


def draw(runs, quantity, over="updates"):
    """runs: name -> curves of its seeds, each [[update, value], ...] or over what `over` names."""
    means = {name: mean(curves) for name, curves in runs.items()}
    points = [p for curves in runs.values() for curve in curves for p in curve]
    last = max(p[0] for p in points)
    low, high = min(p[1] for p in points), max(p[1] for p in points)
    margin = 0.04 * (high - low)
    low, high = low - margin, high + margin

    def x(update):
        return LEFT + (WIDTH - LEFT - RIGHT) * update / last

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    def path(curve, more):
        return f'<path d="M{" ".join(f"{x(u):.1f},{y(v):.1f}" for u, v in curve)}"{more}/>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', STYLE,
           f'<rect width="{WIDTH}" height="{HEIGHT}"/>']
    for value in steps(low, high):
        out += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>',
                f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>']
    for update in steps(0, last):
        out.append(f'<text x="{x(update):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{update:g}</text>')
    out.append(f'<text x="{LEFT}" y="{HEIGHT - 6}">{escape(quantity)} over {escape(over)}</text>')
    labels = spread([y(curve[-1][1]) for curve in means.values()], 16, HEIGHT - BOTTOM)
    for i, (name, curves) in enumerate(runs.items()):
        out.append(f'<g class="c{i % 5}">')
        out += [path(curve, ' stroke-width="1" opacity="0.35"') for curve in curves if len(curves) > 1]
        out.append(path(means[name], f' stroke-width="2" stroke-dasharray="{DASHES[i % 5]}"'))
        out.append(f'<text class="name" x="{WIDTH - RIGHT + 8}" y="{labels[i] + 4:.1f}">{escape(name)}</text></g>')
    return "\n".join(out + ["</svg>"]) + "\n"
