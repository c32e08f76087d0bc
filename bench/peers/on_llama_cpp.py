"""generate-gpt2 and prompt-gpt2 in llama.cpp: random weights in a GGUF file, a prompt in one pass, then a
token at a time. It spins at every barrier: on a machine that is not idle its figures mean nothing."""
import ctypes
import os
import tempfile

import sizes
from timing import Unsupported


def write_model(path, dtype):
    """GPT-2's tensors by llama.cpp's names; matrices in `dtype` (int8 is its Q8_0,
    int4 its Q4_0)."""
    import gguf
    import numpy
    numbers = numpy.random.default_rng(1)
    quantised = {"bf16": gguf.GGMLQuantizationType.BF16, "int8": gguf.GGMLQuantizationType.Q8_0,
                 "int4": gguf.GGMLQuantizationType.Q4_0}
    # As llama-quantize leaves it, and heddle quantize: the output projection in eight bits.
    of_output = dict(quantised, int4=gguf.GGMLQuantizationType.Q8_0)
    width, vocab = sizes.GPT2["width"], sizes.GPT2["vocab"]
    out = gguf.GGUFWriter(path, "gpt2")
    out.add_context_length(sizes.GPT2["positions"])
    out.add_embedding_length(width)
    out.add_block_count(sizes.GPT2["layers"])
    out.add_feed_forward_length(4 * width)
    out.add_head_count(sizes.GPT2["heads"])
    out.add_layer_norm_eps(1e-5)
    out.add_vocab_size(vocab)
    out.add_tokenizer_model("no_vocab")

    def add(name, *shape, is_matrix=True, kinds=quantised):
        values = numbers.normal(0, 0.02, shape).astype(numpy.float32)
        if is_matrix and dtype in kinds:
            kind = kinds[dtype]
            out.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            out.add_tensor(name, values)

    def add_norm(name):
        add(f"{name}.weight", width, is_matrix=False)
        add(f"{name}.bias", width, is_matrix=False)

    def add_linear(name, wide, narrow):
        add(f"{name}.weight", wide, narrow)
        add(f"{name}.bias", wide, is_matrix=False)

    add("token_embd.weight", vocab, width, kinds=of_output)
    add("position_embd.weight", sizes.GPT2["positions"], width, is_matrix=False)
    add_norm("output_norm")
    add("output.weight", vocab, width, kinds=of_output)
    for i in range(sizes.GPT2["layers"]):
        add_norm(f"blk.{i}.attn_norm")
        add_linear(f"blk.{i}.attn_qkv", 3 * width, width)
        add_linear(f"blk.{i}.attn_output", width, width)
        add_norm(f"blk.{i}.ffn_norm")
        add_linear(f"blk.{i}.ffn_up", 4 * width, width)
        add_linear(f"blk.{i}.ffn_down", width, 4 * width)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def generate(args):
    if args.compile or args.batch > 1 or args.dtype not in ("f32", "bf16", "int8", "int4"):
        raise Unsupported("llama.cpp is timed one sequence at a time, not compiled")
    import llama_cpp
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpt2.gguf")
        write_model(path, args.dtype)
        llama_cpp.llama_backend_init()
        model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params())
    options = llama_cpp.llama_context_default_params()
    options.n_ctx = options.n_batch = sizes.GPT2["positions"]
    options.n_threads = options.n_threads_batch = args.threads
    context = llama_cpp.llama_init_from_model(model, options)

    def feed(tokens):
        ids = (ctypes.c_int32 * len(tokens))(*tokens)
        status = llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(ids, len(tokens)))
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status}")
        llama_cpp.llama_synchronize(context)  # `ids` must live until here

    prompt, new_tokens = sizes.GENERATE[args.case]

    def continue_prompt():
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        feed(range(1, prompt + 1))
        for i in range(new_tokens if new_tokens > 1 else 0):
            feed([i])

    units, unit = sizes.generated(args.case)
    return dict(step=continue_prompt, units=units, unit=unit, batch=1,
                version=f"llama-cpp-python {llama_cpp.__version__}")


CASES = dict.fromkeys(sizes.GENERATE, generate)
