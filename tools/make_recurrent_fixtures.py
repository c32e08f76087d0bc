#!/usr/bin/env python3
"""Writes tests/fixtures/recurrent: stacked recurrent layers and what PyTorch makes of them in float64.

Usage: python tools/make_recurrent_fixtures.py    (needs torch and safetensors; made with torch 2.15)

A fixture NAME.safetensors holds, of torch.nn.LSTM, GRU or RNN over packed sequences, in f32:
  the weights under PyTorch's names; x [rows, in], sequences end to end; lengths i64; h0 (and c0)
  [layers ways, sequences, width]; y [rows, ways width], h_n (and c_n); grad.x, grad.h0 (grad.c0)
  and grad.PARAMETER of sum(y * dy) + sum(h_n * dh) (+ sum(c_n * dc)), with dy, dh, dc.
The config is JSON in the metadata.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "recurrent"
LENGTHS = [7, 50, 1, 12]
CASES = {
    "lstm": dict(kind="LSTM", cell="lstm", layers=2, two_way=True),
    "gru": dict(kind="GRU", cell="gru", layers=2, two_way=True),
    "rnn_tanh": dict(kind="RNN", cell="rnn_tanh", layers=2, two_way=True),
    "rnn_relu": dict(kind="RNN", cell="rnn_relu", layers=2, two_way=True),
    "lstm_one_way": dict(kind="LSTM", cell="lstm", layers=3, two_way=False),
    "gru_one_way_no_bias": dict(kind="GRU", cell="gru", layers=1, two_way=False, bias=False),
}


def write(name, seed, kind, cell, layers, two_way, bias=True, width=11, inputs=6):
    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)
    extra = {"nonlinearity": cell.removeprefix("rnn_")} if kind == "RNN" else {}
    net = getattr(torch.nn, kind)(inputs, width, layers, bias=bias, bidirectional=two_way, **extra)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(p.float().double())
    ways, n = 2 if two_way else 1, len(LENGTHS)
    normal = lambda *shape: torch.randn(*shape).float().double()
    x = normal(sum(LENGTHS), inputs).requires_grad_()
    states = [normal(layers * ways, n, width).requires_grad_() for _ in range(2 if kind == "LSTM" else 1)]
    given = tuple(states) if kind == "LSTM" else states[0]
    y, last = net(pack_sequence(list(x.split(LENGTHS)), enforce_sorted=False), given)
    y = torch.cat(unpack_sequence(y))
    last = list(last) if kind == "LSTM" else [last]
    weights = [normal(*y.shape)] + [normal(*each.shape) for each in last]
    sum((a * b).sum() for a, b in zip([y] + last, weights)).backward()
    tensors = {"x": x, "y": y, "dy": weights[0], "grad.x": x.grad}
    for letter, begin, end, weight in zip("hc", states, last, weights[1:]):
        tensors |= {f"{letter}0": begin, f"{letter}_n": end, f"d{letter}": weight,
                    f"grad.{letter}0": begin.grad}
    for parameter, value in net.named_parameters():
        tensors |= {parameter: value, f"grad.{parameter}": value.grad}
    tensors = {k: v.detach().float().contiguous() for k, v in tensors.items()}
    tensors["lengths"] = torch.tensor(LENGTHS)
    config = dict(cell=cell, layers=layers, two_way=two_way, bias=bias, width=width, inputs=inputs)
    save_file(tensors, FOLDER / f"{name}.safetensors", metadata={"config": json.dumps(config)})


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed, (name, case) in enumerate(CASES.items()):
        write(name, seed + 1, **case)


if __name__ == "__main__":
    main()
