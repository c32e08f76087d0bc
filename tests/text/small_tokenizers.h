// Small tokenizers for the tests, trained once per process.
#pragma once

#include <string>
#include <vector>

#include "heddle/text/tokenizer.h"
#include "heddle/text/training/tokenizer_trainer.h"

namespace heddle::testing {

/// 200 lines of English and German, made by rule.
inline std::vector<std::string> small_corpus() {
  const std::vector<std::string> who = {"the old man", "a small dog", "my sister", "der alte Mann",
                                        "eine kleine Katze"};
  const std::vector<std::string> what = {"reads", "buys",  "sees", "liest",
                                         "kauft", "sieht", "hört", "finds"};
  const std::vector<std::string> whom = {"the newspaper.", "two books!", "ein grünes Fahrrad.",
                                         "die Straße", "nothing (at all)?"};
  std::vector<std::string> lines;
  for (const auto& a : who) {
    for (const auto& b : what) {
      for (const auto& c : whom) lines.push_back(a + " " + b + " " + c);
    }
  }
  return lines;
}

inline Tokenizer small_tokenizer(TokenizerType type, const std::string& normalization = "identity",
                                 bool byte_fallback = true) {
  return train_tokenizer(small_corpus(), {.type = type,
                                          .vocab_size = byte_fallback ? 312 : 56,
                                          .byte_fallback = byte_fallback,
                                          .normalization = normalization});
}

}  // namespace heddle::testing
