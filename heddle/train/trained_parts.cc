// Choosing parameters, the chain rule through W0 + s B A, PEFT's config.
#include "heddle/train/trained_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <regex>
#include <utility>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/names.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/kernels.h"
#include "heddle/text/strings/strings.h"

namespace heddle::train {
namespace {

// Whether the claim holds for a tensor of checkpoints that the model has.
template <class Claim>
bool any_part(const nn::Parameters& model, const Claim& claim) {
  return std::ranges::any_of(model.all(),
                             [&](const auto& p) { return std::ranges::any_of(p->parts(), claim); });
}

// Weights that a regular expression chooses by their names.
class Choice {
 public:
  Choice(const std::string& text, const char* key) : text_(text), key_(key) {
    try {
      regex_ = std::regex(text);
    } catch (const std::regex_error&) {
      fail(ErrorKind::usage, "{} '{}' is no regular expression", field_name(key), text);
    }
  }
  bool is_given() const { return !text_.empty(); }
  bool has(const std::string& name) const { return is_given() && std::regex_search(name, regex_); }
  void check_among(const nn::Parameters& model) const {
    const bool is_found = any_part(model, [&](const nn::Part& part) { return has(part.name); });
    check(!is_given() || is_found, ErrorKind::usage, "{} '{}': no weight has such a name",
          field_name(key_), text_);
  }

