// How a translation or a continuation came about: at each step the likely next tokens, the beam as
// a tree, of translations attention.
#pragma once

#include <string>
#include <vector>

#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/inspect/subject.h"

namespace heddle::inspect {

/// A beginning of a text that was live at some step, or a whole one.
struct BeamNode {
  int64_t parent = -1;          ///< its number; -1: the empty beginning
  int64_t step = 0;             ///< tokens before it is asked for more; also its column in the tree
  int32_t id = -1;              ///< its last token; -1 of the empty beginning
  double log_p = 0;             ///< of all its tokens
  bool is_ended = false;        ///< its parent's tokens are a whole text
  bool is_cut = false;          ///< and ended by length or a stop string, not by the end
  double score = 0;             ///< of one that ended: log p over the length penalty
  std::vector<NextToken> next;  ///< the likeliest tokens after it; none of one that ended
  std::vector<float> attention;  ///< [source tokens and end] while its next token is chosen
};

struct DecodingRecord {
  std::vector<std::string> source;  ///< tokens and end; of a continuation none
  std::vector<BeamNode> nodes;      ///< parents before children
  std::vector<int64_t> best;        ///< the way to the result, first to last
  int64_t layer = -1;       ///< of the decoder, from 0, whose attention is kept; -1: there is none
  std::string source_text;  ///< or the prompt
  std::string text;
  double score = 0;
};

/// Translates a line and keeps what happened, of each beginning so many likely tokens. Attention is
/// that of cross_attention_map(): one layer, mean over its heads.
/// Errors: usage for an empty line; those of translate_lines().
DecodingRecord record_decoding(const LoadedModel& model, const std::string& line,
                               TranslateOptions options, int64_t tokens = 10);

/// Continues a prompt and keeps what happened, as above.
/// Errors: usage if the model has no tokenizer; those of generate_ids().
DecodingRecord record_generation(const LoadedModel& model, const std::string& prompt,
                                 std::span<const int32_t> ids, GenerateOptions options,
                                 int64_t tokens = 10);

Page decoding_page(const DecodingRecord& record, const Tokenizer& tokenizer);

}  // namespace heddle::inspect
