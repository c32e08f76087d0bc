// Times every op of the test cases at the sizes of a batch of training; run by `./dev bench --ops`.
// usage: heddle_bench_ops [REGEX] [--threads N] [--seconds S] [--plain]
#include <cstdlib>
#include <cstring>
#include <regex>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/bench/roof.h"
#include "tests/support/op_case.h"

namespace heddle {
namespace {

struct Flags {
  std::regex wanted{""};
  double seconds = 0.1;   // of the repetitions of one figure
  bool is_plain = false;  // the plain definitions of fused ops instead
};

// 64 pairs of 32 tokens through width 512, 2,048 inside, a vocabulary of 10,000: train-base.
OpSizes train_base_sizes() {
  return {.elements = {2048, 512},
          .moved = {2048, 512},
          .product = {2048, 512, 512},
          .linear = {512, 2048},
          .linear_rows = {64, 2048},
          .reduced = {2048, 512},
          .softmax = {2048, 512},
          .norm = {2048, 512},
          .vocab = 10000,
          .table = {10000, 512},
          .tokens = 2048,
          .sentences = std::vector<int64_t>(64, 32),
          .queries = std::vector<int64_t>(64, 32),
          .keys = std::vector<int64_t>(64, 32),
          .contexts = {4096},
          .windows = {4096, 1024, 256},
          .width = 512,
          .heads = 8,
          .images = std::vector<ImageSize>(64, {32, 32}),
          .channels = 46};
}

int64_t bytes_of(const Tensors& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) {
    if (t.defined()) bytes += t.elements() * static_cast<int64_t>(size_of(t.dtype()));
  }
  return bytes;
}

struct OpTime {
  double forward_ms = 0, both_ms = 0;  // both: forward and backward
  double gigabytes_per_second = 0;     // inputs read and outputs written, forward
};

OpTime time_op(const OpCase& c, const OpFunction& f, DType dtype, double seconds) {
  std::vector<Leaf> leaves(c.shapes.size());
  const Tensors inputs = case_inputs(c, dtype, leaves);
  int64_t bytes = bytes_of(inputs);
  const auto forward = [&] {
    NoGrad off;
    f(inputs);
  };
  const auto both = [&] {
    const Tensors outputs = f(inputs);
    for (size_t i = outputs.size(); i-- > 0;) {  // the last: of sum and norm, the norm
      if (!outputs[i].defined()) continue;
      backward(outputs[i]);
      break;
    }
    for (Leaf& leaf : leaves) leaf.grad = Tensor();
  };
  {
    NoGrad off;
    bytes += bytes_of(f(inputs));
  }
  OpTime time;
  time.forward_ms = 1e3 * bench::time_repeatedly(forward, seconds).median;
  time.both_ms = 1e3 * bench::time_repeatedly(both, seconds).median;
  time.gigabytes_per_second = static_cast<double>(bytes) / time.forward_ms / 1e6;
  return time;
}

Flags read_flags(int count, char** words) {
  Flags flags;
  for (int i = 1; i < count; ++i) {
    const auto is = [&](const char* name) { return std::strcmp(words[i], name) == 0; };
    if (is("--plain")) {
      flags.is_plain = true;
    } else if (is("--threads") || is("--seconds")) {
      check(i + 1 < count, ErrorKind::usage, "{} needs a value", words[i]);
      const bool is_threads = is("--threads");
      const double value = std::atof(words[++i]);
      check(value >= 0, ErrorKind::usage, "{} is {}; it must not be negative", words[i - 1], value);
      if (is_threads) set_num_threads(static_cast<int>(value));
      if (!is_threads) flags.seconds = value;
    } else {
      check(words[i][0] != '-', ErrorKind::usage,
            "unknown flag '{}'; known are --threads N, --seconds S, --plain", words[i]);
      flags.wanted = std::regex(words[i]);
    }
  }
  return flags;
}

void run(const Flags& flags) {
  fmt::print("{} thread{}; ms forward, ms forward and backward, GB/s forward\n{:44}", num_threads(),
             num_threads() == 1 ? "" : "s", "");
  fmt::print(" {:>10} {:>10} {:>7}  {:>10} {:>10} {:>7}\n", "f32", "", "", "bf16", "", "");
  for (const OpCase& c : op_cases(train_base_sizes())) {
    const std::string name = c.op + " " + c.variant;
    const OpFunction& f = flags.is_plain ? c.reference : c.function;
    if (!f || !std::regex_search(name, flags.wanted)) continue;
    fmt::print("{:44}", name);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (dtype == DType::bf16 && !c.has_bf16) continue;
      const OpTime t = time_op(c, f, dtype, flags.seconds);
      fmt::print(" {:10.3f} {:10.3f} {:7.1f} ", t.forward_ms, t.both_ms, t.gigabytes_per_second);
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace heddle

int main(int count, char** words) {
  try {
    heddle::run(heddle::read_flags(count, words));
    return 0;
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "heddle_bench_ops: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "heddle_bench_ops: {}\n", error.what());
    return 2;
  }
}
