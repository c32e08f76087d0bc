// Writing and reading a run's state: parameters, moments, the place in the data.
#include "heddle/train/run/state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/io/safetensors.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "heddle/kernels/kernels.h"
#include "heddle/tensor/convert.h"

namespace heddle::train {
namespace {

std::string snapshot_name(int64_t update) {
  return fmt::format("snapshot-{:09}.safetensors", update);
}
std::string weights_name(int64_t update) {
  return fmt::format("weights-{:09}.safetensors", update);
}

// Whether it is what such a file of some update is called, and not one that only looks like it.
bool is_weights_name(const std::string& name) {
  const char* const number = name.c_str() + name.find('-') + 1;  // of none: the whole name
  const int64_t update = std::strtoll(number, nullptr, 10);
  return name == snapshot_name(update) || name == weights_name(update);
}

// Made anew by each process between saves; no manifest names it.
constexpr const char* kSecondsName = "seconds";

// Before the names of what the task carries.
constexpr std::string_view kCarried = "carried.";

// Fields PREFIXloss and PREFIXmetrics of an object.
void put_score(Json& j, const std::string& prefix, const ValidationScore& score) {
  j[prefix + "loss"] = score.loss;
  Json metrics = Json::object();
  for (const Metric& m : score.metrics) {
    metrics[m.name] = m.value;
    if (m.half_width > 0) j[prefix + "half_widths"][m.name] = m.half_width;
  }
  j[prefix + "metrics"] = std::move(metrics);
}

ValidationScore score_from_json(const Json& j, const std::string& prefix,
                                const std::string& source) {
  ValidationScore score{.loss = j.get_double(prefix + "loss", source)};
  const std::string key = prefix + "metrics";
  if (j.contains(key)) {
    for (const auto& [name, value] : j.at(key, source).as_object(source)) {
      const Json* const widths = j.find(prefix + "half_widths");
      const Json* const width = widths == nullptr ? nullptr : widths->find(name);
      score.metrics.push_back(
          {name, value.as_double(source), width == nullptr ? 0 : width->as_double(source)});
    }
  } else if (j.get_double(prefix + "bleu", source) >= 0) {  // states before there were metrics
    score.metrics.push_back({"bleu", j.get_double(prefix + "bleu", source)});
  }
  return score;
}

// Reads all fields that states have always had, and those later additions that are there.
void read_fields(const FieldList& fields, const Json& j, const std::string& source) {
  constexpr std::string_view kLater[] = {"stop_best", "best_cost", "heddle", "validation"};
  for (const Field& f : fields) {
    if (std::ranges::find(kLater, f.key) == std::end(kLater)) j.at(f.key, source);
  }
  static_cast<void>(from_json(fields, j, source));
}

LogWindow window_from_json(const Json& j, const std::string& source) {
  check(
      j.contains("predicted"), ErrorKind::data,
      "{}: an older heddle began this run, and its state has other names; go on with that one, or "
      "begin again with `overwrite`",
      source);
  LogWindow w;
  read_fields(w, j, source);
  return w;
}

Json content_of(const Progression& p) {
  Json j = to_json(p);
  j["kept"] = Json::array();
  for (const KeptWeights& k : p.kept) {
    Json one = Json::object({{"update", k.update}});
    put_score(one, "", k.score);
    j["kept"].push_back(std::move(one));
  }
  put_score(j, "best_", p.best);
  j["recent_costs"] = Json::object();
  for (const auto& [kind, costs] : p.recent_costs) {
    for (const double cost : costs) j["recent_costs"][kind].push_back(cost);
  }
  j["window"] = to_json(p.window);
  return j;
}

// All but the window, which only a run that goes on needs.
Progression progression_of(const Json& j, const std::string& source) {
  Progression p;
  p.best = score_from_json(j, "best_", source);
  p.stop_best = p.best.loss;  // of a state that does not name it
  p.best_cost = std::numeric_limits<double>::quiet_NaN();
  read_fields(p, j, source);
  for (const Json& one : j.at("kept", source).as_array(source)) {
    p.kept.push_back({one.get_int("update", source), score_from_json(one, "", source)});
  }
  if (const Json* recent = j.find("recent_costs")) {
    for (const auto& [kind, costs] : recent->as_object(source)) {
      for (const Json& cost : costs.as_array(source)) {
        p.recent_costs[kind].push_back(cost.as_double(source));
      }
    }
  }
  return p;
}

NamedTensorView view_of(const std::string& name, const Tensor& t) {
  const auto sizes = t.shape().sizes();
  return {name,
          t.dtype(),
          {sizes.begin(), sizes.end()},
          {static_cast<const std::byte*>(t.raw()),
           static_cast<size_t>(t.elements() * size_of(t.dtype()))}};
}

// The elements of a range of a tensor of this shape.
void read_range(const SafetensorsFile& file, const std::string& name, const Shape& shape,
                const ElementRange& range, const Tensor& t) {
  const StoredTensor& info = file.info(name);
  check(Shape(info.shape) == shape, ErrorKind::data, "{}: '{}' is {}, the model needs {}",
        file.path(), name, Shape(info.shape).str(), shape.str());
  convert_to_floats(info.bytes.data() + range.begin * size_of(info.dtype), info.dtype,
                    {t.data<float>(), static_cast<size_t>(range.size)});
}

void read_into(const SafetensorsFile& file, const std::string& name, const Tensor& t) {
  read_range(file, name, t.shape(), {0, t.elements()}, t);
}

// As it was saved, whatever its dtype.
Tensor read_tensor(const StoredTensor& info) {
  const Tensor t = Tensor::empty(Shape(info.shape), info.dtype);
  std::copy(info.bytes.begin(), info.bytes.end(), static_cast<std::byte*>(t.raw()));
  return t;
}

Progression read_state(const std::string& folder, const Manifest& manifest,
                       nn::Parameters& parameters, Optimizer& optimizer, NamedTensors* carried,
                       const std::function<void(const Progression&)>& accept) {
  const std::string path = join_path(folder, kManifestName);
  Progression p = progression_of(manifest.content, path);
  const Json* window = manifest.content.find("window");
  if (window != nullptr) p.window = window_from_json(*window, path);
  if (accept) accept(p);
  const auto file = SafetensorsFile::open(join_path(folder, snapshot_name(p.update)));
  auto& all = parameters.all();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& name = all[i]->name();
    const Moments& m = optimizer.moments()[i];
    read_into(file, "w." + name, all[i]->value());
    const auto read = [&](const char* kind, const Tensor& t) {
      if (t.defined()) read_range(file, kind + name, all[i]->shape(), optimizer.ranges()[i], t);
    };
    read("m.", m.m), read("v.", m.v), read("ema.", m.ema);
    all[i]->changed(true);
  }
  for (const std::string& name : file.names()) {
    if (carried == nullptr || !name.starts_with(kCarried)) continue;
    carried->emplace_back(name.substr(kCarried.size()), read_tensor(file.info(name)));
  }
  optimizer.set_updates(p.update);
  return p;
}

}  // namespace

