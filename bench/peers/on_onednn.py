#!/usr/bin/env python3
"""Times matrix products in oneDNN alone, by its C interface: no framework between clock and product.

usage: on_onednn.py [--threads N] < PRODUCTS

Called by ../products.py. PRODUCTS is a line of `heddle bench CASE --products --json`; prints one with
the seconds of each. Exits with 3 where the library is not installed or lacks a format on this machine.
"""
import argparse
import ctypes
import glob
import json
import os
import sys

from timing import Unsupported, median_seconds

SECONDS = 0.05  # of the repetitions of a product, as heddle's own (heddle/bench/roof.cc)

# Values of oneDNN's C interface, 3.x (dnnl_types.h, dnnl_common_types.h).
CPU, ANY_LAYOUT, IN_ORDER, QUERY_WEIGHTS = 1, 1, 1, 131
TYPES = {"bf16": 2, "f32": 3, "int8": 5}
SOURCE, WEIGHTS, RESULT = 1, 33, 17
UNIMPLEMENTED = 3

Dimensions = ctypes.c_int64 * 12


class Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_int), ("memory", ctypes.c_void_p)]


class Version(ctypes.Structure):
    _fields_ = [(part, ctypes.c_int) for part in ("major", "minor", "patch")]


class Library:
    """oneDNN's functions, its engine of this CPU and a stream of it, which last as long as the program."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        self.made = []  # since the last release()
        self.engine = self.make("engine_create", CPU, ctypes.c_size_t(0))
        self.stream = self.make("stream_create", self.engine, IN_ORDER)
        self.made.clear()

    def call(self, name, *arguments):
        status = self.functions["dnnl_" + name](*arguments)
        if status == UNIMPLEMENTED:
            raise Unsupported(f"oneDNN has no {name} of this kind here")
        if status:
            raise RuntimeError(f"oneDNN: {name} fails with status {status}")

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        kind = name.partition("_create")[0]
        self.made.append(("primitive_desc" if kind.endswith("primitive_desc") else kind, made))
        return made

    def release(self):
        """Frees what make() made, last first."""
        while self.made:
            kind, made = self.made.pop()
            self.call(kind + "_destroy", made)

    def version(self):
        version = self.functions["dnnl_version"]
        version.restype = ctypes.POINTER(Version)
        found = version().contents
        return f"oneDNN {found.major}.{found.minor}.{found.patch}"

    def matrix(self, rows, columns, dtype, is_transposed):
        """What describes a matrix [rows, columns] that lies row by row, or column by column."""
        strides = Dimensions(1, rows) if is_transposed else Dimensions(columns, 1)
        return self.make("memory_desc_create_with_strides", 2, Dimensions(rows, columns), TYPES[dtype],
                         strides)

    def memory(self, description, content):
        """Memory over the bytes of a numpy array, which the caller keeps."""
        return self.make("memory_create", description, self.engine,
                         ctypes.c_void_p(content.ctypes.data))

    def run(self, primitive, **memories):
        names = {"source": SOURCE, "weights": WEIGHTS, "result": RESULT}
        arguments = (Argument * len(memories))(*(Argument(names[n], m.value) for n, m in memories.items()))
        self.call("primitive_execute", primitive, self.stream, len(memories), arguments)
        self.call("stream_wait", self.stream)


def some_numbers(elements, dtype):
    import numpy
    random = numpy.random.default_rng(1)
    if dtype == "int8":
        return random.integers(-127, 128, elements, numpy.int8)
    numbers = random.random(elements, numpy.float32) - numpy.float32(0.5)
    return (numbers.view(numpy.uint32) >> 16).astype(numpy.uint16) if dtype == "bf16" else numbers


def time_product(library, p):
    """Median seconds of one product. A constant b is laid out as oneDNN likes it before the clock
    starts, as heddle packs it."""
    m, n, k = p["m"], p["n"], p["k"]
    source = library.matrix(m, k, p["in"], p["transpose_a"])
    plain = library.matrix(k, n, p["in"], p["transpose_b"])
    result = library.matrix(m, n, p["out"], False)
    liked = plain
    if p["constant_b"]:
        liked = library.make("memory_desc_create_with_tag", 2, Dimensions(k, n), TYPES[p["in"]], ANY_LAYOUT)
    way = library.make("matmul_primitive_desc_create", library.engine, source, liked, None, result, None)
    primitive = library.make("primitive_create", way)

    a, b, c = (some_numbers(size, dtype) for size, dtype in
               ((m * k, p["in"]), (k * n, p["in"]), (m * n, p["out"])))
    weights = library.memory(plain, b)
    if p["constant_b"]:
        query = library.functions["dnnl_primitive_desc_query_md"]
        query.restype = ctypes.c_void_p
        packed = ctypes.c_void_p(query(way, QUERY_WEIGHTS, 0))
        in_own_memory = ctypes.c_void_p(-1)
        given, weights = weights, library.make("memory_create", packed, library.engine, in_own_memory)
        reorder = library.make("primitive_create", library.make(
            "reorder_primitive_desc_create", plain, library.engine, packed, library.engine, None))
        library.run(reorder, source=given, result=weights)
    memories = {"source": library.memory(source, a), "weights": weights, "result": library.memory(result, c)}
    seconds, _ = median_seconds(lambda: library.run(primitive, **memories), SECONDS)
    library.release()
    return seconds


def find_library():
    found = sorted(glob.glob(os.path.join(sys.prefix, "lib", "libdnnl.so*")))
    if not found:
        raise Unsupported("oneDNN is not installed (onednn-cpu-gomp of PyPI)")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    os.environ["OMP_NUM_THREADS"] = str(parser.parse_args().threads)
    asked = json.load(sys.stdin)
    try:
        library = Library(find_library())
        seconds = [time_product(library, p) for p in asked["products"]]
    except (Unsupported, ModuleNotFoundError) as reason:
        print(f"on_onednn.py: {reason}", file=sys.stderr)
        sys.exit(3)
    print(json.dumps({"seconds": seconds, "version": library.version()}))


if __name__ == "__main__":
    main()
