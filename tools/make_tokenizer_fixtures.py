#!/usr/bin/env python3
"""Writes tests/fixtures/tokenizers: small tokenizers and what Hugging Face makes of hard texts.

Usage: python tools/make_tokenizer_fixtures.py    (needs tokenizers, transformers, sentencepiece;
                                                   made with 0.23.3, 5.23 and 0.2.3)

  whole/NAME.json      {"tokenizer": a tokenizer.json, "cases": [{"text", "ids", "special", "types",
                       "text_back", "special_back"}], "pairs": [{"a", "b", "ids", "types"}]}
  components.json      {"model", "texts", "normalizers" and "pre_tokenizers": [{"json", "ids": for each
                       text}], "decoders": [{"json", "tokens": [{"ids", "text"}]}]}: one component at a
                       time before a model that gives each character an id, and its piece's last another
  folders/NAME.json    {"files": {name: text}, "special": {name: id}, "cases", "pairs"} as transformers
                       reads the folder
"""
import base64
import io
import json
import pathlib
import random
import tempfile

import sentencepiece
import transformers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders as D, models as M, normalizers as N,
                        pre_tokenizers as P, processors as R, trainers as T)

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "tokenizers"

TEXTS = [
    "", " ", "   ", "\n", "\t\t\n", "a", "Hello world", " Hello  World! ", "HELLO, it's y'all's; don't!?",
    "I'll we've they'RE 'twas ' s", "\u00e9t\u00e9 e\u0301te\u0301 na\u00efve \u1e9e \u0130stanbul \u03a3\u03a3\u03c2",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002", "\u6211\u60f3\u5728apple\u5de5\u4f5c1314151\u5929\uff5e",
    "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0645\u0631\u062d\u0628\u0627",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f636\u200d\U0001f32b\ufe0f \U0001f1eb\U0001f1f7 \u2705",
    "nul\x00 bell\x07 esc\x1b del\x7f nel\x85 shy\u00ad zw\u200bsp bom\ufeff rep\ufffd pua\ue000",
    "a\u00a0b\u2003c\u3000d\u2028e\u1680f", "\u2581low\u2581 \u2581\u2581line", "3 33 333 3333 \u00bd \u2460 \u0663\u0664 \u2167 1,000.5",
    "tabs\tand\r\nlines\r\n\r\nand\n\n\n  ends  ", "x" * 70, "ab" * 40, " " * 40, "\u0301\u0301 \u0301a", "\ufb01ne \uff28\uff45\uff4c\uff4c\uff4f \u2122 \u212b",
    "``quoted'' --dash-- $5 + 3 = 8 <tag> [x] ^_^ `code` ~ |", "the quick brown fox jumps over the lazy dog",
    "low lower lowest new newer newest", "<s>text</s> <mask> [MASK]word <special> <lone>", "a<mask>b  <mask>  c\n<lone>d <lone> Token token TOKEN",
    "\u4e2d\U00020000\U0002b900\uf900 \uac00", "\U0010ffff\ue0fe", "What's up?..Yes...no", "don't n't 's ' re",
]
PAIRS = [("Hello world", "the fox"), ("", "low"), ("new", ""), ("a<mask>", "\u00e9t\u00e9 lower")]
CORPUS = ["the quick brown fox jumps over the lazy dog", "low lower lowest new newer newest", "Hello world! Hello World.",
          "it's don't we've they'll I'm you're he'd", "\u00e9t\u00e9 na\u00efve caf\u00e9 \u00fcber stra\u00dfe", "\u65e5\u672c\u8a9e \u6587\u7ae0 \u6211\u60f3\u5728\u5de5\u4f5c",
          "3 33 333 1000 2026", "\U0001f600 \U0001f680 \u2705", "ab abab ababab", "a b c d e f g h i j k l m n o p q r s t u v w x y z"] * 4


