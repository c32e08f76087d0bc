"""How a peer is timed, in the way heddle times itself (heddle/bench/roof.h): two repetitions of
warm-up, then the median of at least three, until the seconds have passed."""
import statistics
import time


def median_seconds(repetition, seconds, warm_up=2, least=3):
    """Median seconds of a call, and how many were timed."""
    for _ in range(warm_up):
        repetition()
    times = []
    begin = time.perf_counter()
    while len(times) < least or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        repetition()
        times.append(time.perf_counter() - start)
    return statistics.median(times), len(times)


def peak_resident_bytes():
    """Resident memory of this process at its highest (VmHWM)."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


class Unsupported(Exception):
    """The peer cannot run this case in this number format on this machine."""
