// The models that turn a pre-token, mostly a word, into ids of a vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/subwords/vocabulary.h"

namespace heddle {

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  /// Appends the ids of a text, which is not empty. Errors: data if a part of it is unknown and the
  /// model has no token for that.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  /// The token for what is unknown.
  virtual std::optional<int32_t> unk() const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit SubwordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

 private:
  Vocabulary vocabulary_;
};

struct BpeOptions {
  std::string unk;                        ///< token for characters without one; "": they vanish
  std::string continuing_subword_prefix;  ///< before a word's characters, save the first
  std::string end_of_word_suffix;         ///< behind a word's last character
  bool fuse_unk = false;                  ///< unknown characters side by side are one token
  bool byte_fallback = false;             ///< unknown characters are their bytes, "<0x0A>"
  bool ignore_merges = false;  ///< a word that is a token is that token, whatever merges say
};

using Merge = std::pair<std::string, std::string>;

/// Byte pair encoding: the pair of neighbours that stands first in `merges` is joined, the leftmost
/// first, until none is left; n log n in the length of the text.
/// Errors: data if a merge has an empty part, or joins or gives tokens that are not in the
/// vocabulary, or if `unk` is not. Source: Sennrich et al. 2016, section 3.2.
std::unique_ptr<SubwordModel> make_bpe(Vocabulary vocabulary, const std::vector<Merge>& merges,
                                       BpeOptions options, const std::string& source);

struct WordPieceOptions {
  std::string unk = "[UNK]";
  std::string continuing_subword_prefix = "##";
  int64_t max_characters = 100;  ///< longer words are unknown
};

/// The longest token at the front, then the longest at the front of the rest; a word that cannot be
/// covered so is unknown as a whole. Source: Schuster & Nakajima 2012; Devlin et al. 2018.
std::unique_ptr<SubwordModel> make_word_piece(Vocabulary vocabulary, WordPieceOptions options,
                                              const std::string& source);

struct UnigramOptions {
  std::optional<int64_t> unk;  ///< for characters that no token has
  bool byte_fallback = false;
};

/// The most probable segmentation; scores are log probabilities of the tokens, by id. An unknown
/// character costs 10 more than the least probable token; those side by side are one token.
/// Errors: data if a score is not finite or unk is no id. Source: Kudo 2018, section 3.2.
std::unique_ptr<SubwordModel> make_unigram(Vocabulary vocabulary, std::vector<double> scores,
                                           UnigramOptions options, const std::string& source);

/// A text is a token or unknown.
std::unique_ptr<SubwordModel> make_word_level(Vocabulary vocabulary, const std::string& unk,
                                              const std::string& source);

}  // namespace heddle
