// Attention alone over one long sequence, forward and backward: its memory must grow with the
// tokens, not with their square.
#include <memory>

#include "heddle/bench/case.h"
#include "heddle/ops/attention.h"

namespace heddle::bench {
namespace {

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

std::vector<BenchCase> attention_cases() {
  return {attention_case("attention-16k", 16384), attention_case("attention-32k", 32768)};
}

}  // namespace heddle::bench
