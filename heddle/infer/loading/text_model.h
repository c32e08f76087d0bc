// Models with their tokenizers: texts in, rows of tokens to the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/data/batches.h"
#include "heddle/infer/loading/loaded_model.h"

namespace heddle {

/// Reads model and tokenizer of a folder; max_length is that of the model, or model_max_length of
/// tokenizer_config.json if that is less. Errors: those of load_model() and Tokenizer::load(); data
/// if the model is a translator, or the tokenizer has special ids that the model does not know.
LoadedModel load_text_model(const std::string& path);

/// Errors: data, naming a class that has it, if a model lacks a head for `what`: "classes".
void check_head(const LoadedModel& model, bool has_it, Head head, const char* what);

/// The special ids that a tokenizer puts around a text, of this of its languages(); -1: as its
/// files have it.
struct IdsAround {
  std::vector<int32_t> before, behind;
};
IdsAround ids_around_text(const Tokenizer& tokenizer, int32_t language = -1);

/// Ids that a text may have beside the special ones. Errors: data if there is no room.
int64_t room_of(const LoadedModel& model);
/// Errors: data, naming the token, if an id is beyond the model's.
void check_tokenizer_ids(const LoadedModel& model, std::span<const int32_t> ids);

/// A text, or a pair of them, as the tokenizer's files lay it out, cut to model.max_length as
/// transformers does (of a pair the longer part first). cut: raised by 1 if something was. Errors:
/// data if a text is not UTF-8, gives no id, or an id is beyond the model's.
Encoding encode_truncated(const LoadedModel& model, std::string_view text, int64_t& cut);
Encoding encode_truncated(const LoadedModel& model, std::string_view first, std::string_view second,
                          int64_t& cut);

/// Texts end to end, with the positions that the model counts.
struct PackedTexts {
  std::vector<int32_t> ids, position_ids, types;  ///< [rows]
  Segments segments;                              ///< one a text

  PackedTexts(const TokenModel& model, std::span<const Encoding> texts);
  nn::TokenRows tokens() const { return {ids, &segments, nullptr, position_ids, types}; }
};

/// The end behind source and target, the model's first token before the target.
PairMarks usual_marks(const EncoderDecoderFacts& facts);
/// These of the pairs laid end to end for a decoder that is given the targets.
TranslationBatch pack_pairs(std::span<const std::vector<int32_t>> sources,
                            std::span<const std::vector<int32_t>> targets,
                            std::span<const size_t> pairs, const PairMarks& marks);

// --- prompts -------------------------------------------------------------------------------------

/// Reads a model that predicts_next_token(), its tokenizer if there is one, and how it generates;
/// `path` is a model directory or a training run, see find_model_dir(). Errors: data, naming the
/// file, for anything missing but the tokenizer, broken or cut short, or a model that does not
/// predict the next token.
LoadedModel load_prompt_model(const std::string& path);

/// Ids of a text with the special ones that the tokenizer puts at its front, not those behind it.
std::vector<int32_t> begin_text(const Tokenizer& tokenizer, const std::string& text);

/// Ids of documents end to end, with their ends between them, as in training. Needs a document.
std::vector<int32_t> document_ids(const Tokenizer& tokenizer,
                                  std::span<const std::string> documents);

struct PromptOptions {
  int64_t max_new_tokens = 0;  ///< room that truncation leaves
  int64_t context = 0;         ///< tokens of a prompt at most; 0: as many as the model takes
  bool truncate = false;       ///< keep the last tokens of a prompt that is too long, else an error
};

/// Says that a prompt is longer than the model takes.
class PromptTooLong : public Error {
 public:
  explicit PromptTooLong(const std::string& plain);
  /// The message without advice to cut it.
  const std::string& plain() const { return plain_; }

 private:
  std::string plain_;
};

/// Ids of a prompt, with the special ones that the tokenizer puts at its front. Of an empty prompt:
/// the id that begins texts, or that ends them (GPT-2). `where` ("prompt 3") opens messages; `cut`
/// is raised by 1 if something was cut. Errors: usage if the model has no tokenizer; data if the
/// text is not UTF-8, is empty and the model has no such id, or is longer than the model takes
/// (PromptTooLong).
std::vector<int32_t> prompt_ids(const LoadedModel& model, const std::string& text,
                                const std::string& where, const PromptOptions& options,
                                int64_t& cut);

/// Ids given as they are: checked, cut, or begun as above.
std::vector<int32_t> prompt_ids(const LoadedModel& model, std::vector<int32_t> ids,
                                const std::string& where, const PromptOptions& options,
                                int64_t& cut);

}  // namespace heddle
