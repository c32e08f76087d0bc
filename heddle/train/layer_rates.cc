// Depths out of the names and the order of parameters.
#include "heddle/train/layer_rates.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <ranges>
#include <set>

#include "heddle/infer/loading/adapter.h"

namespace heddle::train {
namespace {

struct LayerNumber {
  std::string stack;  // "bert.encoder.layer"
  int64_t number = 0;
};

// The first part of a name that is a number, and what stands before it.
std::optional<LayerNumber> layer_of(const std::string& name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const bool is_number = end > begin && end - begin < 6 &&
                           std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin),
                                       name.begin() + static_cast<std::ptrdiff_t>(end),
                                       [](unsigned char c) { return std::isdigit(c) != 0; });
    if (is_number && begin > 0) {
      return LayerNumber{name.substr(0, begin - 1), std::stoll(name.substr(begin, end - begin))};
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

LayerRates::LayerRates(const nn::Parameters& parameters, double decay) {
  std::map<std::string, int64_t> depths;  // layers of each stack
  for (const auto& p : parameters.all()) {
    const auto layer = layer_of(p->name());
    if (!layer) continue;
    int64_t& depth = depths[layer->stack];
    depth = std::max(depth, layer->number + 1);
  }
  // From the last to the first: what is met before any layer is behind them all, and what has a
  // stack's prefix and is met before its layers (the norm of an encoder) is behind those.
  int64_t below = 0;  // layers of the stack that comes next
  std::set<std::string> met;
  const auto is_behind_its_stack = [&](const std::string& name) {
    return std::ranges::any_of(std::views::keys(depths), [&](const std::string& stack) {
      const std::string prefix = stack.substr(0, stack.rfind('.') + 1);
      return !prefix.empty() && name.starts_with(prefix) && !met.contains(stack);
    });
  };
  for (auto p = parameters.all().rbegin(); p != parameters.all().rend(); ++p) {
    const auto layer = layer_of((*p)->name());
    const int64_t steps = layer ? depths[layer->stack] - 1 - layer->number
                          : is_behind_its_stack((*p)->name()) ? 0
                                                              : below;
    if (layer) below = depths[layer->stack], met.insert(layer->stack);
    for (const nn::Part& part : (*p)->parts()) {
      factors_[part.name] = std::pow(decay, static_cast<double>(steps));
    }
  }
}

double LayerRates::factor(const nn::Parameter& parameter) const {
  std::string name = parameter.name();
  if (name.starts_with(kAdapterPrefix)) name.erase(0, std::string_view(kAdapterPrefix).size());
  for (const std::string_view matrix : {".lora_A", ".lora_B"}) {
    if (const size_t at = name.find(matrix); at != name.npos) name.erase(at, matrix.size());
  }
  const auto at = factors_.find(name);
  return at == factors_.end() ? 1 : at->second;
}

}  // namespace heddle::train
