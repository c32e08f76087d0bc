#!/usr/bin/env python3
"""Trains the runs of an experiment, tests them, and writes docs/experiments.md.

An experiment is experiments/NAME.json: a question, runs as flags of `heddle train`, what is expected
and what came out. Its task (translation, where none is named) has settings and data in shared.json.
A run that is finished is not run again; one that was stopped goes on.

Called by `./dev experiment`; needs nothing but Python's own library.
"""
import argparse
import concurrent.futures
import datetime
import functools
import hashlib
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

import experiment_page
import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPECS = ROOT / "experiments"
SPEC_KEYS = {"title", "question", "task", "data", "flags", "seeds", "beam", "runs", "columns", "expected", "outcome"}


def arguments(names):
    parser = argparse.ArgumentParser(prog="./dev experiment", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*names, "all"], help="which; all of them with 'all'")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data",
                        help="folder of the data: multi30k (train, val and test, .en and .de, plain or .gz), "
                             "tinyshakespeare (input.txt), gutenberg, cifar10, bccd; each as it is needed")
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs/experiments",
                        help="where the runs are kept (default runs/experiments)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run (default 1)")
    parser.add_argument("--program", default=str(ROOT / "build/bin/heddle"))
    parser.add_argument("--dry-run", action="store_true", help="say what would run")
    parser.add_argument("--report", action="store_true", help="only write the page again")
    return parser.parse_args()


def load_spec(name):
    """experiments/NAME.json, with the flags and the data that the experiments of its task share."""
    spec = json.loads((SPECS / f"{name}.json").read_text(encoding="utf-8"))
    unknown = set(spec) - SPEC_KEYS
    if unknown:
        sys.exit(f"experiment: {name}.json has unknown keys: {', '.join(sorted(unknown))}")
    task = spec.setdefault("task", "translation")
    shared = json.loads((SPECS / "shared.json").read_text(encoding="utf-8"))
    if task not in shared:
        sys.exit(f"experiment: {name}.json has the task '{task}'; shared.json has {', '.join(shared)}")
    for run in spec["runs"]:
        run["flags"] = {**spec.get("flags", {}), **run["flags"]}
    spec["shared"] = shared[task]["flags"]
    spec.setdefault("data", shared[task]["data"])
    return spec


def folder_name(flags):
    """What a run sets beside the shared flags, so that experiments share the runs they have in common."""
    words = [f"{key}={value}" for key, value in sorted(flags.items())]
    name = re.sub(r"[^A-Za-z0-9=.,_-]", "_", ",".join(words)) or "shared"
    # File systems take 255 bytes.
    return name if len(name) <= 200 else f"{name[:180]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def test_files(data):
    """Multi30k's held-out sentences and their translations."""
    for suffix in ("", ".gz"):
        sources = sorted(data.glob(f"test*.en{suffix}"))
        if sources:
            return sources[0], sources[0].with_name(sources[0].name.replace(".en", ".de"))
    sys.exit(f"experiment: no test*.en or test*.en.gz in {data}; give the folder of multi30k with --data")


def held_out(args, data):
    """The end of a text that `heddle train` holds out by itself: its last tenth."""
    path = args.runs / f"{data.name}-held-out.txt"
    if not path.exists():
        text = (data / "input.txt").read_text(encoding="utf-8")
        path.write_text(text[int(0.9 * len(text)):], encoding="utf-8")
    return path


def tokenizer(args, data, size):
    """One vocabulary for all translators of that size, trained the first time."""
    path = args.runs / f"tokenizer-{size}.model"
    if not path.exists() and not args.dry_run:
        suffix = ".gz" if (data / "train.en.gz").exists() else ""
        texts = [str(data / f"train.{side}{suffix}") for side in ("en", "de")]
        args.runs.mkdir(parents=True, exist_ok=True)
        subprocess.run([args.program, "tokenizer", "train", "--input", *texts, "--output", str(path),
                        "--vocab-size", str(size)], check=True, stdout=subprocess.DEVNULL)
    return path


def train_command(args, folder, flags, spec):
    data = args.data / spec["data"]
    words = [args.program, "train", "--task", spec["task"], "--data", str(data), "--out", str(folder),
             "--threads", str(args.threads), *experiment_page.words_of(flags)]
    if spec["task"] == "translation":
        words += ["--tokenizer", str(tokenizer(args, data, flags["vocab-size"]))]
    return words


