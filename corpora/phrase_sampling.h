// Drawing sentence pairs from a grammar without repetition.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "corpora/phrasebook.h"

namespace heddle {

/// Draws until it has `count` pairs whose sources are not in `seen`, and adds them to it. Calls
/// `draw` for the next pair; one with an empty source is passed over.
/// Errors: usage if the grammar, called `name`, gives no new ones.
std::vector<Phrase> distinct_phrases(int64_t count, const std::string& name,
                                     const std::function<Phrase()>& draw,
                                     std::unordered_set<std::string>& seen);

/// Checks the counts. Errors: usage if one is negative or nothing is left for training.
void check_phrase_counts(const PhrasebookOptions& options, const std::string& name);

}  // namespace heddle
