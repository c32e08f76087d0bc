// Two linear layers with an activation between them.
#include "heddle/nn/mlp.h"

#include <algorithm>
#include <array>

#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

struct NamedActivation {
  const char* name;
  Activation kind;
};

// gelu_fast writes the same formula with its constants multiplied out.
constexpr std::array kActivations = {NamedActivation{"relu", Activation::relu},
                                     NamedActivation{"gelu", Activation::gelu},
                                     NamedActivation{"gelu_new", Activation::gelu_new},
                                     NamedActivation{"gelu_pytorch_tanh", Activation::gelu_new},
                                     NamedActivation{"gelu_fast", Activation::gelu_new},
                                     NamedActivation{"silu", Activation::silu},
                                     NamedActivation{"swish", Activation::silu},
                                     NamedActivation{"tanh", Activation::tanh}};

}  // namespace

Activation activation_of(const std::string& name) {
  for (const auto& known : kActivations) {
    if (name == known.name) return known.kind;
  }
  fail(ErrorKind::data, "activation '{}' is unknown; heddle has {}", name,
       fmt::join(activation_names(), ", "));
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& known : kActivations) names.emplace_back(known.name);
  return names;
}

FeedForward::FeedForward(std::string name, Linear in, Linear out, Options options)
    : name_(std::move(name)), in_(std::move(in)), out_(std::move(out)), options_(options) {}

Tensor FeedForward::operator()(const Tensor& x, const std::shared_ptr<const RowIds>& rows,
                               const Run& run) const {
  const LayerName layer(name_);
  const DropoutSpec spec = run.dropout(options_.dropout, name_, rows);
  if (options_.is_gated) {
    const Tensor both = in_(x, run);
    const int64_t hidden = both.size(1) / 2;
    const Tensor gate = activation(options_.activation, slice(both, 1, 0, hidden));
    return out_(dropout(mul(gate, slice(both, 1, hidden, hidden)), spec), run);
  }
  if (spec.p == 0) return out_(in_(x, run, options_.activation), run);
  return out_(activation(options_.activation, in_(x, run), spec), run);
}

}  // namespace heddle::nn
