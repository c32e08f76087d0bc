// Rendering of a parsed template.
#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "heddle/text/chat/jinja_tree.h"

namespace heddle {

struct JinjaInput {
  std::vector<std::pair<std::string, JinjaValue>> variables = {};
  std::time_t now = 0;        ///< for strftime_now()
  int64_t steps = 5'000'000;  ///< of evaluation at most; 16 bytes that are made count as one
};

/// The text. Nothing but the variables is within its reach.
/// Errors: data, with the line, for what a template must not do, what it refuses
/// (raise_exception), and where it takes more than it may.
std::string render_jinja(const JinjaNode& tree, const JinjaInput& input);

}  // namespace heddle
