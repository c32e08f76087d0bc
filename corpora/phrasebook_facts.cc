// Sentences about numbers, prices, times, dates, comparison and possession.
#include "corpora/phrasebook_patterns.h"

namespace heddle::phrasebook {
namespace {

constexpr uint32_t kWares = kThing | kClothes | kFurniture;

// A number in words or in digits.
Pair amount(Dice& dice, int low, int high) {
  const int n = dice.between(low, high);
  if (n > 120 || dice.chance(65)) return {english_number(n), german_number(n)};
  return {std::to_string(n), std::to_string(n)};
}

int common_number(Dice& dice) {
  return dice.chance(70) ? dice.between(2, 99) : dice.between(100, 999);
}

Thing definite(Talk& talk, uint32_t kinds, int adjective_percent) {
  Thing t = some_thing(talk, kinds, Determiner::the, adjective_percent);
  while (t.determiner == Determiner::a || t.determiner == Determiner::none) {
    t = some_thing(talk, kinds, Determiner::the, adjective_percent);
  }
  return t;
}

Phrase price(Talk& talk) {
  Dice& dice = talk.dice;
  const Thing thing = definite(talk, kWares, 45);
  const Nominal n = nominal(thing);
  const std::string costs = n.be == "are" ? "cost" : "costs";
  const std::string kostet = thing.is_plural ? "kosten" : "kostet";
  if (dice.chance(15)) {
    return finished("how much " + std::string(n.be == "are" ? "do " : "does ") + n.en + " cost",
                    "wie viel " + kostet + " " + n.in(Case::nominative), '?');
  }
  Pair sum;
  if (dice.chance(15)) {
    const std::string euros = std::to_string(dice.between(2, 60));
    const char* cents = dice.chance(50) ? "50" : "99";
    sum = {euros + "." + cents, euros + "," + cents};
  } else {
    const int value = common_number(dice);
    sum = amount(dice, value, value);
  }
  return finished(joined({n.en, costs, sum.en, "euros"}),
                  joined({n.in(Case::nominative), kostet, sum.de, "Euro"}), '.');
}

Phrase age(Talk& talk) {
  const Nominal who = somebody(talk);
  const Pair n = amount(talk.dice, 2, 99);
  return finished(joined({who.en, who.be, n.en, "years old"}),
                  joined({who.in(Case::nominative), kSein.of(who.person), n.de, "Jahre alt"}), '.');
}

Phrase counted(Talk& talk) {
  Dice& dice = talk.dice;
  Thing t = some_thing(talk, kWares | kFood | kAnimal, Determiner::the, 25);
  while (!t.is_plural) t = some_thing(talk, kWares | kFood | kAnimal, Determiner::the, 25);
  const Pair n = amount(dice, 2, 60);
  t.determiner = Determiner::none, t.en_number = n.en, t.de_number = n.de;
  Clause c;
  c.subject = somebody(talk);
  c.verb = dice.chance(50) ? &have_verb() : &verb(dice.chance(50) ? "need" : "buy");
  c.tense = c.verb->en == "buy" ? Tense::past : Tense::present;
  c.en_object = english(t), c.de_object = german(t, Case::accusative);
  return finished(english_statement(c), german_statement(c), '.');
}

Phrase room(Talk& talk) {
  Dice& dice = talk.dice;
  if (dice.chance(50)) {
    const int floor = dice.between(1, 12);
    const int number = floor * 100 % 1000 + dice.between(1, 30);
    return finished(
        "room " + std::to_string(number) + " is on the " + english_ordinal(floor) + " floor",
        "Zimmer " + std::to_string(number) + " ist im " + german_ordinal_stem(floor) + "en Stock",
        '.');
  }
  const int rooms = common_number(dice);
  const Pair n = amount(dice, rooms, rooms);
  static const std::vector<Pair> wholes = {{"the hotel", "das Hotel"},
                                           {"the castle", "das Schloss"},
                                           {"the hospital", "das Krankenhaus"},
                                           {"the school", "die Schule"}};
  const Pair& whole = dice.pick(wholes);
  return finished(whole.en + " has " + n.en + " rooms", whole.de + " hat " + n.de + " Zimmer", '.');
}

Pair some_clock(Dice& dice) {
  if (dice.chance(25)) {
    const int minute = dice.below(12) * 5;
    const std::string digits = std::to_string(dice.between(1, 24)) + ":" +
                               (minute < 10 ? "0" : "") + std::to_string(minute);
    return {digits, digits + " Uhr"};
  }
  return some_time_of_day(dice);
}

Phrase the_time(Talk& talk) {
  const Pair clock = some_time_of_day(talk.dice);
  switch (talk.dice.below(3)) {
    case 0: return finished("it is " + clock.en, "es ist " + clock.de, '.');
    case 1: return finished("it is already " + clock.en, "es ist schon " + clock.de, '.');
    default: return finished("is it already " + clock.en, "ist es schon " + clock.de, '?');
  }
}

Phrase timetable(Talk& talk) {
  Dice& dice = talk.dice;
  static const std::vector<std::string> lines = {"train", "bus", "ship", "tram"};
  const Noun& n = noun(dice.pick(lines));
  static const std::vector<Pair> which = {
      {"the", ""}, {"the first", "erst"}, {"the next", "nächst"}, {"the last", "letzt"}};
  const Pair& w = dice.pick(which);
  const std::string der = noun_phrase(Determiner::the, w.de, n, false, Case::nominative);
  const Pair& city = dice.pick(pairs("cities"));
  const Pair clock = some_clock(dice);
  const bool departs = dice.chance(50);
  const std::string en = joined({w.en, n.en, departs ? "to" : "from", city.en});
  const std::string de = joined({der, departs ? "nach" : "aus", city.de});
  const std::string prefix = departs ? "ab" : "an", verb = departs ? "fährt" : "kommt";
  if (dice.chance(25)) {
    return finished(joined({"when does", en, departs ? "depart" : "arrive"}),
                    joined({"wann", verb, de, prefix}), '?');
  }
  return finished(joined({en, departs ? "departs" : "arrives", "at", clock.en}),
                  joined({de, verb, "um", clock.de, prefix}), '.');
}

Phrase event_time(Talk& talk) {
  Dice& dice = talk.dice;
  Thing t = definite(talk, kEvent, 40);
  t.is_plural = false;
  const Nominal n = nominal(t);
  const std::string& de = n.in(Case::nominative);
  switch (dice.below(3)) {
    case 0: {
      const Pair clock = some_clock(dice);
      return finished(n.en + " begins at " + clock.en, de + " fängt um " + clock.de + " an", '.');
    }
    case 1: {
      const Pair day = dice.chance(60) ? date_phrase(dice) : weekday_phrase(dice);
      return finished(n.en + " takes place " + day.en, de + " findet " + day.de + " statt", '.');
    }
    default: {
      const Pair day = date_phrase(dice);
      return finished(n.en + " was " + day.en, de + " war " + day.de, '.');
    }
  }
}

Phrase date(Talk& talk) {
  Dice& dice = talk.dice;
  const Pair& month = dice.pick(pairs("months"));
  const int day = some_day(dice, month);
  const std::string en = "the " + english_ordinal(day) + " of " + month.en;
  const std::string de = german_ordinal_stem(day) + "e " + month.de;
  static const std::vector<Pair> days = {
      {"today is", "heute ist"}, {"tomorrow is", "morgen ist"}, {"yesterday was", "gestern war"}};
  if (dice.chance(25)) {
    const Pair& today = dice.pick(days);
    return finished(today.en + " " + en, today.de + " der " + de, '.');
  }
  const Thing who = some_thing(talk, kFamily, Determiner::the, 10);
  Thing one = who;
  one.is_plural = false;
  const Pair on = date_phrase(dice);
  return finished(english(one) + "'s birthday is " + on.en,
                  "der Geburtstag " + german(one, Case::genitive) + " ist " + on.de, '.');
}

// An adjective that says something else than the one before the noun.
const Adjective& another_adjective(Dice& dice, const Thing& t) {
  for (;;) {
    const Adjective& a = *adjective_for(dice, *t.noun);
    const bool clashes =
        t.adjective && (a.en == t.adjective->en || (a.is_colour() && t.adjective->is_colour()));
    if (!clashes) return a;
  }
}

// One of which there is more and less: no colour.
const Adjective& graded_adjective(Dice& dice, const Noun& n) {
  for (;;) {
    const Adjective& a = *adjective_for(dice, n);
    if (!a.is_colour()) return a;
  }
}

Phrase possession(Talk& talk) {
  Dice& dice = talk.dice;
  Thing what = some_thing(talk, kWares | kVehicle | kAnimal | kBuilding, Determiner::the, 45);
  what.determiner = Determiner::the, what.en_number = what.de_number = "";
  Thing bare = what;
  bare.determiner = Determiner::none;
  const Adjective& a = another_adjective(dice, what);
  const std::string be = nominal(what).be;
  const std::string sein = kSein.of(nominal(what).person);
  if (dice.chance(30)) {
    const std::string name = dice.pick(pairs("first_names")).en;
    const std::string own =
        name +
        (name == "Felix" || name == "Thomas" || name == "Lukas" || name == "Max" ? "'" : "s");
    return finished(joined({name + "'s", english(bare), be, a.en}),
                    joined({own, german(bare, Case::nominative), sein, a.de}), '.');
  }
  Thing owner = some_thing(talk, dice.chance(60) ? kFamily : kPerson, Determiner::the, 15);
  owner.is_plural = false, owner.en_number = owner.de_number = "";
  if (owner.determiner == Determiner::none) owner.determiner = Determiner::the;
  return finished(
      joined({english(owner) + "'s", english(bare), be, a.en}),
      joined({german(what, Case::nominative), german(owner, Case::genitive), sein, a.de}), '.');
}

Phrase circumstance(Talk& talk) {
  Dice& dice = talk.dice;
  const Clause c = any_clause(talk, somebody(talk), {.is_brief = true});
  if (!c.en_time.empty()) return circumstance(talk);
  if (dice.chance(50)) {
    Thing t = definite(talk, kEvent, 50);
    t.is_plural = false;
    return finished(joined({"during", english(t), english_statement(c)}),
                    joined({"während", german(t, Case::genitive), german_question(c)}), '.');
  }
  static const std::vector<std::string> causes = {"weather", "rain", "storm",
                                                  "traffic", "snow", "work"};
  static const std::vector<Pair> kinds = {{"", ""}, {"bad", "schlecht"}, {"terrible", "furchtbar"}};
  const Noun& cause = noun(dice.pick(causes));
  const Pair& kind = dice.pick(kinds);
  return finished(
      joined({"because of the", kind.en, cause.en, english_statement(c)}),
      joined({"wegen", noun_phrase(Determiner::the, kind.de, cause, false, Case::genitive),
              german_question(c)}),
      '.');
}

Phrase comparison(Talk& talk) {
  Dice& dice = talk.dice;
  const Thing one = definite(talk, kWares | kVehicle | kBuilding | kFamily | kPerson | kEvent, 0);
  const Adjective& a = graded_adjective(dice, *one.noun);
  const Thing two = definite(talk, one.noun->kinds, 0);
  if (english(one) == english(two)) return comparison(talk);
  const Nominal x = nominal(one), y = nominal(two);
  const bool as = dice.chance(40);
  const bool is_not = as && dice.chance(50);
  const std::string en = as ? joined({is_not ? "not as" : "as", a.en, "as"}) : a.en_more + " than";
  const std::string de =
      as ? joined({is_not ? "nicht so" : "so", a.de, "wie"}) : a.de_more + " als";
  return finished(joined({x.en, x.be, en, y.en}),
                  joined({x.in(Case::nominative), kSein.of(x.person), de, y.in(Case::nominative)}),
                  '.');
}

Phrase superlative(Talk& talk) {
  Dice& dice = talk.dice;
  Thing t = some_thing(talk, kBuilding | kPerson | kVehicle, Determiner::the, 0);
  const Adjective& a = graded_adjective(dice, *t.noun);
  const Pair& city = dice.pick(pairs("cities"));
  Clause c;
  c.subject = somebody(talk);
  c.verb = &verb(t.noun->kinds & kPerson ? "know" : "see");
  c.tense = c.verb->en == "know" ? Tense::present : Tense::past;
  c.en_object = joined({"the", a.en_most, t.noun->en, "in", city.en});
  c.de_object = joined(
      {noun_phrase(Determiner::the, a.de_most, *t.noun, false, Case::accusative), "in", city.de});
  return finished(english_statement(c), german_statement(c), '.');
}

Phrase weather(Talk& talk) {
  static const std::vector<Pair> kinds = {{"cold", "kalt"},    {"warm", "warm"},
                                          {"hot", "heiß"},     {"windy", "windig"},
                                          {"foggy", "neblig"}, {"cloudy", "bewölkt"}};
  static const std::vector<Pair> degrees = {
      {"", ""}, {"very", "sehr"}, {"too", "zu"}, {"quite", "ziemlich"}, {"not", "nicht"}};
  Dice& dice = talk.dice;
  const Pair& kind = dice.pick(kinds);
  const Pair& degree = dice.pick(degrees);
  const bool is_past = dice.chance(50);
  const Pair time = is_past ? dice.pick(pairs("past_times")) : Pair{"today", "heute"};
  const bool has_city = dice.chance(50);
  const Pair& city = dice.pick(pairs("cities"));
  return finished(joined({"it", is_past ? "was" : "is", degree.en, kind.en, has_city ? "in" : "",
                          has_city ? city.en : "", time.en}),
                  joined({"es", is_past ? "war" : "ist", time.de, has_city ? "in" : "",
                          has_city ? city.de : "", degree.de, kind.de}),
                  '.');
}

// In German a profession has no article: er ist Arzt.
Phrase profession(Talk& talk) {
  static const std::vector<std::string> his = {"doctor", "student", "waiter", "policeman",
                                               "baker",  "cook",    "driver", "engineer",
                                               "lawyer", "pilot"};
  static const std::vector<std::string> hers = {"waitress", "nurse", "saleswoman", "actress"};
  Nominal who = somebody(talk);
  while (who.person != Person::er || (who.own != Determiner::his && who.own != Determiner::her)) {
    who = somebody(talk);
  }
  const Noun& n = noun(talk.dice.pick(who.own == Determiner::her ? hers : his));
  const Thing t{.determiner = Determiner::a, .noun = &n};
  switch (talk.dice.below(3)) {
    case 0:
      return finished(who.en + " is " + english(t), who.in(Case::nominative) + " ist " + n.de, '.');
    case 1:
      return finished(who.en + " was " + english(t), who.in(Case::nominative) + " war " + n.de,
                      '.');
    default:
      return finished(who.en + " wants to be " + english(t),
                      who.in(Case::nominative) + " will " + n.de + " werden", '.');
  }
}

Phrase opening(Talk& talk) {
  Dice& dice = talk.dice;
  static const std::vector<Pair> shops = {{"the shop", "der Laden"},
                                          {"the bakery", "die Bäckerei"},
                                          {"the chemist's", "die Apotheke"},
                                          {"the museum", "das Museum"},
                                          {"the post office", "die Post"},
                                          {"the library", "die Bibliothek"},
                                          {"the supermarket", "der Supermarkt"},
                                          {"the restaurant", "das Restaurant"}};
  const Pair& shop = dice.pick(shops);
  const bool opens = dice.chance(50);
  const Pair clock = some_clock(dice);
  const Pair day = dice.chance(50) ? dice.pick(pairs("weekdays")) : Pair{"", ""};
  const std::string on = day.en.empty() ? "" : "on " + day.en,
                    am = day.de.empty() ? "" : "am " + day.de;
  return finished(joined({shop.en, opens ? "opens" : "closes", "at", clock.en, on}),
                  joined({shop.de, opens ? "öffnet" : "schließt", am, "um", clock.de}), '.');
}

Phrase portion(Talk& talk) {
  Dice& dice = talk.dice;
  struct Measure {
    Pair one, many;
    Determiner article;
    Gender gender;
    uint32_t kinds;
  };
  static const std::vector<Measure> measures = {
      {{"bottle", "Flasche"}, {"bottles", "Flaschen"}, Determiner::a, Gender::feminine, kDrink},
      {{"cup", "Tasse"}, {"cups", "Tassen"}, Determiner::a, Gender::feminine, kDrink},
      {{"glass", "Glas"}, {"glasses", "Gläser"}, Determiner::a, Gender::neuter, kDrink},
      {{"kilo", "Kilo"}, {"kilos", "Kilo"}, Determiner::a, Gender::neuter, kFoodMass | kFood},
      {{"piece", "Stück"}, {"pieces", "Stück"}, Determiner::a, Gender::neuter, kFoodMass}};
  const Measure& m = dice.pick(measures);
  Thing ware = some_thing(talk, m.kinds, Determiner::the, 0);
  ware.determiner = Determiner::none, ware.en_number = ware.de_number = "";
  ware.is_plural = !ware.noun->en_plural.empty();
  const int n = dice.between(1, 12);
  const std::string en = n == 1 ? "a " + m.one.en : english_number(n) + " " + m.many.en;
  const std::string de =
      n == 1 ? determiner(m.article, m.gender, false, Case::accusative) + " " + m.one.de
             : german_number(n) + " " + m.many.de;
  Clause c;
  c.subject = somebody(talk);
  c.verb = &verb(m.kinds == kDrink && dice.chance(50) ? "drink"
                 : dice.chance(50)                    ? "buy"
                                                      : "order");
  choose_tense(talk, c, {.is_positive = true});
  c.en_object = en + " of " + english(ware),
  c.de_object = de + " " + german(ware, Case::accusative);
  return finished(english_statement(c), german_statement(c), '.');
}

}  // namespace

const std::vector<SentencePattern>& fact_patterns() {
  static const std::vector<SentencePattern> list = {
      {"price", 5, price},           {"age", 1, age},
      {"counted", 2, counted},       {"room", 1, room},
      {"time", 1, the_time},         {"timetable", 3, timetable},
      {"event time", 3, event_time}, {"date", 3, date},
      {"possession", 4, possession}, {"circumstance", 3, circumstance},
      {"comparison", 3, comparison}, {"superlative", 2, superlative},
      {"portion", 3, portion},       {"weather", 1, weather},
      {"profession", 1, profession}, {"opening", 1, opening}};
  return list;
}

}  // namespace heddle::phrasebook
