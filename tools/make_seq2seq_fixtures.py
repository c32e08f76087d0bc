#!/usr/bin/env python3
"""Writes tests/fixtures/seq2seq: small random encoder-decoders and what transformers makes of them.

Usage: python tools/make_seq2seq_fixtures.py [--likelihoods]    (needs torch, transformers, tokenizers, sentencepiece,
                          protobuf, safetensors; made with torch 2.15, transformers 5.23, sentencepiece 0.2)

NAME.safetensors: as in make_marian_fixtures.py, of the class that CASES names, in float64.
NAME/: whole folders as Hugging Face keeps them, with cases.json: settings for generation_config.json,
languages, and of each line its ids, and the ids, score and text of what generate() makes of it.
likelihoods.json (all that --likelihoods writes): how likely these models find targets behind the tokens
that generate() begins with.
"""
import json
import pathlib
import shutil
import sys

import sentencepiece
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer
from transformers import BartTokenizer, GenerationConfig, M2M100Tokenizer, MBartTokenizer, T5Tokenizer

from make_marian_fixtures import TEXT, randomise, save_parity, train_spm

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "seq2seq"
BART = dict(vocab_size=29, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=20, dropout=0.0,
            attention_dropout=0.0, activation_dropout=0.0, max_position_embeddings=12)
T5 = dict(vocab_size=29, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=3, dropout_rate=0.0,
          relative_attention_num_buckets=6, relative_attention_max_distance=5,
          decoder_start_token_id=0)
# name: class, config
CASES = {
    "bart": ("BartForConditionalGeneration", BART),
    "bart_untied": ("BartForConditionalGeneration",
                    BART | dict(tie_word_embeddings=False, scale_embedding=True, encoder_layers=1,
                                decoder_layers=1, activation_function="relu")),
    "mbart": ("MBartForConditionalGeneration",
              BART | dict(scale_embedding=True, activation_function="relu", decoder_start_token_id=2)),
    "m2m_100": ("M2M100ForConditionalGeneration", BART | dict(d_model=12, encoder_layers=1)),
    "t5": ("T5ForConditionalGeneration", T5),
    "t5_gated": ("T5ForConditionalGeneration",
                 T5 | dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False, d_kv=6,
                           relative_attention_num_buckets=8, relative_attention_max_distance=6)),
    "t5_silu": ("T5ForConditionalGeneration",
                T5 | dict(feed_forward_proj="gated-silu", num_heads=1, d_kv=8, num_layers=1,
                          num_decoder_layers=2)),
}


def make_model(class_name, fields):
    """A model in float64, whose sines transformers rounds to f32."""
    cls = getattr(transformers, class_name)
    config = cls.config_class(**fields)
    config._attn_implementation = "eager"
    model = cls(config).double().eval()
    if class_name.startswith("T5") and fields.get("tie_word_embeddings") is False:
        # As in checkpoints of version 1.1, which hold both.
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    for module in model.modules():
        if class_name.startswith("M2M100") and hasattr(module, "make_weights"):
            module.weights = sines(module.weights.shape, module.padding_idx, module.weights)
    return model


def sines(shape, padding, rounded):
    half = shape[1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / (half - 1))
    angle = torch.arange(shape[0], dtype=torch.float64)[:, None] * frequencies
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    table[padding] = 0
    assert (table - rounded).abs().max() < 1e-5
    return table


# --- folders -------------------------------------------------------------------------------------

LINES = ["the boy reads a book", " a girl  drinks tea in the garden", "we run \u2602 fast<mask>!", "a",
         "</s>the dogs<s> sleep <pad>"]
SETTINGS = [
    dict(num_beams=1, max_length=14),
    dict(num_beams=3, max_length=12, length_penalty=0.6, early_stopping=True),
    dict(num_beams=4, max_length=18, no_repeat_ngram_size=2, early_stopping="never"),
    dict(num_beams=1, max_length=16, no_repeat_ngram_size=3, min_length=6, repetition_penalty=1.4),
]


def bart_tokenizer(folder):
    """vocab.json and merges.txt, as BART's first checkpoints have them."""
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(TEXT["en"] + TEXT["de"], vocab_size=300, show_progress=False,
                                special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    trained.save_model(str(folder))
    return BartTokenizer.from_pretrained(folder)


def m2m_tokenizer(folder):
    pieces = train_spm(TEXT["en"] + TEXT["de"], folder / "sentencepiece.bpe.model", 80)
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + [p for p in pieces if p not in ("<unk>", "</s>")]
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(tokens)}))
    names = transformers.models.m2m_100.tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
    (folder / "special_tokens_map.json").write_text(
        json.dumps({"additional_special_tokens": [f"__{name}__" for name in names]}))
    return M2M100Tokenizer.from_pretrained(folder)


def mbart_tokenizer(folder):
    model = folder / "m.model"
    train_spm(TEXT["en"] + TEXT["de"], model, 80)
    spm = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = [(spm.id_to_piece(i), spm.get_score(i)) for i in range(spm.get_piece_size())]
    model.unlink()
    vocab = [(t, 0.0) for t in ("<s>", "<pad>", "</s>", "<unk>")]
    vocab += [p for p in pieces if p[0] not in ("<unk>", "</s>")] + [("<mask>", 0.0)]
    MBartTokenizer(vocab=vocab).save_pretrained(folder)
    return MBartTokenizer.from_pretrained(folder)


def t5_tokenizer(folder):
    train_spm(TEXT["en"] + TEXT["de"], folder / "spiece.model", 80, pad_id=0, eos_id=1, unk_id=2)
    return T5Tokenizer.from_pretrained(folder)


