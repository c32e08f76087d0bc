// Reading tokenizer.json, the file of Hugging Face's `tokenizers`.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/text/pipeline/pipeline.h"

namespace heddle {

/// The parts of a tokenizer before it is made, so that other files may add to them.
struct PipelineDescription {
  std::string kind;  ///< "byte-level BPE", "WordPiece", ...
  PipelineParts parts;
  Template around;
  SpecialIds special;  ///< those that the parts name by their use
};

/// "truncation" and "padding" of the file are not followed: whoever asks for ids cuts them.
/// Errors: data, naming `source` and the component, for anything broken, missing or unknown.
PipelineDescription read_tokenizer_json(const Json& json, const std::string& source);

/// Lines of merges.txt: two tokens with a space between; the first line may be a comment
/// ("#version"). Errors: data, with the line.
std::vector<Merge> merges_of_lines(std::string_view text, const std::string& source);

}  // namespace heddle
