"""The sizes of the cases, equal to those of `heddle bench` (heddle/bench/*_cases.cc)."""

# Encoder-decoders: width, layers of each side, heads, inside the feed-forward layers, vocabulary.
TINY = dict(width=128, layers=4, heads=4, hidden=256)
BASE = dict(width=512, layers=6, heads=8, hidden=2048)

# A batch of training: pairs, and tokens of the longest sentence (the shortest has 8 fewer).
TRAIN_PAIRS = {
    "train-tiny": dict(TINY, vocab=10000, pairs=128, longest=24),
    "train-base": dict(BASE, vocab=10000, pairs=64, longest=32),
}

# By LSTM with attention (see recurrent_models.py): widths of embeddings, of states, of each way of
# the encoder, of what scores compare.
LSTM = dict(vocab=6000, embedding=256, hidden=512, encoder_hidden=256, encoder_layers=2, attention=256)
TRAIN_LSTM = {"train-lstm": dict(LSTM, pairs=128, longest=24)}
TRANSLATE_LSTM = {"translate-lstm": LSTM}

# Sentences of 8 to 24 tokens (and, where the model needs one, an end), each translated into exactly 20.
TRANSLATE = {
    "translate-tiny": dict(TINY, vocab=10000, beam=1),
    "translate-base": dict(BASE, vocab=32000, beam=1),
    "translate-base-beam4": dict(BASE, vocab=32000, beam=4),
}
TRANSLATE_BATCH = 64
TRANSLATE_TOKENS = 20

# GPT-2's field names; what is not named keeps GPT-2's own value (12 layers, 12 heads, width 768).
TRAIN_GPT = {
    "train-steps": (dict(n_layer=2, n_head=2, n_embd=64, n_positions=16, vocab_size=65), 8, 16),
    "train-chargpt": (dict(n_layer=4, n_head=4, n_embd=128, n_positions=64, vocab_size=65), 12, 64),
    "train-babygpt": (dict(n_layer=6, n_head=6, n_embd=384, n_positions=256, vocab_size=65), 16, 256),
    "train-gpt2": ({}, 1, 512),
}

COUNTS_UPDATES = {"train-steps"}  # a second, not tokens

# GPT-2 of 124 million parameters: tokens of the prompt, tokens decoded; one: the prompt's time.
GPT2 = dict(layers=12, heads=12, width=768, vocab=50257, positions=1024)
GENERATE = {"generate-gpt2": (32, 64), "prompt-gpt2": (512, 1)}


def generated(case):
    """What a repetition is counted in: new tokens, or tokens of the prompt."""
    prompt, new = GENERATE[case]
    return (new, "new tokens/s") if new > 1 else (prompt, "tokens/s")

# BERT-base: sequences at a time, tokens of each.
BERT_BATCH, BERT_TOKENS, BERT_VOCAB = 8, 128, 30000

# encode-mixed: tokens of the sentences, those of SST-2's 872 validation sentences at 64 equal steps of
# their order by length (bert-base-uncased, [CLS] and [SEP] counted); a program that pads takes so many of
# like lengths at a time.
MIXED_LENGTHS = (
    6, 7, 8, 9, 9, 10, 11, 11, 12, 13, 13, 13, 14, 15, 15, 16, 16, 17, 17, 17, 18, 18, 19, 19, 20,
    20, 21, 21, 21, 22, 22, 23, 23, 24, 24, 24, 25, 25, 26, 26, 27, 27, 27, 28, 28, 29, 29, 30, 30,
    31, 32, 33, 34, 34, 35, 36, 37, 38, 38, 40, 41, 43, 47, 51)
MIXED_PADDED = 16


def mixed_batches(sentences):
    """Inputs of BERT of encode-mixed: sentences of like lengths padded together. 0: all."""
    import numpy
    numbers = numpy.random.default_rng(1)
    wanted = sentences or len(MIXED_LENGTHS)
    lengths = sorted(MIXED_LENGTHS[i % len(MIXED_LENGTHS)] for i in range(wanted))
    batches = []
    for begin in range(0, len(lengths), MIXED_PADDED):
        part = lengths[begin:begin + MIXED_PADDED]
        mask = (numpy.arange(part[-1])[None, :] < numpy.array(part)[:, None]).astype(numpy.int64)
        batches.append(dict(input_ids=numbers.integers(0, BERT_VOCAB, mask.shape) * mask,
                            attention_mask=mask))
    return batches

# Models of images (see image_models.py) with the images of a batch, their edge, and the classes.
VIT_BASE = "vit_base_patch16_224"
CLASSIFY = {
    "classify-vit": (VIT_BASE, 8, 224, 1000),
    "classify-swin": ("swin_tiny_patch4_window7_224", 8, 224, 1000),
    "classify-resnet50": ("resnet50", 8, 224, 1000),
}
TRAIN_IMAGES = {
    "train-vit": (dict(img_size=32, patch_size=4, embed_dim=192, depth=6, num_heads=3,
                       mlp_ratio=2), 128, 32, 10),
    "train-swin": (dict(img_size=32, patch_size=2, embed_dim=64, depths=(2, 4, 2),
                        num_heads=(2, 4, 8), window_size=4, mlp_ratio=2), 128, 32, 10),
    "train-cct": ("compact_transformer", 128, 32, 10),
    "train-resnet": ("residual_net", 512, 32, 10),
    "train-vit-base": (VIT_BASE, 8, 224, 1000),
}
