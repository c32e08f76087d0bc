// Names of classes, where each is to be told from the others.
#pragma once

#include <string>
#include <vector>

namespace heddle {

/// The names, each once: of equal ones those after the first get their number behind them, from 0.
/// ImageNet's have two cranes, "crane" and "crane (class 517)".
std::vector<std::string> distinct_names(std::vector<std::string> names);

}  // namespace heddle
