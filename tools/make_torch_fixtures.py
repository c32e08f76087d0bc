#!/usr/bin/env python3
"""Writes tests/fixtures/torch: files of torch.save, and what is in them as safetensors.

Usage: python tools/make_torch_fixtures.py    (needs torch and safetensors; made with torch 2.15)

  every_dtype.bin, before_1_6.bin   the same dict in the zip form and in the one before PyTorch 1.6
  every_dtype.safetensors           its tensors, each in order and on its own
  command.bin                       a pickle that would run a command
  unknown_dtype.bin                 a tensor of a dtype that heddle lacks
"""
import collections
import os
import pathlib

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "torch"
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool]


class Command:
    """What unpickling would call: os.system("touch heddle-was-here")."""

    def __reduce__(self):
        return os.system, ("touch heddle-was-here",)


def every_dtype():
    generator = torch.Generator().manual_seed(3)
    tensors = collections.OrderedDict()
    for dtype in DTYPES:
        x = torch.randint(0, 100, (3, 5), generator=generator)
        tensors["plain." + str(dtype).removeprefix("torch.")] = x.to(dtype)
    table = torch.randn(6, 4, generator=generator)
    tensors["table"] = torch.nn.Parameter(table)
    tensors["tied"] = tensors["table"]
    tensors["rows"] = table[2:5]                      # in order, not at the storage's front
    tensors["transposed"] = table.t()
    tensors["columns"] = table[:, 1:3]
    tensors["every_other"] = table[::2, ::2].to(torch.bfloat16)[:, ::2]
    tensors["expanded"] = table[0].expand(3, 4)       # a stride of 0
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.zeros(0, 7)
    tensors["one_row"] = table.as_strided((1, 4), (99, 1))  # the stride of 1 row means nothing
    return tensors


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    tensors = every_dtype()
    entries = tensors.copy()
    entries |= {"epoch": 3, "rate": 0.5, "name": "x", "nothing": None, "flags": [True, (1, -2)],
                "large": 2**40, "shape": torch.Size([2, 3]), "nested": {"a": table_of(tensors)}}
    entries._metadata = collections.OrderedDict({"": {"version": 1}})
    torch.save(entries, FOLDER / "every_dtype.bin")
    torch.save(entries, FOLDER / "before_1_6.bin", _use_new_zipfile_serialization=False)
    save_file({k: x.detach().clone().contiguous() for k, x in tensors.items()},
              FOLDER / "every_dtype.safetensors")
    torch.save({"weight": torch.ones(2), "hook": Command()}, FOLDER / "command.bin")
    torch.save({"weight": torch.ones(2), "odd": torch.ones(2, dtype=torch.complex64)},
               FOLDER / "unknown_dtype.bin")


def table_of(tensors):
    return tensors["table"].detach()


if __name__ == "__main__":
    main()
