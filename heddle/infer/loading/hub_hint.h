// What is said where a path may be meant as a model's name on huggingface.co.
#pragma once

#include <string>

namespace heddle {

/// ". Models of huggingface.co are downloaded first, .." with the command, if `path` is not there
/// and reads like such a name ("bert-base-uncased", "openai-community/gpt2"); else "".
std::string hub_hint(const std::string& path);

}  // namespace heddle
