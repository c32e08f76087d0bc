// Reading token by token with models that keep keys and values, of one stack or of two.
#pragma once

#include "heddle/infer/engine/sequence_reader.h"

namespace heddle {

class EncoderDecoder;

/// A token is read once; tokens that fork are shared.
std::unique_ptr<SequenceReader> make_cached_reader(const LanguageModel& model);
/// A sequence is a translation that begins; its source is read once, those that fork have the same.
std::unique_ptr<SequenceReader> make_cached_reader(const EncoderDecoder& model);

}  // namespace heddle
