// The languages of pairs, as translators with a token for each are told them.
#pragma once

#include <string>

#include "heddle/infer/decoding/translate.h"

namespace heddle::train {

/// What the two sides of pairs are in.
struct PairLanguages {
  std::string source, target;  ///< names among Tokenizer::languages(); "": the suffix, if it is
                               ///< one, or src_lang and tgt_lang of the folder, if it has both
  std::string source_suffix, target_suffix;  ///< of the files: "en"

  /// Whether names are given.
  bool are_asked() const { return !source.empty() || !target.empty(); }
};

/// Whether the tokenizers of a model mark languages. Errors, if they do: usage, with their names,
/// for a side that is none of them. `path`: a folder, or a run; "" marks none.
bool marks_languages(const std::string& path, const PairLanguages& languages);

/// Names among Tokenizer::languages().
struct LanguageNames {
  std::string source, target;  ///< "" where the tokenizer of that side marks none
};
/// set_languages() of a translator that marks them, and how they are called; another is left as it
/// is. Errors: those of marks_languages().
LanguageNames set_languages(LoadedModel& model, const PairLanguages& languages,
                            TranslateOptions& options);

}  // namespace heddle::train
