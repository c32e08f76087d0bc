// What is asked of models whose queries and keys are turned by their positions.
#pragma once

#include "heddle/ops/rope.h"

namespace heddle {

/// Turns them in every layer.
struct WithRotary {
  struct Facts {
    int64_t head_width = 0, positions = 0;
    RotaryOptions options;
  };
  virtual Facts rotary() const = 0;
};

}  // namespace heddle
