// Heads for classes.
#include "heddle/models/family.h"

#include "heddle/nn/mlp.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

std::vector<int32_t> first_of(const Segments& segments) {
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < segments.count(); ++i) {
    check(segments.length(i) > 0, ErrorKind::data,
          "pooling: sequence {} has no tokens, or all of them are hidden", i);
    rows.push_back(static_cast<int32_t>(segments.begin(i)));
  }
  return rows;
}

Linear layer(const Scope& s, const ClassOptions& o, bool has_bias = true) {
  return {s,
          {.in = o.width,
           .out = o.labels,
           .bias = has_bias,
           .init = Init::normal(o.std),
           .is_head = true,
           .gives_classes = true}};
}

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

Scope base_scope(const Scope& s, const std::string& base, const HubConfig& hub) {
  return hub.head == Head::none ? s : s / base;
}

void check_heads(int64_t width, const std::string& width_key, int64_t heads,
                 const std::string& source) {
  check(width % heads == 0, ErrorKind::data,
        "{}: {} {} is not divisible by {} heads; choose a number of heads that divides it", source,
        width_key, width, heads);
}

Tensor first_rows(const Tensor& x, const Segments& segments) {
  return gather_rows(x, first_of(segments));
}

std::shared_ptr<const RowIds> first_rows(const ModelInput& input) {
  return input.rows == nullptr ? nullptr : input.rows->of(first_of(input.segments));
}

Heads::OfInput classes_of_tokens(const Scope& s, const ClassOptions& o) {
  return [linear = layer(s, o), p = o.dropout, site = s.prefix()](
             const Tensor& h, const ModelInput& input, const Run& run) {
    return linear(dropout(h, run.dropout(p, site, input.rows)), run);
  };
}

Heads::OfInput classes_of_last_token(const Scope& s, const ClassOptions& o,
                                     std::optional<int64_t> pad) {
  return
      [linear = layer(s, o, false), pad](const Tensor& h, const ModelInput& input, const Run& run) {
        const auto& tokens = input.as<TokenRows>();
        std::vector<int32_t> last = first_of(*tokens.segments);
        for (int64_t i = 0; i < tokens.segments->count(); ++i) {
          for (int64_t r = tokens.segments->begin(i); r < tokens.segments->end(i); ++r) {
            if (!pad || tokens.ids[r] != *pad) last[i] = static_cast<int32_t>(r);
          }
        }
        return linear(gather_rows(h, last), run);
      };
}

Heads::OfInput classes_of_pooled(const Scope& s, const ClassOptions& o, Heads::OfInput pooler) {
  return [linear = layer(s, o), p = o.dropout, site = s.prefix(), pooler = std::move(pooler)](
             const Tensor& h, const ModelInput& input, const Run& run) {
    const DropoutSpec spec = run.dropout(p, site, first_rows(input));
    return linear(dropout(pooler(h, input, run), spec), run);
  };
}

Heads::OfInput classes_of_summary(const Scope& s, const Scope& out, const ClassOptions& o,
                                  const SummaryConfig& c, const HubConfig& hub) {
  std::optional<Linear> summary;
  if (c.summary_use_proj) {
    summary.emplace(s / "summary",
                    Linear::Options{.in = o.width, .out = o.width, .init = Init::normal(o.std)});
  }
  return [c, summary, kind = activation_of(hub), classes = layer(out, o), site = s.prefix()](
             const Tensor& h, const ModelInput& input, const Run& run) {
    Tensor x = summary_rows(h, input.segments, c.summary_type);
    x = summary ? (*summary)(x, run, kind) : kind == Activation::none ? x : activation(kind, x);
    return classes(dropout(x, run.dropout(c.summary_last_dropout, site, first_rows(input))), run);
  };
}

}  // namespace heddle
