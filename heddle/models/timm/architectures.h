// Families of timm's architectures: what their names and arguments mean here, and the way back.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/models/timm/timm.h"

namespace heddle::timm {

/// What a model is made of: the arguments of the checkpoint, else those of its architecture. Asking
/// for one marks it as known.
class Arguments {
 public:
  Arguments(const Json& config, std::string source) : source_(std::move(source)) {
    name_ = config.get_string("architecture", source_);
    if (const Json* args = config.find("model_args"); args != nullptr && !args->is_null()) {
      args_ = *args;
      (void)args_.as_object(source_ + ": key 'model_args'");
    }
    if (const Json* cfg = config.find("pretrained_cfg")) {
      if (const Json* pool = cfg->find("global_pool"); pool != nullptr && !pool->is_null()) {
        pool_ = pool->as_string(source_ + ": pretrained_cfg: 'global_pool'");
      }
      if (const Json* size = cfg->find("input_size"); size != nullptr && !size->is_null()) {
        input_size_ = size->as_ints(source_ + ": pretrained_cfg: 'input_size'");
        heddle::check(input_size_.size() == 3, ErrorKind::data,
                      "{}: 'input_size' of pretrained_cfg must be [channels, height, width]",
                      source_);
      }
    }
  }

  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }

  /// Null if it is not given.
  Json get(const std::string& key) {
    known_.push_back(key);
    const Json* value = args_.find(key);
    return value == nullptr ? Json() : *value;
  }
  int64_t integer(const std::string& key, int64_t otherwise) {
    const Json value = get(key);
    return value.is_null() ? otherwise : value.as_int(what(key));
  }
  double number(const std::string& key, double otherwise) {
    const Json value = get(key);
    return value.is_null() ? otherwise : value.as_double(what(key));
  }
  /// Whether the checkpoint says something of it, if only null.
  bool is_given(const std::string& key) const { return args_.contains(key); }
  std::string text(const std::string& key, const std::string& otherwise) {
    const Json value = get(key);
    return value.is_null() ? otherwise : value.as_string(what(key));
  }
  bool flag(const std::string& key, bool otherwise) {
    const Json value = get(key);
    return value.is_null() ? otherwise : value.as_bool(what(key));
  }
  /// What is classified, of an architecture that says nothing of it: then pretrained_cfg does.
  std::string global_pool(const std::string& otherwise) {
    return text("global_pool", pool_.empty() ? otherwise : pool_);
  }
  /// One that has to be what heddle does where it is given.
  void neutral(const std::string& key, const std::vector<Json>& values) {
    const Json value = get(key);
    heddle::check(value.is_null() || std::ranges::find(values, value) != values.end(),
                  ErrorKind::data, "{} is {}; heddle has no {} of that kind", what(key),
                  value.describe(), name_);
  }
  /// image_size, a number or [height, width], and num_channels. Errors: data for other sizes.
  void images(Json& json, int64_t published) {
    const Json size = get("img_size");
    if (size.is_array()) {
      const std::vector<int64_t> sides = size.as_ints(what("img_size"));
      heddle::check(sides.size() == 2, ErrorKind::data,
                    "{} is {}; one number or [height, width] is needed", what("img_size"),
                    size.describe());
      json["image_size"] = sides;
    } else if (!size.is_null()) {
      json["image_size"] = size.as_int(what("img_size"));
    } else if (!input_size_.empty()) {
      json["image_size"] = std::vector<int64_t>{input_size_[1], input_size_[2]};
    } else {
      json["image_size"] = published;
    }
    json["num_channels"] = integer("in_chans", input_size_.empty() ? 3 : input_size_[0]);
  }
  std::string activation() {
    const Json value = get("act_layer");
    if (value.is_null()) return "gelu";
    const std::string& name = value.as_string(what("act_layer"));
    return name == "gelu_tanh" ? "gelu_new" : name;
  }
  /// Errors: data for an argument that nothing asked for and that says something.
  void finish() const {
    for (const auto& [key, value] : args_.as_object()) {
      if (value.is_null() || std::ranges::find(known_, key) != known_.end()) continue;
      fail(ErrorKind::data, "{} is {}; heddle cannot follow it", what(key), value.describe());
    }
  }
  /// Of feed-forward layers, width * mlp_ratio.
  int64_t hidden_width(int64_t width, double ratio) const {
    const double hidden = static_cast<double>(width) * ratio;
    check(hidden >= 1 && hidden <= kMostWidth, ErrorKind::data,
          "{} is {}; times the width, {}, it must be from 1 to {}", what("mlp_ratio"), ratio, width,
          kMostWidth);
    return static_cast<int64_t>(hidden);
  }
  std::string what(const std::string& key) const {
    return fmt::format("{}: model_args: '{}'", source_, key);
  }

 private:
  std::string name_, source_;
  Json args_ = Json::object();
  std::vector<int64_t> input_size_;
  std::string pool_;  // of pretrained_cfg
  std::vector<std::string> known_;
};

/// The parts of a name between its underscores.
std::vector<std::string> fields_of(const std::string& name);
/// The number that follows a field's beginning: 16 of "patch16"; absent if it is none such.
std::optional<int64_t> number_behind(std::string_view field, std::string_view beginning);
/// A ratio whose product with the width, cut to an integer, is `hidden`.
double ratio_of(int64_t hidden, int64_t width);
/// [height, width] of a config's image_size and image_width.
Json both_sides(const Json& json);
/// A config's key of truth; `otherwise` where it has none.
bool flag_of(const Json& json, const char* key, bool otherwise);
/// What timm calls a config's hidden_act.
std::string activation_there(const Json& json);

/// A family: config.json of heddle's by its arguments; names of tensors by that config; and
/// `architecture`, `global_pool` and `model_args` of a config.
struct Architectures {
  Json (*config)(Arguments& args);
  std::vector<NameRule> (*rules)(const Json& config);
  Written (*written)(const Json& config, Head head);
  double eps;                           ///< of its norms
  const char* num_features;             ///< the key, of one number or a list, whose last it is
  const char *first_conv, *classifier;  ///< layers that timm makes anew for other data
  bool has_img_size = true;  ///< an argument, which timm gives where the size is said to be fixed
};
extern const Architectures kVit, kMixer, kResnet, kSwin;

}  // namespace heddle::timm
