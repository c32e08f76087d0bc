// The embedded phrasebook: English-German sentence pairs generated from a grammar of our own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

/// One pair: an English sentence and its German translation, UTF-8, without a newline.
struct Phrase {
  std::string source, target;
};

struct PhrasebookOptions {
  int64_t pairs = 120000;  ///< all different pairs together: training, validation and test
  int64_t held_out_val = 1000, held_out_test = 1000;
  uint64_t seed = 1;
};

struct Phrasebook {
  std::vector<Phrase> train, val, test;
};

/// A phrasebook sampled without repetition; the same options give the same pairs in the same order
/// on every platform. No source occurs twice, so the three parts share none.
///
/// The map is a function: an English sentence has one German translation. The conventions:
/// - "you" is du; it is Sie in a sentence that begins with "Excuse me," or that speaks to
///   "Mr." or "Mrs." somebody ("Mrs. Weber, do you need a map?" -> "Frau Weber, brauchen Sie ...").
/// - The English past and perfect both give the German perfect; be, have and the modal verbs give
///   the preterite.
/// - "it" takes the gender of the one thing named before it in the same line.
/// - Professions without a gender in English are masculine in German.
/// - "is" and "put" of a thing follow how it rests: liegen and legen, or stehen and stellen.
/// Errors: usage if a count is negative, if nothing is left for training, or if the grammar does
/// not have that many sentences.
Phrasebook make_phrasebook(const PhrasebookOptions& options);

/// Five sentences with their translations that show the difficulties; no phrasebook contains them.
std::vector<Phrase> demo_sentences();

}  // namespace heddle
