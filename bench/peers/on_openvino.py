"""Cases in OpenVINO: converted from Transformers' and timm's models, of static shapes."""
import image_models
import sizes
from timing import Unsupported


def check(args):
    if args.compile or args.dtype not in ("f32", "bf16", "int8"):
        raise Unsupported("OpenVINO is timed in f32, bf16 and int8")


def request_of(model, args):
    """A request of a converted model on so many threads, and OpenVINO's release. int8: what NNCF has
    quantised, all else as the CPU has it best."""
    import openvino
    compiled = openvino.Core().compile_model(model, "CPU", {
        "INFERENCE_PRECISION_HINT": "bf16" if args.dtype == "int8" else args.dtype,
        "INFERENCE_NUM_THREADS": args.threads,
        "PERFORMANCE_HINT": "LATENCY"})
    return compiled.create_infer_request(), f"openvino {openvino.__version__.split('-')[0]}"


def quantised(model, args, inputs):
    """The model, in int8 with scales found on these inputs where that is asked for."""
    if args.dtype != "int8":
        return model
    import nncf
    return nncf.quantize(model, nncf.Dataset(inputs), model_type=nncf.ModelType.TRANSFORMER,
                         subset_size=len(inputs))


def bert(args, batches, shape):
    """A request of BERT-base for inputs of this shape, and the release."""
    import numpy
    import openvino
    import torch
    from transformers import BertConfig, BertModel
    model = openvino.convert_model(
        BertModel(BertConfig()).eval(),
        example_input={name: torch.from_numpy(value) for name, value in batches[0].items()},
        input=[(name, shape, numpy.int64) for name in batches[0]])
    return request_of(quantised(model, args, batches), args)


def encode(args):
    check(args)
    import numpy
    batch = args.batch or sizes.BERT_BATCH
    shape = [batch, sizes.BERT_TOKENS]
    ids = numpy.random.default_rng(1).integers(0, sizes.BERT_VOCAB, shape)
    inputs = dict(input_ids=ids, attention_mask=numpy.ones(shape, numpy.int64))
    request, release = bert(args, [inputs], shape)
    return dict(step=lambda: request.infer(inputs), units=batch, unit="sequences/s", batch=batch,
                version=release)


def encode_mixed(args):
    """Sentences of like lengths together, padded to the longest of them; the shape may differ."""
    check(args)
    batches = sizes.mixed_batches(args.batch)
    request, release = bert(args, batches, [-1, -1])

    def encode_all():
        for inputs in batches:
            request.infer(inputs)

    sentences = sum(len(b["input_ids"]) for b in batches)
    return dict(step=encode_all, units=sentences, unit="sequences/s", batch=sentences,
                version=release)


def classify(args):
    check(args)
    if args.dtype == "int8":
        raise Unsupported("OpenVINO's images are timed in f32 and bf16")
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


CASES = {"encode-bert": encode, "encode-mixed": encode_mixed, **dict.fromkeys(sizes.CLASSIFY, classify)}
