#!/usr/bin/env python3
"""Writes tests/fixtures/metrics: small texts of our own and what sacreBLEU 2.x makes of them.

Usage: python tools/make_metric_fixtures.py   (needs the package sacrebleu; made with 2.6.0)

NAME.hyp, NAME.ref and where there is a second reference NAME.ref2 hold a sentence a line.
expected.tsv holds, for each name, tokenizer and case: BLEU, its four precisions, brevity penalty,
both lengths, and chrF. tokens.in and tokens.13a are lines before and after the tokenizer,
lower.in and lower.out before and after str.lower(). paired.tsv holds what the paired bootstrap says
of paired.near and paired.far beside paired.base, against paired.ref.
"""
import pathlib
import random

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "metrics"

CASES = {
    "plain": [
        ["The weaver threads the loom before dawn.", "Two dogs chase a red ball across the wet grass.",
         "A woman in a green coat is selling oranges at the market.", "Nobody knew where the river began."],
        ["The weaver threads her loom before the dawn.", "Two dogs run after a red ball on the wet grass.",
         "A woman wearing a green coat sells oranges at the market.", "Nobody knew where the river began."],
    ],
    "tricky": [
        ["It cost 1,000.50 euros, i.e. too much...", "He said: &quot;Salt &amp; pepper &lt;3&gt;&quot; (twice).",
         "The years 1990-1999 were warm; -5 degrees were rare.", "", "e-mail a.b@c.org, or ring 555-0101!",
         "What?! No, \"never\" - it's 'theirs', $5.00/h, 100%.", "a_b [c] {d} ~e^f` |g\\h <skipped> end",
         "&amp;quot; and &amp;lt; are odd", "3. place ,first .5 and 5."],
        ["It cost 1,000.50 euros; that is, too much ...", "He said: \"Salt & pepper <3>\" (twice).",
         "The years 1990-1999 were warm; -5 degrees were rare.", "An empty line stands here.",
         "e-mail a.b@c.org or call 555-0101!", "What? No, \"never\" - it's 'theirs', $5.00/h, 99.5%.",
         "a_b [c] {d} ~e^f` |g\\h end", "&quot; and < are odd", "3. place, first. 5 and 5."],
    ],
    "unicode": [
        ["Größe, Maße und Straßen: ÄÖÜ äöü ß ẞ.", "ΟΔΥΣΣΕΥΣ Σ ΣΑΣ ΑΣ. ΑΣ\u00adΒ", "İstanbul IĞDIR ıI",
         "猫が窓の外を見ている。", "我喜欢喝茶, 不喜欢咖啡.", "Party 🎉🎉 👩‍👩‍👧 time 🇩🇪!",
         "ten\u00a0euros\u2009and\u3000five\u202fcents", "naïve café e\u0301te\u0301",
         "„Ja“, sagte er – „natürlich“…", "\u2028separated\u2029by\u0085strange\u001cspaces\u200bnot\ufeffthis"],
        ["Größe, Maß und Straße: äöü ÄÖÜ ss ß.", "Οδυσσευς σ σας ας. ας\u00adβ", "i̇stanbul iğdir ıi",
         "猫が窓から外を見ています。", "我喜欢喝茶，不喜欢喝咖啡。", "party 🎉 👩‍👩‍👧 time 🇩🇪 !",
         "ten euros and five cents", "naïve café été", "„Ja“, sagte sie – „natürlich“ …",
         "separated by strange spaces\u200bnot\ufeffthis"],
    ],
    "short": [["yes", "no", "good day"], ["yes", "yes", "good morning"]],
    "three_words": [["a b c", "a b"], ["a b c", "a b c"]],
    "no_four_gram": [["the cat sat on mats", "a dog ran off today"], ["the cat sat in mats", "a dog ran out today"]],
    "no_bigram": [["one x two y three", "four z five w"], ["one two three four", "five four q"]],
    "no_match": [["alpha beta gamma delta epsilon"], ["eins zwei drei vier fünf sechs"]],
    "all_empty": [["", " ", "\u00a0"], ["nothing came out", "of the", "machine"]],
    "empty_reference": [["some words here now", "and more of them"], ["", "and more of them"]],
    "perfect": [["The same sentence, twice said.", "Ünïcödé: 1,5 km – 3."]] * 2,
    "long_hypothesis": [["the the the the the the the the cat"], ["the cat is on the mat"]],
    "two_references": [
        ["the cat is sitting on the mat today", "he bought 1,000 apples", "rain falls", ""],
        ["the cat sits on the mat", "he has bought a thousand apples", "it is raining", "nothing"],
        ["a cat is sitting on a mat today .", "he bought 1,000 pears", "rain is falling down", ""],
    ],
}