def log_lines(folder):
    path = folder / "log.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def told(args, *words):
    """What a command of heddle says as JSON."""
    command = [args.program, *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def figures_of_translator(args, folder, spec, _):
    source, reference = test_files(args.data / spec["data"])
    scores = told(args, "eval", folder / "last", "--src", source, "--ref", reference,
                  "--beam", spec["beam"], "--threads", args.threads)
    return {"perplexity": round(scores["ppl"], 3), "bleu": round(scores["bleu"], 2)}


def figures_of_language_model(args, folder, spec, flags):
    """FLOPs are those of a token of a sequence as long as in training; a mixture shows its routing, a model
    with memory how it does without."""
    length = flags.get("block-size") or flags["max-position-embeddings"]
    plan = told(args, "analyze", folder / "last", "--length", length)
    result = {"flops": round(plan["flops"]["forward"] / plan["length"])}
    if plan["model_type"] == "transfo-xl" and "perplexity_alone" in spec["columns"]:
        scores = told(args, "eval", folder / "last", "--data", held_out(args, args.data / spec["data"]), "--no-memory",
                      "--context", length, "--threads", args.threads)
        result["perplexity_alone"] = round(scores["ppl"], 3)
    if plan["model_type"] == "mixtral":
        scores = told(args, "eval", folder / "last", "--data", held_out(args, args.data / spec["data"]),
                      "--threads", args.threads)
        result["routing"] = [[round(share, 4) for share in layer] for layer in scores["routing"]]
    return result


def last_validation(folder):
    """Measures of the last weights, and the speed of training."""
    lines = log_lines(folder)
    speeds = [line["images_per_second"] for line in lines if "images_per_second" in line]
    return [line for line in lines if line.get("validation") == "snapshot"][-1], round(statistics.median(speeds))


def figures_of_classifier(_args, folder, _spec, _flags):
    """Shares of the held-out images, in percent, and the speed of training."""
    last, speed = last_validation(folder)
    return {"accuracy": round(100 * last["accuracy"], 2), "top5": round(100 * last["top5"], 2), "images_per_second": speed}


def figures_of_detector(_args, folder, _spec, _flags):
    """COCO's precision on the held-out images, and the speed of training."""
    last, speed = last_validation(folder)
    return {"map": round(last["map"], 4), "map_50": round(last["map_50"], 4), "images_per_second": speed}


FIGURES = {"image_classification": figures_of_classifier, "object_detection": figures_of_detector,
           "translation": figures_of_translator, "causal_lm": figures_of_language_model}


def figures(args, folder, spec, flags):
    """What the finished run says of itself: curve, last validation loss, and figures of its task."""
    lines = log_lines(folder)
    curve = [[l["update"], round(l["loss"], 4)] for l in lines if l.get("validation") == "snapshot"]
    norms = [l["gradient_norm"] for l in lines if "gradient_norm" in l]
    return {"curve": curve, "updates": curve[-1][0], "loss": curve[-1][1], "perplexity": round(math.exp(curve[-1][1]), 3),
            "first_norm": round(norms[0], 3),
            "parameters": told(args, "info", folder / "last")["parameters"]["total"],
            "seconds": round(lines[-1]["seconds"]), **FIGURES[spec["task"]](args, folder, spec, flags)}


@functools.cache
def data_key(folder):
    """Names and sizes of the data's files."""
    if not folder.is_dir():
        sys.exit(f"experiment: {folder} is not there; give the folder above it with --data")
    files = sorted((str(path.relative_to(folder)), path.stat().st_size) for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]


def run_once(args, own_flags, spec):
    """What is known of one run, its figures and where they were made; trains it unless it is finished. Beside RUN lies
    RUN.json with the same."""
    begun = {"flags": {**spec["shared"], **own_flags}, "data": data_key(args.data / spec["data"])}
    flags = begun["flags"]
    folder = args.runs / spec["task"] / folder_name(own_flags)
    record = folder.with_name(folder.name + ".json")
    words = train_command(args, folder, flags, spec)
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    is_same = {key: known.get(key) for key in begun} == begun
    if is_same and known.get("beam") == spec.get("beam") and "figures" in known:
        return known
    if args.dry_run:
        print(" ".join(words))
        return None
    if known and not is_same:
        words.append("--overwrite")
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(begun) + "\n", encoding="utf-8")
    print(f"experiment: {folder.name}", flush=True)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    result = figures(args, folder, spec, flags)
    known = {**begun, "beam": spec.get("beam"), "machine": machine.sentence(machine.describe()),
             "date": datetime.date.today().isoformat(), "commit": machine.commit(), "figures": result}
    record.write_text(json.dumps(known) + "\n", encoding="utf-8")
    print(f"experiment: {folder.name}: " + ", ".join(f"{key} {result[key]}" for key in spec["columns"]), flush=True)
    return known


def carry_out(args, name):
    """Every run of every seed; keeps their figures in docs/experiments/NAME.json."""
    spec = load_spec(name)
    jobs = [(run["name"], seed, {**run["flags"], **({"seed": seed} if seed > 1 else {})})
            for seed in range(1, spec["seeds"] + 1) for run in spec["runs"]]
    if spec["task"] == "translation":
        for size in {{**spec["shared"], **flags}["vocab-size"] for _, _, flags in jobs}:
            tokenizer(args, args.data / spec["data"], size)  # before two runs want it at once
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda job: run_once(args, job[2], spec), jobs))
    if args.dry_run:
        return
    kept = {run["name"]: [] for run in spec["runs"]}
    for (run, seed, _), known in zip(jobs, results):
        kept[run].append({"seed": seed, **known["figures"]})
    data = {key: ", ".join(sorted({known[key] for known in results})) for key in ("machine", "date", "commit")} | {"runs": kept}
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
