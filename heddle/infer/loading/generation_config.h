// generation_config.json of a model's folder: special ids, and how its makers would have it
// decoded.
#pragma once

#include <string>

#include "heddle/infer/search/search_config.h"

namespace heddle {

/// Reads generation_config.json of a folder, and the special ids that it lacks from config.json;
/// where there is none, all from config.json, as older checkpoints have it; both may be missing.
/// Errors: data, naming file and key, for a broken file or a value of a wrong type or range.
SearchConfig read_generation_config(const std::string& folder);

}  // namespace heddle
