// What `heddle generate --top` writes of a prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "heddle/infer/search/best_tokens.h"
#include "heddle/text/tokenizer.h"

namespace heddle::cli {

/// Lines of token, id and probability, quoted and escaped: tokens may be a line break.
std::string next_tokens_table(std::span<const NextToken> tokens,
                              const std::optional<Tokenizer>& tokenizer);
/// An object in one line; `error`: why there are none, or "".
std::string next_tokens_json(int64_t prompt, std::span<const NextToken> tokens,
                             const std::optional<Tokenizer>& tokenizer, const std::string& error);

}  // namespace heddle::cli
