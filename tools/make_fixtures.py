#!/usr/bin/env python3
"""Writes tests/fixtures/transformer: small encoder-decoders and what PyTorch makes of them in float64.

Usage: python tools/make_fixtures.py           (needs torch and safetensors; made with torch 2.15)
       python tools/make_fixtures.py --check   compares the reference below with transformers'
                                               MarianMTModel (made with 5.23) and writes nothing

A fixture NAME.safetensors holds, under Hugging Face's names and shapes [batch, time, ..]:
  the weights; input_ids, attention_mask, decoder_input_ids, labels (-100 where nothing is due);
  {encoder,decoder}_hidden_states.I (0: the embeddings; the last one after the last norm),
  {encoder,decoder,cross}_attentions.I [batch, heads, queries, keys], encoder_last_hidden_state,
  logits, loss [1], and grad.PARAMETER for every weight. Padding is zero. The config is JSON in the
  metadata. Weights are exact in bf16, ids are i64, the rest was computed in f64 and stored in f32.
"""
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "transformer"
PAD, START, EOS = 0, 2, 3
SMOOTHING = 0.1

DEFAULTS = dict(
    vocab_size=29, d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2,
    decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=20, activation_function="relu",
    dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
    normalize_before=False, normalize_embedding=False, layer_norm_eps=1e-5, projection_bias=True,
    output_bias=False, position_embedding_type="sinusoidal", sinusoidal_layout="interleaved",
    sinusoidal_frequencies="paper", max_position_embeddings=12, scale_embedding=True,
    share_encoder_decoder_embeddings=True, tie_word_embeddings=True, pad_token_id=PAD,
    bos_token_id=START, eos_token_id=EOS, decoder_start_token_id=START)

UNTIED = dict(share_encoder_decoder_embeddings=False, tie_word_embeddings=False)
CASES = {
    "post_tied": dict(decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=2),
    "pre_tied": dict(decoder_layers=2, normalize_before=True),
    "post_untied": dict(**UNTIED, vocab_size=37, encoder_layers=1, decoder_layers=2),
    "pre_untied": dict(**UNTIED, vocab_size=23, normalize_before=True, d_model=24,
                       encoder_attention_heads=3, decoder_attention_heads=2, encoder_layers=1),
    "shared_but_untied_output": dict(tie_word_embeddings=False, encoder_layers=1),
    "target_tied": dict(share_encoder_decoder_embeddings=False, encoder_layers=1),
    "learned_positions": dict(position_embedding_type="learned", encoder_layers=1),
    "no_positions": dict(position_embedding_type="none", encoder_layers=1),
    "halves": dict(sinusoidal_layout="halves", encoder_layers=1),
    "tensor2tensor": dict(sinusoidal_layout="halves", sinusoidal_frequencies="tensor2tensor",
                          encoder_layers=1),
    "gelu": dict(activation_function="gelu", encoder_layers=1, layer_norm_eps=1e-3),
    "gelu_new": dict(activation_function="gelu_new", encoder_layers=1, normalize_before=True),
    "silu": dict(activation_function="silu", encoder_layers=1, scale_embedding=False),
    "embedding_norm": dict(normalize_embedding=True, encoder_layers=1),
    "no_projection_bias": dict(projection_bias=False, encoder_layers=1, encoder_ffn_dim=40),
    "output_bias": dict(output_bias=True, encoder_layers=1, normalize_before=True,
                        normalize_embedding=True),
    "rms_norm_swiglu": dict(normalization="rms_norm", activation_function="swiglu", encoder_layers=1,
                            normalize_before=True, normalize_embedding=True),
}
SENTENCES = [(6, 4), (1, 3), (4, 7)]  # tokens of source and target, without the marks

ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "silu": lambda x: x * torch.sigmoid(x),
}


def is_rms(c):
    return c.get("normalization") == "rms_norm"


