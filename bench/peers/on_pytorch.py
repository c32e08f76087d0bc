"""The cases in PyTorch, and in Transformers on top of it, as their users write them."""
import image_models
import sizes
from timing import Unsupported


def start(args):
    import torch
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    if args.dtype not in ("f32", "bf16"):
        raise Unsupported(f"PyTorch is timed in f32 and bf16, not {args.dtype}")
    return torch


def mixed(torch, args):
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16")


def version(torch, with_transformers=False):
    text = f"torch {torch.__version__}"
    if with_transformers:
        import transformers
        text += f", transformers {transformers.__version__}"
    return text


def encoder_decoder(torch, size):
    """nn.Transformer between one shared embedding matrix, which is the output projection too, and
    learned positions. Post-norm, ReLU, dropout 0.1: nn.Transformer's own."""
    class EncoderDecoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            width = size["width"]
            self.embedding = torch.nn.Embedding(size["vocab"], width)
            torch.nn.init.normal_(self.embedding.weight, std=width ** -0.5)
            self.positions = torch.nn.Embedding(512, width)
            self.stack = torch.nn.Transformer(
                d_model=width, nhead=size["heads"], num_encoder_layers=size["layers"],
                num_decoder_layers=size["layers"], dim_feedforward=size["hidden"], dropout=0.1,
                batch_first=True)
            self.scale = width ** 0.5

        def embed(self, ids):
            positions = torch.arange(ids.shape[1])
            return self.embedding(ids) * self.scale + self.positions(positions)

        def forward(self, source, target, no_source, no_target, later):
            hidden = self.stack(
                self.embed(source), self.embed(target), tgt_mask=later, tgt_is_causal=True,
                src_key_padding_mask=no_source, tgt_key_padding_mask=no_target,
                memory_key_padding_mask=no_source)
            return torch.nn.functional.linear(hidden, self.embedding.weight)

    return EncoderDecoder()


def padded(torch, size):
    """Lengths, and where a row of the padded batch is no token: [pairs, longest] booleans."""
    longest = size["longest"]
    lengths = torch.randint(max(4, longest - 8), longest + 1, (size["pairs"],))
    return lengths, torch.arange(longest).unsqueeze(0) >= lengths.unsqueeze(1)


def update_of_pairs(torch, args, model, logits, wanted):
    """An update by the targets `wanted`; logits(): a row for each of them."""
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def update():
        with mixed(torch, args):
            loss = torch.nn.functional.cross_entropy(
                logits().float(), wanted, ignore_index=-100, label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()

    return update


def train_pairs(args):
    torch = start(args)
    size = dict(sizes.TRAIN_PAIRS[args.case])
    size["pairs"] = args.batch or size["pairs"]
    model = encoder_decoder(torch, size)
    _, no_source = padded(torch, size)
    target_lengths, no_target = padded(torch, size)
    shape = (size["pairs"], size["longest"])
    source = torch.randint(4, size["vocab"], shape)
    target = torch.randint(4, size["vocab"], shape)
    wanted = torch.randint(4, size["vocab"], shape).masked_fill(no_target, -100).flatten()
    later = torch.ones(shape[1], shape[1], dtype=torch.bool).triu(diagonal=1)
    forward = torch.compile(model) if args.compile else model

    def logits():
        return forward(source, target, no_source, no_target, later).flatten(0, 1)

    return dict(step=update_of_pairs(torch, args, model, logits, wanted),
                units=int(target_lengths.sum()), unit="target tokens/s",
                batch=size["pairs"], version=version(torch))


def lstm_translator(torch, args, size):
    from recurrent_models import LstmTranslator
    model = LstmTranslator(size)
    if args.compile:  # the step alone: of the whole, all steps are written out one after the other
        model.step = torch.compile(model.step, dynamic=False)
    return model


def train_lstm(args):
    torch = start(args)
    size = dict(sizes.TRAIN_LSTM[args.case])
    size["pairs"] = args.batch or size["pairs"]
    model = lstm_translator(torch, args, size).train()
    source_lengths, _ = padded(torch, size)
    target_lengths, no_target = padded(torch, size)
    shape = (size["pairs"], size["longest"])
    source = torch.randint(4, size["vocab"], shape)
    target = torch.randint(4, size["vocab"], shape)
    rows = (~no_target).flatten().nonzero().squeeze(1)
    wanted = torch.randint(4, size["vocab"], rows.shape)

    def logits():
        return model(source, source_lengths, target, rows)

    return dict(step=update_of_pairs(torch, args, model, logits, wanted), units=len(rows),
                unit="target tokens/s", batch=size["pairs"], version=version(torch))


def translate_lstm(args):
    torch = start(args)
    size = sizes.TRANSLATE_LSTM[args.case]
    model = lstm_translator(torch, args, size).eval()
    if args.dtype == "bf16":
        model = model.to(torch.bfloat16)
    batch = args.batch or sizes.TRANSLATE_BATCH
    lengths = torch.randint(9, 26, (batch,))  # 8 to 24 and the end
    source = torch.randint(4, size["vocab"], (batch, int(lengths.max())))

    def translate_batch():
        with torch.inference_mode():
            model.greedy(source, lengths, sizes.TRANSLATE_TOKENS)

    return dict(step=translate_batch, units=batch * sizes.TRANSLATE_TOKENS, unit="target tokens/s",
                batch=batch, version=version(torch))


def train_gpt(args):
    torch = start(args)
    from transformers import GPT2Config, GPT2LMHeadModel
    fields, batch, tokens = sizes.TRAIN_GPT[args.case]
    batch = args.batch or batch
    model = GPT2LMHeadModel(GPT2Config(**fields)).train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, model.config.vocab_size, (batch, tokens))
    forward = torch.compile(model) if args.compile else model

    def update():
        with mixed(torch, args):
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        adam.step()
        adam.zero_grad()

    units, unit = (1, "updates/s") if args.case in sizes.COUNTS_UPDATES else (batch * tokens, "tokens/s")
    return dict(step=update, units=units, unit=unit, batch=batch, version=version(torch, True))


