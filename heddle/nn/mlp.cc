// Two linear layers with an activation between them; experts, whose rows are sorted and summed.
#include "heddle/nn/mlp.h"

#include <algorithm>
#include <array>

#include "heddle/ops/embedding.h"
#include "heddle/ops/moe.h"
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
                               const Run& run, const std::string& stream) const {
  const LayerName layer(name_);
  const DropoutSpec spec = run.dropout(options_.dropout, stream + name_, rows);
  if (options_.is_gated) {
    const Tensor both = in_(x, run);
    const int64_t hidden = both.size(1) / 2;
    const Tensor gate = activation(options_.activation, slice(both, 1, 0, hidden));
    return out_(dropout(mul(gate, slice(both, 1, hidden, hidden)), spec), run);
  }
  if (spec.p == 0) return out_(in_(x, run, options_.activation), run);
  return out_(activation(options_.activation, in_(x, run), spec), run);
}

SparseExperts::SparseExperts(const Scope& s, Options options)
    : options_(std::move(options)),
      gate_(s / "gate", {.in = options_.width,
                         .out = options_.experts,
                         .bias = false,
                         .init = options_.init,
                         .is_head = true}) {
  for (int64_t i = 0; i < options_.experts; ++i) {
    const Scope e = s / "experts" / i;
    experts_.push_back(
        {e.prefix(),
         Linear(
             e, {"w1", "w3"},
             {.in = options_.width, .out = options_.hidden, .bias = false, .init = options_.init}),
         Linear(
             e / "w2",
             {.in = options_.hidden, .out = options_.width, .bias = false, .init = options_.init}),
         {.activation = options_.activation, .is_gated = true}});
  }
}

Tensor SparseExperts::operator()(const Tensor& x, const std::shared_ptr<const RowIds>& /*ids*/,
                                 const Run& run) const {
  const Tensor logits = gate_(x, run);
  if (run.observer != nullptr && run.observer->router) {
    run.observer->router(options_.observed, logits.detached());
  }
  if (run.router_logits != nullptr) run.router_logits->push_back(logits);
  const Routes routes = route(logits, options_.chosen);
  const int64_t rows = x.size(0), k = options_.chosen;
  std::vector<std::vector<int32_t>> slots(experts_.size());  // of each expert: row * k + rank
  for (int32_t s = 0; s < rows * k; ++s) slots[routes.experts[s]].push_back(s);
  std::vector<Tensor> outputs;  // of each expert that has rows
  std::vector<int32_t> order;   // the slots in the order of outputs
  // [rank of the expert among a row's][row]: where its output lies
  std::vector<std::vector<int32_t>> places(k, std::vector<int32_t>(rows));
  std::vector<int32_t> seen(rows);
  for (size_t e = 0; e < experts_.size(); ++e) {
    if (slots[e].empty()) continue;
    std::vector<int32_t> own;
    for (const int32_t s : slots[e]) {
      const auto row = static_cast<int32_t>(s / k);
      own.push_back(row);
      places[seen[row]++][row] = static_cast<int32_t>(order.size());
      order.push_back(s);
    }
    outputs.push_back(experts_[e](gather_rows(x, own), nullptr, run));
  }
  if (outputs.empty()) return Tensor::zeros(x.shape(), x.dtype());
  const Tensor weights = gather_rows(reshape(routes.weights, {rows * k, 1}), order);
  const Tensor weighted =
      scale_rows(outputs.size() == 1 ? outputs[0] : concat(outputs, 0), weights);
  Tensor sum = gather_rows(weighted, places[0]);
  for (int64_t i = 1; i < k; ++i) sum = add(sum, gather_rows(weighted, places[i]));
  return sum;
}

}  // namespace heddle::nn
