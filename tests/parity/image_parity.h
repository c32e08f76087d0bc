// Models of images and what another program makes of them, of images of several sizes in one batch:
// the fixtures of tools/make_{vision,timm,resnet,detr}_fixtures.py.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/image_model.h"
#include "tests/base/temporary.h"
#include "tests/parity/comparison.h"
#include "tests/support/places.h"

namespace heddle {

// Images of one size, channels first.
struct Pixels {
  int64_t count, channels;
  ImageSize size;
  std::vector<float> values;

  // Of one image, channels last.
  void add_rows(int64_t image, std::vector<float>& rows) const {
    const int64_t area = size.height * size.width;
    const float* const first = values.data() + image * channels * area;
    for (int64_t p = 0; p < area; ++p) {
      for (int64_t c = 0; c < channels; ++c) rows.push_back(first[c * area + p]);
    }
  }
};

// A batch of images and what it is made of.
struct Images {
  std::vector<ImageSize> sizes;
  std::vector<float> x;
  Segments segments;
  int64_t channels = 0;

  void add(const Pixels& pixels, int64_t image) {
    sizes.push_back(pixels.size), channels = pixels.channels;
    pixels.add_rows(image, x);
    segments = nn::image_segments(sizes);
  }
  nn::ImageRows rows() const {
    return {
        .x = Tensor::from(x, {segments.rows(), channels}), .segments = &segments, .sizes = &sizes};
  }
};

// Tensors by their names.
using Values = std::map<std::string, std::vector<float>>;

inline void append(Values& all, const std::string& name, const std::vector<float>& more) {
  all[name].insert(all[name].end(), more.begin(), more.end());
}

// What a pass over one batch shows and gives: hidden states, attention maps, outputs of the heads.
inline Values observed(const Model& model, const Images& images, const nn::Run& given = {}) {
  Values values;
  nn::Observer observer;
  const auto add = [&](const std::string& name, const Tensor& x) {
    append(values, name, x.to_floats());
  };
  observer.hidden = add;
  observer.attention = [&](const nn::AttentionCall& call) {
    for (int64_t s = 0; s < call.queries().count(); ++s) {
      for (int64_t h = 0; h < call.heads(); ++h) add(call.name(), call.weights(s, h));
    }
  };
  nn::Run run = given;
  run.observer = &observer;
  for (const ModelOutput& o : model.forward(images.rows(), run)) add(o.name, o.x);
  return values;
}

// The same where nothing is trained, with the last hidden state whatever the heads give.
inline Values outputs(const Model& model, const Images& images, const nn::Run& run = {}) {
  const NoGrad off;
  Values values = observed(model, images, run);
  if (!values.contains("last_hidden_state")) {
    append(values, "last_hidden_state", model.hidden(images.rows(), run).to_floats());
  }
  return values;
}

// Takes the gradients off the parameters that have one, by the names of the checkpoint's tensors.
inline Values take_gradients(LoadedModel& model, const std::string& prefix = "grad.") {
  Values values;
  for (auto& p : model.parameters.all()) {
    if (!p->grad().defined()) continue;
    for (const nn::Part& part : p->parts()) values[prefix + part.name] = part_of(p->grad(), part);
    p->grad() = Tensor();
  }
  return values;
}

inline void expect_same_parameters(const LoadedModel& a, const LoadedModel& b) {
  ASSERT_EQ(a.parameters.all().size(), b.parameters.all().size());
  for (size_t i = 0; i < a.parameters.all().size(); ++i) {
    const nn::Parameter &one = *a.parameters.all()[i], &other = *b.parameters.all()[i];
    EXPECT_EQ(one.value().to_floats(), other.value().to_floats()) << one.name();
  }
}

inline std::vector<int32_t> labels_of(const SafetensorsFile& file, const std::string& name) {
  std::vector<int32_t> labels;
  for (const int64_t l : integers(file, name)) labels.push_back(static_cast<int32_t>(l));
  return labels;
}

// A model with images of several sizes and what it is to make of them.
class ImageFixture {
 public:
  // fixture: the file in tests/fixtures, without its ending
  explicit ImageFixture(const std::string& fixture)
      : file(SafetensorsFile::open(fmt::format("{}/{}.safetensors", testing::kFixtures, fixture))),
        fixture_(fixture) {
    for (int64_t k = 0; file.find(fmt::format("pixel_values.{}", k)) != nullptr; ++k) {
      const std::string name = fmt::format("pixel_values.{}", k);
      const std::vector<int64_t> s = file.info(name).shape;
      pixels.push_back({s[0], s[1], {s[2], s[3]}, floats(file, name)});
      for (int64_t i = 0; i < s[0]; ++i) all.add(pixels.back(), i);
    }
  }

