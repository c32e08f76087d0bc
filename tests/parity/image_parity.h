// Models of images against what another program makes of them, of images of several sizes in one
// batch: the fixtures of tools/make_vision_fixtures.py and tools/make_timm_fixtures.py.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/image_model.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/loss.h"
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

// A model with images of several sizes and what it is to make of them.
class ImageFixture {
 public:
  // fixture: the file in tests/fixtures, without its ending
  explicit ImageFixture(const std::string& fixture)
      : file(SafetensorsFile::open(fmt::format("{}/{}.safetensors", testing::kFixtures, fixture))) {
    for (int64_t k = 0; file.find(fmt::format("pixel_values.{}", k)) != nullptr; ++k) {
      const std::string name = fmt::format("pixel_values.{}", k);
      const std::vector<int64_t> s = file.info(name).shape;
      pixels.push_back({s[0], s[1], {s[2], s[3]}, floats(file, name)});
      for (int64_t i = 0; i < s[0]; ++i) all.add(pixels.back(), i);
    }
  }

  // The model directory with the weights under other names.
  LoadedModel load(const std::function<std::string(std::string)>& rename = {}) {
    std::vector<NamedTensorView> views;
    const std::set<std::string> others = named(file, {"pixel_values", "out.", "label", "loss"});
    for (const std::string& name : file.names()) {
      if (others.contains(name) || name.starts_with("grad.")) continue;
      const StoredTensor& info = file.info(name);
      views.push_back({rename ? rename(name) : name, info.dtype, info.shape, info.bytes});
    }
    dir_.write("config.json", file.metadata().at("config"));
    write_safetensors(dir_ / "model.safetensors", views);
    return load_model(dir_.path());
  }

  std::vector<int32_t> labels(const std::string& key) const {
    std::vector<int32_t> all_labels;
    for (size_t k = 0; k < pixels.size(); ++k) {
      for (const int64_t l : integers(file, fmt::format("{}.{}", key, k))) {
        all_labels.push_back(static_cast<int32_t>(l));
      }
    }
    return all_labels;
  }

  // The mean over the images; what a teacher teaches beside.
  Tensor loss(const Model& model, const nn::Run& run) const {
    const nn::ImageRows images = all.rows();
    const Tensor h = model.hidden(images, run);
    const CrossEntropyOptions mean{.grad_scale = 1 / static_cast<float>(all.sizes.size())};
    const Heads& heads = model.heads();
    if (!heads.distilled_classes) {
      return cross_entropy(heads.sequence_classes(h, images, run), labels("labels"), mean).loss;
    }
    return add(
        cross_entropy(heads.own_classes(h, images, run), labels("labels"), mean).loss,
        cross_entropy(heads.distilled_classes(h, images, run), labels("distilled_labels"), mean)
            .loss);
  }

  std::map<std::string, std::vector<float>> gradients(LoadedModel& model, const nn::Run& run) {
    const Tensor total = loss(*model.model, run);
    std::map<std::string, std::vector<float>> values = {{"loss", total.to_floats()}};
    backward(total);
    for (auto& p : model.parameters.all()) {
      EXPECT_TRUE(p->grad().defined()) << p->name() << " has no gradient";
      for (const nn::Part& part : p->parts())
        values["grad." + part.name] = part_of(p->grad(), part);
      p->grad() = Tensor();
    }
    return values;
  }

  SafetensorsFile file;
  std::vector<Pixels> pixels;
  Images all;
  TemporaryFolder dir_;
};

// Every output of a pass over one batch, by its name: hidden states, attention maps, what the head
// gives.
struct Outputs {
  std::map<std::string, std::vector<float>> values;

  Outputs(const ImageModel& model, const Images& images, const nn::Run& given = {}) {
    const NoGrad off;
    nn::Observer observer;
    observer.hidden = [&](const std::string& name, const Tensor& x) { add(name, x); };
    observer.attention = [&](const nn::AttentionCall& call) {
      for (int64_t s = 0; s < call.queries().count(); ++s) {
        for (int64_t h = 0; h < call.heads(); ++h) add(call.name(), call.weights(s, h));
      }
    };
    nn::Run run = given;
    run.observer = &observer;
    for (const ModelOutput& o : model.forward(images.rows(), run)) add(o.name, o.x);
    if (values.contains("last_hidden_state")) return;
    add("last_hidden_state", model.hidden(images.rows(), given));
  }
  void add(const std::string& name, const Tensor& x) {
    const std::vector<float> more = x.to_floats();
    values[name].insert(values[name].end(), more.begin(), more.end());
  }
};

inline std::string report_of(const SafetensorsFile& file, const std::vector<Pixels>& pixels,
                             const ImageModel& model, DType compute, double tolerance) {
  Comparison comparison(file, tolerance);
  for (size_t k = 0; k < pixels.size(); ++k) {
    Images images;
    for (int64_t i = 0; i < pixels[k].count; ++i) images.add(pixels[k], i);
    for (const auto& [name, values] : Outputs(model, images, {.compute = compute}).values) {
      const std::string there = fmt::format("out.{}.{}", k, name);
      if (name != "last_hidden_state" || file.find(there)) comparison.add(there, values);
    }
  }
  EXPECT_EQ(comparison.names(), named(file, {"out."}));
  ::testing::Test::RecordProperty("worst_relative_error",
                                  fmt::format("{:.2e}", comparison.worst()));
  return comparison.report();
}

}  // namespace heddle
