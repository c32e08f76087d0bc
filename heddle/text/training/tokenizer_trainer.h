// Learning a vocabulary from text: BPE or unigram, through SentencePiece; characters; WordPiece as
// BERT has it; or the words of a list.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

enum class TokenizerType {
  bpe,     ///< merges of frequent pairs (Sennrich et al. 2016)
  unigram  ///< a unigram language model over tokens (Kudo 2018)
};

/// "bpe", "unigram". Errors of the reader: usage, listing the names.
TokenizerType tokenizer_type(const std::string& name);

struct TokenizerTraining {
  TokenizerType type = TokenizerType::bpe;
  /// Tokens in all, the 4 special ones and the 256 bytes included; reached exactly or an error.
  int64_t vocab_size = 10000;
  /// Share of the corpus's characters (0.98 to 1) that get tokens of their own, by frequency.
  double character_coverage = 1.0;
  /// Characters without a token become bytes instead of <unk>.
  bool byte_fallback = true;
  /// Folds case when encoding (identity becomes nfkc_cf, nfkc nfkc_cf, nmt_nfkc nmt_nfkc_cf), so
  /// that decoding gives lower case. NFKC case folding also writes "ß" as "ss".
  bool lower_case = false;
  /// identity, nfkc, nmt_nfkc, nfkc_cf or nmt_nfkc_cf (SentencePiece's rules). All but identity
  /// also trim and join spaces, and are not exact.
  std::string normalization = "identity";
  /// A larger corpus is sampled down to this many lines, each equally likely.
  int64_t max_sentences = 2'000'000;
  /// Chooses the sample; without effect on a corpus that is not sampled.
  uint64_t seed = 1;
};

/// Puts the next line of the corpus in `line` and returns true; false at its end.
using SentenceSource = std::function<bool(std::string& line)>;
/// Gets one line of information each time (sampling, what was cut).
using TrainingLog = std::function<void(const std::string& message)>;

/// Trains a tokenizer whose special ids are <pad> 0, <unk> 1, <s> 2, </s> 3.
/// The same lines, options and seed give the same bytes, on any number of threads: one is used,
/// because SentencePiece's float sums vary with their number. No path and no date is in the file.
/// Empty lines are skipped; long lines are cut at spaces, and tokens do not reach over a cut.
/// Errors: usage for options out of range; data for an empty corpus, a line that is not UTF-8 (its
/// number is given), or a corpus too small or with too many characters for the vocabulary.
Tokenizer train_tokenizer(const SentenceSource& source, const TokenizerTraining& options,
                          const TrainingLog& log = {});
Tokenizer train_tokenizer(std::span<const std::string> sentences, const TokenizerTraining& options,
                          const TrainingLog& log = {});

/// A token for each character of the texts, in the order of code points from id 0: byte pair
/// encoding without a merge, so that Hugging Face's tokenizers reads its tokenizer.json too.
/// Errors: data if there is no character.
Tokenizer character_tokenizer(std::span<const std::string> texts);

/// [PAD] [UNK] [CLS] [SEP] [MASK], the characters of the texts as BERT's normalisation leaves them
/// (lower case, no accents), first in a word and inside of one ("##e"), and then the tokens of
/// which each in turn joins the two neighbours that stand together most often (Sennrich et al.
/// 2016), up to `vocab_size` tokens, or fewer if no two come twice: a vocab.txt. Ties go to the
/// pair whose tokens have the lowest ids. Errors: data if the characters alone are more.
Tokenizer train_word_pieces(std::span<const std::string> texts, int64_t vocab_size);

/// A tokenizer that takes the words between spaces as they stand in the list, in its order, behind
/// <pad> 0, <unk> 1, <s> 2 and </s> 3; a word that is not in it is <unk>. It is a SentencePiece
/// model of type WORD, so it is kept and read like any other. The same list gives the same bytes.
/// Errors: data for an empty list, or a word that is empty, comes twice, holds a space or U+2581,
/// is not UTF-8 or is a special token's name.
Tokenizer word_list_tokenizer(std::span<const std::string> words);

}  // namespace heddle
