// Sentence vectors: the states of a text's tokens, pooled.
#include "heddle/infer/embed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/files/mmap.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

/// Appends one pooling of a text's rows. h: [n, width]
void append_pooled(Pooling pooling, std::span<const float> h, int64_t width,
                   std::vector<float>& out) {
  const int64_t n = static_cast<int64_t>(h.size()) / width;
  const auto row = [&](int64_t i) { return h.subspan(static_cast<size_t>(i * width), width); };
  if (pooling == Pooling::cls || pooling == Pooling::last_token) {
    const auto one = row(pooling == Pooling::cls ? 0 : n - 1);
    out.insert(out.end(), one.begin(), one.end());
    return;
  }
  for (int64_t column = 0; column < width; ++column) {
    double sum = 0, weights = 0, most = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) {
      const double x = h[static_cast<size_t>(i * width + column)];
      const double weight = pooling == Pooling::weighted_mean ? static_cast<double>(i + 1) : 1.0;
      sum += weight * x;
      weights += weight;
      most = std::max(most, x);
    }
    const double divisor = pooling == Pooling::mean_sqrt_len ? std::sqrt(weights) : weights;
    out.push_back(static_cast<float>(pooling == Pooling::max ? most : sum / divisor));
  }
}

std::vector<float> apply(const DenseLayer& dense, const std::vector<float>& x,
                         const std::string& path) {
  check(static_cast<int64_t>(x.size()) == dense.in, ErrorKind::data,
        "{}: a vector has {} numbers, but the dense layer takes {}; its pooling is another", path,
        x.size(), dense.in);
  std::vector<float> y;
  for (int64_t o = 0; o < dense.out; ++o) {
    double sum = dense.bias.empty() ? 0 : dense.bias[static_cast<size_t>(o)];
    for (int64_t i = 0; i < dense.in; ++i) {
      sum += static_cast<double>(dense.weight[static_cast<size_t>(o * dense.in + i)]) * x[i];
    }
    y.push_back(static_cast<float>(dense.has_tanh ? std::tanh(sum) : sum));
  }
  return y;
}

void normalize(std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  const double length = std::max(std::sqrt(sum), 1e-12);  // as torch.nn.functional.normalize
  for (float& v : x) v = static_cast<float>(v / length);
}

}  // namespace

std::vector<std::vector<float>> embed(const SentenceEncoder& encoder,
                                      std::span<const std::string> texts,
                                      const Precision& precision, int64_t& cut) {
  check_mapped_files();
  const EmbedOptions& options = encoder.options;
  const TokenModel& model = encoder.text.tokens();
  std::vector<Encoding> encodings;
  for (const std::string& text : texts) {
    bool was_cut = false;
    const std::string whole = options.prompt + text;
    encodings.push_back(
        encode_to_fit(encoder.text, options.lower_case ? lower_case(whole) : whole, was_cut));
    cut += was_cut ? 1 : 0;
  }
  const PackedTexts packed(model, encodings);
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const std::vector<float> h = model.hidden(packed.tokens(), run).to_floats();
  const int64_t width = model.width();
  std::vector<std::vector<float>> result;
  for (int64_t i = 0; i < packed.segments.count(); ++i) {
    const auto rows = std::span(h).subspan(static_cast<size_t>(packed.segments.begin(i) * width),
                                           static_cast<size_t>(packed.segments.length(i) * width));
    std::vector<float>& x = result.emplace_back();
    for (const Pooling pooling : options.pooling) append_pooled(pooling, rows, width, x);
    for (const DenseLayer& dense : options.dense) x = apply(dense, x, encoder.text.path);
    if (options.normalize) normalize(x);
    check(std::ranges::all_of(x, [](float v) { return std::isfinite(v); }), ErrorKind::data,
          "{}: the model gives a vector that is not finite", encoder.text.path);
  }
  return result;
}

}  // namespace heddle
