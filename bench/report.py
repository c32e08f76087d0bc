"""Writes the measurements of docs/bench/*.json into docs/benchmarks.md, between two markers, and a
chart of each machine beside its measurements. No measuring here: see run.py."""
import json

import chart
import machine
import products

BEGIN, END = "<!-- bench: begin, written by ./dev bench -->", "<!-- bench: end -->"
FORMATS = ("f32", "bf16", "int8", "int4")


def number(value):
    """Four significant digits or whole numbers, with thousands apart."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.4g}"


def mebibytes(entry):
    return f"{entry['peak_bytes'] / 2**20:,.0f}"


def heddle(row):
    return [e for e in row["entries"] if e["name"] == "heddle"]


def peers(row):
    return [e for e in row["entries"] if e["name"] != "heddle"]


def best(entries, dtype=None):
    entries = [e for e in entries if dtype in (None, e["dtype"])]
    return max(entries, key=lambda e: e["value"]) if entries else None


def times(ours, theirs):
    return f"{ours['value'] / theirs['value']:.2f}×" if ours and theirs else ""


def memory(row):
    """Peak MiB, ours / theirs: of bf16 where both sides have it, else of the fastest runs."""
    ours, theirs = best(heddle(row), "bf16"), best(peers(row), "bf16")
    if not (ours and theirs):
        ours, theirs = best(heddle(row)), best(peers(row))
    return " / ".join(f"{e['peak_bytes'] / 2**20:,.0f} ({e['dtype']})" for e in (ours, theirs) if e)


def row_name(row):
    return row["case"] if row["own_batch"] else f"{row['case']}, batch {row['batch']}"


def summary_line(row):
    """heddle by format with its share of the peak; the best peer; ratios of speed, of the fastest
    runs and of each format, and memory."""
    cells = [f"{row_name(row)} ({row['unit']})"]
    for dtype in FORMATS:
        e = best(heddle(row), dtype)
        cells.append(f"{number(e['value'])} ({share(e)})" if e else "")
    ours, theirs = best(heddle(row)), best(peers(row))
    cells.append(f"{number(theirs['value'])} ({theirs['name']}, {theirs['dtype']})" if theirs else "")
    cells.append(f"**{times(ours, theirs)}**{at_peak(ours, theirs)}" if ours and theirs else "")
    ratios = [(times(best(heddle(row), dtype), best(peers(row), dtype)), dtype) for dtype in FORMATS]
    cells.append(", ".join(f"{ratio} ({dtype})" for ratio, dtype in ratios if ratio))
    cells.append(memory(row))
    return cells


def at_peak(ours, theirs):
    """The ratio that ours would have at the machine's peak."""
    return f" of {ours['peak'] / theirs['value']:.1f}×" if "peak" in ours else ""


def share(entry):
    """Of the machine's peak; of heddle's own products where an older heddle measured only these."""
    if "share_of_peak" in entry:
        return f"{100 * entry['share_of_peak']:.0f} %"
    return f"{100 * entry['share_of_products']:.0f} % of products"


def limit(entry, name, by=""):
    return f"{number(entry[name])}{by} ({100 * entry[f'share_of_{name}']:.0f} %)" if name in entry else ""


def table(header, lines):
    out = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return out + ["| " + " | ".join(cells) + " |" for cells in lines]


def every_figure(row):
    for e in row["entries"]:
        low, high = min(e["values"]), max(e["values"])
        yield [row_name(row), e["name"], e["dtype"], number(e["value"]),
               f"{number(low)} – {number(high)}", f"{e['step_ms']:,.2f}", mebibytes(e),
               limit(e, "peak", f" by {e.get('peak_by')}"), limit(e, "products")]
    for a in row["absent"]:
        yield [row_name(row), a["name"], a["dtype"], "–", a["reason"].replace("|", "/"), "", "", "", ""]


def section(name, data):
    """All that is known of one machine."""
    rows = data["rows"]
    threads = sorted({r["threads"] for r in rows})
    out = [f"### {machine.sentence(data['machine'])}", "",
           f"{' or '.join(map(str, threads))} threads; medians of "
           f"{' or '.join(str(n) for n in sorted({r['rounds'] for r in rows}))} rounds, heddle and the "
           "peers by turns. In brackets: the share of the peak that the same command measured. "
           "1.6× of 2.5×: what it is, and what it would be at the peak.", ""]
    out += table(["case", "heddle f32", "bf16", "int8", "int4", "best peer", "best against best",
                  "same format", "peak MiB, ours / theirs"], [summary_line(r) for r in rows])
    if any(peers(r) for r in rows):
        out += ["", f"![speed against the best peer, {name}](bench/{name}.svg)"]
    out += ["", "<details><summary>Every figure</summary>", ""]
    out += table(["case", "program", "format", "median", "lowest – highest round", "ms", "peak MiB",
                  "peak", "products"], [line for r in rows for line in every_figure(r)])
    versions = sorted({e["version"] for r in rows for e in peers(r)})
    dates = sorted({f"{r['date']} ({r['commit']})" for r in rows})
    out += ["", f"heddle of {', '.join(dates)}." + (f" Peers: {'; '.join(versions)}." if versions else ""),
            "", "</details>", ""]
    return out + products_of(data.get("products", []))


def products_of(cases):
    """The matrix products of cases, one by one."""
    if not cases:
        return []
    dates = sorted({f"{case['date']} ({case['commit']})" for case in cases})
    versions = sorted({case["version"] for case in cases if case["version"]})
    return ["<details><summary>Products one by one</summary>", "",
            "`./dev bench --products`: c [m, n] = a b, inner size k, heddle's driver and oneDNN alone by turns, medians of "
            f"{' or '.join(str(n) for n in sorted({case['rounds'] for case in cases}))} rounds; the peak is that of registers. "
            "Weights that stay are packed before, by both. heddle's int8 rounds a, which oneDNN is given in int8. "
            "Products that take less than a hundredth of their case's time are only in its sum.", "",
            *table(products.HEADER, products.page(cases)), "",
            f"heddle of {', '.join(dates)}." + (f" {'; '.join(versions)}." if versions else ""),
            "", "</details>", ""]


def write(docs):
    """Replaces what stands between the markers of docs/benchmarks.md; draws docs/bench/*.svg."""
    page = docs / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise SystemExit(f"bench: {page} lacks the markers '{BEGIN}' and '{END}'")
    lines = []
    for path in sorted((docs / "bench").glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        lines += section(path.stem, data)
        if any(peers(r) for r in data["rows"]):
            path.with_suffix(".svg").write_text(chart.draw(data), encoding="utf-8")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    page.write_text("\n".join([before + BEGIN, ""] + lines) + "\n" + END + after, encoding="utf-8")
