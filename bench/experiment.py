#!/usr/bin/env python3
"""Trains the runs of an experiment, tests them, and writes docs/experiments.md.

An experiment is experiments/NAME.json: a question, runs as flags of `heddle train`, what is expected
and what came out. A run that is finished is not run again; one that was stopped goes on.

Called by `./dev experiment`; needs nothing but Python's own library.
"""
import argparse
import concurrent.futures
import datetime
import json
import pathlib
import re
import subprocess
import sys

import experiment_page
import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPECS = ROOT / "experiments"
SPEC_KEYS = {"title", "question", "flags", "seeds", "beam", "runs", "columns", "expected", "outcome"}


def arguments(names):
    parser = argparse.ArgumentParser(prog="./dev experiment", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*names, "all"], help="which; all of them with 'all'")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data/multi30k",
                        help="folder of Multi30k: train, val and test, .en and .de, plain or .gz")
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs/experiments",
                        help="where the runs are kept (default runs/experiments)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run (default 1)")
    parser.add_argument("--program", default=str(ROOT / "build/bin/heddle"))
    parser.add_argument("--dry-run", action="store_true", help="say what would run")
    parser.add_argument("--report", action="store_true", help="only write the page again")
    return parser.parse_args()


def load_spec(name):
    """experiments/NAME.json, its flags over those that all experiments share."""
    spec = json.loads((SPECS / f"{name}.json").read_text(encoding="utf-8"))
    unknown = set(spec) - SPEC_KEYS
    if unknown:
        sys.exit(f"experiment: {name}.json has unknown keys: {', '.join(sorted(unknown))}")
    shared = json.loads((SPECS / "shared.json").read_text(encoding="utf-8"))["flags"]
    for run in spec["runs"]:
        run["flags"] = {**spec.get("flags", {}), **run["flags"]}
    spec["shared"] = shared
    return spec


def folder_name(flags):
    """What a run sets beside the shared flags, so that experiments share the runs they have in common."""
    words = [f"{key}={value}" for key, value in sorted(flags.items())]
    return re.sub(r"[^A-Za-z0-9=.,_-]", "_", ",".join(words)) or "shared"


def test_files(data):
    for suffix in ("", ".gz"):
        sources = sorted(data.glob(f"test*.en{suffix}"))
        if sources:
            return sources[0], sources[0].with_name(sources[0].name.replace(".en", ".de"))
    sys.exit(f"experiment: no test*.en or test*.en.gz in {data}; give Multi30k with --data")


def tokenizer(args, size):
    """One vocabulary for all runs of that size, trained the first time."""
    path = args.runs / f"tokenizer-{size}.model"
    if not path.exists() and not args.dry_run:
        suffix = ".gz" if (args.data / "train.en.gz").exists() else ""
        texts = [str(args.data / f"train.{side}{suffix}") for side in ("en", "de")]
        args.runs.mkdir(parents=True, exist_ok=True)
        subprocess.run([args.program, "tokenizer", "train", "--input", *texts, "--out", str(path),
                        "--vocab-size", str(size)], check=True, stdout=subprocess.DEVNULL)
    return path


def train_command(args, folder, flags):
    words = [args.program, "train", "--data", str(args.data), "--out", str(folder),
             "--tokenizer", str(tokenizer(args, flags["vocab-size"])), "--threads", str(args.threads)]
    for key, value in flags.items():
        words += [f"--{key}", str(value).lower() if isinstance(value, bool) else str(value)]
    return words


def log_lines(folder):
    path = folder / "log.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def parameters(args, model):
    told = subprocess.run([args.program, "info", model, "--json"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)["parameters"]["total"]


def figures(args, folder, beam):
    """What the finished run says of itself: curve, last validation loss, and figures of the test."""
    lines = log_lines(folder)
    curve = [[l["update"], round(l["loss"], 4)] for l in lines if l.get("validation") == "snapshot"]
    source, reference = test_files(args.data)
    told = subprocess.run([args.program, "eval", str(folder / "last"), "--src", str(source), "--ref", str(reference),
                           "--beam", str(beam), "--threads", str(args.threads), "--json"],
                          capture_output=True, text=True, check=True)
    scores = json.loads(told.stdout)
    norms = [l["gradient_norm"] for l in lines if "gradient_norm" in l]
    return {"curve": curve, "loss": curve[-1][1], "perplexity": round(scores["ppl"], 3),
            "bleu": round(scores["bleu"], 2), "first_norm": round(norms[0], 3),
            "parameters": parameters(args, str(folder / "last")), "seconds": round(lines[-1]["seconds"])}


def run_once(args, own_flags, spec):
    """The figures of one run; trains it unless it is finished. Beside RUN lies RUN.json with both."""
    flags = {**spec["shared"], **own_flags}
    folder = args.runs / folder_name(own_flags)
    record = folder.with_name(folder.name + ".json")
    words = train_command(args, folder, flags)
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if known.get("flags") == flags and known.get("beam") == spec["beam"] and "figures" in known:
        return known["figures"]
    if args.dry_run:
        print(" ".join(words))
        return None
    if known and known["flags"] != flags:
        words.append("--overwrite")
    record.write_text(json.dumps({"flags": flags}) + "\n", encoding="utf-8")
    print(f"experiment: {folder.name}", flush=True)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    result = figures(args, folder, spec["beam"])
    record.write_text(json.dumps({"flags": flags, "beam": spec["beam"], "figures": result}) + "\n", encoding="utf-8")
    print(f"experiment: {folder.name}: loss {result['loss']}, perplexity {result['perplexity']}, "
          f"BLEU {result['bleu']}", flush=True)
    return result


def commit():
    told = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True, check=False)
    return told.stdout.strip()


def carry_out(args, name):
    """Every run of every seed; keeps their figures in docs/experiments/NAME.json."""
    spec = load_spec(name)
    jobs = [(run["name"], seed, {**run["flags"], **({"seed": seed} if seed > 1 else {})})
            for seed in range(1, spec["seeds"] + 1) for run in spec["runs"]]
    for size in {{**spec["shared"], **flags}["vocab-size"] for _, _, flags in jobs}:
        tokenizer(args, size)  # before two runs want it at once
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda job: run_once(args, job[2], spec), jobs))
    if args.dry_run:
        return
    kept = {run["name"]: [] for run in spec["runs"]}
    for (run, seed, _), result in zip(jobs, results):
        kept[run].append({"seed": seed, **result})
    here = machine.describe()
    data = {"machine": machine.sentence(here), "date": datetime.date.today().isoformat(),
            "commit": commit(), "runs": kept}
    path = ROOT / "docs/experiments" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False)
    path.write_text(re.sub(r"\[\s+([\d.]+),\s+([\d.]+)\s+\]", r"[\1, \2]", text) + "\n", encoding="utf-8")


def main():
    names = sorted(p.stem for p in SPECS.glob("*.json") if p.stem != "shared")
    args = arguments(names)
    wanted = names if args.name == "all" else [args.name]
    if not args.report:
        for name in wanted:
            carry_out(args, name)
    if not args.dry_run:
        specs = {name: load_spec(name) for name in names}
        for line in experiment_page.write(ROOT / "docs", specs):
            print(line)


if __name__ == "__main__":
    main()
