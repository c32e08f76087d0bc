#!/usr/bin/env python3
"""Writes tests/fixtures/{transfo-xl,xlnet}: small random models and what transformers makes of them in float64.

Usage: python tools/make_xl_fixtures.py xlnet         (transformers 5.23, torch 2.15)
       python tools/make_xl_fixtures.py transfo-xl    (transformers 4.35.2: later releases dropped it)
       python tools/make_xl_fixtures.py MODEL COUNT FOLDER [SEED]
           so many model directories of random configs, each with in.safetensors and expected.safetensors

A fixture NAME.safetensors holds, under Hugging Face's names and shapes: the weights; the inputs (input_ids,
mems.I [time, batch, width], perm_mask, target_mapping, ..); the outputs as out.NAME (logits, last_hidden_state,
hidden_states.I, attentions.I[.STREAM], where rows of tokens that are not predicted are 0, mems.I); and, where there
is a loss (transfo-xl: the mean over next tokens;
xlnet: over the predicted tokens), loss [1] and grad.PARAMETER. config.json is in the metadata.
Weights and mems are exact in bf16, ids are i64, the rest was computed in f64 and stored in f32.
"""
import json
import math
import pathlib
import random
import sys

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"


def randomise(model, generator):
    """Weights that make attention uneven and no bias or gain trivial; exact in bf16."""
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if "layer_norm" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif "emb_layers" in name or "word_embedding" in name or "mask_emb" in name:
            x = 0.3 * x
        elif p.dim() >= 2 and "bias" not in name:
            x = 1.3 * x * math.sqrt(2 / (p.shape[0] + p.numel() // p.shape[0]))
        else:
            x = 0.3 * x
        p.data.copy_(x.to(torch.bfloat16))


def normal(shape, generator):
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(torch.bfloat16).double()


def flat(name, value, out):
    """Tuples of tensors as NAME.0, NAME.1, .."""
    if value is None:
        return
    if torch.is_tensor(value):
        out[name] = value
        return
    for i, part in enumerate(value):
        flat(f"{name}.{i}", part, out)


def run(model, inputs, outputs):
    result = model(**inputs, output_hidden_states=True, output_attentions=True)
    out = {}
    for name in outputs:
        flat(name, getattr(result, name, None), out)
    return out


def config_text(model):
    config = {k: v for k, v in model.config.to_diff_dict().items()
              if k not in ("transformers_version", "dtype", "torch_dtype")}
    config["architectures"] = [type(model).__name__]
    return json.dumps(config, sort_keys=True)


def weights(model):
    """Each tensor once, under its first name, as heddle writes them."""
    found, seen = {}, set()
    for name, p in model.named_parameters(remove_duplicate=True):
        if p.data_ptr() in seen:
            continue
        seen.add(p.data_ptr())
        found[name] = p.data.to(torch.bfloat16)
    return found


def as_stored(tensors):
    return {n: (t if t.dtype in (torch.int64, torch.bfloat16) else t.to(torch.float32)).contiguous().clone()
            for n, t in tensors.items()}


def given(inputs):
    out = {}
    for name, value in inputs.items():
        flat(name, value, out)
    return {n: (t if t.dtype == torch.int64 else t.to(torch.bfloat16)) for n, t in out.items()}


def save(path, model, inputs, out, loss=None):
    tensors = {**weights(model), **given(inputs), **{"out." + n: t.detach() for n, t in out.items()}}
    if loss is not None:
        model.zero_grad()
        loss.backward()
        tensors["loss"] = loss.detach().reshape(1)
        for name, p in model.named_parameters():
            if p.grad is not None:
                tensors["grad." + name] = p.grad
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(as_stored(tensors), path, metadata={"format": "pt", "config": config_text(model)})
    print(path.name, path.stat().st_size, "bytes,", len(tensors), "tensors")


def save_folder(folder, model, inputs, out):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config_text(model))
    save_file(as_stored(weights(model)), folder / "model.safetensors", metadata={"format": "pt"})
    save_file(as_stored(given(inputs)), folder / "in.safetensors")
    save_file(as_stored({n: t.detach() for n, t in out.items()}), folder / "expected.safetensors")


# --- transfo-xl ----------------------------------------------------------------------------------

TRANSFO_XL = dict(vocab_size=37, d_model=16, d_embed=16, n_head=2, d_head=8, d_inner=20, n_layer=2, dropout=0.0,
                  dropatt=0.0)
TRANSFO_XL_CASES = {
    "adaptive": dict(cutoffs=[9, 20], div_val=2, mem_len=5, clamp_len=4, same_length=True, memory=5),
    "pre_norm": dict(cutoffs=[9, 20], div_val=1, d_embed=12, pre_lnorm=True, untie_r=False, mem_len=4, clamp_len=-1,
                     same_length=False, proj_share_all_but_first=False),
    "one_softmax": dict(cutoffs=[], div_val=1, mem_len=0, clamp_len=0, same_length=False, tie_word_embeddings=False,
                        d_head=5, n_head=3),
    "base": dict(cutoffs=[20], div_val=4, d_embed=20, mem_len=6, clamp_len=3, same_length=True, memory=3,
                 head="TransfoXLModel"),
}


def stay_in_f64():
    """transformers rounds scores to f32 before it masks them, with a number that fits the model's dtype."""
    finfo = torch.finfo
    torch.finfo = lambda dtype: finfo(torch.float32)
    torch.Tensor.float = lambda x: x


def transfo_xl(changes, generator, batch=2, time=7):
    import transformers
    stay_in_f64()
    changes = dict(changes)
    memory, head = changes.pop("memory", 0), changes.pop("head", "TransfoXLLMHeadModel")
    config = transformers.TransfoXLConfig(**{**TRANSFO_XL, **changes})
    model = getattr(transformers, head)(config).double().eval()
    randomise(model, generator)
    places = (model if head == "TransfoXLModel" else model.transformer).pos_emb
    d = config.d_model
    places.inv_freq = 1 / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    inputs = dict(input_ids=torch.randint(config.vocab_size, (batch, time), generator=generator))
    if memory:
        inputs["mems"] = [normal((memory, batch, d), generator) for _ in range(config.n_layer)]
    out = run(model, inputs, ["logits", "last_hidden_state", "hidden_states", "attentions", "mems"])
    loss = None
    if head == "TransfoXLLMHeadModel":
        ids = inputs["input_ids"][:, 1:].unsqueeze(-1)
        loss = -model(**inputs).logits[:, :-1].gather(-1, ids).mean()
    return model, inputs, out, loss


def random_transfo_xl(r):
    d = 2 * r.randint(2, 12)
    cutoffs = sorted(r.sample(range(2, 30), r.randint(0, 3)))
    div = r.choice([1, 1, 2, 4])
    mem = r.choice([0, 1, 3, 8])
    return dict(vocab_size=r.randint(31, 60), cutoffs=cutoffs, d_model=d,
                d_embed=r.choice([d, r.randint(64, 80) if div > 1 else r.randint(3, 20)]),
                n_head=r.randint(1, 4), d_head=r.randint(1, 9), d_inner=r.randint(1, 30), div_val=div,
                n_layer=r.randint(1, 3), pre_lnorm=r.random() < 0.5, mem_len=mem, clamp_len=r.choice([-1, 0, 2, 5, 100]),
                same_length=r.random() < 0.5, proj_share_all_but_first=r.random() < 0.5, untie_r=r.random() < 0.5,
                tie_word_embeddings=r.random() < 0.7, layer_norm_epsilon=r.choice([1e-5, 1e-3]),
                memory=r.choice([0, mem, r.randint(1, 9)]) if mem else 0,
                head=r.choice(["TransfoXLLMHeadModel", "TransfoXLLMHeadModel", "TransfoXLModel"]))


# --- xlnet ---------------------------------------------------------------------------------------

XLNET = dict(vocab_size=31, d_model=16, n_head=2, d_inner=20, n_layer=2, dropout=0.0, summary_last_dropout=0.0)
XLNET_CASES = {
    "two_streams": dict(mem_len=6, memory=4, streams=True, types=True, padding="left"),
    "backwards": dict(bi_data=True, clamp_len=3, reuse_len=4, mem_len=6, memory=5, batch=4, head="XLNetModel",
                      ff_activation="relu"),
    "one_way": dict(attn_type="uni", same_length=True, memory=3, mem_len=None, tie_word_embeddings=False),
    "one_way_ordered": dict(attn_type="uni", streams=True, use_mems_eval=False, n_layer=1, n_head=4),
    "classes": dict(head="XLNetForSequenceClassification", num_labels=3, types=True, padding="both"),
}


def in_f64(model):
    """Sinusoids in f64, which transformers makes in f32 whatever the model's dtype is."""
    base = model if type(model).__name__ == "XLNetModel" else model.transformer
    d = base.d_model

    def embed(pos_seq, inv_freq, bsz=None):
        angle = pos_seq.double()[:, None] / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
        table = torch.cat([angle.sin(), angle.cos()], dim=-1)[:, None, :]
        return table if bsz is None else table.expand(-1, bsz, -1)

    base.positional_embedding = embed


def orders(batch, time, predicted, generator):
    """Tokens become known in a random order; the last ones are predicted; the mask of transformers."""
    mask, mapping = torch.zeros(batch, time, time).double(), torch.zeros(batch, predicted, time).double()
    for b in range(batch):
        order = torch.randperm(time, generator=generator)
        rank = torch.empty(time, dtype=torch.int64)
        rank[order] = torch.arange(time)
        mask[b] = (rank[:, None] <= rank[None, :]).double()
        for m in range(predicted):
            mapping[b, m, order[time - predicted + m]] = 1
    return mask, mapping


def xlnet(changes, generator, batch=2, time=7):
    import transformers
    changes = dict(changes)
    memory, head = changes.pop("memory", 0), changes.pop("head", "XLNetLMHeadModel")
    streams, types, padding = (changes.pop(k, None) for k in ("streams", "types", "padding"))
    batch = changes.pop("batch", batch)
    if changes.get("attn_type") == "uni" and (streams or padding):
        batch = 1  # transformers cannot add masks of several sentences to that of the text's order
        changes["bi_data"] = False
    config = transformers.XLNetConfig(**{**XLNET, **changes})
    model = getattr(transformers, head)(config).double().eval()
    in_f64(model)
    randomise(model, generator)
    inputs = dict(input_ids=torch.randint(config.vocab_size, (batch, time), generator=generator))
    if memory:
        inputs["mems"] = [normal((memory, batch, config.d_model), generator) for _ in range(config.n_layer)]
    if types:
        inputs["token_type_ids"] = torch.randint(3, (batch, time), generator=generator)
    if padding:
        mask = torch.ones(batch, time)
        mask[0, :2] = 0
        if padding == "both":
            mask[-1, -2:] = 0
        inputs["attention_mask"] = mask.double()
    if streams:
        inputs["perm_mask"], inputs["target_mapping"] = orders(batch, time, 3, generator)
    out = run(model, inputs, ["logits", "last_hidden_state", "hidden_states", "attentions", "mems"])
    if streams:  # rows of tokens that are not predicted come from queries that nobody reads
        predicted = inputs["target_mapping"].sum(1)[:, None, :, None]
        for name in [n for n in out if n.startswith("attentions.") and n.endswith(".1")]:
            out[name] = out[name] * predicted
    loss = None
    if head == "XLNetLMHeadModel" and streams and not padding:
        tokens = torch.einsum("bml,bl->bm", inputs["target_mapping"], inputs["input_ids"].double()).long()
        logits = model(**inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, config.vocab_size), tokens.reshape(-1))
    return model, inputs, out, loss


