#!/usr/bin/env python3
"""Compares `heddle forward --all` with transformers in float64 over many random small models.

Usage: python tools/compare_hub.py HEDDLE [SEEDS [TYPE ..]]    (needs what make_hub_fixtures.py needs)

Each seed makes a config (sizes, heads, tying, rotary types, windows, activations, head), weights, ids
and a mask with hidden tokens; a line is printed for each tensor that differs by more than 2e-5 of its
largest magnitude, and for each model that heddle refuses. Of encoder-decoders the texts of `heddle
translate`, greedy or with a beam, are compared with generate()'s too, and what transformers makes of
`heddle export` with the model, bit for bit. Exits 1 if there was one.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from make_hub_fixtures import all_outputs, make_model
from make_seq2seq_fixtures import make_model as make_seq2seq_model
from make_marian_fixtures import randomise

TOLERANCE = 2e-5
ACTIVATIONS = ["gelu", "gelu_new", "relu", "silu", "gelu_pytorch_tanh"]


def llama(r, name):
    heads = r.choice([1, 2, 3, 4, 6])
    keys = r.choice([k for k in range(1, heads + 1) if heads % k == 0])
    width = r.choice([2, 4, 6, 10])
    hidden = heads * r.choice([3, 4, 8])
    rope = r.choice([
        dict(rope_type="default", rope_theta=r.choice([100.0, 10000.0, 500000.0])),
        dict(rope_type="linear", rope_theta=200.0, factor=r.choice([1.5, 4.0])),
        dict(rope_type="llama3", rope_theta=100.0, factor=8.0, low_freq_factor=1.0,
             high_freq_factor=r.choice([2.0, 4.0]), original_max_position_embeddings=r.choice([8, 24]))])
    fields = dict(vocab_size=r.randint(5, 70), hidden_size=hidden, intermediate_size=r.randint(1, 50),
                  num_hidden_layers=r.randint(1, 4), num_attention_heads=heads, head_dim=width,
                  num_key_value_heads=keys, max_position_embeddings=64, rope_parameters=rope,
                  tie_word_embeddings=r.random() < 0.5, rms_norm_eps=r.choice([1e-6, 1e-5, 1e-2]),
                  hidden_act=r.choice(ACTIVATIONS), pad_token_id=0)
    if name == "Llama":
        fields |= dict(attention_bias=r.random() < 0.5, mlp_bias=r.random() < 0.5)
    elif name.startswith("Qwen"):
        fields |= dict(use_sliding_window=r.random() < 0.5, sliding_window=r.choice([1, 2, 4, 100]),
                       max_window_layers=r.randint(0, 4))
        if name == "Qwen2":
            fields["head_dim"] = hidden // heads // 2 * 2 or 2
        else:
            fields |= dict(attention_bias=r.random() < 0.5)
    else:
        fields |= dict(sliding_window=r.choice([None, 1, 2, 4, 100]))
    if name == "Mixtral":
        experts = r.randint(1, 6)
        fields |= dict(num_local_experts=experts, num_experts_per_tok=r.randint(1, experts))
    return name + r.choice(["ForCausalLM", "Model", "ForSequenceClassification"]), fields


def gpt2(r):
    heads = r.choice([1, 2, 3, 5])
    fields = dict(vocab_size=r.randint(5, 70), n_positions=32, n_embd=heads * r.randint(1, 9),
                  n_layer=r.randint(1, 4), n_head=heads, n_inner=r.choice([None, 7, 40]),
                  activation_function=r.choice(ACTIVATIONS), tie_word_embeddings=r.random() < 0.5,
                  scale_attn_by_inverse_layer_idx=r.random() < 0.5, pad_token_id=0,
                  layer_norm_epsilon=r.choice([1e-5, 1e-2]))
    return r.choice(["GPT2LMHeadModel", "GPT2Model", "GPT2ForSequenceClassification",
                     "GPT2ForTokenClassification"]), fields


def bert(r, name):
    heads = r.choice([1, 2, 3, 5])
    fields = dict(vocab_size=r.randint(5, 70), max_position_embeddings=40,
                  hidden_size=heads * r.randint(1, 9), num_hidden_layers=r.randint(1, 4),
                  num_attention_heads=heads, intermediate_size=r.randint(1, 50),
                  type_vocab_size=r.randint(1, 3), hidden_act=r.choice(ACTIVATIONS),
                  layer_norm_eps=r.choice([1e-12, 1e-3]), tie_word_embeddings=r.random() < 0.5,
                  num_labels=r.randint(2, 5))
    if name == "Roberta":
        fields |= dict(pad_token_id=r.choice([0, 1, 3]))
    heads = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"]
    if name == "Bert":
        heads += ["ForPreTraining", "ForNextSentencePrediction"]
    return name + r.choice(heads), fields


def distilbert(r):
    heads = r.choice([1, 2, 3, 5])
    fields = dict(vocab_size=r.randint(5, 70), max_position_embeddings=40, dim=heads * r.randint(1, 9),
                  n_layers=r.randint(1, 4), n_heads=heads, hidden_dim=r.randint(1, 50),
                  activation=r.choice(ACTIVATIONS), num_labels=r.randint(2, 5),
                  tie_word_embeddings=r.random() < 0.5)
    return "DistilBert" + r.choice(["Model", "ForMaskedLM", "ForSequenceClassification",
                                    "ForTokenClassification"]), fields


def bart(r, name):
    heads = [r.choice([1, 2, 3, 4]) for _ in range(2)]
    fields = dict(vocab_size=r.randint(8, 70), d_model=12 * r.choice([1, 2, 3]), encoder_layers=r.randint(1, 3),
                  decoder_layers=r.randint(1, 3), encoder_attention_heads=heads[0],
                  decoder_attention_heads=heads[1], encoder_ffn_dim=r.randint(1, 50),
                  decoder_ffn_dim=r.randint(1, 50), activation_function=r.choice(ACTIVATIONS),
                  max_position_embeddings=40, scale_embedding=r.random() < 0.5,
                  tie_word_embeddings=r.random() < 0.7, decoder_start_token_id=2)
    return name + "ForConditionalGeneration", fields


def t5(r):
    activation = r.choice(["relu", "gated-gelu", "gated-silu", "gated-relu", "gelu_new", "silu"])
    buckets = 2 * r.randint(2, 16)
    fields = dict(vocab_size=r.randint(8, 70), d_model=r.randint(2, 30), d_kv=r.randint(1, 9),
                  d_ff=r.randint(1, 50), num_layers=r.randint(1, 3), num_decoder_layers=r.randint(1, 3),
                  num_heads=r.choice([1, 2, 3, 5]), relative_attention_num_buckets=buckets,
                  relative_attention_max_distance=buckets // 2 + r.randint(1, 40),
                  feed_forward_proj=activation, layer_norm_epsilon=r.choice([1e-6, 1e-3]),
                  tie_word_embeddings=r.random() < 0.6, decoder_start_token_id=0)
    return "T5ForConditionalGeneration", fields


SEQ2SEQ = {"bart": lambda r: bart(r, "Bart"), "mbart": lambda r: bart(r, "MBart"),
           "m2m_100": lambda r: bart(r, "M2M100"), "t5": t5}
FAMILIES = {"llama": lambda r: llama(r, "Llama"), "mistral": lambda r: llama(r, "Mistral"),
            "mixtral": lambda r: llama(r, "Mixtral"), "qwen2": lambda r: llama(r, "Qwen2"),
            "qwen3": lambda r: llama(r, "Qwen3"), "gpt2": gpt2, "bert": lambda r: bert(r, "Bert"),
            "roberta": lambda r: bert(r, "Roberta"), "distilbert": distilbert}


def make_mask(r, batch, time, is_classes, is_causal):
    """Hidden tokens at either side and inside; what a head for classes asks for stays."""
    mask = torch.ones(batch, time, dtype=torch.long)
    for b in range(1, batch):
        for t in range(time):
            mask[b, t] = r.random() < 0.7
        mask[b, r.randrange(time)] = 1
        if is_classes:
            mask[b, -1 if is_causal else 0] = 1
    return mask


def compare(heddle, family, seed, folder):
    r = random.Random(f"{family} {seed}")
    class_name, fields = FAMILIES[family](r)
    model = make_model(class_name, fields, seed)
    is_causal = family in ("llama", "mistral", "mixtral", "qwen2", "qwen3", "gpt2")
    is_classes = "Classification" in class_name or not is_causal
    generator = torch.Generator().manual_seed(seed)
    batch, time = 3, r.randint(1, 14)
    mask = make_mask(r, batch, time, is_classes, is_causal)
    pad = model.config.pad_token_id or 0
    ids = torch.randint(0, model.config.vocab_size, (batch, time), generator=generator)
    ids = torch.where((mask == 1) & (ids == pad), (ids + 1) % model.config.vocab_size, ids)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if family in ("bert", "roberta") and r.random() < 0.5:
        inputs["token_type_ids"] = torch.randint(0, fields["type_vocab_size"], ids.shape)
    if "sliding_window" not in fields and r.random() < 0.3:
        inputs["position_ids"] = torch.randint(0, 30, ids.shape, generator=generator)
        if family == "distilbert":
            inputs.pop("position_ids")
    routers = {"output_router_logits": True} if family == "mixtral" else {}
    out = model(**inputs, **routers, output_hidden_states=True, output_attentions=True)
    expected = all_outputs(model, out, mask)
    model.float().save_pretrained(folder)
    save_file(inputs, folder / "in.safetensors")
    command = [heddle, "forward", folder, "--input", folder / "in.safetensors", "--output",
               folder / "out.safetensors", "--all", "--threads", "1"]
    result = subprocess.run(command, capture_output=True, text=True)
    what = f"{family} {seed} {class_name} {json.dumps(fields)} {sorted(inputs)}"
    if result.returncode != 0 or "warning" in result.stderr:
        print(f"{what}\n  {result.stderr.strip()}")
        return result.returncode == 0
    actual = load_file(folder / "out.safetensors")
    # transformers gives no routers' logits with heads for classes.
    extra = {n for n in set(actual) - set(expected) if not n.startswith("router_logits")}
    wrong = sorted(set(expected) - set(actual) | extra)
    for name in sorted(set(actual) & set(expected)):
        x, y = actual[name].double(), expected[name].double()
        if x.shape != y.shape:
            wrong.append(f"{name} {tuple(x.shape)} against {tuple(y.shape)}")
            continue
        error = ((x - y).abs().max() / y.abs().max().clamp_min(1e-30)).item()
        if not error <= TOLERANCE:
            wrong.append(f"{name} {error:.1e}")
    if wrong:
        print(f"{what}\n  {', '.join(wrong)}")
    return not wrong


def run(heddle, *arguments, **more):
    return subprocess.run([heddle, *arguments], capture_output=True, text=True, **more)


def seq2seq_inputs(r, model, generator):
    """Sources with hidden tokens at an end, or anywhere where positions are no distances; targets."""
    c, (batch, source, target) = model.config, (3, r.randint(1, 14), r.randint(1, 12))
    ids = torch.randint(3, c.vocab_size, (batch, source), generator=generator)
    mask = torch.ones_like(ids)
    for b in range(1, batch):
        if c.model_type in ("bart", "mbart"):
            mask[b] = torch.tensor([r.random() < 0.7 for _ in range(source)])
            mask[b, r.randrange(source)] = 1
        else:
            mask[b, r.randint(1, source):] = 0
    ids = torch.where(mask == 1, ids, torch.tensor(c.pad_token_id))
    targets = torch.randint(3, c.vocab_size, (batch, target), generator=generator)
    targets[:, 0] = c.decoder_start_token_id
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": targets}


def write_tokenizer(folder, c):
    """A word for each id; the end behind a text."""
    vocab = {"w%d" % i: i for i in range(c.vocab_size)}
    words = Tokenizer(models.WordLevel(vocab, unk_token="w3"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    end = "w%d" % c.eos_token_id
    words.post_processor = processors.TemplateProcessing(single="$A " + end, special_tokens=[(end, c.eos_token_id)])
    words.save(str(folder / "tokenizer.json"))


def compare_texts(r, heddle, folder, model, generator):
    c = model.config
    beams, most = r.choice([1, 1, 2, 4]), r.randint(3, 16)
    settings = dict(num_beams=beams, max_length=most, pad_token_id=c.pad_token_id, eos_token_id=c.eos_token_id,
                    decoder_start_token_id=c.decoder_start_token_id, bad_words_ids=[[c.pad_token_id]],
                    length_penalty=r.choice([0.5, 1.0, 2.0]), early_stopping=r.choice([True, False, "never"]),
                    no_repeat_ngram_size=r.choice([0, 2]))
    if r.random() < 0.5:
        settings["forced_bos_token_id"] = r.randrange(3, c.vocab_size)
    if r.random() < 0.5:
        settings["forced_eos_token_id"] = c.eos_token_id
    model.generation_config = transformers.GenerationConfig(**settings)
    (folder / "generation_config.json").write_text(json.dumps(settings))
    write_tokenizer(folder, c)
    lines, wanted = [], []
    for _ in range(3):
        ids = torch.randint(4, c.vocab_size, (r.randint(1, 12),), generator=generator).tolist()
        lines.append(" ".join("w%d" % i for i in ids))
        # transformers 5.23 has a cache of as many layers as the encoder of a t5.
        row = model.generate(input_ids=torch.tensor([ids + [c.eos_token_id]]), use_cache=c.model_type != "t5")[0].tolist()[1:]
        end = row.index(c.eos_token_id) if c.eos_token_id in row else len(row)
        wanted.append(["w%d" % i for i in row[:end]])
    done = run(heddle, "translate", folder, "--json", "--precision", "f32", input="\n".join(lines) + "\n")
    if done.returncode != 0 or done.stderr:
        return [done.stderr.strip()]
    found = [json.loads(line)["tokens"] for line in done.stdout.splitlines()]
    return [] if found == wanted else [f"texts {found} against {wanted} with {settings}"]


def compare_export(heddle, folder, model):
    done = run(heddle, "export", folder, "--out", folder / "exported")
    if done.returncode != 0:
        return [done.stderr.strip()]
    again, info = type(model).from_pretrained(folder / "exported", output_loading_info=True)
    unused = "model.shared.weight" if not model.config.tie_word_embeddings else ""  # where none is tied
    wrong = [f"export {k}" for k in ("missing_keys", "unexpected_keys", "mismatched_keys") if set(info[k]) - {unused}]
    theirs, ours = model.state_dict(), again.state_dict()
    return wrong + [f"export {n}" for n in theirs if n != unused and not torch.equal(theirs[n].float(), ours[n])]


def compare_seq2seq(heddle, family, seed, folder):
    r = random.Random(f"{family} {seed}")
    class_name, fields = SEQ2SEQ[family](r)
    generator = torch.Generator().manual_seed(seed)
    model = make_seq2seq_model(class_name, fields)
    randomise(model, generator, 1.3)
    inputs = seq2seq_inputs(r, model, generator)
    out = model(**inputs, output_hidden_states=True, output_attentions=True, use_cache=False)
    mask, expected = inputs["attention_mask"], {"logits": out.logits}
    expected["encoder_last_hidden_state"] = out.encoder_last_hidden_state * mask[:, :, None]
    for i, x in enumerate(out.encoder_hidden_states):
        expected[f"encoder_hidden_states.{i}"] = x * mask[:, :, None]
    for i, x in enumerate(out.encoder_attentions):
        expected[f"encoder_attentions.{i}"] = x * mask[:, None, :, None]
    for name in ("decoder_hidden_states", "decoder_attentions", "cross_attentions"):
        expected |= {f"{name}.{i}": x for i, x in enumerate(getattr(out, name))}
    model.float().save_pretrained(folder)
    save_file(inputs, folder / "in.safetensors")
    what = f"{family} {seed} {class_name} {json.dumps(fields)}"
    done = run(heddle, "forward", folder, "--input", folder / "in.safetensors", "--output", folder / "out.safetensors",
               "--all", "--threads", "1")
    if done.returncode != 0 or "warning" in done.stderr:
        print(f"{what}\n  {done.stderr.strip()}")
        return False
    actual = load_file(folder / "out.safetensors")
    wrong = sorted(set(expected) ^ set(actual))
    for name in sorted(set(actual) & set(expected)):
        x, y = actual[name].double(), expected[name].detach().double()
        error = ((x - y).abs().max() / y.abs().max().clamp_min(1e-30)).item() if x.shape == y.shape else 9
        if not error <= TOLERANCE:
            wrong.append(f"{name} {error:.1e}")
    wrong += compare_texts(r, heddle, folder, model, generator) + compare_export(heddle, folder, model)
    if wrong:
        print(f"{what}\n  {', '.join(wrong)}")
    return not wrong


def main():
    heddle, seeds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    families = sys.argv[3:] or list(FAMILIES | SEQ2SEQ)
    good = total = 0
    for family in families:
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                compare_one = compare_seq2seq if family in SEQ2SEQ else compare
                good += compare_one(heddle, family, seed, pathlib.Path(folder))
            total += 1
    print(f"{good} of {total} models agree")
    sys.exit(good < total)


if __name__ == "__main__":
    main()
