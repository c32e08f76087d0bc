// Clauses in both languages at once: who does what to whom, when and where, and their word order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "corpora/phrasebook_morphology.h"

namespace heddle::phrasebook {

/// SplitMix64 (Steele et al. 2014): the same throws on every platform.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t next();
  int below(int n) { return static_cast<int>(((next() >> 32) * static_cast<uint64_t>(n)) >> 32); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int>(list.size())))];
  }

 private:
  uint64_t state_;
};

/// A person or thing as subject or object. de: the four cases.
struct Nominal {
  std::string en, en_object;
  std::array<std::string, 4> de;
  Person person = Person::er;
  std::string be = "is";             // am, is, are: how English verbs agree
  Determiner own = Determiner::the;  // my, his, ...: what belongs to it
  bool is_pronoun = false;
  const std::string& in(Case c) const { return de[static_cast<size_t>(c)]; }
};

/// The talk around a sentence: who throws the dice, and whether one says Sie.
struct Talk {
  Dice& dice;
  bool is_polite = false;
};

enum class Tense { present, progressive, past, perfect, future, modal };

/// "can" and können. A lexical one is asked and denied with do: want to, have to.
struct Modal {
  std::string en, en_s, en_not, en_rest;
  Auxiliary de;
  bool is_lexical, is_past, may_affirm, may_deny;
};

struct Clause {
  Nominal subject;
  const Verb* verb = nullptr;
  Tense tense = Tense::present;
  const Modal* modal = nullptr;
  bool is_negated = false;
  bool has_kein = false;     // the negation sits in the object: kein Auto
  bool has_pronoun = false;  // its object is one: "gave it back", not "gave back it"
  std::string en_adverb, en_object, en_place, en_time;
  std::string de_pronoun, de_time, de_object, de_late;  // the order of the middle field
};

const Verb& be_verb();
const Verb& have_verb();
const Verb& lay_verb();    // put, legen
const Verb& stand_verb();  // put, stellen
const std::vector<Modal>& modals();

Nominal pronoun(const std::string& en, bool is_polite = false);
Nominal third_person(Gender gender, bool is_plural);  // it: er, sie, es; they: sie
Nominal somebody(Talk& talk);                         // any subject
Nominal other_person(Talk& talk, const Nominal& than);
Nominal name(const Pair& first_name);

/// What a noun phrase is made of; the two languages side by side.
struct Thing {
  Determiner determiner = Determiner::the;
  const Adjective* adjective = nullptr;
  const Noun* noun = nullptr;
  bool is_plural = false;
  std::string en_number = {},
              de_number = {};  // "three", "drei": with Determiner::none and a plural
  bool is_negated = false;     // a, none -> kein in German; none -> any in English
};

std::string english(const Thing& thing);
std::string german(const Thing& thing, Case c);
Nominal nominal(const Thing& thing);
const Adjective* adjective_for(Dice& dice, const Noun& n);
/// A thing of those kinds with a likely article, number and adjective.
Thing some_thing(Talk& talk, uint32_t kinds, Determiner own, int adjective_percent = 40);

std::string at_place_en(const Place& p);
std::string at_place_de(const Place& p);
std::string to_place_en(const Place& p);
std::string to_place_de(const Place& p);       // ins Museum: one goes in
std::string towards_place_de(const Place& p);  // zum Museum: the way there

/// The word orders. None of them has a final stop or a capital that is not the word's own.
std::string english_statement(const Clause& c);
std::string english_question(const Clause& c);    // does she buy ...
std::string english_infinitive(const Clause& c);  // buy the bread ...
std::string german_statement(const Clause& c);    // sie kauft ... ein
std::string german_question(const Clause& c);     // kauft sie ... ein; also after a fronted part
std::string german_verb_last(const Clause& c);    // sie ... einkauft
std::string german_infinitive(const Clause& c, bool with_zu);  // ... einzukaufen
std::string german_imperative(const Clause& c, bool is_polite);

/// The words joined by single spaces; empty ones are left out.
std::string joined(const std::vector<std::string>& words);
/// With a capital letter at its head (German umlauts too).
std::string capitalised(std::string text);

}  // namespace heddle::phrasebook
