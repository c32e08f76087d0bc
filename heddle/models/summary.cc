// The token that stands for its sequence, and what follows.
#include "heddle/models/summary.h"

#include "heddle/nn/mlp.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

Activation activation_of(const HubConfig& hub) {
  const Json* name = hub.others.find("summary_activation");
  if (name == nullptr) return Activation::tanh;
  return name->is_null() ? Activation::none
                         : nn::activation_of(name->as_string("key 'summary_activation'"));
}

// [sequences, width]
Tensor summary_rows(const Tensor& h, const Segments& segments, const std::string& type) {
  std::vector<int32_t> rows;
  std::vector<Tensor> means;
  for (int64_t s = 0; s < segments.count(); ++s) {
    const int64_t n = segments.length(s);
    check(n > 0, ErrorKind::data,
          "the summary of sequence {}: it has no tokens, or all of them are hidden", s);
    rows.push_back(static_cast<int32_t>(type == "first" ? segments.begin(s) : segments.end(s) - 1));
    if (type != "mean") continue;
    const Tensor part = Tensor::full({1, n}, 1.0f / static_cast<float>(n), h.dtype());
    means.push_back(matmul(part, slice(h, 0, segments.begin(s), n)));
  }
  return type == "mean" ? concat(means, 0) : gather_rows(h, rows);
}

}  // namespace

Heads::OfInput classes_of_summary(const Scope& s, const Scope& out, const ClassOptions& o,
                                  const SummaryConfig& c, const HubConfig& hub) {
  const auto dense = [&](const Scope& at, int64_t outputs) {
    return Linear(at, {.in = o.width, .out = outputs, .init = Init::normal(o.std)});
  };
  std::optional<Linear> summary;
  if (c.summary_use_proj) summary.emplace(dense(s / "summary", o.width));
  return [c, summary, kind = activation_of(hub), classes = dense(out, o.labels), site = s.prefix()](
             const Tensor& h, const ModelInput& input, const Run& run) {
    Tensor x = summary_rows(h, input.segments, c.summary_type);
    x = summary ? (*summary)(x, run, kind) : kind == Activation::none ? x : activation(kind, x);
    return classes(dropout(x, run.dropout(c.summary_last_dropout, site, first_rows(input))), run);
  };
}

}  // namespace heddle