 private:
  std::string text_;
  const char* key_;
  std::regex regex_;
};

// Names between commas; those of the families' queries and values if there is none.
std::vector<std::string> target_names(const TrainConfig& config, const nn::Parameters& model) {
  std::vector<std::string> names = split_at_commas(config.lora_targets);
  if (!names.empty()) return names;
  for (const char* name : {"c_attn", "query", "value", "q_proj", "v_proj", "q_lin", "v_lin"}) {
    const std::string ending = "." + std::string(name) + ".weight";
    const auto is_it = [&](const nn::Part& part) { return part.name.ends_with(ending); };
    if (any_part(model, is_it)) names.emplace_back(name);
  }
  check(!names.empty(), ErrorKind::usage, "name the layers of the adapters: `lora_targets`");
  return names;
}

// PEFT's name of what a model with this head does; null where it has none.
Json peft_task(Head head) {
  switch (head) {
    case Head::next_token: return Json("CAUSAL_LM");
    case Head::target_token: return Json("SEQ_2_SEQ_LM");
    case Head::sequence_classes: return Json("SEQ_CLS");
    case Head::token_classes: return Json("TOKEN_CLS");
    default: return {};
  }
}

Tensor& gradient_of(nn::Parameter& p) {
  if (!p.grad().defined()) p.grad() = Tensor::zeros(p.shape(), DType::f32);
  return p.grad();
}

// Hands a gradient over, or adds it to those of other parts of the batch.
void hand_over(Tensor& from, Tensor& to) {
  if (!to.defined()) {
    to = std::exchange(from, Tensor());
  } else {
    kernels().add(to.rows(), from.rows(), to.rows());
  }
}

}  // namespace

bool TrainedParts::is_wanted(const TrainConfig& c) {
  return c.lora_rank > 0 || !c.train_only.empty() || !c.freeze.empty();
}

TrainedParts::TrainedParts(const TrainConfig& config, nn::Parameters& model,
                           const std::vector<std::string>& fresh)
    : config_(config), model_(&model), parameters_(static_cast<uint64_t>(config.seed)) {
  const bool adapts = config.lora_rank > 0;
  const Choice only(config.train_only, "train_only"), frozen(config.freeze, "freeze");
  only.check_among(model), frozen.check_among(model);
  const auto is_whole = [&](const nn::Parameter& p, const nn::Part& part) {
    if (std::find(fresh.begin(), fresh.end(), p.name()) != fresh.end()) return true;
    if (frozen.has(part.name)) return false;
    return only.is_given() ? only.has(part.name) : !adapts;
  };
  if (adapts) {
    for (const LowRankTarget& t : low_rank_targets(model, target_names(config, model))) {
      if (!is_whole(*t.parameter, t.part) && !frozen.has(t.part.name)) add_adapter(t);
    }
    check(!adapters_.empty(), ErrorKind::usage,
          "`lora_targets` names only layers that are new, trained whole or frozen; name others");
  }
  for (const auto& p : model.all()) {
    for (const nn::Part& part : p->parts()) {
      if (is_whole(*p, part)) {
        add_whole(*p, part, adapts ? kAdapterPrefix : "");
      } else if (p->is_buffer()) {
        p->fix();
      }
    }
  }
  check(parameters_.elements() > 0, ErrorKind::usage,
        "`train_only` and `freeze` leave nothing to train");
  apply();
}

void TrainedParts::add_whole(nn::Parameter& parameter, const nn::Part& part,
                             const std::string& prefix) {
  std::vector<int64_t> shape(parameter.shape().sizes().begin(), parameter.shape().sizes().end());
  const int64_t row = parameter.elements() / shape[0];
  shape[0] = part.rows;
  nn::Parameter& own = parameters_.get(Shape(shape), {{prefix + part.name, 0, part.rows}},
                                       nn::Init::zeros(), parameter.kind());
  if (!parameter.decays()) own.without_decay();
  if (parameter.is_hidden_matrix()) own.between_hidden_states();
  wholes_.push_back({&parameter, &own, part.begin * row});
  std::memcpy(own.value().data<float>(), parameter.value().data<float>() + wholes_.back().begin,
              static_cast<size_t>(own.elements()) * sizeof(float));
  own.changed(true);
  // The whole name: PEFT takes every module whose name ends so.
  const std::string module = part.name.substr(0, part.name.rfind('.'));
  if (saved_whole_.empty() || saved_whole_.back() != module) saved_whole_.push_back(module);
}

void TrainedParts::add_adapter(const LowRankTarget& target) {
  const int64_t in = target.parameter->shape()[1], rank = config_.lora_rank;
  const nn::Scope s = nn::Scope(parameters_) / (kAdapterPrefix + target.module);
  const float* const rows = target.parameter->value().data<float>() + target.part.begin * in;
  // PEFT's: A as a linear layer's weight (uniform in ±1 / sqrt(in), here normal of its deviation).
  const nn::Init init = nn::Init::normal(1 / std::sqrt(3 * static_cast<double>(in)));
  adapters_.push_back(
      {target, std::vector<float>(rows, rows + target.part.rows * in),
       &(s / "lora_A" / "weight").parameter({rank, in}, init),
       &(s / "lora_B" / "weight").parameter({target.part.rows, rank}, nn::Init::zeros())});
}

float TrainedParts::scale() const {
  return static_cast<float>(config_.lora_alpha / static_cast<double>(config_.lora_rank));
}

void TrainedParts::take_gradients() {
  for (const Whole& w : wholes_) {
    if (w.model->is_buffer()) {  // what the forward pass made of it
      std::memcpy(w.own->value().data<float>(), w.model->value().data<float>(),
                  static_cast<size_t>(w.own->elements()) * sizeof(float));
      continue;
    }
    if (!w.model->grad().defined()) continue;
    if (w.own->elements() == w.model->elements()) {
      hand_over(w.model->grad(), w.own->grad());
      continue;
    }
    const float* const from = w.model->grad().data<float>() + w.begin;
    float* const to = gradient_of(*w.own).data<float>();
    for (int64_t i = 0; i < w.own->elements(); ++i) to[i] += from[i];
  }
  for (const Adapter& ad : adapters_) {
    if (!ad.target.parameter->grad().defined()) continue;
    const int64_t in = ad.a->shape()[1], rank = ad.a->shape()[0], rows = ad.target.part.rows;
    const float* const dw = ad.target.parameter->grad().data<float>() + ad.target.part.begin * in;
    const float* const a = ad.a->value().data<float>();
    const float* const b = ad.b->value().data<float>();
    float* const da = gradient_of(*ad.a).data<float>();
    float* const db = gradient_of(*ad.b).data<float>();
    parallel_for(rows, [&](int64_t r) {
      for (int64_t k = 0; k < rank; ++k) {
        float sum = 0;
        for (int64_t i = 0; i < in; ++i) sum += dw[r * in + i] * a[k * in + i];
        db[r * rank + k] += scale() * sum;
      }
    });
    parallel_for(rank, [&](int64_t k) {
      for (int64_t r = 0; r < rows; ++r) {
        const float factor = scale() * b[r * rank + k];
        for (int64_t i = 0; i < in; ++i) da[k * in + i] += factor * dw[r * in + i];
      }
    });
  }
  for (auto& p : model_->all()) p->grad() = Tensor();
}

void TrainedParts::apply() {
  for (const Whole& w : wholes_) {
    std::memcpy(w.model->value().data<float>() + w.begin, w.own->value().data<float>(),
                static_cast<size_t>(w.own->elements()) * sizeof(float));
    w.model->changed(true);
  }
  for (const Adapter& ad : adapters_) {
    add_low_rank(ad.target, ad.base.data(), ad.a->value(), ad.b->value(), scale());
  }
}

// As named; where some layer of such a name has no adapter, each that has one by its whole name.
std::vector<std::string> TrainedParts::adapted_modules() const {
  const std::vector<std::string> names = target_names(config_, *model_);
  if (low_rank_targets(*model_, names).size() == adapters_.size()) return names;
  std::vector<std::string> modules;
  for (const Adapter& ad : adapters_) modules.push_back(ad.target.module);
  return modules;
}

void TrainedParts::save_adapter(const std::string& folder, const std::string& base) const {
  make_directories(folder);
  Json json = Json::object();
  json["peft_type"] = "LORA";
  json["task_type"] = peft_task(config_.head());
  json["base_model_name_or_path"] = base;
  json["r"] = config_.lora_rank;
  json["lora_alpha"] = config_.lora_alpha;
  json["lora_dropout"] = 0.0;
  json["bias"] = "none";
  json["fan_in_fan_out"] = adapters_[0].target.part.layout == nn::Layout::transposed;
  json["target_modules"] = adapted_modules();
  json["modules_to_save"] = saved_whole_.empty() ? Json() : Json(saved_whole_);
  json["inference_mode"] = true;
  write_file_atomic(join_path(folder, kAdapterConfigName), json.dump(2) + "\n");
  parameters_.save(join_path(folder, kAdapterWeightsName));
}

}  // namespace heddle::train
