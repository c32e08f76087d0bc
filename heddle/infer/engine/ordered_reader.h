// Reading with a model whose tokens are known in any order: XLNet.
#pragma once

#include "heddle/infer/engine/sequence_reader.h"

namespace heddle {

/// As Hugging Face's generate() has it: behind the tokens stands one that none of them sees, and
/// that is predicted. With memory (memory_length() above 0) a pass reads the last token again
/// beside the new one, and remembers the states of those before as they were computed then.
/// Errors: data if half of a batch runs backwards; internal if it does not predict tokens.
std::unique_ptr<SequenceReader> make_ordered_reader(const TokenModel& model);

}  // namespace heddle