StateFolder::StateFolder(std::string folder)
    : folder_((make_directories(folder), std::move(folder))), lock_(folder_) {}

std::optional<Progression> StateFolder::peek(const std::string& folder) {
  const auto manifest = load_manifest(folder);
  if (!manifest) return std::nullopt;
  return progression_of(manifest->content, join_path(folder, kManifestName));
}

std::optional<Progression> StateFolder::place(const std::string& folder) {
  const std::string path = join_path(folder, kManifestName);
  if (!path_exists(path)) return std::nullopt;
  try {
    Progression p;
    static_cast<void>(from_json(p, Json::load(path).at("content", path), path));
    return p;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool StateFolder::holds_state() const { return path_exists(join_path(folder_, kManifestName)); }

bool StateFolder::owns(const std::string& name) {
  if (name.find('/') != name.npos) return false;
  return name == kLockName || name == kManifestName || name == kSecondsName ||
         is_temporary_name(name) || is_weights_name(name);
}

bool StateFolder::holds_only_states(const std::string& folder) {
  return std::ranges::all_of(list_directory(folder), [&](const std::string& name) {
    return owns(name) && !is_directory(join_path(folder, name));
  });
}

void StateFolder::clear() {
  remove_path(join_path(folder_, kManifestName));
  remove_unnamed(folder_, Manifest(), owns);
  manifest_.reset();
}

double StateFolder::noted_seconds() const {
  const std::string path = join_path(folder_, kSecondsName);
  return path_exists(path) ? std::max(0.0, std::strtod(read_file(path).c_str(), nullptr)) : 0;
}

void StateFolder::note_seconds(double seconds) const {
  const std::string path = join_path(folder_, kSecondsName);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return;
  // One write of fixed length over the old text: a kill leaves the old or the new number.
  const std::string text = fmt::format("{:20.3f}\n", seconds);
  [[maybe_unused]] const ssize_t written = pwrite(fd, text.data(), text.size(), 0);
  close(fd);
}

std::optional<Progression> StateFolder::load(
    nn::Parameters& parameters, Optimizer& optimizer, NamedTensors* carried,
    const std::function<void(const Progression&)>& accept) {
  manifest_ = load_manifest(folder_);
  if (!manifest_) return std::nullopt;
  Progression p = read_state(folder_, *manifest_, parameters, optimizer, carried, accept);
  remove_unnamed(folder_, *manifest_, owns);
  return p;
}

std::optional<Progression> StateFolder::read(
    const std::string& folder, nn::Parameters& parameters, Optimizer& optimizer,
    NamedTensors* carried, const std::function<void(const Progression&)>& accept) {
  const auto manifest = load_manifest(folder);
  if (!manifest) return std::nullopt;
  return read_state(folder, *manifest, parameters, optimizer, carried, accept);
}

void StateFolder::save(const Progression& p, const nn::Parameters& parameters,
                       std::span<const Moments> moments, const NamedTensors& carried) {
  std::vector<std::string> names = {snapshot_name(p.update)};
  if (!manifest_ || !manifest_->names(names[0])) {
    std::vector<NamedTensorView> views;
    for (size_t i = 0; i < parameters.all().size(); ++i) {
      const nn::Parameter& w = *parameters.all()[i];
      const Moments& m = moments[i];
      views.push_back(view_of("w." + w.name(), w.value()));
      if (m.m.defined()) views.push_back(view_of("m." + w.name(), m.m));
      if (m.v.defined()) views.push_back(view_of("v." + w.name(), m.v));
      if (m.ema.defined()) views.push_back(view_of("ema." + w.name(), m.ema));
    }
    for (const auto& [name, tensor] : carried) {
      views.push_back(view_of(std::string(kCarried) + name, tensor));
    }
    write_safetensors(join_path(folder_, names[0]), std::move(views));
  }
  for (const KeptWeights& k : p.kept) names.push_back(weights_name(k.update));
  manifest_ = commit_manifest(folder_, content_of(p), names, manifest_ ? &*manifest_ : nullptr);
  remove_unnamed(folder_, *manifest_, owns);
}

void StateFolder::keep_weights(int64_t update, const nn::Parameters& parameters) {
  std::vector<NamedTensorView> views;
  for (const auto& p : parameters.all()) views.push_back(view_of(p->name(), p->value()));
  write_safetensors(join_path(folder_, weights_name(update)), std::move(views));
}

std::vector<Tensor> StateFolder::average(const std::deque<KeptWeights>& kept,
                                         const nn::Parameters& parameters) const {
  std::vector<SafetensorsFile> files;
  for (const KeptWeights& k : kept) {
    files.push_back(SafetensorsFile::open(join_path(folder_, weights_name(k.update))));
  }
  std::vector<Tensor> means;
  for (const auto& p : parameters.all()) {
    const Tensor one = Tensor::empty(p->value().shape(), DType::f32);
    std::vector<double> sums(one.elements());
    for (const SafetensorsFile& file : files) {
      read_into(file, p->name(), one);
      for (int64_t i = 0; i < one.elements(); ++i) sums[i] += one.data<float>()[i];
    }
    for (int64_t i = 0; i < one.elements(); ++i) {
      one.data<float>()[i] = static_cast<float>(sums[i] / static_cast<double>(files.size()));
    }
    means.push_back(one);
  }
  return means;
}

std::string machine_signature(DType compute) {
  std::string isa(vector_set());
  if (vector_set() == "avx512" && !is_of_amd()) isa += "-intel";  // sums f32 in other chunks
  if (compute == DType::bf16) isa += "+" + std::string(matrix_unit_name(matrix_unit()));
  return isa + " " + dtype_name(compute);
}

}  // namespace heddle::train