def random_xlnet(r):
    heads = r.randint(1, 4)
    head = r.choice(["XLNetLMHeadModel", "XLNetLMHeadModel", "XLNetModel", "XLNetForSequenceClassification",
                     "XLNetForTokenClassification"])
    tokens = head in ("XLNetLMHeadModel", "XLNetModel")
    return dict(vocab_size=r.randint(10, 40), d_model=2 * heads * r.randint(1, 5), n_head=heads, d_inner=r.randint(1, 30),
                n_layer=r.randint(1, 3), ff_activation=r.choice(["gelu", "relu", "gelu_new", "silu"]),
                attn_type=r.choice(["bi", "bi", "uni"]), bi_data=r.random() < 0.3, batch=r.choice([2, 4]),
                clamp_len=r.choice([-1, 0, 2, 5, 100]), same_length=r.random() < 0.5, mem_len=r.choice([None, 0, 2, 8]),
                reuse_len=r.choice([None, 0, 3]), use_mems_eval=r.random() < 0.8,
                tie_word_embeddings=r.random() < 0.7, layer_norm_eps=r.choice([1e-12, 1e-5]), num_labels=r.randint(2, 4),
                summary_type=r.choice(["last", "first", "mean"]), summary_use_proj=r.random() < 0.7,
                summary_activation=r.choice(["tanh", "relu"]), memory=r.choice([0, 0, 3, 8]),
                streams=tokens and r.random() < 0.6, types=r.random() < 0.5,
                padding=r.choice([None, "left", "both"]), head=head)


MODELS = {"transfo-xl": (transfo_xl, TRANSFO_XL_CASES, random_transfo_xl),
          "xlnet": (xlnet, XLNET_CASES, random_xlnet)}


def main():
    make, cases, draw = MODELS[sys.argv[1]]
    if len(sys.argv) == 2:
        for seed, (name, changes) in enumerate(cases.items()):
            path = FOLDER / sys.argv[1] / f"{name}.safetensors"
            save(path, *make(changes, torch.Generator().manual_seed(seed + 1)))
        return
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    for seed in range(first, first + int(sys.argv[2])):
        r = random.Random(seed)
        model, inputs, out, _ = make(draw(r), torch.Generator().manual_seed(seed), time=r.randint(4, 11))
        save_folder(pathlib.Path(sys.argv[3]) / str(seed), model, inputs, out)


if __name__ == "__main__":
    main()
