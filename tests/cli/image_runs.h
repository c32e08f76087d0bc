// Small runs of image classifiers over images that the tests draw.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heddle/base/rng.h"
#include "tests/cli/run_folder.h"
#include "tests/data/image_files.h"

namespace heddle::testing {

/// IDX files of grey images of 12 x 12 pixels whose class is the quarter that is bright.
inline void write_quarters(const std::string& folder, const std::string& part, uint32_t count) {
  std::string pixels, labels;
  RngStream random(make_key(7, count, 0));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t label = i % 4;
    labels += static_cast<char>(label);
    for (uint32_t y = 0; y < 12; ++y) {
      for (uint32_t x = 0; x < 12; ++x) {
        const bool is_bright = (y >= 6) == (label >= 2) && (x >= 6) == (label % 2 == 1);
        pixels += static_cast<char>((is_bright ? 90 : 0) + random.below(120));
      }
    }
  }
  write_file(folder + "/" + part + "-images-idx3-ubyte", idx_file({count, 12, 12}, pixels));
  write_file(folder + "/" + part + "-labels-idx1-ubyte", idx_file({count}, labels));
}

class ImageRuns : public RunFolder {
 protected:
  static void SetUpTestSuite() {
    RunFolder::SetUpTestSuite();
    std::filesystem::create_directory(path("data"));
    write_quarters(path("data"), "train", 400);
    write_quarters(path("data"), "test", 100);
  }
  static CliResult train(const std::string& run, const std::vector<std::string>& more) {
    const std::vector<std::string> words = words_of(
        "train --task image_classification --hidden-size 16 --num-hidden-layers 2 "
        "--num-attention-heads 2 --intermediate-size 32 --patch-size 4 --batch-size 32 "
        "--warmup-updates 5 --schedule constant --learning-rate 0.005 --validate-every 20 "
        "--checkpoint-every 5 --precision f32 --random-crop 1 --mixup-alpha 0.2 "
        "--drop-path-rate 0.1 --label-smoothing 0.1");
    return run_heddle(with(with(words, {"--data", path("data"), "--out", path(run)}), more));
  }
};

}  // namespace heddle::testing