def dump(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def cases(tok):
    found = []
    for text in TEXTS:
        plain, special = tok.encode(text, add_special_tokens=False), tok.encode(text)
        found.append({"text": text, "ids": plain.ids, "special": special.ids, "types": special.type_ids,
                      "text_back": tok.decode(special.ids, skip_special_tokens=True),
                      "special_back": tok.decode(special.ids, skip_special_tokens=False)})
    return found


def pairs(tok):
    return [{"a": a, "b": b, "ids": e.ids, "types": e.type_ids} for a, b in PAIRS for e in [tok.encode(a, b)]]


def whole(name, tok):
    dump(FOLDER / "whole" / f"{name}.json",
         {"tokenizer": json.loads(tok.to_str()), "cases": cases(tok), "pairs": pairs(tok)})


FLAGGED = [AddedToken("<mask>", lstrip=True, special=True), AddedToken("<special>", rstrip=True, special=True),
           AddedToken("<lone>", single_word=True), AddedToken("Token", normalized=True), AddedToken("<s>", special=True)]


def byte_level():
    tok = Tokenizer(M.BPE())
    tok.pre_tokenizer = P.ByteLevel(add_prefix_space=False)
    tok.decoder = D.ByteLevel()
    tok.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=340, show_progress=False, special_tokens=["<s>", "</s>", "<pad>"],
                                                 initial_alphabet=P.ByteLevel.alphabet()))
    whole("gpt2", tok)
    tok.pre_tokenizer = P.ByteLevel(add_prefix_space=True)
    tok.add_tokens(FLAGGED)
    tok.post_processor = R.RobertaProcessing(("</s>", 1), ("<s>", 0))
    whole("roberta", tok)
    llama = Tokenizer(M.BPE(ignore_merges=True))
    llama.pre_tokenizer = P.Sequence([P.Split(Regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    llama.decoder = D.ByteLevel()
    llama.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=330, show_progress=False, special_tokens=["<s>", "</s>"],
                                                   initial_alphabet=P.ByteLevel.alphabet()))
    llama.post_processor = R.Sequence([R.ByteLevel(trim_offsets=False), R.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", 0)])])
    whole("llama3", llama)
    qwen = Tokenizer(M.BPE())
    qwen.normalizer = N.NFC()
    qwen.pre_tokenizer = P.Sequence([P.Split(Regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    qwen.decoder = D.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    qwen.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=330, show_progress=False, initial_alphabet=P.ByteLevel.alphabet()))
    qwen.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    qwen.post_processor = R.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    whole("qwen2", qwen)
    normal = Tokenizer(M.BPE.from_file(*save_bpe(tok)))  # bytes as a normalizer, as newer files have it
    normal.normalizer = N.Sequence([N.NFC(), N.ByteLevel()])
    normal.pre_tokenizer = P.Split(Regex("\u0120"), "merged_with_next")
    normal.decoder = D.ByteLevel()
    whole("byte_normalizer", normal)


def save_bpe(tok):
    folder = tempfile.mkdtemp()
    return tok.model.save(folder)


def byte_fallback():
    special = ["<unk>", "<s>", "</s>"]
    tok = Tokenizer(M.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.pre_tokenizer = P.Metaspace(prepend_scheme="always", split=True)
    tok.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=420, show_progress=False, limit_alphabet=60, initial_alphabet=[],
                                                 special_tokens=special + [f"<0x{b:02X}>" for b in range(256)]))
    state = json.loads(tok.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] in special]
    state["model"]["merges"] = [" ".join(m) for m in state["model"]["merges"]]  # the old form
    tok = Tokenizer.from_str(json.dumps(state))
    tok.normalizer = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
    tok.pre_tokenizer = None
    tok.decoder = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    tok.post_processor = R.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    whole("llama", tok)
    tok.normalizer = None
    tok.pre_tokenizer = P.Metaspace(prepend_scheme="first", split=False)
    tok.add_tokens(FLAGGED)
    whole("mistral", tok)
    state = json.loads(tok.to_str())
    for fuse in (False, True):  # no bytes: unknown characters
        state["model"]["byte_fallback"] = False
        state["model"]["fuse_unk"] = fuse
        whole(f"unk_{'fused' if fuse else 'single'}", Tokenizer.from_str(json.dumps(state)))


def word_piece():
    for name, options in {"bert": {}, "bert_cased": dict(lowercase=False), "bert_accents": dict(strip_accents=False),
                          "bert_bare": dict(clean_text=False, handle_chinese_chars=False, lowercase=False, strip_accents=True)}.items():
        tok = Tokenizer(M.WordPiece(unk_token="[UNK]", max_input_chars_per_word=60))
        tok.normalizer = N.BertNormalizer(**options)
        tok.pre_tokenizer = P.BertPreTokenizer()
        tok.decoder = D.WordPiece(cleanup=name != "bert_cased")
        tok.train_from_iterator(CORPUS, T.WordPieceTrainer(vocab_size=230, show_progress=False,
                                                           special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        tok.post_processor = R.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        if name == "bert_accents":
            tok.add_tokens(FLAGGED)
        whole(name, tok)


def small_sentencepiece(**options):
    """A unigram model whose character map is small."""
    rules = {"\ufb01": "fi", "\u2122": "tm", "\u00e9": "e\u0301", "e\u0301": "\u00e9", "\uff5e": "~", "\r\n": "\n", "\u3000": " ",
             "A": "a", "H": "h", "\u00ad": "", "\u200d": "", "\u1e9e": "ss", "\u1112\u1161\u11ab": "\ud55c"}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rules.tsv"
        path.write_text("".join(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n"
                                for a, b in rules.items()))
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=150, num_threads=1, hard_vocab_limit=False,
            normalization_rule_tsv=str(path), minloglevel=2, **options)
    return model.getvalue()


def unigram():
    from sentencepiece import sentencepiece_model_pb2 as pb
    proto = pb.ModelProto.FromString(small_sentencepiece())
    vocab = [(p.piece, p.score) for p in proto.pieces]
    tok = Tokenizer(M.Unigram(vocab, unk_id=0, byte_fallback=False))
    tok.normalizer = N.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tok.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.Metaspace()])
    tok.decoder = D.Metaspace()
    tok.add_special_tokens(["<s>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])
    tok.post_processor = R.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    whole("t5", tok)
    state = json.loads(tok.to_str())
    state["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}  # the old form
    state["decoder"] = dict(state["pre_tokenizer"])
    state["normalizer"] = json.loads(json.dumps({"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'}, {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, state["normalizer"]]}))
    old = Tokenizer.from_str(json.dumps(state))
    old.post_processor = R.TemplateProcessing(single="$A:0 </s>:0 <s>:2", pair="$A:0 </s>:0 $B:1 </s>:1 <s>:2",
                                              special_tokens=[("<s>", 1), ("</s>", 2)])
    whole("xlnet", old)
    bytes_too = vocab + [(f"<0x{b:02X}>", -20.0) for b in range(256)]
    tok = Tokenizer(M.Unigram(bytes_too, unk_id=0, byte_fallback=True))
    tok.pre_tokenizer = P.Metaspace(split=False)
    tok.decoder = D.Sequence([D.ByteFallback(), D.Metaspace()])
    whole("unigram_bytes", tok)


def others():
    tok = Tokenizer(M.WordLevel(unk_token="<unk>"))
    tok.normalizer = N.Lowercase()
    tok.pre_tokenizer = P.Whitespace()
    tok.train_from_iterator(CORPUS, T.WordLevelTrainer(vocab_size=80, show_progress=False, special_tokens=["<unk>", "<eos>"]))
    tok.post_processor = R.TemplateProcessing(single="$A <eos>", pair="$A <eos> $B:1 <eos>:1", special_tokens=[("<eos>", 1)])
    whole("word_level", tok)
    tok = Tokenizer(M.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tok.normalizer = N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()])
    tok.pre_tokenizer = P.Sequence([P.Split(Regex(r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True)])
    tok.decoder = D.BPEDecoder()
    tok.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=260, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>"))
    whole("clip", tok)
    tok = Tokenizer(M.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tok.pre_tokenizer = P.Whitespace()
    tok.decoder = D.WordPiece(prefix="##")
    tok.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=["<unk>"], continuing_subword_prefix="##"))
    whole("bpe_prefix", tok)


def components():
    characters = sorted(set("".join(TEXTS)) | set("\u2581~|_-") | {chr(c) for c in range(0x100, 0x144)} | {chr(c) for c in range(33, 256)})
    vocab = {"?": 0, "?|": 1}
    for c in characters:
        for piece in (c, c + "|"):
            vocab.setdefault(piece, len(vocab))
    texts = [t for t in TEXTS if len(t) < 60]
    model = M.BPE(vocab=vocab, merges=[], unk_token="?", end_of_word_suffix="|")

    def result(**parts):
        tok = Tokenizer(model)
        for key, value in parts.items():
            setattr(tok, key, value)
        return json.loads(tok.to_str()), [tok.encode(t).ids for t in texts]

    normal = [N.NFC(), N.NFD(), N.NFKC(), N.NFKD(), N.Lowercase(), N.Strip(), N.Strip(left=False), N.Strip(right=False), N.StripAccents(),
              N.Nmt(), N.Prepend("_"), N.Replace("a", "bb"), N.Replace(Regex(r"[aeiou]+\b"), "-"),
              N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase()]), N.BertNormalizer(), N.ByteLevel()]
    behaviors = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    pre = [P.ByteLevel(), P.ByteLevel(add_prefix_space=False), P.ByteLevel(use_regex=False), P.Whitespace(), P.WhitespaceSplit(),
           P.BertPreTokenizer(), P.Digits(), P.Digits(individual_digits=True), P.CharDelimiterSplit("o")]
    pre += [P.Metaspace(prepend_scheme=s, split=b) for s in ("always", "first", "never") for b in (True, False)]
    pre += [P.Punctuation(b) for b in behaviors] + [P.Split("l", b) for b in behaviors] + [P.Split(" ", b) for b in behaviors]
    pre += [P.Split(Regex(r"\w+|\s"), b) for b in behaviors] + [P.Split(Regex(r"[0-9]+"), b, invert=True) for b in behaviors]
    pre += [P.Sequence([P.WhitespaceSplit(), P.Punctuation(), P.Metaspace(prepend_scheme="first")])]
    # What may take the start of a text away, before the pre-tokenizer that asks for it.
    takes_start = [N.Strip(), N.Strip(left=False), N.StripAccents(), N.Nmt(), N.Lowercase(), N.Replace("a", ""), N.Replace(Regex("^(the|He)"), ""),
                   N.Replace("a", "b"), N.Sequence([N.NFD(), N.StripAccents(), N.Strip()]), N.BertNormalizer()]
    random.seed(5)
    tokens = ["Hello", "##llo", " w", "\u2581the", "\u2581", "<0xE2>", "<0x82>", "<0xAC>", "<0xFF>", "n't", ".", "a</w>", "</w>", "\u0120low",
              "\u010a", "\u00e2", "\u013b", "do not", "'", "s", "  x ", "\u2581\u2581y\u2581"]
    shared = {t: i for i, t in enumerate(tokens)}
    decode = [D.ByteLevel(), D.WordPiece(), D.WordPiece(prefix="\u2581", cleanup=False), D.Metaspace(), D.Metaspace(prepend_scheme="never"),
              D.BPEDecoder(), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0), D.Strip(" ", 1, 2), D.Replace("l", "L"), D.Replace(Regex("[a-h]+"), "_"),
              D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]), None]
    decoded = []
    for one in decode:
        tok = Tokenizer(M.WordLevel(shared, unk_token="."))
        if one is not None:
            tok.decoder = one
        lists = [[]] + [[random.randrange(len(tokens)) for _ in range(random.randrange(1, 9))] for _ in range(25)]
        decoded.append({"json": json.loads(tok.to_str())["decoder"], "tokens": [{"ids": i, "text": tok.decode(i)} for i in lists]})
    dump(FOLDER / "components.json", {
        "model": json.loads(Tokenizer(model).to_str())["model"], "texts": texts, "decoder_tokens": tokens,
        "normalizers": [{"json": j["normalizer"], "ids": i} for n in normal for j, i in [result(normalizer=n)]],
        "pre_tokenizers": [{"json": j["pre_tokenizer"], "ids": i} for p in pre for j, i in [result(pre_tokenizer=p)]],
        "decoders": decoded,
        "first": [{"normalizer": j["normalizer"], "pre_tokenizer": j["pre_tokenizer"], "ids": i} for n in takes_start
                  for j, i in [result(normalizer=n, pre_tokenizer=P.Metaspace(prepend_scheme="first"))]]})


def folder(name, files, tokenizer_class, texts=TEXTS):
    """What transformers reads from the files; values that are bytes are written in base 64."""
    with tempfile.TemporaryDirectory() as path:
        for file, content in files.items():
            data = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else json.dumps(content).encode()
            (pathlib.Path(path) / file).write_bytes(data)
            files[file] = {"base64": base64.b64encode(data).decode()} if isinstance(content, bytes) else data.decode()
        tok = tokenizer_class.from_pretrained(path)
    found = []
    for text in texts:
        special = tok(text)["input_ids"]
        found.append({"text": text, "ids": tok(text, add_special_tokens=False)["input_ids"], "special": special,
                      "text_back": tok.decode(special, skip_special_tokens=True)})
    special = {n: getattr(tok, n + "_token_id") for n in ("pad", "unk", "bos", "eos", "cls", "sep", "mask")}
    some = [(a, b) for a, b in PAIRS if b and (texts is TEXTS or "<" not in a)]  # transformers takes "" for no second text
    both = [tok(a, b, return_token_type_ids=True) for a, b in some]
    if not tok.is_fast:  # of a class that has no types
        both = [{"input_ids": e["input_ids"], "token_type_ids": [0] * len(e["input_ids"])} for e in both]
    dump(FOLDER / "folders" / f"{name}.json", {
        "files": files, "special": {k: v for k, v in special.items() if v is not None}, "cases": found,
        "pairs": [{"a": a, "b": b, "ids": e["input_ids"], "types": e["token_type_ids"]} for (a, b), e in zip(some, both)]})


def folders():
    whole_of = lambda name: json.loads((FOLDER / "whole" / f"{name}.json").read_text())["tokenizer"]
    gpt2, roberta, bert = whole_of("gpt2")["model"], whole_of("roberta"), whole_of("bert")["model"]
    merges = "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in gpt2["merges"])
    vocab = dict(gpt2["vocab"], **{"<|endoftext|>": len(gpt2["vocab"])})
    folder("gpt2", {"vocab.json": vocab, "merges.txt": merges, "config.json": {"model_type": "gpt2"}}, transformers.GPT2Tokenizer)
    # Tokens that one file adds and another names as special, or none does.
    size = len(vocab)
    folder("gpt2_added", {
        "vocab.json": vocab, "merges.txt": merges, "added_tokens.json": {"<special>": size, "<lone>": size + 1, "Token": size + 2},
        "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "pad_token": "<special>",
                                  "additional_special_tokens": ["<lone>"]}}, transformers.GPT2Tokenizer)
    vocab = dict(gpt2["vocab"])
    for piece in ("<unk>", "<mask>"):
        vocab[piece] = len(vocab)
    folder("roberta", {"vocab.json": vocab, "merges.txt": merges,
                       "tokenizer_config.json": {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True,
                                                 "mask_token": {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "normalized": False,
                                                                "rstrip": False, "single_word": False}}}, transformers.RobertaTokenizer)
    lines = "".join(p + "\n" for p, _ in sorted(bert["vocab"].items(), key=lambda x: x[1]))
    folder("bert", {"vocab.txt": lines, "config.json": {"model_type": "bert"}}, transformers.BertTokenizer)
    folder("bert_cased", {"vocab.txt": lines, "tokenizer_config.json": {"do_lower_case": False, "tokenizer_class": "BertTokenizer",
                                                                         "tokenize_chinese_chars": False}}, transformers.BertTokenizer)


    # Without the texts that SentencePiece and transformers 5 read differently: tabs and line ends, text beside
    # special tokens, clusters that the character map replaces in part. Llama's are read as they are.
    llama = dict(unk_id=0, bos_id=1, eos_id=2, model_type="bpe", byte_fallback=True, add_dummy_prefix=True, remove_extra_whitespaces=False)
    for name, config in [("llama", {}), ("llama_legacy", {"legacy": True}), ("llama_bare", {"add_prefix_space": False})]:
        folder("sp_" + name, {"tokenizer.model": llama_model(**llama),
                              "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, **config}},
               transformers.LlamaTokenizer, [*TEXTS, "a</s>b", "  a </s>  b", "</s>b<s> c"])
    for name, cls, options in [
            ("t5", transformers.T5Tokenizer, dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)),
            ("xlnet", transformers.XLNetTokenizer, dict(unk_id=0, bos_id=1, eos_id=2, control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]))]:
        folder("sp_" + name, {"spiece.model": small_sentencepiece(**options), "tokenizer_config.json": {"tokenizer_class": cls.__name__}}, cls,
               [t for t in TEXTS if "<" not in t and t.isascii() and t.isprintable()])


