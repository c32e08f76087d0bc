// Repetitions and their median; the matrix products of a case and their time, by the driver and in
// registers, and the time of memory reads.
#include "heddle/bench/roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <tuple>

#include "heddle/base/parallel.h"
#include "heddle/base/rng.h"
#include "heddle/kernels/cpu/gemm/register_peak.h"
#include "heddle/kernels/kernels.h"

namespace heddle::bench {
namespace {

constexpr int64_t kLogitBytes = 20 << 20, kLeastLogitRows = 256;
// Of the repetitions of one measurement.
constexpr double kProductSeconds = 0.05, kReadSeconds = 0.2, kRegisterSeconds = 0.2;

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

auto shape_of(const MatrixProduct& p) {
  return std::tie(p.m, p.n, p.k, p.transpose_a, p.transpose_b, p.in, p.out, p.int8, p.is_constant);
}

// The encoder, and the cross keys and values.
void add_sources(Products& p, const TransformerConfig& c, int64_t rows) {
  p.blocks(rows, c.d_model, c.encoder_ffn_dim, c.encoder_layers);
  p.linear(rows, c.d_model, 2 * c.d_model, c.decoder_layers);
}

// `times` passes over `rows` rows each, cross keys and values aside.
void add_decoder(Products& p, const TransformerConfig& c, int64_t rows, int64_t times) {
  const int64_t n = c.decoder_layers * times;
  p.blocks(rows, c.d_model, c.decoder_ffn_dim, n);
  p.linear(rows, c.d_model, c.d_model, 2 * n);  // cross queries, out
  p.logits(rows, c.d_model, c.vocab_size, times);
}

// Plain loops over separate sums: the compiler makes vector loads of them, as wide as the function
// that this is inlined into may use.
[[gnu::always_inline]] inline uint64_t sum_words(const uint64_t* x, int64_t n) {
  constexpr int64_t kLanes = 32;
  uint64_t sums[kLanes] = {};
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += x[i + l];
  }
  uint64_t total = 0;
  for (const uint64_t s : sums) total += s;
  return total;
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] uint64_t sum_words_512(const uint64_t* x, int64_t n) {
  return sum_words(x, n);
}
[[gnu::target("avx2")]] uint64_t sum_words_256(const uint64_t* x, int64_t n) {
  return sum_words(x, n);
}
#endif

uint64_t sum_words_any(const uint64_t* x, int64_t n) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return sum_words_512(x, n);
  if (__builtin_cpu_supports("avx2")) return sum_words_256(x, n);
#endif
  return sum_words(x, n);
}

}  // namespace

Timing time_repeatedly(const std::function<void()>& f, double seconds, int warm_up, int64_t least) {
  for (int i = 0; i < warm_up; ++i) f();
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (since(begin) < seconds || static_cast<int64_t>(times.size()) < least) {
    const Clock::time_point start = Clock::now();
    f();
    times.push_back(since(start));
  }
  return {median(times), static_cast<int64_t>(times.size())};
}

Tensor some_numbers(const Shape& shape, DType dtype) {
  const Tensor x = Tensor::empty(shape, DType::f32);
  RngStream random(make_key(1, 2, 3));
  float* const data = x.data<float>();
  const int64_t n = x.elements(), period = std::min<int64_t>(n, 1 << 16);
  for (int64_t i = 0; i < period; ++i) data[i] = random.uniform() - 0.5f;
  for (int64_t i = period; i < n; ++i) data[i] = data[i - period];
  if (dtype == DType::f32) return x;
  Tensor y = empty_like(x, dtype);
  kernels().convert(x.rows(), y.rows());
  return y;
}

void Products::add(const MatrixProduct& p) {
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.count == 0) return;
  for (MatrixProduct& known : all_) {
    if (shape_of(known) != shape_of(p)) continue;
    known.count += p.count;
    return;
  }
  all_.push_back(p);
}

void Products::linear(int64_t rows, int64_t in, int64_t out, int64_t count) {
  forward(rows, in, out, count);
  if (trains_) backward(rows, in, out, count);
}

void Products::forward(int64_t rows, int64_t in, int64_t out, int64_t count) {
  add({.m = rows,
       .n = out,
       .k = in,
       .transpose_b = true,
       .in = dtype_,
       .out = dtype_,
       .int8 = int8_,
       .is_constant = !trains_,
       .count = count});
}

void Products::logits(int64_t rows, int64_t width, int64_t vocab, int64_t count) {
  const int64_t chunk = std::max(kLeastLogitRows, kLogitBytes / (4 * vocab) / 256 * 256);
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t part = std::min(chunk, rows - begin);
    add({.m = part,
         .n = vocab,
         .k = width,
         .transpose_b = true,
         .in = dtype_,
         .int8 = int8_,
         .is_constant = !trains_,
         .count = count});
    if (trains_) backward(part, width, vocab, count);
  }
}