def parameter_shapes(c):
    """Name -> shape of every weight of a config."""
    d = c["d_model"]
    shapes = {}

    def linear(name, out, width, bias):
        shapes[name + ".weight"] = (out, width)
        if bias:
            shapes[name + ".bias"] = (out,)

    def norm(name):
        shapes[name + ".weight"] = (d,)
        if not is_rms(c):
            shapes[name + ".bias"] = (d,)

    def feed_forward(name, hidden):
        if c["activation_function"] == "swiglu":
            for projection in ("gate_proj", "up_proj"):
                linear(f"{name}.{projection}", hidden, d, False)
            linear(name + ".down_proj", d, hidden, False)
        else:
            linear(name + ".fc1", hidden, d, True)
            linear(name + ".fc2", d, hidden, True)

    def attention(name):
        for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(f"{name}.{projection}", d, d, c["projection_bias"])
        norm(name + "_layer_norm")

    if c["share_encoder_decoder_embeddings"]:
        shapes["model.shared.weight"] = (c["vocab_size"], d)
    for side in ("encoder", "decoder"):
        stack = f"model.{side}"
        if not c["share_encoder_decoder_embeddings"]:
            shapes[stack + ".embed_tokens.weight"] = (c["vocab_size"], d)
        if c["position_embedding_type"] == "learned":
            shapes[stack + ".embed_positions.weight"] = (c["max_position_embeddings"], d)
        if c["normalize_embedding"]:
            norm(stack + ".layernorm_embedding")
        for i in range(c[side + "_layers"]):
            layer = f"{stack}.layers.{i}"
            attention(layer + ".self_attn")
            if side == "decoder":
                attention(layer + ".encoder_attn")
            feed_forward(layer, c[side + "_ffn_dim"])
            norm(layer + ".final_layer_norm")
        if c["normalize_before"]:
            norm(stack + ".layer_norm")
    if not c["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (c["vocab_size"], d)
    if c["output_bias"]:
        shapes["final_logits_bias"] = (1, c["vocab_size"])
    return shapes


def random_parameters(c, generator):
    """Weights that make attention uneven and no bias or gain trivial; exact in bf16."""
    parameters = {}
    for name, shape in parameter_shapes(c).items():
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        if "norm" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif "embed" in name or "shared" in name:
            is_words = "positions" not in name
            x = x * (c["d_model"] ** -0.5 if is_words and c["scale_embedding"] else 1.0)
        elif len(shape) == 2 and "bias" not in name:
            gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
            x = x * gain * math.sqrt(2 / (shape[0] + shape[1]))
        else:
            x = 0.3 * x
        parameters[name] = x.to(torch.bfloat16).to(torch.float64).requires_grad_()
    return parameters


def position_table(c, length):
    """[length, d]: sin and cos of pos * 10000^-e, e = 2i/d (paper) or i/(d/2 - 1) (Tensor2Tensor)."""
    d = c["d_model"]
    i = torch.arange(d // 2, dtype=torch.float64)
    e = 2 * i / d if c["sinusoidal_frequencies"] == "paper" else i / (d // 2 - 1)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** -e
    if c["sinusoidal_layout"] == "halves":
        return torch.cat([angle.sin(), angle.cos()], dim=1)
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(length, d)


class Reference:
    """The encoder-decoder of Vaswani et al. 2017 over padded batches, one equation a line."""

    def __init__(self, c, parameters):
        self.c, self.p, self.seen = c, parameters, {}

    def linear(self, name, x):
        bias = self.p.get(name + ".bias")
        return x @ self.p[name + ".weight"].T + (0 if bias is None else bias)

    def norm(self, name, x):
        if is_rms(self.c):
            square = (x ** 2).mean(-1, keepdim=True)
            return x / torch.sqrt(square + self.c["layer_norm_eps"]) * self.p[name + ".weight"]
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred ** 2).mean(-1, keepdim=True)
        scaled = centred / torch.sqrt(variance + self.c["layer_norm_eps"])
        return scaled * self.p[name + ".weight"] + self.p[name + ".bias"]

    def embedding_matrix(self, side):
        shared = self.p.get("model.shared.weight")
        return self.p[f"model.{side}.embed_tokens.weight"] if shared is None else shared

    def embed(self, side, ids):
        x = self.embedding_matrix(side)[ids]
        if self.c["scale_embedding"]:
            x = x * math.sqrt(self.c["d_model"])
        if self.c["position_embedding_type"] == "learned":
            x = x + self.p[f"model.{side}.embed_positions.weight"][:ids.shape[1]]
        elif self.c["position_embedding_type"] == "sinusoidal":
            x = x + position_table(self.c, ids.shape[1])
        if self.c["normalize_embedding"]:
            x = self.norm(f"model.{side}.layernorm_embedding", x)
        return x

    def attention(self, name, seen_as, heads, x, memory, visible):
        """x: [b, t, d], memory: [b, s, d], visible: [b, 1, t or 1, s] booleans."""
        def split(y):  # [b, heads, time, d / heads]
            return y.unflatten(-1, (heads, -1)).transpose(1, 2)
        q = split(self.linear(name + ".q_proj", x))
        k = split(self.linear(name + ".k_proj", memory))
        v = split(self.linear(name + ".v_proj", memory))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~visible, -math.inf).softmax(-1)
        self.seen[seen_as] = weights
        return self.linear(name + ".out_proj", (weights @ v).transpose(1, 2).flatten(2))

    def feed_forward(self, name, x):
        kind = self.c["activation_function"]
        if kind == "swiglu":
            gate = ACTIVATIONS["silu"](self.linear(name + ".gate_proj", x))
            return self.linear(name + ".down_proj", gate * self.linear(name + ".up_proj", x))
        return self.linear(name + ".fc2", ACTIVATIONS[kind](self.linear(name + ".fc1", x)))

    def sublayer(self, norm, x, f):
        if self.c["normalize_before"]:
            return x + f(self.norm(norm, x))
        return self.norm(norm, x + f(x))

    def stack(self, side, ids, self_visible, memory=None, memory_visible=None):
        heads = self.c[side + "_attention_heads"]
        x = self.embed(side, ids)
        self.seen[side + "_hidden_states.0"] = x
        for i in range(self.c[side + "_layers"]):
            layer = f"model.{side}.layers.{i}"
            x = self.sublayer(layer + ".self_attn_layer_norm", x, lambda y: self.attention(
                layer + ".self_attn", f"{side}_attentions.{i}", heads, y, y, self_visible))
            if memory is not None:
                x = self.sublayer(layer + ".encoder_attn_layer_norm", x, lambda y: self.attention(
                    layer + ".encoder_attn", f"cross_attentions.{i}", heads, y, memory,
                    memory_visible))
            x = self.sublayer(layer + ".final_layer_norm", x,
                              lambda y: self.feed_forward(layer, y))
            is_last = i + 1 == self.c[side + "_layers"]
            if is_last and self.c["normalize_before"]:
                x = self.norm(f"model.{side}.layer_norm", x)
            self.seen[f"{side}_hidden_states.{i + 1}"] = x
        return x

    def run(self, input_ids, attention_mask, decoder_input_ids):
        source_visible = attention_mask.bool()[:, None, None, :]
        memory = self.stack("encoder", input_ids, source_visible)
        self.seen["encoder_last_hidden_state"] = memory.clone()
        time = decoder_input_ids.shape[1]
        causal = torch.ones(time, time, dtype=torch.bool).tril()[None, None]
        x = self.stack("decoder", decoder_input_ids, causal, memory, source_visible)
        out = self.p.get("lm_head.weight")
        logits = x @ (self.embedding_matrix("decoder") if out is None else out).T
        if self.c["output_bias"]:
            logits = logits + self.p["final_logits_bias"]
        self.seen["logits"] = logits
        return logits


def random_batch(c, generator):
    """Ragged sentences, padded: source ends in EOS, the decoder reads START + tokens."""
    columns = {name: [] for name in ("input_ids", "attention_mask", "decoder_input_ids", "labels")}
    longest_source = max(s for s, _ in SENTENCES) + 1
    longest_target = max(t for _, t in SENTENCES) + 1
    for source, target in SENTENCES:
        tokens = torch.randint(EOS + 1, c["vocab_size"], (source + target,), generator=generator)
        tokens = tokens.tolist()
        x, y = tokens[:source] + [EOS], tokens[source:]
        pad_x, pad_y = longest_source - len(x), longest_target - len(y) - 1
        columns["input_ids"].append(x + [PAD] * pad_x)
        columns["attention_mask"].append([1] * len(x) + [0] * pad_x)
        columns["decoder_input_ids"].append([START] + y + [PAD] * pad_y)
        columns["labels"].append(y + [EOS] + [-100] * pad_y)
    return {name: torch.tensor(rows) for name, rows in columns.items()}


def without_padding(name, x, source_mask, target_mask):
    """Zeroes what belongs to padded queries; padded keys have weight 0 anyway."""
    rows = source_mask if name.startswith("encoder") else target_mask
    rows = rows[:, None, :, None] if "attentions" in name else rows[:, :, None]
    return x * rows


def run_case(c, seed):
    """Everything a fixture holds."""
    generator = torch.Generator().manual_seed(seed)
    parameters = random_parameters(c, generator)
    batch = random_batch(c, generator)
    reference = Reference(c, parameters)
    logits = reference.run(batch["input_ids"], batch["attention_mask"], batch["decoder_input_ids"])
    loss = F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(),
                           label_smoothing=SMOOTHING, ignore_index=-100)
    loss.backward()
    tensors = {name: x.detach() for name, x in parameters.items()}
    target_mask = batch["labels"] != -100
    for name, x in reference.seen.items():
        tensors[name] = without_padding(name, x.detach(), batch["attention_mask"], target_mask)
    tensors |= {"grad." + name: x.grad for name, x in parameters.items()}
    tensors["loss"] = loss.detach().reshape(1)
    return tensors, batch