def multilingual():
    """Tokenizers that put a language around a text."""
    from sentencepiece import sentencepiece_model_pb2 as pb
    model = small_sentencepiece()
    pieces = [(p.piece, p.score) for p in pb.ModelProto.FromString(model).pieces if p.type == 1]
    first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    plain = [t for t in TEXTS if "<" not in t and t.isascii() and t.isprintable()]

    def saved(tok, **more):
        with tempfile.TemporaryDirectory() as path:
            tok.save_pretrained(path)
            files = {f.name: json.loads(f.read_text()) for f in pathlib.Path(path).iterdir()}
        files["tokenizer_config.json"] |= more
        return files

    mbart = transformers.MBartTokenizer(vocab=first + pieces + [(c, 0.0) for c in ("ar_AR", "de_DE", "en_XX")] + [("<mask>", 0.0)])
    folder("mbart", saved(mbart, src_lang="de_DE"), transformers.MBartTokenizer)
    bpe = Tokenizer(M.BPE(unk_token="<unk>", fuse_unk=True))
    bpe.pre_tokenizer = P.Metaspace()
    bpe.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=260, show_progress=False, special_tokens=["<s>", "<pad>", "</s>", "<unk>"]))
    state = json.loads(bpe.to_str())["model"]
    for name, legacy in (("nllb", False), ("nllb_legacy", True)):
        nllb = transformers.NllbTokenizer(vocab=state["vocab"], merges=[tuple(m) for m in state["merges"]], legacy_behaviour=legacy,
                                          additional_special_tokens=["deu_Latn", "eng_Latn", "zho_Hans"])
        folder(name, saved(nllb), transformers.NllbTokenizer)
    folder("sp_mbart50", {"sentencepiece.bpe.model": model, "tokenizer_config.json": {"tokenizer_class": "MBart50Tokenizer", "src_lang": None, "bos_token": "<s>"}},
           transformers.MBart50Tokenizer, [t for t in plain if t == " ".join(t.split())])
    codes = transformers.models.m2m_100.tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
    folder("m2m_100", {"sentencepiece.bpe.model": model, "vocab.json": {t: i for i, (t, _) in enumerate(first + pieces)},
                       "special_tokens_map.json": {"additional_special_tokens": [f"__{c}__" for c in codes]},
                       "tokenizer_config.json": {"tokenizer_class": "M2M100Tokenizer", "src_lang": "fr"}},
           transformers.M2M100Tokenizer, plain + ["a __de__ b", "__zu__", "__xx__ c"])


def llama_model(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=330, num_threads=1,
                                             normalization_rule_name="identity", minloglevel=2, **options)
    return model.getvalue()


if __name__ == "__main__":
    for make in (byte_level, byte_fallback, word_piece, unigram, others, components, folders, multilingual):
        make()
