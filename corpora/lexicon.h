// The dictionaries of the corpora: lexicons/NAME.json, compiled into the program.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// Errors: internal if there is none of this name.
const Json& lexicon(const std::string& name);

/// The fields of a line of a dictionary: "a/b/c" -> {"a", "b", "c"}. Errors: internal unless there
/// are so many.
std::vector<std::string> fields_of(const std::string& line, size_t count);

}  // namespace heddle
