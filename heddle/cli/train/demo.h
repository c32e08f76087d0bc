// What the two demos of `heddle demo` have in common.
#pragma once

#include <string>

#include "heddle/train/config.h"

namespace heddle::cli {

/// Errors: usage, naming a field that differs, if `run` is a run of other settings than the demo's:
/// another run's work is not the demo's to remove.
void check_own_run(const std::string& run, const train::TrainConfig& config);

/// Draws images of shapes, trains a small ViT on them and shows what it has learned, all in `out`.
void run_image_demo(const std::string& out);

}  // namespace heddle::cli
