// A step of an explanation by its key.
#pragma once

#include <algorithm>

#include "heddle/inspect/explanation.h"

namespace heddle::inspect {

inline const ExplainedStep& step_of(const Explanation& e, const std::string& key) {
  return *std::ranges::find(e.steps, key, &ExplainedStep::key);
}

}  // namespace heddle::inspect
