// Word alignment by cross attention: which word of the source each word of a translation came from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"

namespace heddle {

struct AlignmentOptions {
  std::vector<int64_t> layers = {};  ///< of the decoder, from 0, averaged; empty: aligning_layer()
  std::vector<int64_t> heads = {};   ///< from 0, averaged; empty: all
  /// A word's attention is that of the step that reads it, not of the step before, which predicts
  /// it. Source: Chen et al. 2020, "Accurate Word Alignment Induction from NMT".
  bool shifted = false;
  int64_t batch_tokens = 4096;  ///< source and target tokens computed together
  Precision precision = {};
};

/// The decoder layer whose maps lie closest to word alignments: the last but one in deep models,
/// else the last. Source: Garg et al. 2019, "Jointly Learning to Align and Translate", section 4.1.
int64_t aligning_layer(const EncoderDecoderFacts& facts);

/// Errors: usage, naming the flag, for a layer or head that the model does not have.
void check_alignment(const EncoderDecoderFacts& facts, const AlignmentOptions& options);

/// Cross-attention weights of pairs, the targets given, averaged over layers and heads.
/// sources, targets: ids without the end    returns: for each pair [t + 1, s + 1] f32: row i is the
/// query that predicts target[i] (the last one the end), column j is source[j] (the last one the
/// end); rows sum to 1. Errors: shape if there is no such layer or head.
std::vector<Tensor> cross_attention_maps(const EncoderDecoder& model,
                                         std::span<const std::vector<int32_t>> sources,
                                         std::span<const std::vector<int32_t>> targets,
                                         const AlignmentOptions& options = {});

/// The tokens [begin, end) that make up a word, without the punctuation at its ends.
struct TokenRange {
  int64_t begin = 0, end = 0;
  bool is_punctuation = false;  ///< nothing else is in it; then the range is all of it
};

/// The words of a text, as spaces part them, in tokens. A token that holds the end of one word and
/// the beginning of the next belongs to both, one that names a language to none.
std::vector<TokenRange> split_words(const Tokenizer& tokenizer, std::span<const int32_t> ids);

/// The weight of a source word for a target word in a map of cross_attention_maps(): summed over
/// the source word's tokens, averaged over the target word's. Words: anything with begin and end.
template <class Word>
double word_weight(const Tensor& map, const Word& target, const Word& source,
                   bool shifted = false) {
  double sum = 0;
  for (auto i = target.begin; i < target.end; ++i) {
    const float* row = map.data<float>() + (static_cast<int64_t>(i) + shifted) * map.size(1);
    for (auto j = source.begin; j < source.end; ++j) sum += row[j];
  }
  return sum / static_cast<double>(target.end - target.begin);
}

/// Word `source` of the source goes with word `target` of the target, both from 0.
struct AlignmentLink {
  int32_t source = 0, target = 0;
  friend auto operator<=>(const AlignmentLink&, const AlignmentLink&) = default;
};
using Alignment = std::vector<AlignmentLink>;  ///< in order

/// For each word of the target the word of the source with the largest word_weight(), the first
/// among equals.
/// Attention that has nothing to look for rests on punctuation, so punctuation goes with
/// punctuation, and words with words, where the source has any.
Alignment align_words(const Tensor& map, std::span<const TokenRange> source,
                      std::span<const TokenRange> target, bool shifted = false);

/// Alignments of pairs of texts given as ids. A pair with an empty side has no links.
std::vector<Alignment> align_pairs(const LoadedModel& model,
                                   std::span<const std::vector<int32_t>> sources,
                                   std::span<const std::vector<int32_t>> targets,
                                   const AlignmentOptions& options = {});

/// "0-0 1-2": the form of Pharaoh, SOURCE-TARGET.
std::string to_pharaoh(const Alignment& alignment);

}  // namespace heddle
