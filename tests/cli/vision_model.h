// A small ViT with random weights as a model directory, with what transformers makes of its inputs.
#pragma once

#include "heddle/base/json/json.h"
#include "heddle/io/safetensors.h"
#include "tests/parity/comparison.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// tests/fixtures/vision/NAME.safetensors: weights, and from pixel_values.K the outputs out.K.*.
inline SafetensorsFile vision_fixture(const std::string& name) {
  return SafetensorsFile::open(std::string(kFixtures) + "/vision/" + name + ".safetensors");
}

/// Writes its model, whose images are squeezed to 12 x 12 pixels: patches of 4.
inline void write_vision_model(const std::string& folder, const std::string& name = "vit") {
  const SafetensorsFile file = vision_fixture(name);
  std::vector<NamedTensorView> views;
  const std::set<std::string> others =
      named(file, {"pixel_values", "out.", "after.resnet.", "labels.", "boxes.", "loss", "grad."});
  for (const std::string& tensor : file.names()) {
    if (others.contains(tensor) || tensor == "labels") continue;
    const StoredTensor& info = file.info(tensor);
    views.push_back({tensor, info.dtype, info.shape, info.bytes});
  }
  std::filesystem::create_directories(folder);
  write_file(folder + "/config.json", file.metadata().at("config"));
  write_file(folder + "/preprocessor_config.json",
             R"({"do_resize": true, "size": {"height": 12, "width": 12}, "resample": 2,
                 "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
                 "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})");
  write_safetensors(folder + "/model.safetensors", views);
}

inline void write_vit(const std::string& folder) { write_vision_model(folder); }

inline std::string fixture_image(const std::string& name) {
  return std::string(kFixtures) + "/images/" + name;
}

}  // namespace heddle::testing
