"""Attention maps as SVG, side by side: a row an output word, a column a source word, darker is more."""
from html import escape

CELL, LABEL, TOP, GAP = 22, 92, 96, 24
STYLE = """<style>
svg { --ground: #fff; --ink: #222; --faint: #ddd; --cell: #1b6ca8; }
@media (prefers-color-scheme: dark) { svg { --ground: #16181c; --ink: #ddd; --faint: #3a3d44; --cell: #6cb6f0; } }
.ground { fill: var(--ground); } text { fill: var(--ink); font: 12px sans-serif; } .title { font-weight: bold; }
.frame { fill: none; stroke: var(--faint); } .cell { fill: var(--cell); }
</style>"""


def panel(left, title, columns, rows, weights):
    """One map: weights[row][column], each from 0 to 1."""
    out = [f'<text class="title" x="{left}" y="16">{escape(title)}</text>']
    x0, y0 = left + LABEL, TOP
    for j, word in enumerate(columns):
        x = x0 + j * CELL + CELL // 2 + 4
        out.append(f'<text transform="translate({x},{y0 - 6}) rotate(-60)">{escape(word)}</text>')
    for i, word in enumerate(rows):
        y = y0 + i * CELL
        out.append(f'<text x="{x0 - 6}" y="{y + 15}" text-anchor="end">{escape(word)}</text>')
        out += [f'<rect class="cell" x="{x0 + j * CELL}" y="{y}" width="{CELL}" height="{CELL}" opacity="{w:.2f}"/>'
                for j, w in enumerate(weights[i]) if w >= 0.005]
    out.append(f'<rect class="frame" x="{x0}" y="{y0}" width="{CELL * len(columns)}" height="{CELL * len(rows)}"/>')
    return out


def draw(panels):
    """panels: [(title, columns, rows, weights)], left to right."""
    widths = [LABEL + CELL * len(columns) + 40 for _, columns, _, _ in panels]
    width = sum(widths) + GAP * (len(panels) - 1)
    height = TOP + CELL * max(len(rows) for _, _, rows, _ in panels) + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">', STYLE,
           f'<rect class="ground" width="{width}" height="{height}"/>']
    left = 0
    for (title, columns, rows, weights), own in zip(panels, widths):
        out += panel(left + 4, title, columns, rows, weights)
        left += own + GAP
    return "\n".join(out + ["</svg>"]) + "\n"
