"""Cases in OpenVINO: converted from Transformers' and timm's models, of static shapes."""
import image_models
import sizes
from timing import Unsupported


def check(args):
    if args.compile or args.dtype not in ("f32", "bf16"):
        raise Unsupported("OpenVINO is timed in f32 and bf16")


def request_of(model, args):
    """A request of a converted model on so many threads, and OpenVINO's release."""
    import openvino
    compiled = openvino.Core().compile_model(model, "CPU", {
        "INFERENCE_PRECISION_HINT": args.dtype, "INFERENCE_NUM_THREADS": args.threads,
        "PERFORMANCE_HINT": "LATENCY"})
    return compiled.create_infer_request(), f"openvino {openvino.__version__.split('-')[0]}"


def encode(args):
    check(args)
    import numpy
    import openvino
    import torch
    from transformers import BertConfig, BertModel
    batch = args.batch or sizes.BERT_BATCH
    shape = [batch, sizes.BERT_TOKENS]
    ids = numpy.random.default_rng(1).integers(0, sizes.BERT_VOCAB, shape)
    inputs = dict(input_ids=ids, attention_mask=numpy.ones(shape, numpy.int64))
    model = openvino.convert_model(
        BertModel(BertConfig()).eval(),
        example_input={name: torch.from_numpy(value) for name, value in inputs.items()},
        input=[(name, shape, numpy.int64) for name in inputs])
    request, release = request_of(model, args)
    return dict(step=lambda: request.infer(inputs), units=batch, unit="sequences/s", batch=batch,
                version=release)


def classify(args):
    check(args)
    import openvino
    import torch
    model, batch, edge = image_models.of_case(args.case)
    batch = args.batch or batch
    images = torch.randn(batch, 3, edge, edge)
    converted = openvino.convert_model(model, example_input=images, input=list(images.shape))
    request, release = request_of(converted, args)
    inputs = {0: images.numpy()}
    return dict(step=lambda: request.infer(inputs), units=batch, unit="images/s", batch=batch,
                version=release)


CASES = {"encode-bert": encode, **dict.fromkeys(sizes.CLASSIFY, classify)}
