#!/usr/bin/env python3
"""Writes tests/fixtures/{gpt2,bert}: small random models and what transformers makes of them in float64.

Usage: python tools/make_hub_fixtures.py    (needs torch, transformers, safetensors; made with
                                             torch 2.15 and transformers 5.23)

A fixture NAME.safetensors holds, under Hugging Face's names and shapes [batch, time, ..]:
  the weights; input_ids, attention_mask, of BERT token_type_ids;
  hidden_states.I (0: the embeddings), attentions.I [batch, heads, queries, keys];
  of GPT-2 logits, loss [1] (of the next words), and grad.PARAMETER for every weight;
  of BERT last_hidden_state and pooler_output.
Padding (on the right, on the left and in the middle) is zero. config.json is in the metadata.
Weights are exact in bf16, ids are i64, the rest was computed in f64 and stored in f32.
"""
import json
import math
import pathlib

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
# Which words of each sentence there are; positions count the others too.
MASK = torch.tensor([[1] * 9, [1] * 5 + [0] * 4, [0] * 2 + [1] * 7])
MASK_WITH_HOLE = torch.tensor([[1] * 9, [1] * 3 + [0] * 6, [1, 1, 0, 0, 1, 1, 1, 0, 1]])

GPT2 = dict(vocab_size=41, n_positions=12, n_embd=24, n_layer=2, n_head=3, bos_token_id=1,
            eos_token_id=1, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
GPT2_CASES = {
    "tied": {},
    "untied": dict(tie_word_embeddings=False, n_embd=20, n_head=2, n_inner=36, vocab_size=29,
                   activation_function="relu", scale_attn_by_inverse_layer_idx=True,
                   layer_norm_epsilon=1e-3),
    "unscaled": dict(scale_attn_weights=False, n_layer=1, n_head=1, n_embd=14,
                     activation_function="silu"),
}
BERT = dict(vocab_size=37, max_position_embeddings=12, hidden_size=24, num_hidden_layers=2,
            num_attention_heads=3, intermediate_size=40, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0)
BERT_CASES = {
    "gelu": {},
    "one_head": dict(hidden_act="relu", type_vocab_size=3, num_attention_heads=1, hidden_size=10,
                     layer_norm_eps=1e-5, num_hidden_layers=3),
}


def randomise(model, generator):
    """Weights that make attention uneven and no bias or gain trivial; exact in bf16."""
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if ".ln_" in name or "LayerNorm" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif "embeddings" in name or ".wte." in name or ".wpe." in name:
            x = 0.5 * x
        elif x.dim() == 2:
            x = 1.3 * x * math.sqrt(2 / (p.shape[0] + p.shape[1]))
        else:
            x = 0.3 * x
        p.data.copy_(x.to(torch.bfloat16))


def outputs(out, mask):
    """Hidden states and attention maps, zero where the query is padding."""
    named = {f"hidden_states.{i}": x * mask[:, :, None] for i, x in enumerate(out.hidden_states)}
    named |= {f"attentions.{i}": x * mask[:, None, :, None] for i, x in enumerate(out.attentions)}
    return named


def save(model, folder, name, tensors, integers):
    """Writes a fixture; weights under the names that save_pretrained() gives them."""
    tied = set(model._tied_weights_keys or {}) if model.config.tie_word_embeddings else set()
    weights = {k: x for k, x in model.state_dict().items() if k not in tied}
    tensors = {k: x.detach().to(torch.float32).contiguous() for k, x in (weights | tensors).items()}
    (FOLDER / folder).mkdir(parents=True, exist_ok=True)
    config = json.dumps(model.config.to_diff_dict() | {"model_type": model.config.model_type})
    save_file(tensors | integers, FOLDER / folder / f"{name}.safetensors", {"config": config})


def gpt2(name, changes, seed):
    generator = torch.Generator().manual_seed(seed)
    config = GPT2Config(**(GPT2 | changes), attn_implementation="eager")
    model = GPT2LMHeadModel(config).double().eval()
    randomise(model, generator)
    ids = torch.randint(2, config.vocab_size, MASK.shape, generator=generator) * MASK
    # A word counts if the word before it is there: not the first after padding.
    labels = ids.masked_fill((MASK == 0) | (MASK.roll(1, 1) == 0), -100)
    out = model(input_ids=ids, attention_mask=MASK, labels=labels, output_hidden_states=True,
                output_attentions=True, use_cache=False)
    out.loss.backward()
    tensors = outputs(out, MASK)
    tensors |= {"logits": out.logits * MASK[:, :, None], "loss": out.loss.reshape(1)}
    tensors |= {"grad." + n: p.grad for n, p in model.named_parameters()}
    save(model, "gpt2", name, tensors, {"input_ids": ids, "attention_mask": MASK})


def bert(name, changes, seed):
    generator = torch.Generator().manual_seed(seed)
    config = BertConfig(**(BERT | changes), attn_implementation="eager")
    model = BertModel(config).double().eval()
    randomise(model, generator)
    mask = MASK_WITH_HOLE
    ids = torch.randint(1, config.vocab_size, mask.shape, generator=generator) * mask
    types = torch.randint(0, config.type_vocab_size, mask.shape, generator=generator)
    out = model(input_ids=ids, attention_mask=mask, token_type_ids=types,
                output_hidden_states=True, output_attentions=True)
    tensors = outputs(out, mask)
    tensors |= {"last_hidden_state": (out.last_hidden_state * mask[:, :, None]).clone(),
                "pooler_output": out.pooler_output}
    save(model, "bert", name, tensors,
         {"input_ids": ids, "attention_mask": mask, "token_type_ids": types})


def main():
    for seed, (name, changes) in enumerate(GPT2_CASES.items(), 1):
        gpt2(name, changes, seed)
    for seed, (name, changes) in enumerate(BERT_CASES.items(), 11):
        bert(name, changes, seed)


if __name__ == "__main__":
    main()
