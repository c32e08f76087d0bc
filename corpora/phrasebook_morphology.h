// German word forms: declension of articles and adjectives, conjugation, numbers, times, dates.
#pragma once

#include <string>

#include "corpora/phrasebook_lexicon.h"

namespace heddle::phrasebook {

/// What stands before a noun. "none" is the bare plural or a mass noun: red apples, fresh bread.
enum class Determiner {
  none,
  the,
  this_,
  every,
  a,
  no,
  my,
  your,
  your_polite,
  his,
  her,
  our,
  their
};

/// The person of a verb; "they" (sie) and the polite Sie take the forms of wir.
enum class Person { ich, du, er, wir };

/// "den", "einem", "unserer"; empty for Determiner::none.
std::string determiner(Determiner d, Gender gender, bool is_plural, Case c);

/// The adjective's ending after that determiner: weak, mixed or strong.
std::string adjective_ending(Determiner d, Gender gender, bool is_plural, Case c);

/// "Tisch", "Tisches", "Tischen"; weak masculines too: "Studenten".
std::string noun_form(const Noun& n, bool is_plural, Case c);

/// "dem neuen Tisch": determiner, adjective (stem with its ending; empty for none) and noun.
std::string noun_phrase(Determiner d, const std::string& adjective_stem, const Noun& n,
                        bool is_plural, Case c);

/// "in dem" -> "im", "zu der" -> "zur" at the start of a preposition and its noun phrase.
std::string contracted(const std::string& preposition, const std::string& noun_phrase);

/// The present of a verb without its separable prefix: "stehe", "stehst", "steht", "stehen".
std::string present(const Verb& v, Person p);

/// "aufzustehen", "zu kaufen".
std::string zu_infinitive(const Verb& v);

/// An auxiliary or modal verb's forms for ich, du, er, wir.
struct Auxiliary {
  std::string ich, du, er, wir;
  const std::string& of(Person p) const;
};
extern const Auxiliary kHaben, kSein, kWerden, kHatte, kWar;

/// "twenty-three", "dreiundzwanzig"; 0 to 999.
std::string english_number(int n);
std::string german_number(int n);

/// "twenty-third", "dreiundzwanzigst" (without the ending); 1 to 31.
std::string english_ordinal(int n);
std::string german_ordinal_stem(int n);

/// The time of day on a clock of twelve hours, minute a multiple of five:
/// "half past seven" and "halb acht", "ten to five" and "zehn vor fünf".
Pair clock_time(int hour, int minute);

}  // namespace heddle::phrasebook
