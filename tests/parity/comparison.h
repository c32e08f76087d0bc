// Tensors against those of a fixture.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "heddle/io/safetensors.h"
#include "heddle/tensor/convert.h"

namespace heddle {

inline std::vector<float> floats(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& info = file.info(name);
  std::vector<float> values(info.elements());
  convert_to_floats(info.bytes.data(), info.dtype, values);
  return values;
}

inline std::vector<int64_t> integers(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& info = file.info(name);
  std::vector<int64_t> values(info.elements());
  if (!values.empty()) std::memcpy(values.data(), info.bytes.data(), info.bytes.size());
  return values;
}

// Compares tensors one after another and remembers the first that differs.
class Comparison {
 public:
  Comparison(const SafetensorsFile& file, double tolerance) : file_(file), tolerance_(tolerance) {}

  // `scale`: what the error is relative to; by default the largest magnitude that PyTorch has.
  void add(const std::string& name, const std::vector<float>& actual, double scale = 0) {
    names_.insert(name);
    const std::vector<float> expected = floats(file_, name);
    if (actual.size() != expected.size()) {
      return note(
          fmt::format("{}: {} elements, PyTorch has {}", name, actual.size(), expected.size()));
    }
    double error = 0;
    size_t at = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double e = std::abs(static_cast<double>(actual[i]) - expected[i]);
      if (!(e <= error)) error = e, at = i;
      if (std::isnan(e)) break;  // which no other may take the place of
    }
    const double relative = error / (scale > 0 ? scale : largest(expected));
    worst_ = std::max(worst_, relative);
    if (relative <= tolerance_) return;
    note(
        fmt::format("{}: element {} is {}, PyTorch has {}; max error {:.1e} of the largest "
                    "magnitude, allowed {:.0e}",
                    name, at, actual[at], expected[at], relative, tolerance_));
  }

  static double largest(const std::vector<float>& values) {
    double result = 1e-30;
    for (float x : values) result = std::max<double>(result, std::abs(x));
    return result;
  }

  /// "" if all are equal.
  std::string report() const {
    if (differing_ == 0) return "";
    return fmt::format("{}\n{} of {} tensors differ; the first is {}", file_.path(), differing_,
                       names_.size(), first_);
  }
  const std::set<std::string>& names() const { return names_; }
  double worst() const { return worst_; }

 private:
  void note(const std::string& text) {
    if (differing_++ == 0) first_ = text;
  }

  const SafetensorsFile& file_;
  double tolerance_;
  std::set<std::string> names_;
  int differing_ = 0;
  double worst_ = 0;
  std::string first_;
};

// The tensors of a fixture whose names hold one of the words: nothing may go without comparison.
inline std::set<std::string> named(const SafetensorsFile& file,
                                   const std::vector<std::string>& words) {
  std::set<std::string> names;
  for (const std::string& name : file.names()) {
    const auto holds = [&](const std::string& word) { return name.find(word) != name.npos; };
    if (std::any_of(words.begin(), words.end(), holds)) names.insert(name);
  }
  return names;
}

}  // namespace heddle
