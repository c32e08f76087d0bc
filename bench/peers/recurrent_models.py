"""Sequence to sequence by LSTM as a careful user of PyTorch writes it: padded batches, everything
that needs no state before it in one product over all positions."""
import torch
from torch import nn


def turn(x, turned):
    """Each sequence from its last token to its first."""
    return x.flatten(0, 1).index_select(0, turned).view(x.shape)


class TwoWay(nn.Module):
    """A two-way layer over padded sequences. nn.LSTM's own way back would begin with the padding;
    packed sequences, which leave it out, take longer in bf16 (docs/benchmarks.md)."""

    def __init__(self, wide, width):
        super().__init__()
        self.forth = nn.LSTM(wide, width, batch_first=True)
        self.back = nn.LSTM(wide, width, batch_first=True)

    def forward(self, x, turned):
        back = turn(self.back(turn(x, turned))[0], turned)
        return torch.cat([self.forth(x)[0], back], 2)


class LstmTranslator(nn.Module):
    """Bahdanau et al. 2015 with LSTM: the state before a token asks the source by additive scores,
    the cell gets the context beside the token; one matrix for embeddings and output projection."""

    def __init__(self, size):
        super().__init__()
        wide, width, memory = size["embedding"], size["hidden"], 2 * size["encoder_hidden"]
        self.embedding = nn.Embedding(size["vocab"], wide)
        nn.init.normal_(self.embedding.weight, std=wide ** -0.5)
        self.encoder = nn.ModuleList(TwoWay(memory if i else wide, size["encoder_hidden"])
                                     for i in range(size["encoder_layers"]))
        self.bridge = nn.Linear(memory, 2 * width)
        self.key = nn.Linear(memory, size["attention"])
        self.query = nn.Linear(width, size["attention"], bias=False)
        self.score = nn.Linear(size["attention"], 1, bias=False)
        self.from_token = nn.Linear(wide, 4 * width)
        self.from_step = nn.Linear(memory + width, 4 * width)  # of the context and the state
        self.readout = nn.Linear(width + memory + wide, wide)
        self.bias = nn.Parameter(torch.zeros(size["vocab"]))
        self.drop_embedding, self.drop = nn.Dropout(0.3), nn.Dropout(0.4)

    def encode(self, source, lengths):
        """The memory, what scores need of it, and the decoder's first states."""
        positions = torch.arange(source.shape[1]).unsqueeze(0)
        ends = lengths.unsqueeze(1)
        first = torch.arange(len(source)).unsqueeze(1) * source.shape[1]
        turned = (first + torch.where(positions < ends, ends - 1 - positions, positions)).flatten()
        x = self.drop_embedding(self.embedding(source))
        for i, layer in enumerate(self.encoder):
            x = layer(self.drop(x) if i else x, turned)
        half = x.shape[2] // 2
        last = x[torch.arange(len(x)), lengths - 1, :half]
        h, c = self.bridge(torch.cat([last, x[:, 0, half:]], 1)).chunk(2, 1)
        keys = self.key(x)
        return (keys, x.to(keys.dtype), positions >= ends), h.tanh(), c

    def step(self, token, h, c, keys, memory, no_source):
        """token: its part of the gates' pre-activations"""
        scores = self.score(torch.tanh(keys + self.query(h).unsqueeze(1))).squeeze(2)
        weights = scores.masked_fill(no_source, -1e9).softmax(1).to(memory.dtype)
        context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
        i, f, g, o = (token + self.from_step(torch.cat([context, h], 1))).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c, context

    def output(self, h, context, x):
        y = self.drop(torch.tanh(self.readout(torch.cat([h, context, x], -1))))
        return nn.functional.linear(y, self.embedding.weight, self.bias)

    def forward(self, source, lengths, target, rows):
        """Logits of the target's rows, of all its positions, that are tokens."""
        memory, h, c = self.encode(source, lengths)
        x = self.drop_embedding(self.embedding(target))
        states, contexts = [], []
        for token in self.from_token(x).unbind(1):
            h, c, context = self.step(token, h, c, *memory)
            states.append(h)
            contexts.append(context)
        return self.output(*(part.flatten(0, 1).index_select(0, rows)
                             for part in (torch.stack(states, 1), torch.stack(contexts, 1), x)))

    def greedy(self, source, lengths, steps):
        """Ids [sentences, steps]; none ends before the last step."""
        memory, h, c = self.encode(source, lengths)
        ids, chosen = torch.full((len(source),), 2), []
        for _ in range(steps):
            x = self.embedding(ids)
            h, c, context = self.step(self.from_token(x), h, c, *memory)
            logits = self.output(h, context, x)
            logits[:, 3] = -1e9
            ids = logits.argmax(1)
            chosen.append(ids)
        return torch.stack(chosen, 1)
