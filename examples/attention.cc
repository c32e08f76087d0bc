// Attention on numbers of your own: a soft look-up in a table, and a mask over four tokens.
// usage: attention [HEIGHT]

#include <charconv>
#include <cmath>
#include <string_view>

#include "heddle/ops/attention.h"

namespace {

using heddle::Segments;
using heddle::Tensor;

// People of these heights (cm) have these weights (kg): what of somebody in between? The score of a
// height q against a key k is -(q - k)^2 / 2, a Gaussian: the product of (q, 1) and (k, -k^2 / 2)
// but for a term that all keys share, which the softmax takes away.
void look_up(float height) {
  const std::vector<float> heights = {160, 166, 173}, kilograms = {60, 64, 70};
  std::vector<float> keys, values;
  for (size_t i = 0; i < heights.size(); ++i) {
    keys.insert(keys.end(), {heights[i], -heights[i] * heights[i] / 2});
    values.insert(values.end(), {kilograms[i], 0});  // values are as wide as keys
  }
  const Tensor q = Tensor::from(std::vector<float>{height, 1}, {1, 2});
  const Tensor k = Tensor::from(keys, {3, 2}), v = Tensor::from(values, {3, 2});
  const Segments one = Segments::uniform(1, 1), three = Segments::uniform(1, 3);
  const heddle::AttentionOptions options{.scale = 1};  // not 1 / sqrt(2)

  const Tensor weights = heddle::attention_weights(q, k, one, three, options, 0, 0);
  const Tensor y = heddle::attention(q, k, v, one, three, options);
  fmt::print("keys     {} cm\nvalues   {} kg\nquery    {} cm\n", fmt::join(heights, ", "),
             fmt::join(kilograms, ", "), height);
  fmt::print("weights  {:.4f}\noutput   {:.2f} kg\n\n", fmt::join(weights.to_floats(), ", "),
             y.to_floats()[0]);
}

// Four tokens that look at themselves and at what came before: no weight to the right of the
// diagonal. Two heads of width 2 lie side by side in the columns.
void look_back() {
  const int64_t tokens = 4, heads = 2, width = 4;
  std::vector<float> x;
  for (int i = 0; i < tokens * width; ++i) x.push_back(static_cast<float>((i * 7) % 5) / 2);
  const Tensor states = Tensor::from(x, {tokens, width});
  const Segments sentence = Segments::uniform(1, tokens);
  const heddle::AttentionOptions options{.heads = heads, .causal = true};
  for (int64_t head = 0; head < heads; ++head) {
    const std::vector<float> w =
        heddle::attention_weights(states, states, sentence, sentence, options, 0, head).to_floats();
    fmt::print("head {}\n", head);
    for (int64_t i = 0; i < tokens; ++i) {
      fmt::print("  {:.2f}\n",
                 fmt::join(w.begin() + i * tokens, w.begin() + (i + 1) * tokens, " "));
    }
  }
}

float height_of(std::string_view text) {
  float height = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), height);
  heddle::check(error == std::errc() && end == text.data() + text.size() && std::isfinite(height),
                heddle::ErrorKind::usage, "HEIGHT is '{}'; it must be a number", text);
  return height;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    look_up(argc > 1 ? height_of(argv[1]) : 162);
    look_back();
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "attention: {}\n", error.what());
    return error.exit_code();
  }
}
