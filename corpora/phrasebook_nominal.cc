// Persons, things and places as phrases in both languages.
#include "corpora/lexicon.h"
#include "corpora/phrasebook_clause.h"
#include "heddle/base/error.h"

namespace heddle::phrasebook {
namespace {

struct PronounLine {
  const char *en, *en_object, *nominative, *accusative, *dative;
  Person person;
  const char* be;
  Determiner own;
};

const std::vector<PronounLine>& pronoun_lines() {
  static const std::vector<PronounLine> lines = {
      {"I", "me", "ich", "mich", "mir", Person::ich, "am", Determiner::my},
      {"you", "you", "du", "dich", "dir", Person::du, "are", Determiner::your},
      {"he", "him", "er", "ihn", "ihm", Person::er, "is", Determiner::his},
      {"she", "her", "sie", "sie", "ihr", Person::er, "is", Determiner::her},
      {"we", "us", "wir", "uns", "uns", Person::wir, "are", Determiner::our},
      {"they", "them", "sie", "sie", "ihnen", Person::wir, "are", Determiner::their},
      {"you", "you", "Sie", "Sie", "Ihnen", Person::wir, "are", Determiner::your_polite},
      {"it", "it", "er", "ihn", "ihm", Person::er, "is", Determiner::the},
      {"it", "it", "sie", "sie", "ihr", Person::er, "is", Determiner::the},
      {"it", "it", "es", "es", "ihm", Person::er, "is", Determiner::the},
  };
  return lines;
}

Nominal from_line(const PronounLine& line) {
  Nominal n;
  n.en = line.en, n.en_object = line.en_object;
  n.de = {line.nominative, line.accusative, line.dative, ""};
  n.person = line.person, n.be = line.be, n.own = line.own;
  n.is_pronoun = true;
  return n;
}

Verb special_verb(const char* line) {
  const auto f = fields_of(line, 11);
  Verb v;
  v.en = f[0], v.en_s = f[1], v.en_past = f[2], v.en_participle = f[3], v.en_ing = f[4];
  v.stem_infinitive = f[5], v.ich = f[6], v.du = f[7], v.er = f[8], v.participle = f[9];
  v.imperative = f[10];
  v.with_sein = false;
  return v;
}

const char* english_determiner(Determiner d) {
  switch (d) {
    case Determiner::none: return "";
    case Determiner::the: return "the";
    case Determiner::this_: return "this";
    case Determiner::every: return "every";
    case Determiner::a: return "a";
    case Determiner::no: return "no";
    case Determiner::my: return "my";
    case Determiner::your:
    case Determiner::your_polite: return "your";
    case Determiner::his: return "his";
    case Determiner::her: return "her";
    case Determiner::our: return "our";
    case Determiner::their: return "their";
  }
  return "";
}

bool begins_with_vowel(const std::string& word) {
  if (word.starts_with("hour")) return true;
  if (word.starts_with("us")) return false;  // useful
  return std::string("aeiou").find(word[0]) != std::string::npos;
}

Determiner possessive(Talk& talk) {
  static const std::vector<Determiner> kinds = {
      Determiner::my,  Determiner::your,  Determiner::his, Determiner::her,
      Determiner::our, Determiner::their, Determiner::my};
  const Determiner d = talk.dice.pick(kinds);
  return d == Determiner::your && talk.is_polite ? Determiner::your_polite : d;
}

}  // namespace

const Verb& be_verb() {
  static const Verb v = special_verb("be/is/was/been/being/sein/bin/bist/ist/gewesen/sei");
  return v;
}
const Verb& have_verb() {
  static const Verb v = special_verb("have/has/had/had/having/haben/habe/hast/hat/gehabt/hab");
  return v;
}
const Verb& lay_verb() {
  static const Verb v = special_verb("put/puts/put/put/putting/legen/lege/legst/legt/gelegt/leg");
  return v;
}
const Verb& stand_verb() {
  static const Verb v =
      special_verb("put/puts/put/put/putting/stellen/stelle/stellst/stellt/gestellt/stell");
  return v;
}

const std::vector<Modal>& modals() {
  static const std::vector<Modal> list = {
      {"can", "can", "can't", "", {"kann", "kannst", "kann", "können"}, false, false, true, true},
      {"must",
       "must",
       "must not",
       "",
       {"muss", "musst", "muss", "müssen"},
       false,
       false,
       true,
       false},
      {"may",
       "may",
       "must not",
       "",
       {"darf", "darfst", "darf", "dürfen"},
       false,
       false,
       true,
       true},
      {"should",
       "should",
       "shouldn't",
       "",
       {"sollte", "solltest", "sollte", "sollten"},
       false,
       false,
       true,
       true},
      {"would",
       "would",
       "wouldn't",
       "like to ",
       {"möchte", "möchtest", "möchte", "möchten"},
       false,
       false,
       true,
       true},
      {"could",
       "could",
       "couldn't",
       "",
       {"konnte", "konntest", "konnte", "konnten"},
       false,
       true,
       true,
       true},
      {"want to",
       "wants to",
       "",
       "",
       {"will", "willst", "will", "wollen"},
       true,
       false,
       true,
       true},
      {"have to", "has to", "", "", {"muss", "musst", "muss", "müssen"}, true, false, true, true},
      {"want to",
       "wanted to",
       "",
       "",
       {"wollte", "wolltest", "wollte", "wollten"},
       true,
       true,
       true,
       true},
      {"have to",
       "had to",
       "",
       "",
       {"musste", "musstest", "musste", "mussten"},
       true,
       true,
       true,
       true},
  };
  return list;
}

Nominal pronoun(const std::string& en, bool is_polite) {
  if (en == "you" && is_polite) return from_line(pronoun_lines()[6]);
  for (const PronounLine& line : pronoun_lines()) {
    if (en == line.en) return from_line(line);
  }
  return {};
}

Nominal third_person(Gender gender, bool is_plural) {
  if (is_plural) return pronoun("they");
  return from_line(pronoun_lines()[7 + static_cast<size_t>(gender)]);
}

Nominal name(const Pair& first_name) {
  Nominal n;
  n.en = n.en_object = first_name.en;
  n.de = {first_name.en, first_name.en, first_name.en, first_name.en};
  n.own = first_name.de == "er" ? Determiner::his : Determiner::her;
  return n;
}

Nominal somebody(Talk& talk) {
  static const std::vector<std::string> pronouns = {"I", "I", "you", "he", "she", "we", "they"};
  const int throw_ = talk.dice.below(100);
  if (throw_ < 55) return pronoun(talk.dice.pick(pronouns), talk.is_polite);
  if (throw_ < 70) return name(talk.dice.pick(pairs("first_names")));
  return nominal(some_thing(talk, throw_ < 88 ? kFamily : kPerson, Determiner::the, 12));
}

Nominal other_person(Talk& talk, const Nominal& than) {
  for (;;) {
    Nominal n = somebody(talk);
    if (n.en == than.en) continue;
    if (than.person == Person::ich && n.person == Person::ich) continue;
    if (n.en == "we" && than.en == "I") continue;
    if (n.en == "I" && than.en == "we") continue;
    if (n.en.starts_with("your") && than.en == "you") return n;
    return n;
  }
}

std::string english(const Thing& t) {
  const bool is_plural = t.is_plural || t.noun->is_pair;
  std::string article = english_determiner(t.determiner);
  const std::string rest = joined({t.en_number, t.adjective ? t.adjective->en : "",
                                   is_plural ? t.noun->en_plural : t.noun->en});
  if (article == "this" && is_plural) article = "these";
  if (article == "a" && begins_with_vowel(rest)) article = "an";
  if (article.empty() && t.is_negated && t.en_number.empty()) article = "any";
  return joined({article, rest});
}

std::string german(const Thing& t, Case c) {
  Determiner d = t.determiner;
  if (t.is_negated && (d == Determiner::a || d == Determiner::none)) d = Determiner::no;
  const std::string stem = t.adjective ? t.adjective->de_stem : "";
  return joined({t.de_number, noun_phrase(d, stem, *t.noun, t.is_plural, c)});
}

Nominal nominal(const Thing& t) {
  Nominal n;
  n.en = n.en_object = english(t);
  for (size_t c = 0; c < 4; ++c) n.de[c] = german(t, static_cast<Case>(c));
  n.person = t.is_plural ? Person::wir : Person::er;
  n.be = t.is_plural || t.noun->is_pair ? "are" : "is";
  const bool is_female = t.noun->gender == Gender::feminine;
  n.own = t.is_plural                         ? Determiner::their
          : is_female || t.noun->en == "girl" ? Determiner::her
                                              : Determiner::his;
  return n;
}

const Adjective* adjective_for(Dice& dice, const Noun& n) {
  std::vector<const Adjective*> suitable;
  for (const Adjective& a : adjectives()) {
    if (a.kinds & n.kinds) suitable.push_back(&a);
  }
  check(!suitable.empty(), ErrorKind::internal, "phrasebook: no adjective goes with '{}'", n.en);
  return dice.pick(suitable);
}

Thing some_thing(Talk& talk, uint32_t kinds, Determiner own, int adjective_percent) {
  Dice& dice = talk.dice;
  Thing t;
  t.noun = dice.pick(nouns_of(kinds));
  const bool can_be_plural = !t.noun->en_plural.empty() && !t.noun->is_pair;
  const bool is_mass = t.noun->en_plural.empty();
  if (dice.chance(adjective_percent)) t.adjective = adjective_for(dice, *t.noun);
  t.is_plural = can_be_plural && dice.chance(22);
  if (t.noun->kinds & kFamily) {
    t.determiner = possessive(talk);
    t.is_plural = t.is_plural && dice.chance(40);
    return t;
  }
  const int throw_ = dice.below(100);
  if (is_mass) {
    t.determiner = throw_ < 65 ? Determiner::none : Determiner::the;
  } else if (throw_ < 35) {
    t.determiner = Determiner::the;
  } else if (throw_ < 45) {
    t.determiner = Determiner::this_;
  } else if (throw_ < 72 && !t.noun->is_pair) {
    t.determiner = t.is_plural ? Determiner::none : Determiner::a;
    if (t.is_plural && dice.chance(45)) {
      const int n = dice.between(2, 12);
      t.en_number = english_number(n), t.de_number = german_number(n);
    }
  } else {
    t.determiner = own == Determiner::the || dice.chance(30) ? possessive(talk) : own;
  }
  if (t.noun->kinds & kPerson) {  // rarely "a waiter", never bare "waiters"
    const bool is_a = t.determiner == Determiner::a && dice.chance(50);
    if (!is_a && t.determiner != Determiner::this_ && t.en_number.empty()) {
      t.determiner = Determiner::the;
    }
  }
  return t;
}

std::string at_place_en(const Place& p) { return p.en_at + " the " + p.noun.en; }
std::string to_place_en(const Place& p) { return p.en_to + " the " + p.noun.en; }
std::string at_place_de(const Place& p) {
  return contracted(p.de_at, noun_phrase(Determiner::the, "", p.noun, false, Case::dative));
}
std::string towards_place_de(const Place& p) {
  return contracted("zu", noun_phrase(Determiner::the, "", p.noun, false, Case::dative));
}
std::string to_place_de(const Place& p) {
  const Case c = p.de_to == "zu" ? Case::dative : Case::accusative;
  return contracted(p.de_to, noun_phrase(Determiner::the, "", p.noun, false, c));
}

}  // namespace heddle::phrasebook
