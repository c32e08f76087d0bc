// A model of the registry with its tokenizer: texts in, rows of tokens to the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"

namespace heddle {

/// Reads model and tokenizer of a folder; max_length is that of the model, or model_max_length of
/// tokenizer_config.json if that is less. Errors: those of load_model() and Tokenizer::load(); data
/// if the model is a translator, or the tokenizer has special ids that the model does not know.
LoadedModel load_text_model(const std::string& path);

/// Errors: data, naming a class that has it, if a model lacks a head for `what`: "classes".
void check_head(const LoadedModel& model, bool has_it, Head head, const char* what);

/// Ids that a text may have beside the special ones. Errors: data if there is no room.
int64_t room_of(const LoadedModel& model);
/// Errors: data, naming the token, if an id is beyond the model's.
void check_ids(const LoadedModel& model, std::span<const int32_t> ids);

/// A text, or a pair of them, as the tokenizer's files lay it out, cut to model.max_length as
/// transformers does (of a pair the longer part first). was_cut: set if something was cut, else
/// left alone. Errors: data if a text is not UTF-8, gives no id, or an id is beyond the model's.
Encoding encode_to_fit(const LoadedModel& model, std::string_view text, bool& was_cut);
Encoding encode_to_fit(const LoadedModel& model, std::string_view first, std::string_view second,
                       bool& was_cut);

/// Texts end to end, with the positions that the model counts.
struct PackedTexts {
  std::vector<int32_t> ids, position_ids, types;  ///< [rows]
  Segments segments;                              ///< one a text

  PackedTexts(const TokenModel& model, std::span<const Encoding> texts);
  nn::TokenRows tokens() const { return {ids, &segments, nullptr, position_ids, types}; }
};

}  // namespace heddle
