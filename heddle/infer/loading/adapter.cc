// Finding layers, adding products of low rank, reading PEFT's files.
#include "heddle/infer/loading/adapter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/io/tensor_file.h"
#include "heddle/models/image_model.h"
#include "heddle/nn/parameter_parts.h"

namespace heddle {
namespace {

const std::string kWeight = ".weight";
// Endings of the two factors' names.
const std::string kDown = ".lora_A.weight", kUp = ".lora_B.weight";

// Tables of tokens, positions and types. PEFT's adapters of these are other tensors.
bool is_table(const std::string& module) {
  const std::string last = module.substr(module.rfind('.') + 1);
  return last == "wte" || last == "wpe" || last.find("embed") != std::string::npos;
}

bool is_target(const std::string& module, const std::string& target) {
  return module == target || module.ends_with("." + target);
}

std::string without(const std::string& name, const std::string& prefix) {
  return !prefix.empty() && name.starts_with(prefix + ".") ? name.substr(prefix.size() + 1) : name;
}

Tensor read_tensor(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& info = file.info(name);
  return Tensor::from(info.floats(), Shape(info.shape));
}

void check_supported(const Json& json, const std::string& source) {
  check(json.get_string("peft_type", source) == "LORA", ErrorKind::data,
        "{}: peft_type is {}; heddle reads LORA adapters", source,
        json.get_string("peft_type", source));
  for (const char* key : {"use_dora", "use_rslora"}) {
    const Json* value = json.find(key);
    check(value == nullptr || value->is_null() || !value->as_bool(source), ErrorKind::data,
          "{}: {} is true, which heddle does not support", source, key);
  }
  for (const char* key : {"rank_pattern", "alpha_pattern"}) {
    const Json* value = json.find(key);
    check(value == nullptr || value->size() == 0, ErrorKind::data,
          "{}: {} is not empty, which heddle does not support", source, key);
  }
}

// The parameter that holds what the checkpoint calls `name`, as a whole or a part of it.
std::pair<nn::Parameter*, nn::Part> find_part(nn::Parameters& parameters, const std::string& name) {
  for (auto& p : parameters.all()) {
    for (const nn::Part& part : p->parts()) {
      if (part.name == name) return {p.get(), part};
    }
  }
  return {nullptr, {}};
}

void fill_whole(nn::Parameters& parameters, const std::string& name, const Tensor& values,
                const std::string& source) {
  const auto [p, part] = find_part(parameters, name);
  check(p != nullptr, ErrorKind::data, "{}: the model has no '{}'", source, name);
  check(part.layout == nn::Layout::as_is, ErrorKind::data,
        "{}: '{}' lies transposed, which heddle does not support here", source, name);
  const Shape shape = nn::file_shape(*p, part);
  // heddle's own adapters have the shape in memory: [1, width] of a ViT's cls_token.
  check(values.shape() == shape || values.shape() == nn::part_shape(*p, part), ErrorKind::data,
        "{}: '{}' has shape {}; that of the model is {}", source, name, values.shape().str(),
        shape.str());
  const int64_t row = p->elements() / p->shape()[0];
  std::memcpy(p->value().data<float>() + part.begin * row, values.data<float>(),
              static_cast<size_t>(values.elements()) * sizeof(float));
  p->changed(true);
}

// Whether they differ in the number of their rows alone.
bool has_other_rows(const Shape& from, const Shape& to) {
  return from.rank() == to.rank() && from[0] != to[0] &&
         std::equal(from.sizes().begin() + 1, from.sizes().end(), to.sizes().begin() + 1);
}

// LABEL_0, LABEL_1, ..: what classes are called whose config has no names.
bool are_numbered(const std::vector<std::string>& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != fmt::format("LABEL_{}", i)) return false;
  }
  return true;
}

// Of which of the old classes each of the new ones is; nothing if some have other names.
std::optional<std::vector<int64_t>> class_rows(const std::vector<std::string>& from,
                                               const std::vector<std::string>& to) {
  std::vector<int64_t> rows;
  for (const std::string& label : to) {
    const auto at = std::ranges::find(from, label);
    if (at == from.end() || std::ranges::count(from, label) > 1) return {};
    rows.push_back(at - from.begin());
  }
  return rows;
}

