"""Writes docs/experiments.md and its curves from docs/experiments/*.json. No training here: see experiment.py."""
import json
import operator
import shlex

import curves
import report

BEGIN, END = "<!-- experiments: begin, written by ./dev experiment -->", "<!-- experiments: end -->"
RELATIONS = {"<": operator.lt, ">": operator.gt}
COLUMNS = {"parameters": ("parameters", "{:,.0f}"), "updates": ("updates", "{:,.0f}"), "loss": ("validation loss", "{:.3f}"),
           "perplexity": ("perplexity", "{:.2f}"), "bleu": ("BLEU", "{:.1f}"),
           "perplexity_alone": ("perplexity without memory", "{:.2f}"),
           "accuracy": ("accuracy, %", "{:.2f}"), "top5": ("among the first five, %", "{:.2f}"),
           "map": ("mAP", "{:.3f}"), "map_50": ("mAP50", "{:.3f}"),
           "images_per_second": ("images/s", "{:,.0f}"),
           "flops": ("FLOPs per token", "{:,.0f}"), "first_norm": ("first gradient norm", "{:.2f}")}


def average(seeds, key):
    return sum(run[key] for run in seeds) / len(seeds)


def cell(seeds, key):
    """The mean over seeds, and their range where it is more than a rounding."""
    shape = COLUMNS[key][1]
    values = sorted(run[key] for run in seeds)
    middle, low, high = (shape.format(v) for v in (average(seeds, key), values[0], values[-1]))
    return middle if low == high else f"{middle} ({low} – {high})"


def expectations(spec, runs):
    """Each thing expected, and whether the means bear it out."""
    for claim, key, left, relation, right in spec["expected"]:
        a, b = average(runs[left], key), average(runs[right], key)
        shape = COLUMNS[key][1]
        verdict = "yes" if RELATIONS[relation](a, b) else "**no**"
        yield f"{claim}: {verdict} ({shape.format(a)} against {shape.format(b)})"


def words_of(flags):
    """Flags as they are typed: ["--d-model", "64", "--normalize-before", "true"]."""
    return [word for key, value in flags.items()
            for word in (f"--{key}", str(value).lower() if isinstance(value, bool) else str(value))]


def as_code(flags):
    return f"`{shlex.join(words_of(flags))}`" if flags else ""


def routing(runs):
    """How the tokens were shared among the experts of each layer of the mixtures, with the first seed."""
    for name, seeds in runs.items():
        layers = seeds[0].get("routing", [])
        if not layers:
            continue
        experts = len(layers[0])
        yield from ["", f"Routing of the held-out text, {name}: the share of each expert in the choices of a layer "
                    f"(even: {100 / experts:.1f} %).", ""]
        yield from report.table(["layer", *(f"expert {e}" for e in range(experts))],
                                [[str(i), *(f"{100 * share:.1f} %" for share in layer)] for i, layer in enumerate(layers)])


def section(name, spec, data):
    runs = data["runs"]
    common = spec.get("flags", {})
    out = [f"## {spec['title']}", "", spec["question"], "", "```", f"./dev experiment {name}", "```", ""]
    if common:
        out += [f"Beside the shared settings: {as_code(common)}.", ""]
    out += [f"![validation loss over updates](experiments/{name}.svg)", ""]
    lines = []
    for run in spec["runs"]:
        differing = {k: v for k, v in run["flags"].items() if common.get(k) != v}
        lines.append([run["name"], as_code(differing),
                      *(cell(runs[run["name"]], key) for key in spec["columns"])])
    out += report.table(["run", "flags", *(COLUMNS[key][0] for key in spec["columns"])], lines)
    out += routing(runs)
    expected = list(expectations(spec, runs))
    if expected:
        out += ["", "Expected, and whether it came out:", "", *(f"- {line}" for line in expected)]
    if spec["outcome"]:
        out += ["", spec["outcome"]]
    seeds = "one seed" if spec["seeds"] == 1 else f"{spec['seeds']} seeds (mean, lowest – highest)"
    minutes = sum(run["seconds"] for seeds in runs.values() for run in seeds) / 60
    beam = f", beam {spec['beam']}" if "beam" in spec else ""
    out += ["", f"<sub>{seeds}{beam}; {minutes:.0f} minutes of "
            f"training in all on one thread of a busy machine: {data['machine']}; {data['date']}, {data['commit']}.</sub>", ""]
    return out


def write(docs, specs):
    """Replaces what stands between the markers of docs/experiments.md; draws docs/experiments/*.svg.
    Returns what came out other than expected, for the terminal."""
    page = docs / "experiments.md"
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise SystemExit(f"experiment: {page} lacks the markers '{BEGIN}' and '{END}'")
    lines, surprises = [], []
    for name in sorted(specs):
        path = docs / "experiments" / f"{name}.json"
        if not path.exists():
            continue
        data = json.loads(path.read_text(encoding="utf-8"))
        drawn = {run: [seed["curve"] for seed in seeds] for run, seeds in data["runs"].items()}
        path.with_suffix(".svg").write_text(curves.draw(drawn, "validation loss"), encoding="utf-8")
        lines += section(name, specs[name], data)
        surprises += [f"{name}: {line}" for line in expectations(specs[name], data["runs"]) if "**no**" in line]
    before, rest = text.split(BEGIN, 1)
    page.write_text("\n".join([before + BEGIN, ""] + lines) + END + rest.split(END, 1)[1], encoding="utf-8")
    return surprises
