"""encode-bert in OpenVINO: converted from Transformers' model, of static shape."""
import sizes
from timing import Unsupported


def encode(args):
    if args.compile or args.dtype not in ("f32", "bf16"):
        raise Unsupported("OpenVINO is timed in f32 and bf16")
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
    compiled = openvino.Core().compile_model(model, "CPU", {
        "INFERENCE_PRECISION_HINT": args.dtype, "INFERENCE_NUM_THREADS": args.threads,
        "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    release = openvino.__version__.split("-")[0]
    return dict(step=lambda: request.infer(inputs), units=batch, unit="sequences/s", batch=batch,
                version=f"openvino {release}")


CASES = {"encode-bert": encode}