// What rows of classes become in a model that has them in another order.
Tensor with_rows(const Tensor& values, const std::vector<int64_t>& rows) {
  const Tensor moved = values.clone();
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    values.slice(0, rows[i], 1).copy_to(moved.slice(0, i, 1));
  }
  return moved;
}

// Learned positions of an image's cells, null where there are none.
const nn::GridPositions* grid_positions(const Model& model) {
  const auto* images = model.as<ImageModel>();
  return images == nullptr ? nullptr : images->grid_positions();
}

// Whether the folder has a file that open_weights() opens.
bool has_weights(const std::string& folder) {
  return std::ranges::any_of(
      std::array{kWeightsName, kWeightsIndexName, kTorchWeightsName, kTorchIndexName},
      [&](const char* name) { return path_exists(join_path(folder, name)); });
}

}  // namespace

std::vector<LowRankTarget> low_rank_targets(nn::Parameters& parameters,
                                            const std::vector<std::string>& targets) {
  std::vector<LowRankTarget> found;
  std::set<std::string> hit, modules;
  for (auto& p : parameters.all()) {
    if (p->shape().rank() != 2) continue;
    for (const nn::Part& part : p->parts()) {
      if (!part.name.ends_with(kWeight)) continue;
      const std::string module = part.name.substr(0, part.name.size() - kWeight.size());
      if (is_table(module)) continue;
      modules.insert(module.substr(module.rfind('.') + 1));
      const auto target = std::find_if(targets.begin(), targets.end(),
                                       [&](const std::string& t) { return is_target(module, t); });
      if (target == targets.end()) continue;
      hit.insert(*target);
      found.push_back({p.get(), part, module});
    }
  }
  for (const std::string& target : targets) {
    check(hit.contains(target), ErrorKind::usage, "no layer of the model is called '{}'; it has {}",
          target, fmt::join(modules, ", "));
  }
  return found;
}

void add_low_rank(const LowRankTarget& target, const float* base, const Tensor& a, const Tensor& b,
                  float scale) {
  const int64_t in = a.size(1), rank = a.size(0);
  float* const rows = target.parameter->value().data<float>() + target.part.begin * in;
  const float* const pa = a.data<float>();
  const float* const pb = b.data<float>();
  parallel_for(target.part.rows, [&](int64_t r) {
    float* const row = rows + r * in;
    if (row != base + r * in) std::copy(base + r * in, base + (r + 1) * in, row);
    for (int64_t k = 0; k < rank; ++k) {
      const float factor = scale * pb[r * rank + k];
      for (int64_t i = 0; i < in; ++i) row[i] += factor * pa[k * in + i];
    }
  });
  target.parameter->changed(true);
}

CopiedWeights copy_weights(const nn::Parameters& from, const Model& from_model, nn::Parameters& to,
                           const Model& to_model) {
  const NoGrad off;
  const std::string from_base = from_model.names().base, to_base = to_model.names().base;
  std::map<std::string, nn::Parameter*> known;
  for (const auto& p : from.all()) known[without(p->name(), from_base)] = p.get();
  const nn::GridPositions* const theirs = grid_positions(from_model);
  const nn::GridPositions* const own = grid_positions(to_model);
  const HubConfig &from_hub = from_model.config().hub, &to_hub = to_model.config().hub;
  const bool is_renamed = from_hub.labels != to_hub.labels &&
                          from_hub.classes() == to_hub.classes() &&
                          !are_numbered(from_hub.labels) && !are_numbered(to_hub.labels);
  const auto order = is_renamed ? class_rows(from_hub.labels, to_hub.labels) : std::nullopt;
  CopiedWeights copied;
  for (auto& p : to.all()) {
    const auto found = known.find(without(p->name(), to_base));
    if (found == known.end()) {
      copied.alone.push_back(p->name());
      continue;
    }
    const nn::Parameter& source = *found->second;
    known.erase(found);
    const bool is_of_classes = source.has_class_rows(), is_moved = is_of_classes && is_renamed;
    if ((is_moved && !order) || (is_of_classes && has_other_rows(source.shape(), p->shape()))) {
      copied.alone.push_back(p->name());
      continue;
    }
    const bool are_positions = theirs != nullptr && own != nullptr && &source == &theirs->table() &&
                               p.get() == &own->table();
    const Tensor values = are_positions ? theirs->table_of(own->grid())
                          : is_moved    ? with_rows(source.value(), *order)
                                        : source.value();
    check(values.shape() == p->shape(), ErrorKind::data,
          "'{}' is {} in the model that is begun from, but {} here; sizes are that model's: leave "
          "their flags and fields out",
          p->name(), values.shape().str(), p->shape().str());
    std::memcpy(p->value().data<float>(), values.data<float>(),
                static_cast<size_t>(p->elements()) * sizeof(float));
    p->changed(true);
  }
  for (const auto& [name, parameter] : known) copied.left_out.push_back(parameter->name());
  return copied;
}

