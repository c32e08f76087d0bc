"""A bar chart as SVG: every program of every case, relative to the best peer of that case."""
from html import escape

WIDTH, LEFT, RIGHT, BAR, GAP, TOP, BOTTOM = 760, 230, 120, 13, 16, 34, 30
COLOURS = {"heddle": "#1b6ca8", "pytorch": "#c4572b", "pytorch compiled": "#e08e6d",
           "ctranslate2": "#3a7d44", "ctranslate2 AVX512": "#77b07f", "llama.cpp": "#7b4fa3", "openvino": "#8a6d1f"}


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def groups(data):
    """Per case: its name and the bars (name, dtype, value, value over the best peer's)."""
    for row in data["rows"]:
        peers = [e["value"] for e in row["entries"] if e["name"] != "heddle"]
        if not peers:
            continue
        name = row["case"] if row["own_batch"] else f"{row['case']}, batch {row['batch']}"
        bars = [(e["name"], e["dtype"], e["value"], e["value"] / max(peers)) for e in row["entries"]]
        bars.sort(key=lambda bar: (bar[0] != "heddle", -bar[3]))
        yield f"{name} ({row['unit']})", bars


def draw(data):
    all_groups = list(groups(data))
    bars = sum(len(b) for _, b in all_groups)
    height = TOP + BOTTOM + len(all_groups) * (GAP + 16) + bars * BAR
    most = max([1.0] + [share for _, b in all_groups for *_, share in b])
    scale = (WIDTH - LEFT - RIGHT) / most
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'font-family="sans-serif" font-size="11"><rect width="{WIDTH}" height="{height}" fill="white"/>',
           text(12, 18, "Speed; 1 is the best peer of each case", more=' font-size="13"')]
    y = TOP
    for title, entries in all_groups:
        y += GAP
        out.append(text(12, y + 9, title, more=' font-weight="bold"'))
        y += 16
        for name, dtype, value, share in entries:
            out.append(text(LEFT - 6, y + 9, f"{name} {dtype}", "end"))
            out.append(f'<rect x="{LEFT}" y="{y:.1f}" width="{max(share * scale, 1):.1f}" '
                       f'height="{BAR - 3}" fill="{COLOURS.get(name, "#555555")}"/>')
            out.append(text(LEFT + share * scale + 5, y + 9, f"{value:,.0f}  ({share:.2f}×)" if value >= 100 else
                            f"{value:.3g}  ({share:.2f}×)"))
            y += BAR
    line = LEFT + scale
    out.append(f'<line x1="{line:.1f}" x2="{line:.1f}" y1="{TOP}" y2="{y:.1f}" stroke="#333" '
               'stroke-dasharray="3 3"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
