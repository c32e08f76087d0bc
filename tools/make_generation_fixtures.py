#!/usr/bin/env python3
"""Writes tests/fixtures/generate: a small random GPT-2 and XLNet, and what transformers' generate() makes of them.

Usage: python tools/make_generation_fixtures.py    (needs torch, transformers, safetensors; made with
                                                    torch 2.15 and transformers 5.23)

gpt2.safetensors holds the weights (exact in bf16), its config in the metadata. cases.json is a list of
  {"options": arguments of generate(), "prompts": [ids], "results": [[{"ids", "score"}]]}
where ids are the new tokens, ends included, and score is sequences_scores of a beam search (absent
otherwise). All was computed in f64. Each prompt was continued alone. "perplexity" holds a text, and
for each context and stride nll (sum of -log p of all tokens but the first, each predicted by the first
window that has it) and hits (tokens that were the likeliest).

xlnet.safetensors and xlnet_cases.json are the same of an XLNet, in f32, since transformers makes masks of that; a
case's "config" changes keys of the model's config. Beams of a causal one fail in transformers and are left out.
"""
import json
import math
import pathlib

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, XLNetConfig, XLNetLMHeadModel

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "generate"
CONFIG = dict(vocab_size=31, n_positions=48, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1)
LENGTHS = [1, 3, 7, 2, 12, 5]
BEAMS = [dict(num_beams=beam, length_penalty=alpha, early_stopping=early)
         for beam in (2, 4) for alpha in (-1.0, 0.0, 1.0, 2.0) for early in (False, True, "never")]
CASES = [
    dict(), dict(repetition_penalty=1.4), dict(no_repeat_ngram_size=2), dict(min_new_tokens=9),
    dict(repetition_penalty=0.8, no_repeat_ngram_size=3), dict(eos_token_id=[1, 4, 9]), *BEAMS,
    dict(num_beams=3, num_return_sequences=3), dict(num_beams=3, repetition_penalty=1.5),
    dict(num_beams=4, no_repeat_ngram_size=2, early_stopping=True),
    dict(num_beams=3, min_new_tokens=6, length_penalty=0.5),
    dict(num_beams=3, eos_token_id=[1, 4, 9]), dict(num_beams=3, max_new_tokens=2),
    dict(forced_eos_token_id=1), dict(num_beams=3, forced_eos_token_id=1),
    dict(num_beams=3, renormalize_logits=True, suppress_tokens=[5, 9, 12], no_repeat_ngram_size=2),
    dict(num_beams=4, renormalize_logits=True, suppress_tokens=[5, 9, 12], length_penalty=0.5),
    dict(min_length=12, min_new_tokens=2), dict(num_beams=3, min_length=12, min_new_tokens=2),
]

XLNET = dict(vocab_size=31, d_model=16, n_layer=2, n_head=2, d_inner=24, bos_token_id=1, eos_token_id=1, pad_token_id=0)
XLNET_CASES = [
    ({}, {}), ({}, dict(num_beams=3)), ({}, dict(repetition_penalty=1.4)), (dict(mem_len=4), {}),
    (dict(mem_len=4), dict(num_beams=3)), (dict(use_mems_eval=False), {}),
    (dict(use_mems_eval=False), dict(num_beams=3)), (dict(attn_type="uni"), {}),
]


def make_model():
    generator = torch.Generator().manual_seed(11)
    config = GPT2Config(**CONFIG, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0,
                        attn_implementation="eager")
    model = GPT2LMHeadModel(config).double().eval()
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if ".ln_" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif ".wte." in name or ".wpe." in name:
            x = (0.35 if ".wte." in name else 0.9) * x
        elif x.dim() == 2:
            x = 1.3 * x * math.sqrt(2 / (p.shape[0] + p.shape[1]))
        else:
            x = 0.3 * x
        p.data.copy_(x.to(torch.bfloat16))
    return model


