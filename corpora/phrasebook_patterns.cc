// Sentences of one clause: statements, questions, requests.
#include "corpora/phrasebook_patterns.h"

namespace heddle::phrasebook {
namespace {

// One asks about oneself seldom.
Nominal somebody_asked(Talk& talk) {
  const Nominal who = somebody(talk);
  return who.en == "I" ? pronoun("you", talk.is_polite) : who;
}

Phrase statement(Talk& talk) {
  const Clause c = any_clause(talk, somebody(talk), {});
  return finished(english_statement(c), german_statement(c), '.');
}

Phrase fronted(Talk& talk) {
  Clause c;
  do {
    c = any_clause(talk, somebody(talk), {});
  } while (c.en_time.empty());
  const std::string en_time = c.en_time, de_time = c.de_time;
  c.en_time = c.de_time = "";
  return finished(en_time + " " + english_statement(c), de_time + " " + german_question(c), '.');
}

Phrase question(Talk& talk) {
  const Clause c = any_clause(talk, somebody_asked(talk), {.is_positive = true});
  return finished(english_question(c), german_question(c), '?');
}

Phrase open_question(Talk& talk) {
  static const std::vector<Pair> words = {{"why", "warum"},
                                          {"when", "wann"},
                                          {"where", "wo"},
                                          {"how often", "wie oft"},
                                          {"since when", "seit wann"}};
  const int which = talk.dice.below(4);
  const Pair& word = words[static_cast<size_t>(which)];
  Clause c;
  const Nominal subject = somebody_asked(talk);
  do {
    c = which == 2   ? object_clause(talk, subject, {.is_brief = true, .is_positive = true})
        : which == 3 ? plain_clause(talk, subject, {.is_brief = true, .is_positive = true})
                     : any_clause(talk, subject, {.is_brief = true, .is_positive = true});
  } while (!c.en_adverb.empty() || (which != 0 && !c.en_time.empty()) ||
           (which == 2 && !c.en_place.empty()));
  return finished(word.en + " " + english_question(c), word.de + " " + german_question(c), '?');
}

Phrase destination_question(Talk& talk) {
  Clause c;
  do {
    c = going_clause(talk, somebody_asked(talk), {.is_positive = true});
  } while (c.verb->en == "come");
  c.en_place = c.de_late = c.en_adverb = "";
  if (c.en_time.empty()) c.de_time = "";
  return finished("where " + english_question(c), "wohin " + german_question(c), '?');
}

Phrase place_question(Talk& talk) {
  Dice& dice = talk.dice;
  const Place* found = &dice.pick(places());
  while (found->is_room()) found = &dice.pick(places());
  const Place& place = *found;
  const std::string the = noun_phrase(Determiner::the, "", place.noun, false, Case::nominative);
  const std::string en = "the " + place.noun.en;
  switch (dice.below(3)) {
    case 0: return finished("where is " + en, "wo ist " + the, '?');
    case 1:
      return finished("how do I get " + to_place_en(place),
                      "wie komme ich " + towards_place_de(place), '?');
    default:
      return finished("how far is it " + to_place_en(place),
                      "wie weit ist es " + towards_place_de(place), '?');
  }
}

// The one spoken to by name: Anna (du) or Mr. Weber (Sie).
Pair addressee(Talk& talk) {
  Dice& dice = talk.dice;
  if (!talk.is_polite) {
    const std::string& name = dice.pick(pairs("first_names")).en;
    return {name, name};
  }
  const Pair& surname = dice.pick(pairs("surnames"));
  const bool is_woman = dice.chance(50);
  return {(is_woman ? "Mrs. " : "Mr. ") + surname.en, (is_woman ? "Frau " : "Herr ") + surname.de};
}

Clause request_clause(Talk& talk) {
  const Nominal you = pronoun("you", talk.is_polite);
  const Wish wish{.is_brief = true, .is_positive = true, .is_bare = true};
  Clause c;
  do {
    c = any_clause(talk, you, wish);
  } while (c.verb->imperative.empty() || c.verb->is_state);
  return c;
}

Phrase request(Talk& talk) {
  talk.is_polite = talk.dice.chance(50);
  const Pair who = addressee(talk);
  const Clause c = request_clause(talk);
  return finished(who.en + ", please " + english_infinitive(c),
                  who.de + ", " + german_imperative(c, talk.is_polite), '.');
}

Phrase suggestion(Talk& talk) {
  Clause c;
  do {
    c = any_clause(talk, pronoun("we"), {.is_brief = true, .is_positive = true, .is_bare = true});
  } while (c.verb->is_state || c.verb->is_reflexive);
  const Pair& time = talk.dice.pick(pairs("future_times"));
  c.en_time = time.en, c.de_time = time.de;
  return finished("let us " + english_infinitive(c), "lass uns " + german_infinitive(c, false),
                  '.');
}

Phrase polite_question(Talk& talk) {
  talk.is_polite = true;
  const Nominal you = pronoun("you", true);
  if (talk.dice.chance(45)) {
    const Pair who = addressee(talk);
    const Clause c = any_clause(talk, you, {.is_brief = talk.dice.chance(50), .is_positive = true});
    return finished(who.en + ", " + english_question(c), who.de + ", " + german_question(c), '?');
  }
  const Clause c = any_clause(talk, talk.dice.chance(75) ? you : somebody(talk),
                              {.is_brief = true, .is_positive = true});
  return finished("excuse me, " + english_question(c), "entschuldigen Sie, " + german_question(c),
                  '?');
}

Phrase polite_statement(Talk& talk) {
  talk.is_polite = true;
  const Pair who = addressee(talk);
  const Clause c = any_clause(talk, pronoun("you", true), {.is_brief = true});
  return finished(who.en + ", " + english_statement(c), who.de + ", " + german_statement(c), '.');
}

Phrase description(Talk& talk) {
  constexpr uint32_t kinds = kThing | kClothes | kFurniture | kVehicle | kAnimal | kBuilding |
                             kEvent | kFamily | kPerson | kFood;
  Thing thing = some_thing(talk, kinds, Determiner::the, 0);
  while (thing.determiner == Determiner::a || thing.determiner == Determiner::none) {
    thing = some_thing(talk, kinds, Determiner::the, 0);
  }
  static const std::vector<Pair> degrees = {
      {"", ""}, {"very", "sehr"}, {"too", "zu"}, {"quite", "ziemlich"}, {"not", "nicht"}};
  const Adjective& a = *adjective_for(talk.dice, *thing.noun);
  const Pair& degree =
      a.is_colour() ? degrees[talk.dice.chance(50) ? 0 : 4] : talk.dice.pick(degrees);
  const Nominal n = nominal(thing);
  const bool is_past = talk.dice.chance(30);
  const std::string be = is_past ? (n.be == "are" ? "were" : "was") : n.be;
  const std::string sein = (is_past ? kWar : kSein).of(n.person);
  return finished(joined({n.en, be, degree.en, a.en}),
                  joined({n.in(Case::nominative), sein, degree.de, a.de}), '.');
}

Phrase position(Talk& talk) {
  Thing thing = some_thing(talk, kThing, Determiner::the, 20);
  while (thing.determiner == Determiner::none)
    thing = some_thing(talk, kThing, Determiner::the, 20);
  const Nominal n = nominal(thing);
  const Spot spot = some_spot(talk);
  const bool is_lying = thing.noun->kinds & kLying;
  const std::string verb = std::string(is_lying ? "lieg" : "steh") + (thing.is_plural ? "en" : "t");
  if (talk.dice.chance(25)) {
    return finished(joined({n.be, n.en, spot.en}),
                    joined({verb, n.in(Case::nominative), spot.de_at}), '?');
  }
  return finished(joined({n.en, n.be, spot.en}), joined({n.in(Case::nominative), verb, spot.de_at}),
                  '.');
}

Phrase existence(Talk& talk) {
  Dice& dice = talk.dice;
  const Place& place = dice.pick(places());
  const uint32_t kinds = place.is_room()         ? kFurniture | kStanding
                         : place.is_settlement() ? kBuilding | kPerson
                                                 : uint32_t{kPerson};
  Thing thing = some_thing(talk, kinds, Determiner::the, 50);
  thing.is_negated = dice.chance(35);
  thing.is_plural = thing.is_negated || dice.chance(40);
  thing.determiner = thing.is_plural ? Determiner::none : Determiner::a;
  thing.en_number = thing.de_number = "";
  const std::string en = (thing.is_plural ? "there are " : "there is ");
  Thing source = thing;
  if (thing.is_negated) source.determiner = Determiner::no;
  return finished(en + english(source) + " " + at_place_en(place),
                  capitalised(at_place_de(place)) + " gibt es " + german(thing, Case::accusative),
                  '.');
}

}  // namespace

Phrase finished(const std::string& en, const std::string& de, char mark) {
  return {capitalised(en) + mark, capitalised(de) + mark};
}

const std::vector<SentencePattern>& simple_patterns() {
  static const std::vector<SentencePattern> list = {{"statement", 22, statement},
                                                    {"fronted", 8, fronted},
                                                    {"question", 8, question},
                                                    {"open question", 5, open_question},
                                                    {"destination", 1, destination_question},
                                                    {"place question", 1, place_question},
                                                    {"request", 6, request},
                                                    {"suggestion", 2, suggestion},
                                                    {"polite question", 5, polite_question},
                                                    {"polite statement", 2, polite_statement},
                                                    {"description", 4, description},
                                                    {"position", 3, position},
                                                    {"existence", 2, existence}};
  return list;
}

}  // namespace heddle::phrasebook
