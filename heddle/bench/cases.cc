// The table of cases, with those of attention alone, and the run of one.
#include <algorithm>
#include <fstream>
#include <memory>

#include "heddle/base/error.h"
#include "heddle/base/names.h"
#include "heddle/base/profile.h"
#include "heddle/bench/case.h"
#include "heddle/ops/attention.h"

namespace heddle::bench {
namespace {

// Resident memory of this process at its highest; 0 where the system does not say.
int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    int64_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

// --- attention alone over one long sequence, forward and backward: its memory must grow with the
// tokens, not with their square

constexpr int64_t kHeads = 8, kHeadWidth = 64, kWidth = kHeads * kHeadWidth;

// Seven products of tokens × tokens × 64 for each head: scores and their use; scores again and the
// gradients of weights, values, queries and keys. In blocks of 256 queries, since the matrix of all
// scores need not exist.
Products attention_products(int64_t tokens, int64_t sequences, DType dtype) {
  constexpr int64_t kBlock = 256;
  const int64_t blocks = kHeads * sequences * (tokens / kBlock);
  Products p(dtype, false);
  p.linear(kBlock, kHeadWidth, tokens, 3 * blocks);
  p.linear(kBlock, tokens, kHeadWidth, 4 * blocks);
  return p;
}

BenchWorkload make_attention(int64_t tokens, const BenchOptions& o) {
  struct State {
    Tensor qkv;
    Leaf leaf;
    Segments segments;
  };
  const int64_t sequences = o.batch > 0 ? o.batch : 1;
  const auto s = std::make_shared<State>();
  s->segments = Segments::uniform(sequences, tokens);
  s->qkv = some_numbers({sequences * tokens, 3 * kWidth}, o.precision.compute).with_leaf(&s->leaf);
  return {.step =
              [s] {
                backward(self_attention(s->qkv, s->segments, {.heads = kHeads}));
                s->leaf.grad = Tensor();
              },
          .units = static_cast<double>(sequences * tokens),
          .batch = sequences,
          .model = fmt::format("attention, {} heads of {}", kHeads, kHeadWidth),
          .products = attention_products(tokens, sequences, o.precision.compute),
          .warm_up = 0,
          .least = 1};
}

BenchCase attention_case(const std::string& name, int64_t tokens) {
  return {.name = name,
          .unit = "tokens/s",
          .about = fmt::format(
              "attention forward and backward over {} tokens, {} heads of {}; not warmed up",
              tokens, kHeads, kHeadWidth),
          .dtypes = {"f32", "bf16"},
          .make = [tokens](const BenchOptions& o) { return make_attention(tokens, o); }};
}

}  // namespace

const std::vector<BenchCase>& cases() {
  static const std::vector<BenchCase> all = [] {
    std::vector<BenchCase> table = translation_cases();
    for (const BenchCase& c : language_cases()) table.push_back(c);
    table.push_back(attention_case("attention-16k", 16384));
    table.push_back(attention_case("attention-32k", 32768));
    for (const BenchCase& c : image_cases()) table.push_back(c);
    for (const BenchCase& c : start_cases()) table.push_back(c);
    return table;
  }();
  return all;
}

const BenchCase& find_case(const std::string& name) {
  std::vector<std::string> names;
  for (const BenchCase& c : cases()) {
    if (c.name == name) return c;
    names.push_back(c.name);
  }
  const std::string nearest = nearest_name(name, names);
  fail(ErrorKind::usage, "bench: unknown case '{}'.{} The cases are {}", name,
       nearest.empty() ? "" : " Did you mean '" + nearest + "'?", fmt::join(names, ", "));
}

BenchOptions options_of_run(const BenchCase& c, const std::string& name) {
  check(std::find(c.dtypes.begin(), c.dtypes.end(), name) != c.dtypes.end(), ErrorKind::usage,
        "bench: {} does not run in '{}'; `precision` must be one of {}", c.name, name,
        fmt::join(c.dtypes, ", "));
  const bool has_files = std::ranges::count(c.dtypes, "int4") > 0;
  const int bits = name == "int4" ? 4 : name == "int8" && has_files ? 8 : 0;
  return {.precision = resolve_precision(bits > 0 ? "int8" : name), .bits = bits};
}

BenchResult run_case(const BenchCase& c, const BenchOptions& options) {
  BenchResult result;
  BenchWorkload w = c.make(options);
  const Timing timing = time_repeatedly(w.step, options.seconds, w.warm_up, w.least);
  result.step_ms = timing.median * 1e3;
  result.repetitions = timing.repetitions;
  result.value = w.units / timing.median;
  result.peak_bytes = w.peak_bytes ? w.peak_bytes() : peak_resident_bytes();
  const double operations = w.bytes_read > 0 ? 0 : operations_of(w.step);
  w.step = nullptr;  // frees the model, so that what follows needs no more memory than it did
  const ProfilePhase limits("limits of the machine");
  const auto set = [&](double seconds, double& value, double& share) {
    if (seconds > 0) value = w.units / seconds, share = seconds / timing.median;
  };
  if (w.bytes_read > 0) {
    result.peak_by = "reads";
    set(seconds_of_reads(w.bytes_read, w.model_bytes), result.peak, result.share_of_peak);
  } else {
    result.peak_by = "registers";
    set(seconds_in_registers(operations, options.precision), result.peak, result.share_of_peak);
    set(seconds_of_products(w.products), result.products, result.share_of_products);
  }
  result.model = w.model;
  result.parameters = w.parameters;
  result.batch = w.batch;
  return result;
}

ProductTimings time_products(const BenchCase& c, const BenchOptions& options) {
  const Products products = c.make(options).products;
  check(!products.all().empty(), ErrorKind::usage,
        "bench: {} is not made of matrix products; leave out `products`", c.name);
  ProductTimings timings;
  for (const MatrixProduct& p : products.all()) timings.rows.push_back({p, seconds_of_product(p)});
  std::ranges::stable_sort(timings.rows, std::greater<>(), [](const ProductTimings::Row& row) {
    return row.seconds * static_cast<double>(row.product.count);
  });
  const double seconds = seconds_in_registers(1, options.precision);
  if (seconds > 0) timings.peak = 1 / seconds;
  return timings;
}

}  // namespace heddle::bench
