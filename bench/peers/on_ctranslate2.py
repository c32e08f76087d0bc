"""The translation cases in CTranslate2: a model of random weights, written to a folder of its own.
On AMD it takes its code for AVX2 unless that for AVX-512 is forced."""
import functools
import os
import pathlib
import random
import tempfile
import time

import sizes
from timing import Unsupported

TYPES = {"f32": "float32", "bf16": "bfloat16", "int8": "int8"}


def write_model(size, folder):
    """A post-norm ReLU encoder-decoder in CTranslate2's format, f32; it converts when it loads."""
    import ctranslate2
    import numpy
    numbers = numpy.random.default_rng(1)
    width, hidden = size["width"], size["hidden"]

    def matrix(*shape):
        return numbers.normal(0, 0.02, shape).astype(numpy.float32)

    def fill_linear(spec, wide, narrow):
        spec.weight, spec.bias = matrix(wide, narrow), matrix(wide)

    def fill_norm(spec):
        spec.gamma, spec.beta = numpy.ones(width, numpy.float32), numpy.zeros(width, numpy.float32)

    def fill_attention(spec, outputs):
        for linear, wide in zip(spec.linear, outputs):
            fill_linear(linear, wide, width)
        fill_norm(spec.layer_norm)

    spec = ctranslate2.specs.TransformerSpec.from_config(
        size["layers"], size["heads"], pre_norm=False,
        activation=ctranslate2.specs.Activation.RELU)
    table = matrix(size["vocab"], width)
    source_embeddings = spec.encoder.embeddings
    (source_embeddings[0] if isinstance(source_embeddings, list) else source_embeddings).weight = table
    spec.decoder.embeddings.weight = table
    spec.decoder.projection.weight = table
    spec.decoder.projection.bias = numpy.zeros(size["vocab"], numpy.float32)
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = matrix(512, width)
        for layer in side.layer:
            fill_attention(layer.self_attention, [3 * width, width])
            if side is spec.decoder:
                fill_attention(layer.attention, [width, 2 * width, width])
            fill_linear(layer.ffn.linear_0, hidden, width)
            fill_linear(layer.ffn.linear_1, width, hidden)
            fill_norm(layer.ffn.layer_norm)
    vocabulary = ["<unk>", "<s>", "</s>"] + [f"w{i}" for i in range(3, size["vocab"])]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.validate()
    spec.optimize(quantization=None)
    spec.save(folder)


def faster_of(makers):
    """The step that the faster of them makes; one at a time is in memory."""
    def seconds(make):
        step = make()
        step()
        start = time.perf_counter()
        for _ in range(3):
            step()
        return time.perf_counter() - start
    return min(makers, key=seconds)()


def translate(args):
    if args.peer.endswith("AVX512"):
        cpu = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii")
        if "GenuineIntel" in cpu:
            raise Unsupported("CTranslate2 takes its AVX-512 code by itself on this CPU")
        if "avx512f" not in cpu:
            raise Unsupported("this CPU has no AVX-512")
        os.environ["CT2_FORCE_CPU_ISA"] = "AVX512"  # before the library is loaded
    import ctranslate2
    size = sizes.TRANSLATE[args.case]
    if args.compile or args.dtype not in TYPES:
        raise Unsupported(f"CTranslate2 has no {args.dtype}{' compiled' * args.compile} here")
    if TYPES[args.dtype] not in ctranslate2.get_supported_compute_types("cpu"):
        raise Unsupported(f"CTranslate2 has no {args.dtype} on this CPU")
    folder = tempfile.TemporaryDirectory()
    write_model(size, folder.name)
    batch = args.batch or sizes.TRANSLATE_BATCH
    chance = random.Random(1)
    sources = [[f"w{chance.randrange(3, size['vocab'])}" for _ in range(chance.randint(8, 24))]
               for _ in range(batch)]

    def step_of(translators):
        """Translates with so many translators, which share the threads and the batch."""
        translator = ctranslate2.Translator(folder.name, compute_type=TYPES[args.dtype], inter_threads=translators,
                                            intra_threads=args.threads // translators)
        return lambda: translator.translate_batch(sources, max_batch_size=-(-batch // translators),
                                                  beam_size=size["beam"], min_decoding_length=sizes.TRANSLATE_TOKENS,
                                                  max_decoding_length=sizes.TRANSLATE_TOKENS)

    # Which is faster, all threads in one translator or a translator a thread, depends on the machine (Xeon, width 512,
    # int8: 1,712 against 3,350 tokens/s).
    translate_batch = faster_of([functools.partial(step_of, n) for n in sorted({1, args.threads})])
    folder.cleanup()

    return dict(step=translate_batch, units=batch * sizes.TRANSLATE_TOKENS, unit="target tokens/s",
                batch=batch, version=f"ctranslate2 {ctranslate2.__version__}")


CASES = dict.fromkeys(sizes.TRANSLATE, translate)
