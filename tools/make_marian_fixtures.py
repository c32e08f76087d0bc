#!/usr/bin/env python3
"""Writes tests/fixtures/marian: small random translators and what transformers makes of them.

Usage: python tools/make_marian_fixtures.py    (needs torch, transformers, sentencepiece,
                          safetensors; made with torch 2.15, transformers 5.23, sentencepiece 0.2)

NAME.safetensors: as in make_fixtures.py, but of transformers' MarianMTModel in float64; config.json
as it saves it is in the metadata. Marian's decoder begins with the padding token, whose row
nn.Embedding leaves without a gradient; heddle trains it, so padding_idx is taken away here.
opus/, separate/: whole folders as Hugging Face keeps them, with cases.json: settings for
generation_config.json, and of each sentence its ids, and the ids, score and text of translations.
"""
import json
import math
import pathlib
import shutil
import tempfile

import sentencepiece
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "marian"
SMOOTHING = 0.1
SENTENCES = [(6, 4), (1, 3), (4, 7)]  # tokens of source and target, without the marks

CONFIG = dict(vocab_size=29, d_model=16, encoder_layers=2, decoder_layers=2,
              encoder_attention_heads=4, decoder_attention_heads=2, encoder_ffn_dim=24,
              decoder_ffn_dim=20, activation_function="swish", dropout=0.0, attention_dropout=0.0,
              activation_dropout=0.0, scale_embedding=True, max_position_embeddings=12,
              pad_token_id=28, decoder_start_token_id=28, eos_token_id=0, bos_token_id=0)
CASES = {
    "swish": {},
    "separate": dict(share_encoder_decoder_embeddings=False, decoder_vocab_size=23,
                     activation_function="gelu", scale_embedding=False, encoder_layers=1,
                     pad_token_id=22, decoder_start_token_id=22),
    "untied": dict(share_encoder_decoder_embeddings=False, tie_word_embeddings=False,
                   activation_function="relu", decoder_layers=1, eos_token_id=3),
    "untied_but_shared": dict(tie_word_embeddings=False, activation_function="gelu_new",
                              encoder_layers=1, decoder_layers=1),
}


def logits_bias(model):
    """The bias on the logits, which is no parameter, if there is one."""
    return [("final_logits_bias", model.final_logits_bias)] if hasattr(model, "final_logits_bias") else []


def randomise(model, generator, scale=1.0):
    """Weights that make attention uneven and no bias or gain trivial; exact in bf16."""
    for name, p in list(model.named_parameters()) + logits_bias(model):
        if "embed_positions" in name and not p.requires_grad:
            continue
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if "norm" in name:
            x = 0.2 * x + (1.0 if name.endswith("weight") else 0.0)
        elif "embed" in name or "shared" in name:
            x = x * (p.shape[1] ** -0.5 if getattr(model.config, "scale_embedding", False) else 1.0)
        elif p.dim() == 2 and p.shape[0] > 1:
            gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
            x = x * gain * scale * math.sqrt(2 / (p.shape[0] + p.shape[1]))
        else:
            x = 0.3 * x
        p.data.copy_(x.to(torch.bfloat16))


def position_table(model):
    """The table in float64; theirs is rounded to f32."""
    d = model.config.d_model
    angle = (torch.arange(model.config.max_position_embeddings, dtype=torch.float64)[:, None]
             * 10000.0 ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d))
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    for stack in (model.model.encoder, model.model.decoder):
        assert (stack.embed_positions.weight - table).abs().max() < 1e-6
        stack.embed_positions.weight.data.copy_(table)


def random_batch(c, generator):
    """Ragged sentences, padded: source ends in EOS, the decoder reads START + tokens."""
    columns = {name: [] for name in ("input_ids", "attention_mask", "decoder_input_ids", "labels")}
    tokens_known = min(c.vocab_size, getattr(c, "decoder_vocab_size", c.vocab_size)) - 1
    longest = [max(pair[side] for pair in SENTENCES) + 1 for side in (0, 1)]
    for source, target in SENTENCES:
        tokens = torch.randint(4, tokens_known, (source + target,), generator=generator).tolist()
        x, y = tokens[:source] + [c.eos_token_id], tokens[source:]
        pad_x, pad_y = longest[0] - len(x), longest[1] - len(y) - 1
        columns["input_ids"].append(x + [c.pad_token_id] * pad_x)
        columns["attention_mask"].append([1] * len(x) + [0] * pad_x)
        columns["decoder_input_ids"].append(
            [c.decoder_start_token_id] + y + [c.pad_token_id] * pad_y)
        columns["labels"].append(y + [c.eos_token_id] + [-100] * pad_y)
    return {name: torch.tensor(rows) for name, rows in columns.items()}


