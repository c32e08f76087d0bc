#!/usr/bin/env python3
"""Writes tests/fixtures/{gpt2,bert,hub}: small random models and what transformers makes of them in float64.

Usage: python tools/make_hub_fixtures.py    (needs torch, transformers, safetensors; made with
                                             torch 2.15 and transformers 5.23)

A fixture NAME.safetensors holds, under Hugging Face's names and shapes [batch, time, ..]:
  the weights; input_ids, attention_mask, of BERT token_type_ids;
  hidden_states.I (0: the embeddings), attentions.I [batch, heads, queries, keys];
  of GPT-2 logits, loss [1] (of the next tokens), and grad.PARAMETER for every weight;
  of BERT last_hidden_state and pooler_output;
  in hub/, whose config.json names a class in `architectures`, the outputs of that class (logits,
  prediction_logits, ..), router_logits.I, and for llama and bert label_ids, loss and gradients;
  hub/balance_loss: router_logits.I of the visible tokens of two layers, the loss that balances their
  2 of 5 experts, and grad.router_logits.I.
Padding (on the right, on the left and in the middle) is zero. config.json is in the metadata.
Weights are exact in bf16, ids are i64, the rest was computed in f64 and stored in f32.
"""
import json
import math
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
# Which tokens of each sentence there are; positions count the others too.
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
        if ".ln_" in name or "norm" in name.lower():
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
    # A token counts if the token before it is there: not the first after padding.
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


LLAMA = dict(vocab_size=31, hidden_size=16, intermediate_size=28, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32)
ROBERTA = {k: v for k, v in BERT.items()} | dict(max_position_embeddings=16, pad_token_id=1)
DISTILBERT = dict(vocab_size=37, max_position_embeddings=12, dim=24, n_layers=2, n_heads=3,
                  hidden_dim=40, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)
LLAMA3 = dict(rope_type="llama3", rope_theta=50.0, factor=4.0, low_freq_factor=1.0,
              high_freq_factor=3.0, original_max_position_embeddings=16)
# name: class, config, whether there are gradients
HUB_CASES = {
    "llama_grouped": ("LlamaForCausalLM", LLAMA | dict(attention_bias=True, rope_parameters=LLAMA3),
                      True),
    "llama_tied": ("LlamaForCausalLM",
                   LLAMA | dict(hidden_size=18, num_attention_heads=3, num_key_value_heads=1, head_dim=8,
                                mlp_bias=True, tie_word_embeddings=True, hidden_act="gelu",
                                rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=2.0)),
                   True),
    "llama_classes": ("LlamaForSequenceClassification", LLAMA | dict(pad_token_id=0, num_labels=3),
                      False),
    "mistral_window": ("MistralForCausalLM", LLAMA | dict(sliding_window=3), True),
    "mixtral": ("MixtralForCausalLM", LLAMA | dict(num_local_experts=5, num_experts_per_tok=2), False),
    "mixtral_window": ("MixtralForCausalLM",
                       LLAMA | dict(num_local_experts=3, num_experts_per_tok=1, sliding_window=4,
                                    tie_word_embeddings=True), False),
    "gpt2_classes": ("GPT2ForSequenceClassification", GPT2 | dict(pad_token_id=0, num_labels=4), False),
    "bert_words": ("BertForMaskedLM", BERT | dict(hidden_act="gelu_new"), True),
    "bert_words_untied": ("BertForMaskedLM", BERT | dict(tie_word_embeddings=False), False),
    "bert_pretraining": ("BertForPreTraining", BERT, True),
    "bert_classes": ("BertForSequenceClassification", BERT | dict(num_labels=3), True),
    "bert_tags": ("BertForTokenClassification", BERT | dict(num_labels=5), True),
    "roberta_words": ("RobertaForMaskedLM", ROBERTA, False),
    "roberta": ("RobertaModel", ROBERTA | dict(type_vocab_size=1), False),
    "roberta_classes": ("RobertaForSequenceClassification", ROBERTA | dict(num_labels=3), False),
    "distilbert_words": ("DistilBertForMaskedLM", DISTILBERT | dict(activation="relu"), False),
    "distilbert": ("DistilBertModel", DISTILBERT, False),
    "distilbert_classes": ("DistilBertForSequenceClassification", DISTILBERT, False),
    "bert_next": ("BertForNextSentencePrediction", BERT, False),
    "qwen2_window": ("Qwen2ForCausalLM",
                     LLAMA | dict(num_hidden_layers=3, use_sliding_window=True, sliding_window=3,
                                  max_window_layers=1, tie_word_embeddings=True), True),
    "qwen3": ("Qwen3ForCausalLM", LLAMA | dict(head_dim=6), True),
    "qwen3_window": ("Qwen3ForCausalLM",
                     LLAMA | dict(head_dim=8, attention_bias=True, use_sliding_window=True, sliding_window=4,
                                  max_window_layers=1, tie_word_embeddings=True), False),
    "roberta_words_untied": ("RobertaForMaskedLM", ROBERTA | dict(tie_word_embeddings=False), False),
    "distilbert_words_untied": ("DistilBertForMaskedLM", DISTILBERT | dict(tie_word_embeddings=False), False),
}


# The LLaMA family takes its softmax in f32 whatever the model computes in, where the lowest f64 of
# the mask is -inf and a token that sees nothing is NaN.
plain_softmax = torch.nn.functional.softmax
torch.nn.functional.softmax = lambda x, dim=-1, dtype=None: plain_softmax(x, dim=dim)


