"""What is timed side by side: each row is a case of `heddle bench`, with those it is compared to."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Contender:
    """A program in one number format: heddle itself where `peer` is empty."""
    peer: str
    dtype: str
    compiled: bool = False

    @property
    def name(self):
        return (self.peer or "heddle") + (" compiled" if self.compiled else "")


@dataclass(frozen=True)
class Row:
    case: str
    batch: int = 0  # 0: the case's own
    peers: tuple = field(default=())
    heddle: tuple = ("f32", "bf16")

    @property
    def name(self):
        return self.case + (f", batch {self.batch}" if self.batch else "")

    def contenders(self):
        """heddle and the peers by turns, so that a slow minute of the machine meets both."""
        ours = [Contender("", dtype) for dtype in self.heddle]
        mixed = []
        for i in range(max(len(ours), len(self.peers))):
            mixed += ours[i:i + 1] + list(self.peers[i:i + 1])
        return mixed


# What `--unit` leaves a program: the environment of each; who has none here knows no such limit.
# MKL's, of PyTorch's f32, is an upper bound.
UNITS = {
    unit: {"heddle": {"HEDDLE_MATRIX_UNIT": unit},
           "pytorch": {"ATEN_CPU_CAPABILITY": aten, "MKL_ENABLE_INSTRUCTIONS": aten.upper(),
                       "ONEDNN_MAX_CPU_ISA": onednn},
           "ctranslate2": {"CT2_FORCE_CPU_ISA": aten.upper()}}
    for unit, aten, onednn in (("avx2", "avx2", "AVX2"), ("vectors", "avx512", "AVX512_CORE"),
                               ("avx512_vnni", "avx512", "AVX512_CORE_VNNI"),
                               ("avx512_fma", "avx512", "AVX512_CORE_BF16"),
                               ("avx512_bf16", "avx512", "AVX512_CORE_BF16"))
}

PYTORCH = tuple(Contender("pytorch", dtype, compiled)
                for dtype in ("f32", "bf16") for compiled in (False, True))
CTRANSLATE2 = (*(Contender("ctranslate2", dtype) for dtype in ("f32", "int8", "bf16")),
               *(Contender("ctranslate2 AVX512", dtype) for dtype in ("f32", "int8")))
GENERATION = (Contender("pytorch", "f32"), Contender("pytorch", "bf16"),
              *(Contender("llama.cpp", dtype) for dtype in ("f32", "bf16", "int8", "int4")))
IMAGES = PYTORCH + (Contender("openvino", "f32"), Contender("openvino", "bf16"))
ENCODING = IMAGES + (Contender("openvino", "int8"),)
ALL = ("f32", "bf16", "int8")

ROWS = (
    Row("train-tiny", peers=PYTORCH),
    Row("train-base", peers=PYTORCH),
    Row("train-lstm", peers=PYTORCH),
    Row("train-steps", peers=PYTORCH),
    Row("train-chargpt", peers=PYTORCH),
    Row("train-babygpt", peers=PYTORCH),
    Row("train-gpt2", peers=PYTORCH),
    Row("translate-tiny", peers=CTRANSLATE2, heddle=ALL),
    Row("translate-base", peers=CTRANSLATE2, heddle=ALL),
    Row("translate-base-beam4", peers=CTRANSLATE2, heddle=ALL),
    Row("translate-base", batch=1, peers=CTRANSLATE2, heddle=ALL),
    Row("translate-lstm", peers=PYTORCH, heddle=ALL),
    Row("generate-gpt2", peers=GENERATION, heddle=(*ALL, "int4")),
    Row("prompt-gpt2", peers=GENERATION, heddle=(*ALL, "int4")),
    Row("encode-bert", peers=ENCODING, heddle=ALL),
    Row("encode-mixed", peers=ENCODING, heddle=ALL),
    Row("classify-vit", peers=IMAGES, heddle=ALL),
    Row("classify-swin", peers=IMAGES, heddle=ALL),
    Row("classify-resnet50", peers=IMAGES, heddle=ALL),
    Row("train-vit", peers=PYTORCH),
    Row("train-swin", peers=PYTORCH),
    Row("train-cct", peers=PYTORCH),
    Row("train-resnet", peers=PYTORCH),
    Row("train-vit-base", peers=PYTORCH),
    Row("start", peers=(Contender("pytorch", "f32"),)),
    Row("attention-16k"),
    Row("attention-32k"),
)