LOWER = ["ΑΣ ΑΣΑ Σ ΣΑ Α.Σ Α.Σ.Α ΑΣ' ΑΣ'Α 1Σ ΑΣ1", "İIıi ŞĞ", "ẞß ǅ Ǆ ﬀ K Å Ω", "ȺȾ Ꭰ ꭰ Ა 𐐀 Ⓐ Ⅷ",
         "ÀÉÎÕÜ ÆŒ ЖЩ ԱՖ", "Α\u0345Σ Α\u00adΣ\u00adΑ Α\u0301Σ\u0301", "plain ASCII TEXT 123"]


def values(name, tokenizer, lowercase):
    """One line of expected.tsv."""
    hypotheses, *references = CASES[name]
    bleu = BLEU(tokenize=tokenizer, lowercase=lowercase, force=True).corpus_score(hypotheses, references)
    chrf = CHRF(lowercase=lowercase).corpus_score(hypotheses, references)
    numbers = [bleu.score, *bleu.precisions, bleu.bp, bleu.sys_len, bleu.ref_len, chrf.score]
    return "\t".join([name, str(len(references)), tokenizer, "lc" if lowercase else "mixed", *map(repr, numbers)])


def paired_texts():
    """References, and three systems that garble ever fewer of their words."""
    rng = random.Random(1)
    words = "the a red old dog woman river market runs sells sees under near and quiet market oranges bread".split()
    references = [" ".join(rng.choices(words, k=rng.randint(3, 24))) + " ." for _ in range(80)]

    def garbled(share):
        return [" ".join(rng.choice(words) if rng.random() < share else w for w in line.split() if rng.random() > share / 4)
                for line in references]
    return references, {"base": garbled(0.4), "near": garbled(0.38), "far": garbled(0.25)}


def paired_lines():
    """Lines of paired.tsv: system, metric, then of system and baseline score, mean and half width, then p."""
    references, systems = paired_texts()
    metrics = {"BLEU": BLEU(references=[references]), "chrF2": CHRF(references=[references])}
    named = list(systems.items())
    _, scores = PairedTest(named, metrics, None, test_type="bs")()
    for name in ("BLEU", "chrF2"):
        base, *others = scores[name]
        for (system, _), result in zip(named[1:], others):
            numbers = [result.score, result.mean, result.ci, base.score, base.mean, base.ci, result.p_value]
            yield "\t".join([system, name, *(repr(float(x)) for x in numbers)])


def write(name, lines):
    lines = list(lines)
    assert not any("\n" in line or "\r" in line for line in lines)
    (FOLDER / name).write_bytes("".join(line + "\n" for line in lines).encode())


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (hypotheses, *references) in CASES.items():
        write(f"{name}.hyp", hypotheses)
        for number, lines in enumerate(references, 1):
            write(f"{name}.ref" + (str(number) if number > 1 else ""), lines)
    write("expected.tsv", [values(name, tokenizer, lowercase) for name in CASES
                           for tokenizer in ("13a", "none") for lowercase in (False, True)])
    tokens = [line for case in CASES.values() for side in case for line in side]
    write("tokens.in", tokens)
    write("tokens.13a", [Tokenizer13a()(line.rstrip()) for line in tokens])
    references, systems = paired_texts()
    write("paired.ref", references)
    for name, lines in systems.items():
        write(f"paired.{name}", lines)
    write("paired.tsv", paired_lines())
    write("lower.in", LOWER)
    write("lower.out", [line.lower() for line in LOWER])


if __name__ == "__main__":
    main()