def make_model(class_name, fields, seed):
    """A model in float64 with random weights."""
    cls = getattr(transformers, class_name)
    config = cls.config_class(**fields)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    model = cls(config).double().eval()
    randomise(model, torch.Generator().manual_seed(seed))
    return model


def all_outputs(model, out, mask):
    """Every output under its name, as `heddle forward --all` gives them; zero where hidden."""
    tensors = outputs(out, mask)
    rows = ["logits", "prediction_logits", "last_hidden_state"]
    for name in rows + ["pooler_output", "seq_relationship_logits"]:
        x = getattr(out, name, None)
        if x is not None:
            tensors[name] = x * mask[:, :, None] if name in rows and x.dim() == 3 else x
    for i, x in enumerate(getattr(out, "router_logits", None) or []):
        tensors[f"router_logits.{i}"] = x.reshape(-1, x.shape[-1]) * mask.reshape(-1, 1)
    return {k: x.detach().clone() for k, x in tensors.items()}


def as_saved(model):
    """The weights and the config that save_pretrained() writes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        return load_file(pathlib.Path(folder) / "model.safetensors"), config


def hub_labels(class_name, model, ids, mask, generator):
    """What a batch is to predict, as keyword arguments of the class."""
    tokens = ids.masked_fill((mask == 0) | (torch.rand(ids.shape, generator=generator) < 0.5), -100)
    if class_name.endswith("ForCausalLM"):  # the next visible token, if it stands next
        return {"labels": ids.masked_fill((mask == 0) | (mask.roll(1, 1) == 0), -100)}
    if class_name.endswith("ForMaskedLM"):
        return {"labels": tokens}
    batch = ids.shape[0]
    if class_name.endswith("ForPreTraining"):
        return {"labels": tokens, "next_sentence_label": torch.arange(batch) % 2}
    if class_name.endswith("ForTokenClassification"):
        return {"labels": (ids % model.config.num_labels).masked_fill(mask == 0, -100)}
    return {"labels": torch.arange(batch) % model.config.num_labels}


def hub(name, class_name, fields, has_gradients, seed):
    model = make_model(class_name, fields, seed)
    generator = torch.Generator().manual_seed(1000 + seed)
    is_causal = name.startswith(("llama", "mistral", "mixtral", "qwen", "gpt2"))
    mask = MASK if is_causal and has_gradients else MASK_WITH_HOLE
    if "classes" in name and is_causal:  # a hidden token at the end would be asked for
        mask = MASK
    if name == "bert_next":  # the token that stands for the sequence is hidden
        mask = mask.clone()
        mask[1:, 0] = 0
    ids = torch.randint(2, model.config.vocab_size, mask.shape, generator=generator)
    ids = torch.where(mask == 1, ids, torch.tensor(model.config.pad_token_id or 0))
    inputs = {"input_ids": ids, "attention_mask": mask}
    if name.startswith("bert"):
        inputs["token_type_ids"] = torch.randint(0, 2, mask.shape, generator=generator)
    extra = {"output_router_logits": True} if "mixtral" in name else {}
    labels = hub_labels(class_name, model, ids, mask, generator) if has_gradients else {}
    out = model(**inputs, **labels, **extra, output_hidden_states=True, output_attentions=True)
    tensors = all_outputs(model, out, mask)
    if has_gradients:
        out.loss.backward()
        tensors["loss"] = out.loss.detach().reshape(1)
        tensors |= {"grad." + n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        inputs |= {k.replace("labels", "label") + "_ids": v for k, v in labels.items()}
    weights, config = as_saved(model)
    if not getattr(model.config, "tie_word_embeddings", True):
        for unused in ("cls.predictions.bias", "lm_head.bias"):  # transformers has it
            weights.pop(unused, None)
    tensors = {k: x.to(torch.float32).contiguous() for k, x in (weights | tensors).items()}
    (FOLDER / "hub").mkdir(parents=True, exist_ok=True)
    path = FOLDER / "hub" / f"{name}.safetensors"
    save_file(tensors | inputs, path, {"config": json.dumps(config)})
    path.chmod(0o644)


def balance_loss(seed):
    generator = torch.Generator().manual_seed(seed)
    mask = MASK_WITH_HOLE
    logits = [torch.randn(mask.numel(), 5, generator=generator).requires_grad_() for _ in range(2)]
    loss = load_balancing_loss_func(tuple(logits), 5, 2, mask)
    loss.backward()
    there = mask.reshape(-1) == 1
    tensors = {"loss": loss.detach().reshape(1)}
    for i, x in enumerate(logits):
        assert not x.grad[~there].any()
        tensors[f"router_logits.{i}"] = x.detach()[there]
        tensors[f"grad.router_logits.{i}"] = x.grad[there]
    path = FOLDER / "hub" / "balance_loss.safetensors"
    save_file({k: x.contiguous() for k, x in tensors.items()}, path)
    path.chmod(0o644)


def main():
    balance_loss(71)
    for seed, (name, changes) in enumerate(GPT2_CASES.items(), 1):
        gpt2(name, changes, seed)
    for seed, (name, changes) in enumerate(BERT_CASES.items(), 11):
        bert(name, changes, seed)
    for seed, (name, (class_name, fields, has_gradients)) in enumerate(HUB_CASES.items(), 31):
        hub(name, class_name, fields, has_gradients, seed)


if __name__ == "__main__":
    main()
