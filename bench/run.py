#!/usr/bin/env python3
"""Times heddle, and its peers when asked, by turns, and writes docs/benchmarks.md.

The medians of each machine are kept in docs/bench/MACHINE.json; the pages show all of them.

Called by `./dev bench`; needs nothing but Python's own library (the peers have theirs).
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import venv

import machine
import plan
import products
import report
from once import run_once

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench" / "peers"


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", help="only these rows, by commas: train-tiny,translate-base")
    parser.add_argument("--batch", type=int, help="only the rows of this --batch (0: the case's own)")
    parser.add_argument("--dtypes", help="only these formats, by commas: f32,bf16")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--seconds", type=float, default=8, help="of repetitions in a run (default 8)")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--unit", choices=plan.UNITS,
                        help="as on a CPU that has no more than these instructions, heddle and the "
                             "peers that know such a limit; the machine gets a part of its own")
    parser.add_argument("--peers", action="store_true",
                        help="time PyTorch and the others too; installs them in build/peers")
    parser.add_argument("--peers-python", metavar="PATH",
                        help="a Python that has them already; implies --peers")
    parser.add_argument("--products", action="store_true",
                        help="the matrix products of cases one by one: heddle's, oneDNN's where there "
                             "are peers, the peak of registers; --cases, --dtypes choose others than "
                             + ", ".join(products.CASES))
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "heddle"))
    parser.add_argument("--timeout", type=float, default=1200, help="seconds a run may take")
    parser.add_argument("--dry-run", action="store_true", help="say what would run")
    parser.add_argument("--no-write", action="store_true", help="print results, write no file")
    parser.add_argument("--report", action="store_true", help="only write the pages again")
    return parser.parse_args()


def peers_python(args):
    """The Python that the peers run in; makes it the first time. None: no peers."""
    if args.peers_python:
        return args.peers_python
    if not args.peers:
        return None
    folder = ROOT / "build" / "peers"
    python = folder / "bin" / "python"
    wanted, installed = (PEERS / "requirements.txt").read_text(), folder / "installed.txt"
    if not args.dry_run and (not installed.exists() or installed.read_text() != wanted):
        print(f"bench: installing the peers in {folder}", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", PEERS / "requirements.txt"],
                       check=True)
        installed.write_text(wanted)
    return str(python)


def command(args, row, contender, python):
    more = ["--threads", str(args.threads), "--seconds", str(args.seconds)]
    if row.batch:
        more += ["--batch", str(row.batch)]
    if not contender.peer:
        return [args.program, "bench", row.case, "--json", "--precision", contender.dtype, *more]
    more += ["--compile"] if contender.compiled else []
    return [python, str(PEERS / "peer.py"), contender.peer, row.case, "--dtype", contender.dtype, *more]


def summary(contender, runs):
    """One entry of the results: the median of the rounds, every round's value beside it."""
    middle = sorted(runs, key=lambda r: r["value"])[len(runs) // 2]
    entry = {"name": contender.name, "dtype": contender.dtype,
             "value": round(statistics.median(r["value"] for r in runs), 4),
             "values": [r["value"] for r in runs],
             "step_ms": middle["step_ms"],
             "peak_bytes": max(r["peak_bytes"] for r in runs)}
    for key in ("peak", "share_of_peak", "products", "share_of_products"):
        if key in middle:
            entry[key] = round(statistics.median(r[key] for r in runs), 4)
    for key in ("peak_by", "version"):
        if key in middle:
            entry[key] = middle[key]
    return entry


def time_row(args, row, python):
    """Rounds of all contenders by turns; who cannot run is left out after the first round.
    Returns the row's results, if there are any, and whether one failed that should have run."""
    contenders = [c for c in row.contenders() if python or not c.peer]
    limits = plan.UNITS.get(args.unit)
    if limits:  # compiled: by what the compiler finds on the machine
        contenders = [c for c in contenders if (c.peer or "heddle") in limits and not c.compiled]
    if args.dtypes:
        contenders = [c for c in contenders if c.dtype in args.dtypes.split(",")]
    runs = {c: [] for c in contenders}
    left_out, absent, first = set(), {}, None  # absent: those that should have run
    for number in range(args.rounds):
        for contender in contenders:
            if contender in left_out:
                continue
            words = command(args, row, contender, python)
            if args.dry_run:
                print(" ".join(words))
                continue
            result, reason, is_unsupported = run_once(words, args.timeout,
                                                      limits[contender.peer or "heddle"] if limits else {})
            label = f"{row.name:28} {contender.name:18} {contender.dtype:5} round {number + 1}"
            if result is None:
                print(f"{label}  {reason}", flush=True)
                left_out.add(contender)
                if not is_unsupported:
                    absent[contender] = reason
                    print("bench: that is a failure, not a missing format", file=sys.stderr)
                continue
            first = first or result
            runs[contender].append(result)
            print(f"{label}  {result['value']:12,.2f} {result['unit']}", flush=True)
    if first is None:
        return None, bool(absent)
    return {"case": row.case, "batch": first["batch"], "own_batch": not row.batch,
            "unit": first["unit"], "threads": args.threads, "rounds": args.rounds,
            "date": datetime.date.today().isoformat(), "commit": machine.commit(),
            "entries": [summary(c, r) for c, r in runs.items() if r and c not in left_out],
            "absent": [{"name": c.name, "dtype": c.dtype, "reason": why}
                       for c, why in absent.items()]}, bool(absent)


def rows(args):
    known = [row.case for row in plan.ROWS]
    wanted = args.cases.split(",") if args.cases else known
    for name in wanted:
        if name not in known:
            sys.exit(f"bench: unknown case '{name}'; the cases are {', '.join(dict.fromkeys(known))}")
    found = [row for row in plan.ROWS
             if row.case in wanted and args.batch in (None, row.batch)]
    if not found:
        sys.exit(f"bench: none of the cases is timed with batches of {args.batch}; leave --batch out")
    return found


def check(args):
    for dtype in (args.dtypes or report.FORMATS[0]).split(","):
        if dtype not in report.FORMATS:
            sys.exit(f"bench: unknown format '{dtype}'; the formats are {', '.join(report.FORMATS)}")
    if args.rounds < 1:
        sys.exit(f"bench: --rounds {args.rounds}: at least 1")
    if not args.dry_run and not os.access(args.program, os.X_OK):
        sys.exit(f"bench: {args.program} is no program; build it by ./dev build, or give --program")


def has_peers(row):
    return any(e["name"] != "heddle" for e in row["entries"])


def measured(path):
    return json.loads(path.read_text()) if path.exists() else {"rows": []}


def write(path, here, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data | {"machine": here}, indent=1) + "\n")
    report.write(ROOT / "docs")