def text_likelihood(model, ids, context, stride):
    """As transformers' documentation has it: windows that overlap by context - stride."""
    nll, hits, done = 0.0, 0, 1
    for begin in range(0, len(ids), stride):
        end = min(begin + context, len(ids))
        with torch.no_grad():
            log_p = model(torch.tensor([ids[begin:end]])).logits[0].log_softmax(-1)
        for i in range(done, end):
            nll -= log_p[i - 1 - begin, ids[i]].item()
            hits += log_p[i - 1 - begin].argmax().item() == ids[i]
        done = end
        if end == len(ids):
            return {"context": context, "stride": stride, "nll": nll, "hits": hits}


def case_of(model, options, prompts):
    arguments = dict(max_new_tokens=14, do_sample=False, pad_token_id=0) | options
    ends = arguments.get("eos_token_id", 1)
    ends = ends if isinstance(ends, list) else [ends]
    results = []
    for prompt in prompts:
        out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)),
                             return_dict_in_generate=True, output_scores=True, **arguments)
        found = []
        for i, ids in enumerate(out.sequences[:, len(prompt):].tolist()):
            end = next((at + 1 for at, token in enumerate(ids) if token in ends), len(ids))
            found.append({"ids": ids[:end]})
            if options.get("num_beams", 1) > 1:
                found[-1]["score"] = out.sequences_scores[i].item()
        results.append(found)
    return {"options": arguments, "results": results}


def write_xlnet(prompts):
    generator = torch.Generator().manual_seed(5)
    weights = {}
    for name, p in XLNetLMHeadModel(XLNetConfig(**XLNET, dropout=0.0)).named_parameters():
        x = torch.randn(p.shape, generator=generator)
        if "layer_norm" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif name.endswith(("word_embedding.weight", "mask_emb")):
            x = 0.6 * x
        elif x.dim() >= 2:
            x = 1.5 * x / math.sqrt(p.shape[-1] if x.dim() == 2 else XLNET["d_model"])
        else:
            x = 0.3 * x
        weights[name] = x.to(torch.bfloat16).float().contiguous()
    cases = []
    for changes, options in XLNET_CASES:
        model = XLNetLMHeadModel(XLNetConfig(**XLNET | changes)).eval()
        model.load_state_dict(weights, strict=False)
        cases.append({"config": changes} | case_of(model, options, prompts))
    config = json.dumps(XLNetConfig(**XLNET).to_diff_dict() | {"model_type": "xlnet",
                                                             "architectures": ["XLNetLMHeadModel"]})
    save_file(weights, FOLDER / "xlnet.safetensors", {"config": config})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / "xlnet_cases.json").write_text(f'{{"prompts": {json.dumps(prompts)},\n"cases": [\n{lines}\n]}}\n')


def main():
    model = make_model()
    generator = torch.Generator().manual_seed(7)
    prompts = [torch.randint(2, CONFIG["vocab_size"], (n,), generator=generator).tolist() for n in LENGTHS]
    cases = [case_of(model, options, prompts) for options in CASES]
    text = torch.randint(0, CONFIG["vocab_size"], (150,), generator=generator).tolist()
    text[100:] = model.generate(torch.tensor([text[60:90]]), max_new_tokens=17, do_sample=False, eos_token_id=None,
                                pad_token_id=0)[0, 30:].tolist() + text[:33]
    windows = [text_likelihood(model, text, c, s) for c, s in ((48, 24), (48, 47), (20, 7), (2, 1), (33, 32))]
    FOLDER.mkdir(parents=True, exist_ok=True)
    weights = {k: x.to(torch.float32).contiguous() for k, x in model.state_dict().items() if k != "lm_head.weight"}
    config = json.dumps(model.config.to_diff_dict() | {"model_type": "gpt2"})
    save_file(weights, FOLDER / "gpt2.safetensors", {"config": config})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / "cases.json").write_text(
        f'{{"prompts": {json.dumps(prompts)},\n"perplexity": {{"ids": {json.dumps(text)},\n"windows": '
        f'{json.dumps(windows)}}},\n"cases": [\n{lines}\n]}}\n')
    write_xlnet(prompts)


if __name__ == "__main__":
    main()
