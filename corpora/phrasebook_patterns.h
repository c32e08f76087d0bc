// The kinds of sentences, each a function that throws the dice and returns a pair.
#pragma once

#include <string>
#include <vector>

#include "corpora/phrasebook.h"
#include "corpora/phrasebook_situations.h"

namespace heddle::phrasebook {

struct SentencePattern {
  const char* name;
  int weight;  // how often, relative to the others
  Phrase (*make)(Talk& talk);
};

/// One clause: statements, questions, requests.
const std::vector<SentencePattern>& simple_patterns();
/// Numbers, prices, times and dates; comparison and possession.
const std::vector<SentencePattern>& fact_patterns();
/// Two clauses: because, that, whether, although, if, who, in order to, it.
const std::vector<SentencePattern>& joined_patterns();

/// Capitals and the final mark: '.' or '?'.
Phrase finished(const std::string& en, const std::string& de, char mark);

/// A whole sentence of any kind.
Phrase some_phrase(Dice& dice);

}  // namespace heddle::phrasebook
