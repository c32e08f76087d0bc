// The tokenizer of a run over text: given, taken from a model, or made of the text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/text/tokenizer.h"
#include "heddle/train/config.h"

namespace heddle::train {

/// The tokenizer in RUN/tokenizer, put there first if there is none: config.tokenizer, else that of
/// the model that the run begins `from` (may be empty), else one of config.tokenizer_type made of
/// `texts`. Errors: those of Tokenizer::load() and the trainers.
Tokenizer open_text_tokenizer(const TrainConfig& config, std::span<const std::string> texts,
                              const std::string& from, const std::string& run);

/// Ids of each text, without special ones, on all threads.
std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer,
                                             std::span<const std::string> texts);

}  // namespace heddle::train
