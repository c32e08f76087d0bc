// The flags of heddle eval, and what it does with models of each kind.
#pragma once

#include <string>

#include "heddle/cli/translate_flags.h"

namespace heddle::cli {

struct EvalFlags : TranslateFlags {
  std::string source, reference, tokenize = "13a", hypothesis_out;
  std::string text;
  int64_t context = 0, stride = 0;
  bool no_memory = false, lowercase = false, json = false;
};

/// BLEU, chrF and perplexity of a translator on sentences and their translations.
void eval_translation(const EvalFlags& flags);

/// Perplexity of a language model on a text.
void eval_text(const EvalFlags& flags);

}  // namespace heddle::cli