bool is_adapter_alone(const std::string& folder) {
  return path_exists(join_path(folder, kAdapterConfigName)) && !has_weights(folder);
}

std::string adapter_base(const std::string& folder) {
  const std::string source = join_path(folder, kAdapterConfigName);
  const std::string name = Json::load(source).get_string("base_model_name_or_path", source);
  for (const std::string& path : {name, join_path(folder, name)}) {
    if (name.empty() || !is_directory(path)) continue;
    // One that names itself would have no end.
    check(!is_adapter_alone(find_model_dir(path)), ErrorKind::data,
          "{}: base_model_name_or_path is '{}', which is an adapter itself; the folder of a whole "
          "model is needed",
          source, name);
    return path;
  }
  fail(ErrorKind::data,
       "{}: the model that the adapter stands on is not there: '{}'; put its folder there, or "
       "change base_model_name_or_path",
       source, name);
}

namespace {

void add_pair(nn::Parameters& parameters, const std::string& module, const SafetensorsFile& file,
              int64_t rank, float scale) {
  const auto [parameter, part] = find_part(parameters, module + kWeight);
  check(parameter != nullptr && parameter->shape().rank() == 2, ErrorKind::data,
        "{}: the model has no layer '{}'", file.path(), module);
  const LowRankTarget t = {parameter, part, module};
  const Tensor a = read_tensor(file, kAdapterPrefix + module + kDown);
  const Tensor b = read_tensor(file, kAdapterPrefix + module + kUp);
  const int64_t in = t.parameter->shape()[1];
  const bool fits = a.rank() == 2 && b.rank() == 2 && a.size(0) == rank && b.size(1) == rank &&
                    a.size(1) == in && b.size(0) == t.part.rows;
  check(fits, ErrorKind::data, "{}: the adapter of '{}' is {} by {}, the layer [{}, {}], r is {}",
        file.path(), module, b.shape().str(), a.shape().str(), t.part.rows, in, rank);
  add_low_rank(t, t.parameter->value().data<float>() + t.part.begin * in, a, b, scale);
}

}  // namespace

void merge_adapter(const std::string& folder, nn::Parameters& parameters,
                   std::span<const std::string> missing) {
  const std::string source = join_path(folder, kAdapterConfigName);
  const Json json = Json::load(source);
  check_supported(json, source);
  const int64_t rank = json.get_int("r", source);
  check(rank >= 1, ErrorKind::data, "{}: r is {}; it must be at least 1", source, rank);
  const auto scale =
      static_cast<float>(json.get_double("lora_alpha", source) / static_cast<double>(rank));
  const auto file = SafetensorsFile::open(join_path(folder, kAdapterWeightsName));
  file.verify();
  for (const std::string& name : missing) {
    check(file.contains(kAdapterPrefix + name), ErrorKind::data,
          "{}: it has no '{}{}', which the model that it stands on lacks too", file.path(),
          kAdapterPrefix, name);
  }
  for (const std::string& name : file.names()) {
    check(name.starts_with(kAdapterPrefix), ErrorKind::data, "{}: '{}' does not begin with {}",
          file.path(), name, kAdapterPrefix);
    const std::string inner = name.substr(std::string_view(kAdapterPrefix).size());
    if (inner.ends_with(kDown)) {
      add_pair(parameters, inner.substr(0, inner.size() - kDown.size()), file, rank, scale);
    } else if (inner.ends_with(kUp)) {
      const std::string module = inner.substr(0, inner.size() - kUp.size());
      check(file.contains(kAdapterPrefix + module + kDown), ErrorKind::data,
            "{}: '{}' stands alone; its lora_A is missing", file.path(), name);
    } else {
      fill_whole(parameters, inner, read_tensor(file, name), file.path());
    }
  }
}

}  // namespace heddle