def keep_products(path, here, fresh):
    """Puts the products of a case in place of the old ones in the file of this machine."""
    old = measured(path)
    name = (fresh["case"], fresh["dtype"])
    kept = []
    for case in old.get("products", []):
        if (case["case"], case["dtype"]) != name:
            kept.append(case)
        elif case["version"] and not fresh["version"]:
            print(f"bench: {path.name} keeps the products of {name[0]} in {name[1]} beside oneDNN's; "
                  "add --peers to replace them", flush=True)
            return
    order = {row.case: i for i, row in enumerate(plan.ROWS)}
    write(path, here, old | {"products": sorted(
        kept + [fresh], key=lambda case: (order.get(case["case"], 99), report.FORMATS.index(case["dtype"])))})


def keep(path, here, fresh):
    """Puts a fresh row in place of the old one in the file of this machine."""
    old = measured(path)
    kept = []
    for row in old["rows"]:
        if (row["case"], row["batch"]) != (fresh["case"], fresh["batch"]):
            kept.append(row)
        elif has_peers(row) and not has_peers(fresh):
            print(f"bench: {path.name} keeps the run of {row['case']} beside its peers; "
                  "add --peers to replace it", flush=True)
            return
    order = {(row.case, not row.batch): i for i, row in enumerate(plan.ROWS)}
    merged = sorted(kept + [fresh], key=lambda r: order.get((r["case"], r["own_batch"]), 99))
    write(path, here, old | {"rows": merged})


def main():
    args = arguments()
    if args.products and args.batch is not None:
        sys.exit("bench: products are those of a case's own batch; leave --batch out")
    if args.report:
        return report.write(ROOT / "docs")
    check(args)
    here = machine.describe(args.unit)
    print(machine.sentence(here), f"\nload of the last minute: {os.getloadavg()[0]:.2f}", flush=True)
    python = peers_python(args)
    path = ROOT / "docs" / "bench" / f"{here['name']}.json"
    if args.products:
        return products.time_all(args, python, lambda case: args.no_write or keep_products(path, here, case))
    timed = failed = 0
    for row in rows(args):
        result, has_failed = time_row(args, row, python)
        timed += result is not None
        failed += has_failed
        if result and not args.no_write:  # after each row: a run that is stopped loses one at most
            keep(path, here, result)
    if failed:
        sys.exit(f"bench: of {failed} row{'s' * (failed > 1)} what should have run is missing")
    if not timed and not args.dry_run:
        sys.exit("bench: nothing was timed: no row has what --dtypes, --batch and --unit leave")
    return None


if __name__ == "__main__":
    main()