def saved_tensors(model):
    """The tensors that save_pretrained() writes, and config.json."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        path = pathlib.Path(folder)
        return load_file(path / "model.safetensors"), json.loads((path / "config.json").read_text())


def parity_case(name, changes, seed):
    generator = torch.Generator().manual_seed(seed)
    config = MarianConfig(**(CONFIG | changes), attn_implementation="eager")
    model = MarianMTModel(config).double().eval()
    position_table(model)
    save_parity(model, FOLDER / f"{name}.safetensors", generator)


def save_parity(model, path, generator):
    """Random weights and a batch, and what the model makes of them."""
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    randomise(model, generator)
    weights, config_json = saved_tensors(model)
    batch = random_batch(model.config, generator)
    for _, bias in logits_bias(model):
        bias.requires_grad_()
    out = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"],
                decoder_input_ids=batch["decoder_input_ids"], output_hidden_states=True,
                output_attentions=True, use_cache=False)
    loss = F.cross_entropy(out.logits.flatten(0, 1), batch["labels"].flatten(),
                           label_smoothing=SMOOTHING, ignore_index=-100)
    loss.backward()
    source, target = batch["attention_mask"], batch["labels"] != -100
    tensors = dict(weights) | {"encoder_last_hidden_state":
                               (out.encoder_last_hidden_state * source[:, :, None]).clone(),
                               "logits": out.logits * target[:, :, None],
                               "loss": loss.reshape(1)}
    for kind, mask in (("encoder", source), ("decoder", target)):
        for i, x in enumerate(getattr(out, kind + "_hidden_states")):
            tensors[f"{kind}_hidden_states.{i}"] = x * mask[:, :, None]
    for kind, mask in (("encoder", source), ("decoder", target), ("cross", target)):
        for i, x in enumerate(getattr(out, kind + "_attentions")):
            tensors[f"{kind}_attentions.{i}"] = x * mask[:, None, :, None]
    for parameter, p in list(model.named_parameters()) + logits_bias(model):
        # What is in the file alone: tied tensors once, unused ones not.
        if parameter in weights and p.grad is not None:
            tensors["grad." + parameter] = p.grad
    tensors = {k: x.detach().to(torch.float32).contiguous() for k, x in tensors.items()}
    tensors = {k: x for k, x in tensors.items()
               if k != "model.shared.weight" or "grad." + k in tensors}
    save_file(tensors | batch, path, {"config": json.dumps(config_json)})


TEXT = {
    "en": ["the boy reads a book in the garden", "a girl sees the old house", "the dogs run fast",
           "we drink water and tea in the morning", "the man writes a long letter to his mother",
           "a cat sleeps under the table", "the women buy bread", "my father has a new car"],
    "de": ["der Junge liest ein Buch im Garten", "ein Mädchen sieht das alte Haus",
           "die Hunde laufen schnell", "wir trinken am Morgen Wasser und Tee",
           "der Mann schreibt seiner Mutter einen langen Brief", "eine Katze schläft unter dem Tisch",
           "die Frauen kaufen Brot", "mein Vater hat ein neues Auto"],
}
LINES = [">>de<< the boy reads a book", ">>de<< a girl drinks tea in the garden",
         "the old cat", ">>fr<<the man  sees my house", ">>xx<< we run ☂ fast",
         "the</s>dogs <unk> sleep <pad>", "a"]
START = 7  # in place of the padding: a token that comes often
SETTINGS = [
    dict(num_beams=1, max_length=14, forced_eos_token_id=0),
    dict(num_beams=2, max_length=14, forced_eos_token_id=0),
    dict(num_beams=3, max_length=12, forced_eos_token_id=0, length_penalty=0.6),
    dict(num_beams=4, max_length=16, forced_eos_token_id=0, early_stopping=True),
    dict(num_beams=5, max_length=20, early_stopping="never", length_penalty=2.0),
    dict(num_beams=5, max_length=9, forced_eos_token_id=None, length_penalty=0.0),
    dict(num_beams=4, max_length=18, forced_eos_token_id=0, no_repeat_ngram_size=2,
         repetition_penalty=1.3),
    dict(num_beams=1, max_length=18, forced_eos_token_id=0, no_repeat_ngram_size=3,
         repetition_penalty=1.5, min_length=6),
    dict(num_beams=3, max_new_tokens=10, forced_eos_token_id=0, min_new_tokens=4,
         bad_words_ids="more"),
    dict(num_beams=4, max_length=16, forced_eos_token_id=0, renormalize_logits=True),  # OPUS-MT's
    dict(num_beams=3, max_length=14, forced_eos_token_id=0, renormalize_logits=True,
         no_repeat_ngram_size=2, repetition_penalty=1.3, bad_words_ids="more"),
    dict(num_beams=3, max_length=14, forced_eos_token_id=0, repetition_penalty=1.8,
         decoder_start_token_id=START),  # rules count the first token of the decoder too
    dict(num_beams=3, max_length=14, forced_eos_token_id=0, no_repeat_ngram_size=1,
         decoder_start_token_id=START),
    dict(num_beams=2, max_length=14, forced_eos_token_id=0, min_length=12, min_new_tokens=2),
]


def train_spm(lines, path, size, **options):
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text"
        text.write_text("\n".join(lines))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(pathlib.Path(folder) / "m"), vocab_size=size,
            model_type="unigram", normalization_rule_name="identity", hard_vocab_limit=False,
            bos_id=-1, minloglevel=2, **options)
        shutil.copy(pathlib.Path(folder) / "m.model", path)
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def folder_case(name, is_separate, seed):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sides = [train_spm(TEXT["en"], folder / "source.spm", 60),
             train_spm(TEXT["de"], folder / "target.spm", 55)]

    def vocabulary(pieces):  # Marian's order: end, unknown, pieces, languages, padding
        tokens = [p for p in dict.fromkeys(pieces) if p not in ("<unk>", "<s>", "</s>")]
        languages = [] if is_separate else [">>de<<", ">>fr<<"]
        return {p: i for i, p in enumerate(["</s>", "<unk>"] + tokens + languages + ["<pad>"])}

    options = {"source_lang": "en", "target_lang": "de", "separate_vocabs": is_separate}
    if is_separate:
        vocabs = [vocabulary(sides[0]), vocabulary(sides[1])]
        (folder / "target_vocab.json").write_text(json.dumps(vocabs[1], ensure_ascii=False))
    else:
        vocabs = [vocabulary(sides[0] + sides[1])] * 2
    (folder / "vocab.json").write_text(json.dumps(vocabs[0], ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    pad = vocabs[1]["<pad>"]
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = MarianMTModel(MarianConfig(**(CONFIG | dict(
        vocab_size=len(vocabs[0]), decoder_vocab_size=len(vocabs[1]),
        share_encoder_decoder_embeddings=not is_separate, pad_token_id=pad,
        decoder_start_token_id=pad, max_position_embeddings=40)))).eval()
    randomise(model, generator, 1.4)
    model.final_logits_bias[0, 0] = 1.0  # so that some sentences end early
    model.save_pretrained(folder)
    if not is_separate:  # the older file
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "generation_config.json").unlink()
    tokenizer = MarianTokenizer.from_pretrained(folder)
    cases = [generate_case(model, tokenizer, settings, pad) for settings in SETTINGS]
    (folder / "cases.json").write_text(json.dumps(cases, ensure_ascii=False))


def generate_case(model, tokenizer, settings, pad):
    bad = [[pad], [4, 5], [7]] if settings.get("bad_words_ids") == "more" else [[pad]]
    settings = dict(decoder_start_token_id=pad) | settings | dict(
        bad_words_ids=bad, pad_token_id=pad, eos_token_id=0, bos_token_id=0)
    model.generation_config = GenerationConfig(**settings)
    results = []
    for line in LINES:
        ids = tokenizer(line)["input_ids"]
        count = settings["num_beams"]
        out = model.generate(input_ids=torch.tensor([ids]), num_return_sequences=count,
                             return_dict_in_generate=True, output_scores=True)
        scores = out.sequences_scores.tolist() if count > 1 else [None]
        translations = []
        for row, score in zip(out.sequences.tolist(), scores):
            tokens = row[1:] + [0]
            tokens = tokens[:tokens.index(0)]
            translations.append({"ids": tokens, "score": score,
                                 "text": tokenizer.decode(row[1:], skip_special_tokens=True)})
        results.append({"line": line, "ids": ids, "translations": translations})
    return {"settings": settings, "results": results}


def main(only_parity=False):
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed, (name, changes) in enumerate(CASES.items(), 31):
        parity_case(name, changes, seed)
    if only_parity:
        return
    folder_case("opus", False, 41)
    folder_case("separate", True, 42)


if __name__ == "__main__":
    main()
