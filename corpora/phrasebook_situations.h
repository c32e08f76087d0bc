// What clauses talk about: somebody buys something, goes somewhere, helps somebody, is tired.
#pragma once

#include "corpora/phrasebook_clause.h"

namespace heddle::phrasebook {

/// The tenses a clause may take: all, or those that fit beside a past or a present clause.
enum class Era { any, past, now };

struct Wish {
  bool is_brief = false;  // no time, few adjectives: for half a sentence
  bool is_positive = false;
  bool is_future = false;  // only will and modal verbs of the present
  Era era = Era::any;
  bool is_bare = false;  // no tense at all: for infinitives and imperatives
};

/// "half past seven", any of the 144 times.
Pair some_time_of_day(Dice& dice);

/// A time of day ("at half past seven"), a weekday or a date, each with its preposition.
Pair clock_phrase(Dice& dice);
Pair weekday_phrase(Dice& dice);
Pair date_phrase(Dice& dice);
int some_day(Dice& dice, const Pair& month);
Pair coming_time(Dice& dice);

/// Gives the clause a tense, a time that suits it and perhaps a negation.
void choose_tense(Talk& talk, Clause& c, const Wish& wish);

/// Of a progressive clause the simple present, if English has one that cannot be taken for a past:
/// "before he reads" will do, "before they read" will not. False if it was left as it is.
bool simplify_present(Clause& c);

/// Clauses by what they are about; each chooses its own tense by `wish`.
Clause object_clause(Talk& talk, const Nominal& subject, const Wish& wish);
Clause giving_clause(Talk& talk, const Nominal& subject, const Wish& wish);
Clause plain_clause(Talk& talk, const Nominal& subject, const Wish& wish);
Clause going_clause(Talk& talk, const Nominal& subject, const Wish& wish);
Clause putting_clause(Talk& talk, const Nominal& subject, const Wish& wish);
Clause mood_clause(Talk& talk, const Nominal& subject, const Wish& wish);
Clause having_clause(Talk& talk, const Nominal& subject, const Wish& wish);

/// Any of them: in full, or brief.
Clause any_clause(Talk& talk, const Nominal& subject, const Wish& wish);

/// A verb with an object of its kinds, for sentences that speak of one thing twice.
const Verb& verb_for(Dice& dice, const Noun& n);

/// "on the table", "auf dem Tisch", "auf den Tisch".
struct Spot {
  std::string en, de_at, de_to;
};
Spot some_spot(Talk& talk);

}  // namespace heddle::phrasebook
