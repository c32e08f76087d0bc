// What translation is told; its pairs, tokenised, and their tokenizers.
#pragma once

#include <optional>
#include <string>

#include "corpora/phrasebook.h"
#include "heddle/data/batches.h"
#include "heddle/data/token_cache.h"
#include "heddle/infer/search/search_config.h"
#include "heddle/text/known_words.h"
#include "heddle/text/tokenizer.h"
#include "heddle/train/batches/pair_languages.h"
#include "heddle/train/config.h"

namespace heddle::train {

class PairFields : public TaskFields {
 public:
  std::string corpus = "files", source_lang = "en", target_lang = "de";
  std::string source_language, target_language;
  std::string tokenizer, target_tokenizer, tokenizer_type = "bpe";
  int64_t max_tokens = 256, batch_tokens = 4096, sort_pool = 0, validation_beam = 1;
  int64_t tuned_beam = 0, teacher_beam = 5;
  std::string teaching = "sequence";
  double label_smoothing = 0.1, r_drop = 0, teacher_weight = 0.5;
  double source_sampling = 0, target_sampling = 0, guided_alignment = 0;

  template <class V>
  void fields(V& v) {
    v("corpus", corpus, "files of `data`, or pairs that heddle generates: see heddle phrasebook",
      one_of({"files", "phrasebook", "agreement"}));
    v("source_lang", source_lang, "suffix of the source files");
    v("target_lang", target_lang, "suffix of the target files");
    v("source_language", source_language,
      "what a model with tokens of languages (mbart, m2m_100), or such a teacher, is told the "
      "sources are in, as eng_Latn; empty: `source_lang`, where that is one of its languages");
    v("target_language", target_language, "the same of the targets, and `target_lang`");
    v("tokenizer", tokenizer, "a SentencePiece .model to use; empty: one is trained");
    v("target_tokenizer", target_tokenizer,
      "one for the target alone, with `decoder_vocab_size`; empty: one is trained there");
    v("tokenizer_type", tokenizer_type, "of the tokenizer that is trained",
      one_of({"bpe", "unigram"}));
    v("max_tokens", max_tokens, "longest sentence used in training, in tokens, the end included",
      at_least(2));
    v("batch_tokens", batch_tokens, "source and target tokens of a batch, at most", at_least(2));
    v("sort_pool", sort_pool, "pairs sorted by length together; 0: all", at_least(0));
    v("label_smoothing", label_smoothing, "share of probability given to all tokens",
      from_below(0, 1));
    v("r_drop", r_drop,
      "R-Drop: two passes over each batch, this times their divergence added to the loss; 0: off",
      at_least(0));
    v("guided_alignment", guided_alignment,
      "guided alignment: times the loss of attention that misses the source words which statistics "
      "of the training pairs link with a token's word (heddle align --statistical, both directions "
      "in agreement); of heads the mean counts, of layers the last (of more than four the last but "
      "one); 0: off",
      at_least(0));
    v("source_sampling", source_sampling,
      "subword regularisation: source sentences are cut into other subwords each epoch, of a bpe "
      "tokenizer the share of "
      "merges left out (BPE dropout, 0.1), of a unigram one the power of probabilities they are "
      "drawn by (0.2); "
      "a batch then has more tokens than `batch_tokens`; 0: never",
      between(0, 1));
    v("target_sampling", target_sampling, "the same of target sentences", between(0, 1));
    v("teaching", teaching,
      "what a `teacher`, a translator, gives: sequence: its translations of the training text take "
      "the place of those that people wrote (sequence-level distillation); added: they stand "
      "beside "
      "them; word: its probabilities of each next token, beside the labels (word-level "
      "distillation), by its own tokenizer",
      one_of({"sequence", "added", "word"}));
    v("teacher_weight", teacher_weight, "share of the loss that is of a teacher's probabilities",
      between(0, 1));
    v("teacher_beam", teacher_beam, "beam of the teacher's translations", between(1, kMostBeams));
    v("validation_beam", validation_beam, "beam of the validation's BLEU; 1: greedy",
      between(1, kMostBeams));
    v("tuned_beam", tuned_beam,
      "at the end of the run best/ is told to search with this beam, and with the length penalty "
      "nearest to 1 whose BLEU on held-out sentences is not significantly below the highest; 0: it "
      "is not",
      between(0, kMostBeams));
  }

  PairLanguages languages() const {
    return {source_language, target_language, source_lang, target_lang};
  }

  void check_fit(const TrainConfig& config, const std::string& source) const override;
  /// Errors: usage if no folder is named, or a file in its place, or a model is to be made in a
  /// format that is not heddle's own, or a tokenizer of one segmentation of a text is to be drawn
  /// from; data if the folder or a file is missing.
  void check_data(const TrainConfig& config, const RunPaths& paths) const override;
};

struct Corpora {
  Tokenizer tokenizer;                        ///< of both sides, or of the source
  std::optional<Tokenizer> target_tokenizer;  ///< of the target, where it has tokens of its own
  TokenizedCorpus train, val;
  ParallelFiles held_out;                  ///< that `val` was made of
  std::optional<KnownWords> known_source;  ///< in training; absent: too many, or unknown
  PairMarks marks;                         ///< around each pair
  LanguageNames languages;                 ///< that these tell a model which was begun from

  const Tokenizer& target() const { return target_tokenizer ? *target_tokenizer : tokenizer; }
};

/// The target lines that the pairs of `val` were made of, in their order: what a tokenizer does to
/// a text (unknown characters, lower case) does not hide there.
std::vector<std::string> held_out_targets(const Corpora& corpora);

/// Writes a corpus as parallel text: {train,val,test}.{source,target} in the folder, in this order.
void write_pairs(const Phrasebook& book, const std::string& folder, const std::string& source_lang,
                 const std::string& target_lang);

/// Opens the corpora of a run: writes the phrasebook to RUN/data if that is the corpus, trains or
/// copies the tokenizer to RUN/tokenizer.model (and the target's own to
/// RUN/target_tokenizer.model), unless the run begins from a model, whose tokenizers it has, and
/// tokenises into RUN/cache. All of it is made once, and is the same if made again. Errors: those
/// of TokenizedCorpus, load_model() and train_tokenizer(); data if the tokenizer's vocabulary is
/// not the model's.
Corpora open_corpora(const TrainConfig& config, const RunPaths& paths, const std::string& run);

}  // namespace heddle::train