  // The model directory, or one with the weights under other names.
  LoadedModel load(const std::function<std::string(std::string)>& rename = {}) {
    std::vector<NamedTensorView> views;
    for (const std::string& name : weights()) {
      const StoredTensor& info = file.info(name);
      views.push_back({rename ? rename(name) : name, info.dtype, info.shape, info.bytes});
    }
    dir_.write("config.json", file.metadata().at("config"));
    write_safetensors(dir_ / "model.safetensors", views);
    return load_model(dir_.path());
  }
  // Names of what is no input, output or gradient.
  std::set<std::string> weights() const {
    std::set<std::string> names;
    for (const std::string& name : file.names()) {
      const auto begins = [&](const char* with) { return name.starts_with(with); };
      if (std::ranges::none_of(kOthers, begins)) names.insert(name);
    }
    return names;
  }

  // Those of pixel_values.k.
  Images batch(size_t k) const {
    Images images;
    for (int64_t i = 0; i < pixels[k].count; ++i) images.add(pixels[k], i);
    return images;
  }
  // Outputs of each image by itself, end to end.
  Values alone(const Model& model, const nn::Run& run) const {
    Values values;
    for (const Pixels& p : pixels) {
      for (int64_t i = 0; i < p.count; ++i) {
        Images one;
        one.add(p, i);
        for (const auto& [name, x] : outputs(model, one, run)) append(values, name, x);
      }
    }
    return values;
  }
  // What `pass` gives of each batch against out.K of the fixture: "" if it is the same. Nothing
  // there goes without comparison, but where `words` say what names of outputs end with.
  std::string report(const std::function<Values(const Images&)>& pass, double tolerance,
                     const std::vector<std::string>& words = {}) const {
    std::set<std::string> expected = named(file, {"out."});
    std::erase_if(expected, [&](const std::string& name) {
      const auto ends = [&](const std::string& word) { return name.ends_with(word); };
      return !words.empty() && std::ranges::none_of(words, ends);
    });
    Comparison comparison(file, tolerance);
    for (size_t k = 0; k < pixels.size(); ++k) {
      for (const auto& [name, values] : pass(batch(k))) {
        const std::string there = fmt::format("out.{}.{}", k, name);
        const bool may_lack = name == "last_hidden_state" || !words.empty();
        if (!may_lack || expected.contains(there)) comparison.add(there, values);
      }
    }
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(comparison.names(), expected);
    ::testing::Test::RecordProperty("worst_relative_error",
                                    fmt::format("{:.2e}", comparison.worst()));
    return comparison.report();
  }

  // Where a model is saved to: in a folder of the test, or HEDDLE_KEEP/FIXTURE for the scripts, of
  // which `--check HEDDLE_KEEP/vision` reads the fixtures vision/NAME.
  std::string saved_folder() const {
    const char* const kept = std::getenv("HEDDLE_KEEP");
    return kept ? fmt::format("{}/{}", kept, fixture_) : dir_ / "again";
  }
  // The weights of the fixture, to the bit, and no others. unread: in names of those that the model
  // may leave out.
  void expect_weights_in(const std::string& folder, const std::string& unread = "nothing") const {
    const SafetensorsFile saved = SafetensorsFile::open(folder + "/model.safetensors");
    std::set<std::string> expected = weights(), names;
    std::erase_if(expected, [&](const std::string& n) { return n.find(unread) != n.npos; });
    for (const std::string& name : saved.names()) names.insert(name);
    EXPECT_EQ(names, expected);
    for (const std::string& name : expected) {
      ASSERT_NE(saved.find(name), nullptr) << name;
      EXPECT_EQ(saved.info(name).dtype, file.info(name).dtype) << name;
      EXPECT_EQ(saved.info(name).shape, file.info(name).shape) << name;
      EXPECT_EQ(floats(saved, name), floats(file, name)) << name;
    }
  }

  SafetensorsFile file;
  std::vector<Pixels> pixels;
  Images all;
  TemporaryFolder dir_;

 private:
  static constexpr std::array kOthers = {"pixel_values.", "out.", "label", "distilled_labels.",
                                         "boxes.",        "loss", "grad.", "after."};
  std::string fixture_;
};

}  // namespace heddle