def generate_case(model, tokenizer, settings, lines, languages):
    """`languages`: of source and target, or nothing."""
    c = model.config
    settings = settings | dict(pad_token_id=c.pad_token_id, eos_token_id=c.eos_token_id,
                               decoder_start_token_id=c.decoder_start_token_id)
    forced = {}
    if languages:
        tokenizer.src_lang = languages[0]
        token = f"__{languages[1]}__" if c.model_type == "m2m_100" else languages[1]
        forced = {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(token)}
    model.generation_config = GenerationConfig(**settings | forced)
    results = []
    for line in lines:
        ids = tokenizer(line)["input_ids"]
        count = settings["num_beams"]
        out = model.generate(input_ids=torch.tensor([ids]), num_return_sequences=count,
                             return_dict_in_generate=True, output_scores=True)
        scores = out.sequences_scores.tolist() if count > 1 else [None]
        translations = []
        for row, score in zip(out.sequences.tolist(), scores):
            tokens = row[1:row.index(c.eos_token_id, 1)] if c.eos_token_id in row[1:] else row[1:]
            translations.append({"ids": tokens, "score": score,
                                 "text": tokenizer.decode(row, skip_special_tokens=True)})
        results.append({"line": line, "ids": ids, "translations": translations})
    return {"settings": settings, "languages": languages, "results": results}


def folder_case(name, class_name, make_tokenizer, fields, cases, seed):
    """cases: arguments of generate_case."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer = make_tokenizer(folder)
    size = max(tokenizer.get_vocab().values()) + 1 + (8 if class_name.startswith("M2M") else 0)
    torch.manual_seed(seed)
    model = make_model(class_name, fields | dict(vocab_size=size)).float()
    randomise(model, torch.Generator().manual_seed(seed), 1.4)
    if hasattr(model, "final_logits_bias"):  # so that some end early
        model.final_logits_bias[0, model.config.eos_token_id] = 1.5
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    made = [generate_case(model, tokenizer, *case) for case in cases]
    (folder / "cases.json").write_text(json.dumps(made, ensure_ascii=False))
    for path in folder.iterdir():
        path.chmod(0o644)


def folders():
    plain = LINES[:2] + ["we run fast!", "a"]
    ends = [s | dict(forced_eos_token_id=2) for s in SETTINGS]
    bart = BART | dict(max_position_embeddings=40, encoder_layers=1)
    begins = [s | dict(forced_bos_token_id=0) for s in ends]
    folder_case("bart", "BartForConditionalGeneration", bart_tokenizer, bart,
                [(s, LINES, None) for s in SETTINGS[:2] + begins], 61)
    folder_case("m2m_100", "M2M100ForConditionalGeneration", m2m_tokenizer, bart | dict(d_model=12),
                [(s, plain, pair) for s, pair in zip(SETTINGS, [("en", "fr")] * 2 + [("de", "zu")] * 2)], 62)
    folder_case("mbart", "MBartForConditionalGeneration", mbart_tokenizer, bart | dict(decoder_start_token_id=2),
                [(s, plain, pair) for s, pair in zip(ends, [("en_XX", "de_DE")] * 2 + [("fr_XX", "ar_AR")] * 2)], 63)
    folder_case("t5", "T5ForConditionalGeneration", t5_tokenizer,
                T5 | dict(relative_attention_num_buckets=8, relative_attention_max_distance=12),
                [(s, plain + ["translate: the <extra_id_0> book"], None) for s in SETTINGS], 64)


def likelihood(name, class_name, languages):
    """Negative log-likelihood of targets, their ends included, in nats."""
    folder, tokenizers = FOLDER / name, {"bart": BartTokenizer, "m2m_100": M2M100Tokenizer}
    tokenizer = tokenizers.get(name, MBartTokenizer).from_pretrained(folder)
    model = getattr(transformers, class_name).from_pretrained(folder).double().eval()
    begin = [model.config.decoder_start_token_id, 0]
    if languages:
        tokenizer.src_lang = languages[0]
        mark = f"__{languages[1]}__" if name == "m2m_100" else languages[1]
        begin[1] = tokenizer.convert_tokens_to_ids(mark)
    sources, targets, nll, tokens = LINES[:1] + ["we run fast!"], ["a book", LINES[1]], 0.0, 0
    for source, target in zip(sources, targets):
        out = tokenizer(target, add_special_tokens=False)["input_ids"] + [model.config.eos_token_id]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([tokenizer(source)["input_ids"]]),
                           decoder_input_ids=torch.tensor([begin + out[:-1]])).logits
        log_p = logits[0, len(begin) - 1:].log_softmax(-1)
        nll -= log_p[range(len(out)), out].sum().item()
        tokens += len(out)
    return {"model": name, "languages": languages, "sources": sources, "targets": targets, "nll": nll,
            "tokens": tokens}


def likelihoods():
    made = [likelihood("bart", "BartForConditionalGeneration", None)]
    for pair in (("en", "de"), ("fr", "de"), ("fr", "zu")):
        made.append(likelihood("m2m_100", "M2M100ForConditionalGeneration", pair))
    for pair in (("en_XX", "de_DE"), ("fr_XX", "de_DE"), ("fr_XX", "ar_AR")):
        made.append(likelihood("mbart", "MBartForConditionalGeneration", pair))
    (FOLDER / "likelihoods.json").write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n")


def main():
    torch.set_num_threads(1)
    if sys.argv[1:] == ["--likelihoods"]:
        return likelihoods()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed, (name, (class_name, fields)) in enumerate(CASES.items(), 51):
        save_parity(make_model(class_name, fields), FOLDER / f"{name}.safetensors",
                    torch.Generator().manual_seed(seed))
    for path in FOLDER.glob("*.safetensors"):
        path.chmod(0o644)
    folders()
    likelihoods()


if __name__ == "__main__":
    main()
