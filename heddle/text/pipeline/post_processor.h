// The special ids around texts: the post-processors of tokenizer.json.
#pragma once

#include <string>

#include "heddle/base/json/json.h"
#include "heddle/text/tokenizer_impl.h"

namespace heddle {

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
