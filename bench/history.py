#!/usr/bin/env python3
"""Measures three translators of one recipe's data and writes their figures and maps into docs/history.md.

The fixed vector, attention over a recurrence, the Transformer: runs of `heddle train`, German to English.
Called by `./dev history FIXED ATTENTION TRANSFORMER`; needs nothing but Python's own library.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import tempfile

import curves
import machine
import maps
from experiment import told

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/history.md"
FOLDER = ROOT / "docs/history"
BEGIN, END = "<!-- figures: begin, written by ./dev history -->", "<!-- figures: end -->"
NAMES = ("LSTM, one vector", "LSTM with attention", "Transformer")
# Classes of lengths, and where they stand on the curve.
LENGTHS = {"up to 10": 8, "11 to 15": 13, "16 to 20": 18, "21 or more": 24}


def arguments():
    parser = argparse.ArgumentParser(prog="./dev history", description=__doc__.splitlines()[0])
    for name, what in (("fixed", "one vector"), ("attention", "attention"), ("transformer", "the Transformer")):
        parser.add_argument(name, type=pathlib.Path, help=f"run of heddle train: {what}")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data", help="folder with multi30k")
    parser.add_argument("--sentence", default="Zwei Männer, die gelbe Helme tragen, wollen das Dach des Hauses mit einem Hammer reparieren.",
                        help="German, whose translations and maps are shown")
    parser.add_argument("--program", default=str(ROOT / "build/bin/heddle"))
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    args.runs = [args.fixed, args.attention, args.transformer]
    return args


def scores(args, run):
    """BLEU of test_2016_flickr (lower-cased, 13a, beam 5), whole and by words of the source."""
    data = args.data / "multi30k"
    source, reference = data / "test_2016_flickr.de.gz", data / "test_2016_flickr.en.gz"
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "out.en"
        whole = told(args, "eval", run, "--src", source, "--ref", reference, "--beam", 5, "--lowercase", "--threads", args.threads, "-o", output)
        parts = told(args, "score", "--hyp", output, "--ref", reference, "--src", source, "--lowercase")
    info = told(args, "info", run)
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return {"bleu": round(whole["bleu"], 2), "parameters": info["parameters"]["total"],
            "updates": max(line["update"] for line in log if "update" in line),
            "by_length": {part["words"]: round(part["bleu"], 2) for part in parts["by_length"]},
            "lines": {part["words"]: part["lines"] for part in parts["by_length"]}}


def map_of(args, run):
    """The last layer's cross attention, the mean of its heads, from word to word: what `heddle align` reads."""
    seen = told(args, "attention", run, "--text", args.sentence, "--no-importance", "--threads", args.threads)
    place = next(i for i, kind in enumerate(seen["kinds"]) if kind["name"] == "cross")
    kind = seen["kinds"][place]
    heads = [h["weights"] for h in seen["heads"] if h["kind"] == place and h["layer"] == kind["layers"] - 1]
    columns, rows = seen["sides"][kind["keys"]]["words"], seen["sides"][kind["queries"]]["words"]

    def weight(row, column):
        """What a word's tokens give a word's tokens together, in the mean of its tokens and the heads."""
        lines = [head[i] for head in heads for i in range(row[0], row[1])]
        return sum(sum(line[column[0]:column[1]]) for line in lines) / len(lines)

    return [c[2] for c in columns], [r[2] for r in rows], [[weight(r, c) for c in columns] for r in rows]


def translation(args, run):
    done = subprocess.run([args.program, "translate", run, "--beam", "5"], input=args.sentence + "\n", capture_output=True, text=True, check=True)
    return done.stdout.strip()


def block(args, figures, translations):
    """The part of the page that figures fill."""
    out = ["| | parameters | updates | BLEU | " + " | ".join(f"{name} words" for name in LENGTHS) + " |", "| --- " * 8 + "|"]
    for name, f in figures.items():
        out.append(f"| {name} | {f['parameters']:,} | {f['updates']:,} | **{f['bleu']:.1f}** | " + " | ".join(f"{f['by_length'][k]:.1f}" for k in LENGTHS) + " |")
    lines = next(iter(figures.values()))["lines"]
    out += ["", "Sentences in the classes: " + ", ".join(f"{lines[k]}" for k in LENGTHS) + ".", "",
            "![BLEU over the words of the source](history/lengths.svg)", "", f"> {args.sentence}", ""]
    out += [f"- {name}: {text}" for name, text in translations.items()]
    out += ["", "![where each output word looks](history/maps.svg)", "",
            f"<sub>test_2016_flickr, lower-cased, 13a, beam 5; one seed: {machine.sentence(machine.describe())}; {datetime.date.today().isoformat()}, {machine.commit()}.</sub>"]
    return "\n".join(out)


def main():
    args = arguments()
    figures = {name: scores(args, run) for name, run in zip(NAMES, args.runs)}
    translations = {name: translation(args, run) for name, run in zip(NAMES, args.runs)}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "lengths.svg").write_text(curves.draw({name: [[[at, f["by_length"][k]] for k, at in LENGTHS.items()]] for name, f in figures.items()},
                                                    "BLEU", "words of the source"), encoding="utf-8")
    panels = []
    for name, run in list(zip(NAMES, args.runs))[1:]:
        panels.append((name, *map_of(args, run)))
    (FOLDER / "maps.svg").write_text(maps.draw(panels), encoding="utf-8")
    (FOLDER / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{block(args, figures, translations)}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
