// English-French sentence pairs, generated, in which one word's form hangs on another far away:
// pronouns on their antecedents, and adjectives that stand in the reverse order.
#pragma once

#include "corpora/phrasebook.h"

namespace heddle {

/// How many pairs the recipe "agreement" trains and tests on.
inline constexpr PhrasebookOptions kAgreementOptions{
    .pairs = 40000, .held_out_val = 500, .held_out_test = 500, .seed = 1};

/// Pairs sampled without repetition; the same options give the same pairs on every platform.
///
/// - "The animal didn't cross the street because it was too tired." French chooses il or elle, and
///   the adjective's form, by the noun that "it" means; there are two, and only the adjective tells
///   which: what is tired is the animal, what is wide is the street.
/// - "The agreement on the European Economic Area was signed in August 1992." French puts noun and
///   adjectives in the reverse order: "la zone économique européenne". The participle agrees with
///   "the agreement", the adjectives with "the area".
///
/// Held-out pairs are of held-out combinations: two nouns of a pair of the first kind (animal and
/// street), or the three words of a name (European, Economic, Area), never stand together in
/// training. All of the examples' combinations are held out.
/// Errors: those of make_phrasebook().
Phrasebook make_agreement(const PhrasebookOptions& options);

/// Sentences with their translations that show both, the two above first; in no part of the pairs.
std::vector<Phrase> agreement_examples();

}  // namespace heddle
