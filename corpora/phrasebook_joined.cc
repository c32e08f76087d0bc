// Sentences of two clauses: because, that, whether, if, who, in order to, and what "it" is.
#include <algorithm>

#include "corpora/phrasebook_patterns.h"

namespace heddle::phrasebook {
namespace {

constexpr Wish kBrief{.is_brief = true};
constexpr Wish kBriefPositive{.is_brief = true, .is_positive = true};

// The one spoken of, by pronoun: "my sister ... she".
Nominal again(const Nominal& who) {
  if (who.is_pronoun) return who;
  if (who.person == Person::wir) return pronoun("they");
  return pronoun(who.own == Determiner::her ? "she" : "he");
}

struct Conjunction {
  const char *en, *de;
  bool is_temporal;  // then both clauses share their time and the second denies nothing
};

// The two clauses of a sentence, the second about the same one or another.
struct TwoClauses {
  Clause main, side;
};

Clause side_of_time(Talk& talk, const Nominal& who, Era era) {
  Clause c;
  bool fits;
  do {
    c = any_clause(talk, who, {.is_brief = true, .is_positive = true, .era = era});
    const bool is_present = simplify_present(c) || c.tense == Tense::present;
    fits = (is_present || c.tense == Tense::past) && c.en_adverb.empty() && c.en_time.empty();
  } while (!fits);
  return c;
}

TwoClauses two_clauses(Talk& talk, const Conjunction& word) {
  Dice& dice = talk.dice;
  const Nominal who = somebody(talk);
  const Nominal other = dice.chance(65) ? again(who) : somebody(talk);
  const Era era = dice.chance(50) ? Era::past : Era::now;
  if (!word.is_temporal) {
    return {any_clause(talk, who, {.is_brief = true, .era = era}),
            any_clause(talk, other, {.is_brief = true, .era = era})};
  }
  const Wish main{.is_brief = true, .is_future = era == Era::now, .era = era};
  return {any_clause(talk, who, main), side_of_time(talk, other, era)};
}

Phrase conjunction(Talk& talk) {
  static const std::vector<Conjunction> words = {
      {"because", "weil", false}, {"because", "weil", false},     {"although", "obwohl", false},
      {"before", "bevor", true},  {"as soon as", "sobald", true}, {"while", "während", true}};
  const Conjunction& word = talk.dice.pick(words);
  const auto [main, side] = two_clauses(talk, word);
  const std::string en = word.en, de = word.de;
  if (talk.dice.chance(25)) {
    return finished(en + " " + english_statement(side) + ", " + english_statement(main),
                    de + " " + german_verb_last(side) + ", " + german_question(main), '.');
  }
  return finished(english_statement(main) + " " + en + " " + english_statement(side),
                  german_statement(main) + ", " + de + " " + german_verb_last(side), '.');
}

Phrase coordination(Talk& talk) {
  static const std::vector<Pair> words = {{" and ", " und "}, {", but ", ", aber "}};
  const Pair& word = talk.dice.pick(words);
  const Nominal one = somebody(talk);
  const Wish wish{.is_brief = true, .era = talk.dice.chance(50) ? Era::past : Era::now};
  const Clause first = any_clause(talk, one, wish);
  const Clause second = any_clause(talk, other_person(talk, one), wish);
  return finished(english_statement(first) + word.en + english_statement(second),
                  german_statement(first) + word.de + german_statement(second), '.');
}

Clause rain() {
  static const Verb v = [] {
    Verb verb_rain;
    verb_rain.en = "rain", verb_rain.en_s = "rains", verb_rain.en_past = "rained";
    verb_rain.en_ing = "raining", verb_rain.en_participle = "rained";
    verb_rain.stem_infinitive = "regnen", verb_rain.ich = "regne", verb_rain.du = "regnest";
    verb_rain.er = "regnet", verb_rain.participle = "geregnet", verb_rain.with_sein = false;
    return verb_rain;
  }();
  Clause c;
  c.subject = third_person(Gender::neuter, false);
  c.verb = &v;
  return c;
}

Phrase condition(Talk& talk) {
  Dice& dice = talk.dice;
  const Nominal who = somebody(talk);
  Clause side = rain();
  if (dice.chance(80)) {
    side = side_of_time(talk, who, Era::now);
  } else {
    const Pair time = dice.chance(50) ? dice.pick(pairs("future_times")) : weekday_phrase(dice);
    side.en_time = time.en, side.de_time = time.de;
  }
  const Nominal other = dice.chance(50) ? again(who) : somebody(talk);
  const Clause main = any_clause(talk, other, {.is_brief = true, .is_future = true});
  if (dice.chance(60)) {
    return finished("if " + english_statement(side) + ", " + english_statement(main),
                    "wenn " + german_verb_last(side) + ", " + german_question(main), '.');
  }
  return finished(english_statement(main) + " if " + english_statement(side),
                  german_statement(main) + ", wenn " + german_verb_last(side), '.');
}

Phrase thought(Talk& talk) {
  struct Frame {
    const char *en, *de;
    char mark;
  };
  static const std::vector<Frame> frames = {
      {"I know that", "ich weiß, dass", '.'},
      {"I think that", "ich glaube, dass", '.'},
      {"I hope that", "ich hoffe, dass", '.'},
      {"he says that", "er sagt, dass", '.'},
      {"my mother says that", "meine Mutter sagt, dass", '.'},
      {"it is good that", "es ist gut, dass", '.'},
      {"we are glad that", "wir freuen uns, dass", '.'},
      {"do you think that", "glaubst du, dass", '?'},
      {"I don't know whether", "ich weiß nicht, ob", '.'},
      {"she asks whether", "sie fragt, ob", '.'},
      {"do you know whether", "weißt du, ob", '?'},
      {"can you tell me whether", "kannst du mir sagen, ob", '?'},
      {"I don't know why", "ich weiß nicht, warum", '.'},
      {"do you know why", "weißt du, warum", '?'}};
  const Frame& frame = talk.dice.pick(frames);
  const Nominal who = somebody(talk);
  const Clause c = any_clause(talk, who, {.is_brief = talk.dice.chance(30)});
  return finished(std::string(frame.en) + " " + english_statement(c),
                  std::string(frame.de) + " " + german_verb_last(c), frame.mark);
}

// Can you tell me / Excuse me, can you tell me: du or Sie.
Pair tell_me(Dice& dice) {
  switch (dice.below(4)) {
    case 0: return {"do you know", "weißt du"};
    case 1: return {"can you tell me", "kannst du mir sagen"};
    case 2: return {"excuse me, do you know", "entschuldigen Sie, wissen Sie"};
    default: return {"excuse me, can you tell me", "entschuldigen Sie, können Sie mir sagen"};
  }
}

// ... where the station is, ... how I get to the station
Phrase asked_place(Talk& talk, const Pair& ask) {
  const Place* place = &talk.dice.pick(places());
  while (place->is_room()) place = &talk.dice.pick(places());
  if (talk.dice.chance(50)) {
    const std::string the = noun_phrase(Determiner::the, "", place->noun, false, Case::nominative);
    return finished(ask.en + " where the " + place->noun.en + " is",
                    ask.de + ", wo " + the + " ist", '?');
  }
  return finished(ask.en + " how I get " + to_place_en(*place),
                  ask.de + ", wie ich " + towards_place_de(*place) + " komme", '?');
}

// ... when the next train to Berlin departs
Phrase asked_train(Talk& talk, const Pair& ask) {
  Dice& dice = talk.dice;
  static const std::vector<std::string> lines = {"train", "bus", "ship", "tram"};
  const Noun& n = noun(dice.pick(lines));
  const Pair& city = dice.pick(pairs("cities"));
  const bool is_next = dice.chance(50);
  const bool departs = dice.chance(60);
  const std::string der =
      noun_phrase(Determiner::the, is_next ? "nächst" : "", n, false, Case::nominative);
  return finished(joined({ask.en, "when the", is_next ? "next" : "", n.en, departs ? "to" : "from",
                          city.en, departs ? "departs" : "arrives"}),
                  joined({ask.de + ", wann", der, departs ? "nach" : "aus", city.de,
                          departs ? "abfährt" : "ankommt"}),
                  '?');
}

Phrase indirect_question(Talk& talk) {
  const Pair ask = tell_me(talk.dice);
  const int topic = talk.dice.below(4);
  if (topic < 2) return asked_place(talk, ask);
  if (topic == 2) return asked_train(talk, ask);
  Thing t = some_thing(talk, kThing | kClothes, Determiner::the, 30);
  t.determiner = Determiner::the, t.en_number = t.de_number = "";
  const Nominal n = nominal(t);
  return finished(
      joined({ask.en, "how much", n.en, n.be == "are" ? "cost" : "costs"}),
      joined({ask.de + ", wie viel", n.in(Case::nominative), t.is_plural ? "kosten" : "kostet"}),
      '?');
}

Phrase relative_object(Talk& talk) {
  Dice& dice = talk.dice;
  Clause c;
  const Nominal who = somebody(talk);
  do {
    c = object_clause(talk, who, kBrief);
  } while (c.has_kein || c.is_negated || !c.verb->en_preposition.empty() || c.verb->objects == 0);
  Thing thing{.determiner = Determiner::the,
              .noun = dice.pick(nouns_of(c.verb->objects & ~uint32_t{kFamily}))};
  if (!(c.verb->objects & ~uint32_t{kFamily})) return relative_object(talk);
  thing.is_plural = !thing.noun->en_plural.empty() && !thing.noun->is_pair && dice.chance(20);
  if (dice.chance(25)) thing.adjective = adjective_for(dice, *thing.noun);
  c.en_object = c.en_place = c.de_object = c.de_pronoun = c.de_late = "";
  const Case gap = c.verb->frame == Frame::dative ? Case::dative : Case::accusative;
  std::string relative = determiner(Determiner::the, thing.noun->gender, thing.is_plural, gap);
  if (relative == "den" && gap == Case::dative) relative = "denen";
  const Adjective* other = adjective_for(dice, *thing.noun);
  while (other == thing.adjective || (thing.adjective && other->is_colour())) {
    other = adjective_for(dice, *thing.noun);
  }
  const Adjective& a = *other;
  const Nominal n = nominal(thing);
  return finished(joined({n.en, "that", english_statement(c), n.be, a.en}),
                  joined({n.in(Case::nominative) + ",", relative, german_verb_last(c) + ",",
                          kSein.of(n.person), a.de}),
                  '.');
}

Phrase relative_subject(Talk& talk) {
  Dice& dice = talk.dice;
  Thing person{.determiner = Determiner::the, .noun = dice.pick(nouns_of(kPerson))};
  person.is_plural = dice.chance(20);
  Nominal n = nominal(person);
  Nominal who = n;
  who.en = "who";
  who.de[0] = determiner(Determiner::the, person.noun->gender, person.is_plural, Case::nominative);
  const Clause c = any_clause(talk, who, kBriefPositive);
  const Adjective& a = *adjective_for(dice, *person.noun);
  if (dice.chance(50)) {
    return finished(
        joined({n.en, english_statement(c), n.be, a.en}),
        joined({n.in(Case::nominative) + ",", german_verb_last(c) + ",", kSein.of(n.person), a.de}),
        '.');
  }
  return finished(joined({"do you know", n.en, english_statement(c)}),
                  joined({"kennst du", n.in(Case::accusative) + ",", german_verb_last(c)}), '?');
}

bool is_aim(const Verb& v) {
  static const std::vector<std::string> odd = {
      "arrive", "leave", "depart", "begin",  "stay",        "return",    "drive",
      "go",     "come",  "run",    "get up", "fall asleep", "come back", "hurry"};
  return std::find(odd.begin(), odd.end(), v.en) == odd.end();
}

Clause bare_clause(Talk& talk, const Nominal& who) {
  Clause c;
  do {
    c = any_clause(talk, who, {.is_brief = true, .is_positive = true, .is_bare = true});
  } while (c.verb->is_state);
  return c;
}

Phrase purpose(Talk& talk) {
  const Nominal who = somebody(talk);
  const Clause main = going_clause(talk, who, kBriefPositive);
  Clause aim = bare_clause(talk, who);
  while (!is_aim(*aim.verb)) aim = bare_clause(talk, who);
  return finished(english_statement(main) + " in order to " + english_infinitive(aim),
                  german_statement(main) + ", um " + german_infinitive(aim, true), '.');
}

Phrase intention(Talk& talk) {
  struct Frame {
    Pair has, have;  // of he and of they
    Pair am, are;    // of I and of you
  };
  static const std::vector<Frame> frames = {{{"has forgotten", "hat vergessen"},
                                             {"have forgotten", "haben vergessen"},
                                             {"have forgotten", "habe vergessen"},
                                             {"have forgotten", "hast vergessen"}},
                                            {{"is trying", "versucht"},
                                             {"are trying", "versuchen"},
                                             {"am trying", "versuche"},
                                             {"are trying", "versuchst"}},
                                            {{"has no time", "hat keine Zeit"},
                                             {"have no time", "haben keine Zeit"},
                                             {"have no time", "habe keine Zeit"},
                                             {"have no time", "hast keine Zeit"}},
                                            {{"has decided", "hat beschlossen"},
                                             {"have decided", "haben beschlossen"},
                                             {"have decided", "habe beschlossen"},
                                             {"have decided", "hast beschlossen"}},
                                            {{"has promised", "hat versprochen"},
                                             {"have promised", "haben versprochen"},
                                             {"have promised", "habe versprochen"},
                                             {"have promised", "hast versprochen"}}};
  const Frame& f = talk.dice.pick(frames);
  const Nominal who = somebody(talk);
  const Pair& verb_pair = who.person == Person::er    ? f.has
                          : who.person == Person::wir ? f.have
                          : who.person == Person::ich ? f.am
                                                      : f.are;
  Clause c = bare_clause(talk, who);
  if (talk.dice.chance(30)) {
    const Pair& time = talk.dice.pick(pairs("future_times"));
    c.en_time = time.en, c.de_time = time.de;
  }
  return finished(
      joined({who.en, verb_pair.en, "to", english_infinitive(c)}),
      joined({who.in(Case::nominative), verb_pair.de + ",", german_infinitive(c, true)}), '.');
}

// A thing to be spoken of twice, and the pronoun that stands for it.
struct Antecedent {
  Thing thing;
  Nominal noun, it;
};

Antecedent antecedent(Talk& talk, uint32_t kinds, Determiner own, bool definite) {
  Antecedent a;
  do {
    a.thing = some_thing(talk, kinds, own, 30);
  } while (!a.thing.en_number.empty() || a.thing.determiner == Determiner::none ||
           (definite && a.thing.determiner == Determiner::a));
  a.noun = nominal(a.thing);
  a.it = third_person(a.thing.noun->gender, a.thing.is_plural);
  if (a.thing.noun->is_pair) a.it.en = "they", a.it.en_object = "them", a.it.be = "are";
  return a;
}

constexpr uint32_t kThings = kThing | kClothes | kFurniture | kVehicle | kFood;

Phrase it_is(Talk& talk) {
  Dice& dice = talk.dice;
  static const std::vector<Pair> words = {
      {" because", ", weil"}, {" although", ", obwohl"}, {", but", ", aber"}};
  const Pair& word = dice.pick(words);
  const Nominal who = somebody(talk);
  const Antecedent a = antecedent(talk, kThings, who.own, false);
  Clause c;
  c.subject = who;
  c.verb = &verb_for(dice, *a.thing.noun);
  choose_tense(talk, c, {.is_brief = true, .is_positive = a.thing.determiner == Determiner::a});
  c.en_object = a.noun.en_object, c.de_object = a.noun.in(Case::accusative);
  const Adjective* other = adjective_for(dice, *a.thing.noun);
  while (a.thing.adjective && (other == a.thing.adjective || other->is_colour())) {
    other = adjective_for(dice, *a.thing.noun);
  }
  const Adjective& adjective = *other;
  const bool is_past = c.tense == Tense::past || c.tense == Tense::perfect;
  const bool is_too = !adjective.is_colour() && dice.chance(25);
  const std::string be = is_past ? (a.it.be == "are" ? "were" : "was") : a.it.be;
  const std::string sein = (is_past ? kWar : kSein).of(a.it.person);
  const std::string en_tail = joined({is_too ? "too" : "", adjective.en});
  const std::string de_tail = joined({is_too ? "zu" : "", adjective.de});
  const std::string& er = a.it.in(Case::nominative);
  const bool is_main = word.de == ", aber";
  return finished(english_statement(c) + word.en + " " + joined({a.it.en, be, en_tail}),
                  german_statement(c) + word.de + " " +
                      (is_main ? joined({er, sein, de_tail}) : joined({er, de_tail, sein})),
                  '.');
}

Phrase it_again(Talk& talk) {
  Dice& dice = talk.dice;
  const Nominal who = somebody(talk);
  const Antecedent a = antecedent(talk, kThing | kClothes, who.own, true);
  Clause first;
  first.subject = who;
  first.verb = &verb(dice.chance(50) ? "look for" : "need");
  first.tense = first.verb->is_state ? Tense::present : Tense::progressive;
  first.en_object = a.noun.en_object, first.de_object = a.noun.in(Case::accusative);
  Clause second;
  second.subject = again(who);
  do {
    second.verb = &verb_for(dice, *a.thing.noun);
  } while (second.verb == first.verb);
  choose_tense(talk, second, kBrief);
  second.has_pronoun = true;
  second.en_object = a.it.en_object, second.de_pronoun = a.it.in(Case::accusative);
  return finished(english_statement(first) + ", but " + english_statement(second),
                  german_statement(first) + ", aber " + german_statement(second), '.');
}

Phrase it_there(Talk& talk) {
  const Antecedent a = antecedent(talk, kThing, Determiner::my, true);
  const Spot spot = some_spot(talk);
  const std::string verb = std::string(a.thing.noun->kinds & kLying ? "lieg" : "steh") +
                           (a.thing.is_plural ? "en" : "t");
  return finished(
      joined({"where", a.noun.be, a.noun.en + "?", capitalised(a.it.en), a.it.be, spot.en}),
      joined({"wo", kSein.of(a.noun.person), a.noun.in(Case::nominative) + "?",
              capitalised(a.it.in(Case::nominative)), verb, spot.de_at}),
      '.');
}

Phrase it_given(Talk& talk) {
  const Nominal who = somebody(talk);
  const Antecedent a = antecedent(talk, kThing | kClothes, who.own, false);
  Clause c;
  c.subject = who;
  do {
    c.verb = &verb_for(talk.dice, *a.thing.noun);
  } while (c.verb->is_state || c.verb->en == "throw away" || c.verb->en == "sell");
  c.tense = Tense::past;
  c.en_object = a.noun.en_object, c.de_object = a.noun.in(Case::accusative);
  const Nominal receiver = other_person(talk, who);
  const Verb& give = verb(talk.dice.chance(50) ? "give" : "show");
  return finished(
      joined({english_statement(c), "and", give.en_past, a.it.en_object, "to", receiver.en_object}),
      joined({german_statement(c), "und", a.it.in(Case::accusative), receiver.in(Case::dative),
              give.participle}),
      '.');
}

}  // namespace

const std::vector<SentencePattern>& joined_patterns() {
  static const std::vector<SentencePattern> list = {{"conjunction", 11, conjunction},
                                                    {"coordination", 3, coordination},
                                                    {"condition", 4, condition},
                                                    {"thought", 10, thought},
                                                    {"indirect question", 2, indirect_question},
                                                    {"relative object", 4, relative_object},
                                                    {"relative subject", 3, relative_subject},
                                                    {"purpose", 4, purpose},
                                                    {"intention", 4, intention},
                                                    {"it is", 6, it_is},
                                                    {"it again", 3, it_again},
                                                    {"it there", 2, it_there},
                                                    {"it given", 2, it_given}};
  return list;
}

Phrase some_phrase(Dice& dice) {
  static const std::vector<const SentencePattern*> wheel = [] {
    std::vector<const SentencePattern*> slots;  // a pattern as often as its weight
    for (const auto* list : {&simple_patterns(), &fact_patterns(), &joined_patterns()}) {
      for (const SentencePattern& p : *list)
        slots.insert(slots.end(), static_cast<size_t>(p.weight), &p);
    }
    return slots;
  }();
  Talk talk{.dice = dice};
  return dice.pick(wheel)->make(talk);
}

}  // namespace heddle::phrasebook
