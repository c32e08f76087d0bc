// Words and tokens: which runs of tokens a reader takes for one word, the tokens of words that were
// split before, as taggers take them; and word alignment by cross attention: which word of the
// source each word of a translation came from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/infer/loading/text_model.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

/// A run of tokens [begin, end) that is a word, or punctuation.
struct WordSpan {
  int64_t begin = 0, end = 0;
  bool is_punctuation = false;
};

/// The words of a sentence, in order. A word goes on up to the next space or punctuation; tokens
/// that are only a space belong to none. ids: without special tokens
std::vector<WordSpan> word_spans(const Tokenizer& tokenizer, std::span<const int32_t> ids);

/// Whether there is punctuation and nothing else: of ASCII, without the signs that stand inside
/// words.
bool is_punctuation(std::string_view token);

/// The text of a word, without spaces at its ends.
std::string word_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                      const WordSpan& word);

/// A token as it stands in a text, with its spaces: " the", of a special one its name.
std::string token_text(const Tokenizer& tokenizer, int32_t id);

/// What stands behind a source, for readers: "(end)", and the names of further tokens, a language.
std::vector<std::string> names_of_ends(const Tokenizer& tokenizer, const PairMarks& marks);

/// The bytes that a token adds to a text: of byte-level BPE and byte fallback ("<0x0A>") they may
/// be a part of a character; of a special one its name.
std::string token_bytes(const Tokenizer& tokenizer, int32_t id);

struct EncodedWords {
  Encoding encoding = {};                ///< with the special ids
  std::vector<int64_t> first_rows = {};  ///< of each word; -1 if it gives no id or was cut off
  bool was_cut = false;
};

/// Words one by one, each as if it were a text, so that the row of its first id is known; ids
/// beyond `longest`, special ones not counted, are cut off. Errors: those of Tokenizer::encode().
EncodedWords encode_words(const Tokenizer& tokenizer, std::span<const std::string> words,
                          int64_t longest);

struct AlignmentOptions {
  std::vector<int64_t> layers = {};  ///< of the decoder, from 0, averaged; empty: aligning_layer()
  std::vector<int64_t> heads = {};   ///< from 0, averaged; empty: all
  /// A word's attention is that of the step that reads it, not of the step before, which predicts
  /// it. Source: Chen et al. 2020, "Accurate Word Alignment Induction from NMT".
  bool shifted = false;
  /// Around pairs, but in front of sources, which have that; none: usual_marks().
  std::optional<PairMarks> marks = {};
  int64_t batch_tokens = 4096;  ///< source and target tokens computed together
  Precision precision = {};
};

/// The decoder layer whose maps lie closest to word alignments: the last but one in deep models,
/// else the last. Source: Garg et al. 2019, "Jointly Learning to Align and Translate", section 4.1.
int64_t aligning_layer(const EncoderDecoderFacts& facts);

/// Errors: data for a model without attention over its source, which aligns nothing.
void check_attends(const EncoderDecoderFacts& facts);
/// Errors: `kind` for a layer or head that the model does not have.
void check_alignment(const EncoderDecoderFacts& facts, const AlignmentOptions& options,
                     ErrorKind kind = ErrorKind::usage);

/// Cross-attention weights of pairs, the targets given, averaged over layers and heads.
/// sources, targets: ids without the end    returns: for each pair [t + 1, s + 1] f32: row i is the
/// query that predicts target[i] (the last one the end), column j is source[j] (the last one the
/// end; there are more where AlignmentOptions::marks have more behind sources); rows sum to 1.
/// Errors: shape if there is no such layer or head; data if a weight is not finite.
std::vector<Tensor> cross_attention_maps(const EncoderDecoder& model,
                                         std::span<const std::vector<int32_t>> sources,
                                         std::span<const std::vector<int32_t>> targets,
                                         const AlignmentOptions& options = {});

/// Cross-attention weights of one decoder layer, averaged over its heads, with the target given;
/// see cross_attention_maps(). layer -1: aligning_layer(). Errors: shape if there is no such layer.
Tensor cross_attention_map(const EncoderDecoder& model, std::span<const int32_t> source,
                           std::span<const int32_t> target, int64_t layer = -1,
                           Precision precision = {}, std::optional<PairMarks> marks = {});

/// The words of a text, as spaces part them, without the punctuation at their ends; what is nothing
/// else is_punctuation, and all of it. A token that holds the end of one word and
/// the beginning of the next belongs to both, one that names a language to none.
std::vector<WordSpan> split_words(const Tokenizer& tokenizer, std::span<const int32_t> ids);

/// Word `source` of the source goes with word `target` of the target, both from 0.
struct AlignmentLink {
  int32_t source = 0, target = 0;
  friend auto operator<=>(const AlignmentLink&, const AlignmentLink&) = default;
};
using Alignment = std::vector<AlignmentLink>;  ///< in order

/// For each word of the target the word of the source with the largest weight in a map of
/// cross_attention_maps(), summed over the source word's tokens and averaged over the target
/// word's; the first among equals. Attention that has nothing to look for rests on punctuation, so
/// punctuation goes with punctuation, and words with words, where the source has any.
Alignment align_words(const Tensor& map, std::span<const WordSpan> source,
                      std::span<const WordSpan> target, bool shifted = false);

/// Alignments of pairs of texts given as ids. A pair with an empty side has no links.
std::vector<Alignment> align_pairs(const LoadedModel& model,
                                   std::span<const std::vector<int32_t>> sources,
                                   std::span<const std::vector<int32_t>> targets,
                                   const AlignmentOptions& options = {});

/// "0-0 1-2": the form of Pharaoh, SOURCE-TARGET.
std::string to_pharaoh(const Alignment& alignment);

/// A word of a translation and the source word that it attended to most.
struct WordLink {
  std::string target;
  std::string source;         ///< "" if the source has no word
  int64_t source_index = -1;  ///< its place among the words of the source
  double weight = 0;  ///< attention to that word, averaged over the target word's tokens, 0 to 1
};

/// For each of the word_spans() of the translation, punctuation left out, the source word with the
/// largest weight, see align_words().
std::vector<WordLink> word_attention(const LoadedModel& model, std::span<const int32_t> source,
                                     std::span<const int32_t> target, Precision precision = {});

}  // namespace heddle
