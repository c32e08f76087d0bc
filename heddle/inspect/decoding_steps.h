// How a translation or a continuation came about: at each step the likely next words, the beam as a
// tree, of translations attention.
#pragma once

#include <string>
#include <vector>

#include "heddle/infer/generate.h"
#include "heddle/infer/prompt_model.h"
#include "heddle/infer/translate.h"
#include "heddle/inspect/page.h"
#include "heddle/inspect/subject.h"

namespace heddle::inspect {

/// A beginning of a text that was live at some step, or a whole one.
struct BeamNode {
  int64_t parent = -1;           ///< its number; -1: the empty beginning
  int64_t step = 0;              ///< words before it is asked for more; also its column in the tree
  int32_t id = -1;               ///< its last word; -1 of the empty beginning
  double log_p = 0;              ///< of all its words
  bool is_ended = false;         ///< its parent's words are a whole text
  bool is_cut = false;           ///< and ended by length or a stop string, not by the end
  double score = 0;              ///< of one that ended: log p over the length penalty
  std::vector<NextWord> next;    ///< the likeliest words after it; none of one that ended
  std::vector<float> attention;  ///< [source pieces and end] while its next word is chosen
};

struct DecodingRecord {
  std::vector<std::string> source;  ///< pieces and end; of a continuation none
  std::vector<BeamNode> nodes;      ///< parents before children
  std::vector<int64_t> best;        ///< the way to the result, first to last
  std::string source_text;          ///< or the prompt
  std::string text;
  double score = 0;
};

struct RecordOptions {
  TranslateOptions translate = {};
  int64_t words = 10;  ///< likely words kept of each beginning
};

/// Translates a line and keeps what happened. Attention is that of cross_attention_map(): one
/// layer, mean over its heads.
/// Errors: usage for an empty line; those of translate_lines().
DecodingRecord record_decoding(const TranslationModel& model, const std::string& line,
                               const RecordOptions& options);

/// Continues a prompt and keeps what happened; `words` as in RecordOptions.
/// Errors: usage if the model has no tokenizer; those of generate_ids().
DecodingRecord record_generation(const PromptModel& model, const std::string& prompt,
                                 std::span<const int32_t> ids, GenerateOptions options,
                                 int64_t words = 10);

Page decoding_page(const DecodingRecord& record, const Tokenizer& tokenizer);

}  // namespace heddle::inspect
