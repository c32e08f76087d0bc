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

/// [CLS] A [SEP], [CLS] A [SEP] B [SEP] with the type 1 from B on.
Template bert_template(int32_t cls, int32_t sep);
/// A </s>, A B </s>.
Template eos_template(int32_t eos);
/// <s> A </s>, <s> A </s> </s> B </s>, all of type 0.
Template roberta_template(int32_t cls, int32_t sep);

/// From the "post_processor" of a tokenizer.json: TemplateProcessing, BertProcessing,
/// RobertaProcessing, ByteLevel (which concerns offsets only) and Sequence of these, at most one of
/// which adds ids. Gives the ids of cls and sep where it names them.
/// Errors: data, naming what is unknown or wrong.
Template read_post_processor(const Json& json, SpecialIds& special, const std::string& source);

}  // namespace heddle
