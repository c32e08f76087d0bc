"""Times the matrix products of cases one by one, heddle's driver and oneDNN alone by turns: what
`./dev bench --products` does. report.py writes them into docs/benchmarks.md."""
import datetime
import json
import os
import statistics
import subprocess
import sys

import machine
import plan

CASES = ("train-base", "translate-base", "prompt-gpt2", "encode-bert")
LIMITS_OF = {"heddle": "heddle", "onednn": "pytorch"}  # whose limits of plan.UNITS hold


def line_of(words, args, limits, text=None):
    """The JSON line that a program prints, and why there is none."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=args.timeout, check=False,
                          env=os.environ | limits)
    if done.returncode == 0:
        return json.loads(done.stdout), ""
    return None, (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]


def time_case(args, case, dtype, python):
    """Rounds of heddle and oneDNN by turns; of each product the medians."""
    def limits(who):
        return plan.UNITS[args.unit].get(LIMITS_OF[who], {}) if args.unit else {}

    ours, theirs, peaks, version = [], [], [], ""
    for number in range(args.rounds):
        found, reason = line_of([args.program, "bench", case, "--products", "--json", "--precision", dtype,
                                 "--threads", str(args.threads)], args, limits("heddle"))
        if found is None:
            sys.exit(f"bench: {case} {dtype}: {reason}")
        # The order is by time, which a round may change.
        products = sorted(found["products"], key=shape)
        ours.append([p["seconds"] for p in products])
        peaks.append(found["peak_flops"])
        peer, reason = (None, "") if python is None else line_of(
            [python, str(machine.ROOT / "bench" / "peers" / "on_onednn.py"), "--threads", str(args.threads)],
            args, limits("onednn"), json.dumps({"products": products}))
        if peer:
            theirs.append(peer["seconds"])
            version = peer["version"]
        elif reason:
            print(f"bench: {reason}", file=sys.stderr)
        print(f"{case:20} {dtype:5} round {number + 1}  heddle {total(products, ours[-1]) * 1e3:10.2f} ms"
              + (f"  oneDNN {total(products, theirs[-1]) * 1e3:10.2f} ms" if peer else ""), flush=True)
    for i, p in enumerate(products):
        p["seconds"] = statistics.median(round_[i] for round_ in ours)
        if theirs:
            p["peer_seconds"] = statistics.median(round_[i] for round_ in theirs)
    return {"case": case, "dtype": dtype, "threads": args.threads, "rounds": args.rounds,
            "date": datetime.date.today().isoformat(), "commit": machine.commit(),
            "matrix_unit": found["matrix_unit"], "peak_flops": statistics.median(peaks), "version": version,
            "products": sorted(products, key=lambda p: -p["seconds"] * p["count"])}


def shape(product):
    return [product[key] for key in ("m", "n", "k", "transpose_a", "transpose_b", "in", "out", "constant_b")]


def total(products, seconds):
    return sum(p["count"] * s for p, s in zip(products, seconds))


def time_all(args, python, keep):
    """keep: what is done with each case when it has been timed"""
    wanted = args.cases.split(",") if args.cases else CASES
    heddle = {row.case: row.heddle for row in plan.ROWS}
    for case in wanted:
        if case not in heddle:
            sys.exit(f"bench: unknown case '{case}'; the cases are {', '.join(heddle)}")
        for dtype in heddle[case]:
            if dtype != "int4" and dtype in (args.dtypes or dtype).split(","):  # int4's products are int8's
                keep(time_case(args, case, dtype, python))


def operands(product):
    return f"a{'ᵀ' * product['transpose_a']} b{'ᵀ' * product['transpose_b']}"


def page(cases):
    """Lines of a table of cases as time_case() makes them; without those that take less than a
    hundredth of their case's time."""
    lines = []
    for case in cases:
        seconds = [p["seconds"] for p in case["products"]]
        whole = total(case["products"], seconds)
        has_peer = all("peer_seconds" in p for p in case["products"])

        def of_peak(product, key):
            flops = 2 * product["m"] * product["n"] * product["k"]
            return flops / product[key] / case["peak_flops"] if case["peak_flops"] else 0

        def rate(key):
            flops = total(case["products"], [2 * p["m"] * p["n"] * p["k"] for p in case["products"]])
            spent = total(case["products"], [p[key] for p in case["products"]])
            return flops / spent / case["peak_flops"] if case["peak_flops"] else 0, spent

        cells = [f"**{case['case']}**", case["dtype"], "all", "", "", f"{1e3 * whole:,.2f}",
                 f"{100 * rate('seconds')[0]:.0f} %"]
        cells += ([f"{100 * rate('peer_seconds')[0]:.0f} %", f"**{rate('peer_seconds')[1] / whole:.2f}×**"]
                  if has_peer else ["", ""])
        lines.append(cells)
        for p in case["products"]:
            if p["seconds"] * p["count"] < whole / 100:
                continue
            cells = ["", "", f"{p['m']:,} × {p['n']:,} × {p['k']:,}", operands(p), f"{p['count']}",
                     f"{1e3 * p['seconds']:,.3f}", f"{100 * of_peak(p, 'seconds'):.0f} %"]
            cells += ([f"{100 * of_peak(p, 'peer_seconds'):.0f} %", f"{p['peer_seconds'] / p['seconds']:.2f}×"]
                      if has_peer else ["", ""])
            lines.append(cells)
    return lines


HEADER = ["case", "format", "m × n × k", "operands", "times", "ms", "heddle, of peak", "oneDNN, of peak",
          "as fast as oneDNN"]