def check_against_marian():
    """The reference equals MarianMTModel: every hidden state, attention map, logit and gradient."""
    from transformers import MarianConfig, MarianMTModel
    c = DEFAULTS | dict(decoder_layers=2, sinusoidal_layout="halves", output_bias=True,
                        activation_function="gelu_new")
    ours, batch = run_case(c, 7)
    fields = {k: v for k, v in c.items() if k in MarianConfig().to_dict()}
    config = MarianConfig(**fields, forced_eos_token_id=None, attn_implementation="eager")
    model = MarianMTModel(config).double().eval()
    table = position_table(c, c["max_position_embeddings"])
    for stack in (model.model.encoder, model.model.decoder):  # theirs is rounded to f32
        assert (stack.embed_positions.weight - table).abs().max() < 1e-7
        stack.embed_positions.weight.data.copy_(table)
    state = {name: ours[name] for name in parameter_shapes(c)}
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
            "model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight",
            "lm_head.weight"}
    assert set(missing) <= tied and not unexpected, (missing, unexpected)
    bias = model.final_logits_bias.requires_grad_()
    out = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"],
                decoder_input_ids=batch["decoder_input_ids"], output_hidden_states=True,
                output_attentions=True, use_cache=False)
    loss = F.cross_entropy(out.logits.flatten(0, 1), batch["labels"].flatten(),
                           label_smoothing=SMOOTHING)
    loss.backward()
    theirs = {"logits": out.logits, "loss": loss.reshape(1), "grad.final_logits_bias": bias.grad,
              "encoder_last_hidden_state": out.encoder_last_hidden_state}
    for kind in ("encoder_hidden_states", "decoder_hidden_states", "encoder_attentions",
                 "decoder_attentions", "cross_attentions"):
        theirs |= {f"{kind}.{i}": x for i, x in enumerate(out[kind])}
    theirs |= {"grad." + n: x.grad for n, x in model.named_parameters() if x.grad is not None}
    target_mask = batch["labels"] != -100
    worst = 0.0
    for name, x in ours.items():
        if name in state:
            continue
        y = theirs.pop(name)
        if not name.startswith("grad.") and name != "loss":
            y = without_padding(name, y, batch["attention_mask"], target_mask)
        worst = max(worst, (x - y).abs().max().item())
    assert not theirs, theirs.keys()
    assert worst < 1e-12, worst
    print(f"equal to MarianMTModel within {worst:.1e} over {len(ours) - len(state)} tensors")


def main():
    if "--check" in sys.argv[1:]:
        return check_against_marian()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed, (name, changes) in enumerate(CASES.items(), 1):
        c = DEFAULTS | changes
        tensors, batch = run_case(c, seed)
        tensors = {key: x.to(torch.float32).contiguous() for key, x in tensors.items()} | batch
        save_file(tensors, FOLDER / f"{name}.safetensors", {"config": json.dumps(c)})


if __name__ == "__main__":
    main()
