// Tensors under other names, and fused ones in parts: read where they lie, written as one.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/io/safetensors.h"
#include "heddle/models/timm/timm.h"
#include "heddle/tensor/convert.h"

namespace heddle::timm {
namespace {

// What transformers puts before the names of a model of timm's.
constexpr std::string_view kWrapperPrefix = "timm_model.";

// A whole number, in i64 whatever the weights are in.
constexpr std::string_view kCounter = ".num_batches_tracked";

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// What '#' and '*' of a pattern stand for in a name, in order; absent if it is no such name.
std::optional<std::vector<std::string>> matched(std::string_view name, std::string_view pattern) {
  std::vector<std::string> found;
  size_t at = 0;
  for (const char c : pattern) {
    size_t end = at;
    if (c == '*') {
      end = name.size();
    } else if (c == '#') {
      while (end < name.size() && is_digit(name[end])) ++end;
    }
    if (c == '*' || c == '#') {
      if (end == at) return {};
      found.emplace_back(name.substr(at, end - at));
      at = end;
    } else if (at == name.size() || name[at++] != c) {
      return {};
    }
  }
  if (at != name.size()) return {};
  return found;
}

std::string filled(std::string_view pattern, const std::vector<std::string>& values) {
  std::string name;
  size_t next = 0;
  for (const char c : pattern) {
    if (c == '*' || c == '#') {
      name += values[next++];
    } else {
      name += c;
    }
  }
  return name;
}

// Tensors of another file under other names.
class RenamedFile final : public TensorFile {
 public:
  RenamedFile(std::unique_ptr<TensorFile> file, const std::vector<NameRule>& rules)
      : TensorFile(file->path()), file_(std::move(file)) {
    add_files_of(*file_);
    for (const std::string& name : file_->names()) add_parts(name, rules);
  }
  void verify() const override { file_->verify(); }

 private:
  // What no rule knows keeps its name: the model says that it does not use it.
  void add_parts(const std::string& name, const std::vector<NameRule>& rules) {
    const StoredTensor& whole = file_->info(name);
    const std::string_view plain = name.starts_with(kWrapperPrefix)
                                       ? std::string_view(name).substr(kWrapperPrefix.size())
                                       : std::string_view(name);
    for (const NameRule& rule : rules) {
      const auto values = matched(plain, rule.theirs);
      if (!values) continue;
      const auto n = std::ssize(rule.ours);
      StoredTensor part = whole;
      if (n > 1) {
        check(!whole.shape.empty() && whole.shape[0] % n == 0, ErrorKind::data,
              "{}: tensor '{}' should hold {} parts of equally many rows", path(), name, n);
        part.shape[0] /= n;
      }
      const size_t bytes = whole.bytes.size() / static_cast<size_t>(n);
      for (size_t i = 0; i < rule.ours.size(); ++i) {
        part.bytes = whole.bytes.subspan(i * bytes, bytes);
        add(filled(rule.ours[i], *values), part);
      }
      return;
    }
    add(std::string(plain), whole);
  }

  std::unique_ptr<TensorFile> file_;
};

// The tensor there that one of ours is in, and which of its parts it is.
struct PlaceThere {
  std::string name;
  size_t part = 0, parts = 1;
};

std::optional<PlaceThere> place_of(std::string_view name, const std::vector<NameRule>& rules) {
  for (const NameRule& rule : rules) {
    for (size_t i = 0; i < rule.ours.size(); ++i) {
      if (const auto values = matched(name, rule.ours[i])) {
        return PlaceThere{filled(rule.theirs, *values), i, rule.ours.size()};
      }
    }
  }
  return {};
}

struct Gathered {
  std::vector<int64_t> shape;
  std::vector<std::vector<float>> parts;
};

}  // namespace

std::unique_ptr<TensorFile> family_weights(std::unique_ptr<TensorFile> file, const Json& config) {
  return std::make_unique<RenamedFile>(std::move(file), name_rules(config));
}

void save_weights(const std::string& path, const nn::Parameters& parameters,
                  const ModelConfig& config, DType dtype) {
  const std::vector<NameRule> rules = name_rules(config.json());
  std::map<std::string, Gathered> tensors;
  parameters.for_each_tensor([&](const std::string& name, const Shape& shape, const float* values) {
    auto place = place_of(name, rules);
    const size_t dot = name.find('.');
    if (!place && dot != name.npos) place = place_of(name.substr(dot + 1), rules);  // base
    check(place.has_value(), ErrorKind::data,
          "the model has a tensor '{}', which models of timm's have not", name);
    Gathered& to = tensors[place->name];
    to.parts.resize(place->parts);
    to.shape.assign(shape.sizes().begin(), shape.sizes().end());
    to.parts[place->part].assign(values, values + shape.elements());
  });
  std::vector<NamedTensorView> views;
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(tensors.size());
  for (auto& [name, gathered] : tensors) {
    std::vector<float> values;
    for (const std::vector<float>& part : gathered.parts) {
      values.insert(values.end(), part.begin(), part.end());
    }
    if (gathered.parts.size() > 1) gathered.shape[0] *= std::ssize(gathered.parts);
    const auto raw = std::as_bytes(std::span(values));
    const DType kept = name.ends_with(kCounter) ? DType::i64 : dtype;
    bytes.push_back(kept == DType::f32 ? std::vector<std::byte>(raw.begin(), raw.end())
                                       : convert_from_floats(values, kept, name));
    views.push_back({.name = name, .dtype = kept, .shape = gathered.shape, .bytes = bytes.back()});
  }
  write_safetensors(path, std::move(views), {{"format", "pt"}});
}

}  // namespace heddle::timm
