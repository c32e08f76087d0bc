#!/usr/bin/env python3
"""Times one case of `heddle bench` in another program; prints one line of JSON.

usage: peer.py PEER CASE [--dtype f32|bf16|int8|int4] [--compile] [--threads N] [--batch N] [--seconds S]

Same sizes, lengths, dropout, clipping and optimizer as heddle's cases; weights are random.
Exits with 3 where the peer is not installed or cannot run the case in that format on this machine.
"""
import argparse
import importlib
import json
import os
import sys

from timing import Unsupported, median_seconds, peak_resident_bytes

PEERS = {"pytorch": "on_pytorch", "ctranslate2": "on_ctranslate2", "llama.cpp": "on_llama_cpp",
         "openvino": "on_openvino", "ctranslate2 AVX512": "on_ctranslate2"}

# PyTorch trains up to 1.5 times as fast with these, llama.cpp decodes 1.1 times; CTranslate2 and OpenVINO gain nothing.
# glibc reads them as a program starts.
LARGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1", "GLIBC_TUNABLES": ":".join(
    f"glibc.malloc.{setting}" for setting in ("hugetlb=1", "mmap_threshold=4000000000", "top_pad=67108864",
                                              "trim_threshold=100000000000"))}
WANT_LARGE_PAGES = {"pytorch", "llama.cpp"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("case")
    parser.add_argument("--dtype", default="f32", choices=("f32", "bf16", "int8", "int4"))
    parser.add_argument("--compile", action="store_true", help="PyTorch: torch.compile")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=0, help="0: the case's own")
    parser.add_argument("--seconds", type=float, default=8)
    return parser.parse_args()


def main():
    args = arguments()
    if args.peer in WANT_LARGE_PAGES and "GLIBC_TUNABLES" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | LARGE_PAGES)
    # Before any library reads them.
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    cases = importlib.import_module(PEERS[args.peer]).CASES
    if args.case not in cases:
        sys.exit(f"peer.py: {args.peer} has no case {args.case!r}; it has {', '.join(cases)}")
    try:
        workload = cases[args.case](args)
    except (Unsupported, ModuleNotFoundError) as reason:
        print(f"peer.py: {reason}", file=sys.stderr)
        sys.exit(3)
    seconds, repetitions = median_seconds(workload["step"], args.seconds)
    print(json.dumps({
        "case": args.case, "peer": args.peer, "compiled": args.compile, "dtype": args.dtype,
        "threads": args.threads, "batch": workload["batch"],
        "value": round(workload["units"] / seconds, 4), "unit": workload["unit"],
        "step_ms": round(seconds * 1e3, 4), "repetitions": repetitions,
        "peak_bytes": workload.get("peak_bytes", peak_resident_bytes)(), "version": workload["version"]}), flush=True)


if __name__ == "__main__":
    main()
