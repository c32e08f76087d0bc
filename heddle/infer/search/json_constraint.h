// Outputs that are JSON of a schema: which tokens of a vocabulary may come.
#pragma once

#include <memory>

#include "heddle/base/json/json.h"
#include "heddle/infer/search/token_constraint.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

/// schema: see json_grammar(), null for any object; ends: ids that end an output, which may come
/// once it is whole. Outputs always parse and fit the schema, however few tokens they may have from
/// least_tokens() on. vocab: of the model. Errors: usage for what json_grammar() refuses, and for a
/// tokenizer whose tokens are no bytes, or that has no token for one of the bytes alone that an
/// output may need.
std::unique_ptr<TokenConstraint> make_json_constraint(const Json& schema,
                                                      const Tokenizer& tokenizer, int64_t vocab,
                                                      std::vector<int32_t> ends);

}  // namespace heddle
