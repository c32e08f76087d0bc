"""One run of a program that prints a line of JSON."""
import json
import os
import re
import subprocess

UNSUPPORTED = {2, 3}  # exit codes: heddle lacks the format; a peer lacks it here


def run_once(words, timeout, limits, text=None):
    """The JSON line of one run, or the reason why there is none, and whether that is a missing format.

    limits: of plan.UNITS; text: what it reads"""
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=timeout, check=False,
                              env=os.environ | limits)
    except subprocess.TimeoutExpired:
        return None, f"took longer than {timeout:.0f} s", False
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1]), "", False
    lines = done.stderr.strip().splitlines()
    # Behind the error of a Python program its libraries may have said goodbye.
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    reason = (errors or lines or [f"exit {done.returncode}"])[-1]
    return None, reason, done.returncode in UNSUPPORTED
