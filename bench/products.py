"""Times the matrix products of cases one by one, heddle's driver and oneDNN alone by turns: what
`./dev bench --products` does. report.py writes them into docs/benchmarks.md."""
import datetime
import json
import statistics
import sys

import machine
import plan
from once import run_once

CASES = ("train-base", "translate-base", "prompt-gpt2", "encode-bert")
LIMITS_OF = {"heddle": "heddle", "onednn": "pytorch"}  # whose limits of plan.UNITS hold


def command(args, case, dtype):
    return [args.program, "bench", case, "--products", "--json", "--precision", dtype, "--threads", str(args.threads)]


def time_case(args, case, dtype, python):
    """Rounds of heddle and oneDNN by turns; of each product the medians. None: heddle has no such
    products here."""
    def limits(who):
        return plan.UNITS[args.unit].get(LIMITS_OF[who], {}) if args.unit else {}

    ours, theirs, peaks, version = [], [], [], ""
    for number in range(args.rounds):
        found, reason, is_unsupported = run_once(command(args, case, dtype), args.timeout, limits("heddle"))
        if found is None:
            print(f"bench: {case} {dtype}: {reason}", file=sys.stderr)
            if is_unsupported:
                return None
            sys.exit(1)
        # The order is by time, which a round may change.
        products = sorted(found["matrix_products"], key=shape)
        ours.append([p["seconds"] for p in products])
        peaks.append(found.get("peak_flops", 0))
        peer, reason, _ = (None, "", False) if python is None else run_once(
            [python, str(machine.ROOT / "bench" / "peers" / "on_onednn.py"), "--threads", str(args.threads)],
            args.timeout, limits("onednn"), json.dumps({"products": products}))
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
            if dtype == "int4" or dtype not in (args.dtypes or dtype).split(","):  # int4's products are int8's
                continue
            if args.dry_run:
                print(" ".join(command(args, case, dtype)))
                continue
            timed = time_case(args, case, dtype, python)
            if timed:
                keep(timed)


def flops_of(product):
    return 2 * product["m"] * product["n"] * product["k"]


def operands(product):
    return f"a{'ᵀ' * product['transpose_a']} b{'ᵀ' * product['transpose_b']}"


def page(cases):
    """Lines of a table of cases as time_case() makes them; without those that take less than a
    hundredth of their case's time."""
    lines = []
    for case in cases:
        all_products = case["products"]
        has_peer = all("peer_seconds" in p for p in all_products)

        def cells(flops, seconds, peer_seconds, digits, mark=""):
            def of_peak(spent):
                return f"{100 * flops / spent / case['peak_flops'] if case['peak_flops'] else 0:.0f} %"
            ours = [f"{1e3 * seconds:,.{digits}f}", of_peak(seconds)]
            return ours + ([of_peak(peer_seconds), f"{mark}{peer_seconds / seconds:.2f}×{mark}"] if has_peer
                           else ["", ""])

        def sum_of(value):
            return sum(p["count"] * value(p) for p in all_products)

        whole = sum_of(lambda p: p["seconds"])
        lines.append([f"**{case['case']}**", case["dtype"], "all", "", "",
                      *cells(sum_of(flops_of), whole, sum_of(lambda p: p.get("peer_seconds", 0)), 2, "**")])
        lines += [["", "", f"{p['m']:,} × {p['n']:,} × {p['k']:,}", operands(p), f"{p['count']}",
                   *cells(flops_of(p), p["seconds"], p.get("peer_seconds", 0), 3)]
                  for p in all_products if p["seconds"] * p["count"] >= whole / 100]
    return lines


HEADER = ["case", "format", "m × n × k", "operands", "times", "ms", "heddle, of peak", "oneDNN, of peak",
          "as fast as oneDNN"]