void Products::steps(const Segments& sequences, int64_t in, int64_t out, int64_t first) {
  for (int64_t t = first, running = 1; running > 0; ++t) {
    running = 0;
    for (int64_t i = 0; i < sequences.count(); ++i) running += sequences.length(i) > t ? 1 : 0;
    add({.m = running,
         .n = out,
         .k = in,
         .transpose_b = true,
         .in = dtype_,
         .int8 = int8_,
         .is_constant = true});
    if (trains_) add({.m = running, .n = in, .k = out, .in = dtype_, .is_constant = true});
  }
  if (!trains_) return;
  add({.m = out, .n = in, .k = sequences.rows(), .transpose_a = true, .in = dtype_});
}

void Products::backward(int64_t rows, int64_t in, int64_t out, int64_t count) {
  add({.m = rows, .n = in, .k = out, .in = dtype_, .out = dtype_, .count = count});
  add({.m = out, .n = in, .k = rows, .transpose_a = true, .in = dtype_, .count = count});
}

double Products::flops() const {
  double sum = 0;
  for (const MatrixProduct& p : all_) sum += p.flops() * static_cast<double>(p.count);
  return sum;
}

int64_t Products::weights_read() const {
  int64_t sum = 0;
  for (const MatrixProduct& p : all_) sum += p.n * p.k * p.count;
  return sum;
}

Products training_products(const TransformerConfig& c, int64_t source_rows, int64_t target_rows,
                           const Precision& precision) {
  Products p(precision, true);
  add_sources(p, c, source_rows);
  add_decoder(p, c, target_rows, 1);
  return p;
}

Products translation_products(const TransformerConfig& c, const TranslationSize& size,
                              const Precision& precision) {
  Products p(precision, false);
  add_sources(p, c, size.source_rows);
  add_decoder(p, c, size.sentences, 1);
  add_decoder(p, c, size.sentences * size.beam, size.steps - 1);
  return p;
}

double seconds_of_product(const MatrixProduct& p) {
  // An identity of our own: the driver keeps the packed form until it is told to forget it.
  constexpr uint64_t kIdentity = ~uint64_t{0};
  const Tensor a = some_numbers(p.transpose_a ? Shape{p.k, p.m} : Shape{p.m, p.k}, p.in);
  const Tensor b =
      some_numbers(p.transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, p.int8 ? DType::f32 : p.in);
  const Tensor c = Tensor::empty({p.m, p.n}, p.out);
  const auto multiply = [&] {
    kernels().gemm({.a = a.rows(),
                    .b = b.rows(),
                    .c = c.rows(),
                    .transpose_a = p.transpose_a,
                    .transpose_b = p.transpose_b,
                    .constant_b = p.is_constant ? kIdentity : 0,
                    .int8 = p.int8});
  };
  const Timing timing = time_repeatedly(multiply, kProductSeconds);
  if (p.is_constant) forget_packed(kIdentity);
  return timing.median;
}

double seconds_of_products(const Products& products) {
  double seconds = 0;
  for (const MatrixProduct& p : products.all()) {
    seconds += seconds_of_product(p) * static_cast<double>(p.count);
  }
  return seconds;
}

double operations_of(const std::function<void()>& f) {
  if (is_profiling()) return 0;
  start_profile(0);
  f();
  double operations = 0;
  if (const std::optional<Profile> profile = stop_profile()) {
    for (const Profile::Row& row : profile->rows) operations += row.totals.work.flops;
  }
  return operations;
}

double seconds_in_registers(double operations, const Precision& precision) {
  const DType factors = precision.int8 ? DType::i8 : precision.compute;
  const double peak = cpu::register_peak(factors, kRegisterSeconds);
  return peak > 0 ? operations / peak : 0;
}

double seconds_of_reads(int64_t bytes, int64_t buffer_bytes) {
  constexpr int64_t kBlock = 1 << 17;  // words: 1 MB
  const int64_t n = std::max<int64_t>(buffer_bytes / 8, 1 << 12);
  const auto storage = Storage::allocate(8 * n);
  auto* const words = static_cast<uint64_t*>(storage->data());
  parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) words[i] = static_cast<uint64_t>(i);
  });
  std::atomic<uint64_t> sum = 0;  // used, so that no read is left out
  const auto read = [&] {
    parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) {
      sum += sum_words_any(words + begin, end - begin);
    });
  };
  const double seconds = time_repeatedly(read, kReadSeconds).median;
  return seconds * static_cast<double>(bytes) / static_cast<double>(8 * n);
}

}  // namespace heddle::bench