def generate(args):
    torch = start(args)
    if args.compile:
        raise Unsupported("generation has no compiled mode here")
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config()).eval()
    if args.dtype == "bf16":
        model = model.to(torch.bfloat16)
    batch = args.batch or 1
    tokens, new_tokens = sizes.GENERATE[args.case]
    prompt = torch.randint(0, sizes.GPT2["vocab"], (batch, tokens))
    everywhere = torch.ones_like(prompt)

    def continue_prompt():
        with torch.inference_mode():
            model.generate(prompt, attention_mask=everywhere, do_sample=False, pad_token_id=0,
                           min_new_tokens=new_tokens, max_new_tokens=new_tokens)

    units, unit = sizes.generated(args.case)
    return dict(step=continue_prompt, units=batch * units, unit=unit, batch=batch,
                version=version(torch, True))


def bert(torch, args):
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig()).eval()
    return torch.compile(model) if args.compile else model


def encode(args):
    torch = start(args)
    model = bert(torch, args)
    batch = args.batch or sizes.BERT_BATCH
    ids = torch.randint(0, sizes.BERT_VOCAB, (batch, sizes.BERT_TOKENS))

    def encode_batch():
        with torch.inference_mode(), mixed(torch, args):
            model(ids)

    return dict(step=encode_batch, units=batch, unit="sequences/s", batch=batch,
                version=version(torch, True))


def encode_mixed(args):
    """Sentences of like lengths together, padded to the longest of them."""
    torch = start(args)
    model = bert(torch, args)
    batches = [{name: torch.from_numpy(value) for name, value in inputs.items()}
               for inputs in sizes.mixed_batches(args.batch)]

    def encode_all():
        with torch.inference_mode(), mixed(torch, args):
            for inputs in batches:
                model(**inputs)

    sentences = sum(len(b["input_ids"]) for b in batches)
    return dict(step=encode_all, units=sentences, unit="sequences/s", batch=sentences,
                version=version(torch, True))


def timm_version(torch):
    import timm
    return f"{version(torch)}, timm {timm.__version__}"


def classify(args):
    torch = start(args)
    model, batch, edge = image_models.of_case(args.case)
    model = model.to(memory_format=torch.channels_last)
    batch = args.batch or batch
    if args.compile:
        model = torch.compile(model)
    images = torch.randn(batch, 3, edge, edge).to(memory_format=torch.channels_last)

    def classify_batch():
        with torch.inference_mode(), mixed(torch, args):
            model(images)

    return dict(step=classify_batch, units=batch, unit="images/s", batch=batch,
                version=timm_version(torch))


def train_images(args):
    torch = start(args)
    model, batch, edge, classes = sizes.TRAIN_IMAGES[args.case]
    batch = args.batch or batch
    model = image_models.make(model, classes).train().to(memory_format=torch.channels_last)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05, fused=True)
    images = torch.randn(batch, 3, edge, edge).to(memory_format=torch.channels_last)
    wanted = torch.randint(0, classes, (batch,))
    forward = torch.compile(model) if args.compile else model

    def update():
        with mixed(torch, args):
            logits = forward(images)
            loss = torch.nn.functional.cross_entropy(logits.float(), wanted, label_smoothing=0.1)
        loss.backward()
        adam.step()
        adam.zero_grad()

    return dict(step=update, units=batch, unit="images/s", batch=batch,
                version=timm_version(torch))


def start_process(args):
    """`import torch` alone, in a process of its own: a program that uses it has done nothing yet."""
    import importlib.metadata
    import resource
    import subprocess
    import sys
    if args.compile or args.dtype != "f32":
        raise Unsupported("importing is the same in every format")

    def import_torch():
        subprocess.run([sys.executable, "-c", "import torch"], check=True)

    def peak_bytes():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024

    return dict(step=import_torch, units=1, unit="starts/s", batch=1, peak_bytes=peak_bytes,
                version=f"torch {importlib.metadata.version('torch')}")


CASES = {**dict.fromkeys(sizes.TRAIN_PAIRS, train_pairs), **dict.fromkeys(sizes.TRAIN_LSTM, train_lstm),
         **dict.fromkeys(sizes.TRANSLATE_LSTM, translate_lstm), **dict.fromkeys(sizes.TRAIN_GPT, train_gpt),
         **dict.fromkeys(sizes.GENERATE, generate), **dict.fromkeys(sizes.CLASSIFY, classify),
         **dict.fromkeys(sizes.TRAIN_IMAGES, train_images), "encode-bert": encode, "encode-mixed": encode_mixed,
         "start": start_process}
