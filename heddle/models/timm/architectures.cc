// What the families' names, arguments and configs have in common.
#include "heddle/models/timm/architectures.h"

#include <charconv>
#include <cmath>

namespace heddle::timm {

std::vector<std::string> fields_of(const std::string& name) {
  std::vector<std::string> fields(1);
  for (const char c : name) {
    if (c == '_') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::optional<int64_t> number_behind(std::string_view field, std::string_view beginning) {
  if (!field.starts_with(beginning)) return {};
  const std::string_view digits = field.substr(beginning.size());
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return value;
}

double ratio_of(int64_t hidden, int64_t width) {
  double ratio = static_cast<double>(hidden) / static_cast<double>(width);
  while (static_cast<int64_t>(static_cast<double>(width) * ratio) < hidden) {
    ratio = std::nextafter(ratio, 1e9);
  }
  return ratio;
}

Json both_sides(const Json& json) {
  const Json& size = json.at("image_size");
  if (size.is_array()) return size;
  const Json* width = json.find("image_width");
  const bool is_square = width == nullptr || width->is_null();
  return std::vector<int64_t>{size.as_int(), (is_square ? size : *width).as_int()};
}

bool flag_of(const Json& json, const char* key, bool otherwise) {
  const Json* const value = json.find(key);
  return value == nullptr ? otherwise : value->as_bool(key);
}

std::string activation_there(const Json& json) {
  const std::string& name = json.get_string("hidden_act");
  return name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast" ? "gelu_tanh"
                                                                                  : name;
}

}  // namespace heddle::timm
