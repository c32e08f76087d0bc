// What clauses talk about: somebody buys something, goes somewhere, helps somebody, is tired.
#include "corpora/phrasebook_situations.h"

#include <algorithm>

namespace heddle::phrasebook {
namespace {

const Modal& some_modal(Dice& dice, bool is_negated, const Wish& wish) {
  for (;;) {
    const Modal& m = dice.pick(modals());
    if (m.is_past ? wish.is_future || wish.era == Era::now : wish.era == Era::past) continue;
    if (is_negated ? m.may_deny : m.may_affirm) return m;
  }
}

void set_time(Clause& c, const Pair& time) { c.en_time = time.en, c.de_time = time.de; }

Tense some_tense(Dice& dice, const Clause& c, const Wish& wish) {
  // "I read", "they put": present or past? Such verbs have no simple present here.
  const bool looks_past = c.verb->en == c.verb->en_past;
  const int t = dice.below(100);
  if (wish.is_future) return t < 50 ? Tense::future : Tense::modal;
  if (wish.era == Era::past) return t < 75 ? Tense::past : Tense::modal;
  if (wish.era == Era::any && t >= 72) return t < 96 ? Tense::past : Tense::perfect;
  if (c.verb->is_state && !looks_past) return t < 48 ? Tense::present : Tense::modal;
  if (t < 18 && !looks_past) return Tense::present;
  if (t < 38) return Tense::progressive;
  return t < 56 ? Tense::future : Tense::modal;
}

Pair time_for(Dice& dice, const Clause& c) {
  const bool is_past = c.tense == Tense::past || (c.tense == Tense::modal && c.modal->is_past);
  if (is_past) {
    return dice.chance(80) ? dice.pick(pairs("past_times")) : date_phrase(dice);
  }
  if (c.tense == Tense::future) return coming_time(dice);
  if (c.tense == Tense::modal) {
    return dice.chance(25) ? Pair{"today", "heute"} : coming_time(dice);
  }
  if (c.tense == Tense::progressive) return dice.pick(pairs("present_times"));
  return dice.chance(70) ? dice.pick(pairs("habit_times")) : clock_phrase(dice);
}

// Puts a noun phrase where the verb's frame wants it.
void set_object(Clause& c, const Nominal& object) {
  const Verb& v = *c.verb;
  c.en_object = joined({v.en_preposition, object.en_object});
  c.has_pronoun = object.is_pronoun;
  switch (v.frame) {
    case Frame::none: break;
    case Frame::accusative:
    case Frame::dative: {
      const std::string& text =
          object.in(v.frame == Frame::dative ? Case::dative : Case::accusative);
      (object.is_pronoun ? c.de_pronoun : c.de_object) = text;
      break;
    }
    case Frame::preposition:
      c.de_late = contracted(v.de_preposition, object.in(v.preposition_case));
      break;
  }
}

// Into rooms on foot only, to cities not on foot.
void set_destination(Dice& dice, Clause& c) {
  const std::string& en = c.verb->en;
  const bool is_far =
      en == "travel" || (en != "go" && en != "run" && en != "return" && dice.chance(35));
  if (is_far) {
    const Pair& city = dice.pick(pairs("cities"));
    c.en_place = "to " + city.en, c.de_late = "nach " + city.de;
    return;
  }
  if (dice.chance(15)) {
    c.en_place = "home", c.de_late = "nach Hause";
    return;
  }
  const Place* place = &dice.pick(places());
  while (place->is_room() && en != "go" && en != "run") place = &dice.pick(places());
  c.en_place = to_place_en(*place), c.de_late = to_place_de(*place);
}

// "by train": mit dem Zug; "in my new car": mit meinem neuen Auto. German says it first.
void set_vehicle(Dice& dice, Clause& c) {
  static const std::vector<std::string> lines = {"train", "bus", "ship", "plane"};
  Thing vehicle{.determiner = Determiner::the, .noun = &noun("car")};
  if (c.verb->en == "travel") {
    vehicle.noun = &noun(dice.pick(lines));
    c.en_place += " by " + vehicle.noun->en;
  } else if (c.verb->en == "drive") {
    vehicle.determiner = dice.chance(50) ? c.subject.own : Determiner::the;
    if (dice.chance(50)) vehicle.adjective = adjective_for(dice, *vehicle.noun);
    c.en_place += " in " + english(vehicle);
  } else {
    return;
  }
  c.de_late = "mit " + german(vehicle, Case::dative) + " " + c.de_late;
}

}  // namespace

Pair some_time_of_day(Dice& dice) {
  const int hour = dice.between(1, 12);  // thrown one by one: the order of arguments is not defined
  return clock_time(hour, dice.below(12) * 5);
}

Pair clock_phrase(Dice& dice) {
  const Pair time = some_time_of_day(dice);
  return {"at " + time.en, "um " + time.de};
}

Pair weekday_phrase(Dice& dice) {
  const Pair& day = dice.pick(pairs("weekdays"));
  if (dice.chance(60)) return {"on " + day.en, "am " + day.de};
  static const std::vector<Pair> parts = {
      {"morning", "morgen"}, {"afternoon", "nachmittag"}, {"evening", "abend"}};
  const Pair& part = dice.pick(parts);
  return {"on " + day.en + " " + part.en, "am " + day.de + part.de};
}

int some_day(Dice& dice, const Pair& month) {
  static const std::vector<std::string> short_months = {"April", "June", "September", "November"};
  if (month.en == "February") return dice.between(1, 28);
  const bool is_short =
      std::find(short_months.begin(), short_months.end(), month.en) != short_months.end();
  return dice.between(1, is_short ? 30 : 31);
}

Pair date_phrase(Dice& dice) {
  const Pair& month = dice.pick(pairs("months"));
  const int day = some_day(dice, month);
  if (dice.chance(70)) {
    return {"on the " + english_ordinal(day) + " of " + month.en,
            "am " + german_ordinal_stem(day) + "en " + month.de};
  }
  const std::string digits = std::to_string(day);
  return {"on " + month.en + " " + digits, "am " + digits + ". " + month.de};
}

Pair coming_time(Dice& dice) {
  const int t = dice.below(100);
  if (t < 45) return dice.pick(pairs("future_times"));
  if (t < 60) return weekday_phrase(dice);
  if (t < 75) return date_phrase(dice);
  const Pair clock = clock_phrase(dice);
  if (t < 90) return clock;
  return {clock.en + " tomorrow", "morgen " + clock.de};
}

void choose_tense(Talk& talk, Clause& c, const Wish& wish) {
  Dice& dice = talk.dice;
  if (wish.is_bare) return;
  c.tense = some_tense(dice, c, wish);
  c.is_negated = !wish.is_positive && dice.chance(22);
  if (c.tense == Tense::modal) {
    c.modal = &some_modal(dice, c.is_negated, wish);
  }
  if (c.verb->is_state && c.tense == Tense::present) return;
  if (c.tense == Tense::perfect) {
    if (!c.is_negated && dice.chance(60)) c.en_adverb = "already", c.de_time = "schon";
    return;
  }
  if (c.tense == Tense::present && !c.is_negated && dice.chance(45)) {
    const Pair& adverb = dice.pick(pairs("habit_adverbs"));
    c.en_adverb = adverb.en, c.de_time = adverb.de;
    return;
  }
  if (c.tense == Tense::present || (!wish.is_brief && dice.chance(55))) {
    set_time(c, time_for(dice, c));
  }
}

const Verb& verb_for(Dice& dice, const Noun& n) {
  for (;;) {
    const Verb& v = dice.pick(object_verbs());
    if (v.frame == Frame::accusative && (v.objects & n.kinds)) return v;
  }
}

bool simplify_present(Clause& c) {
  if (c.tense != Tense::progressive || c.verb->en == c.verb->en_past) return false;
  c.tense = Tense::present;
  c.en_time = c.de_time = "";
  return true;
}

Clause object_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  constexpr uint32_t kPeople = kFamily | kPerson;
  Clause c;
  c.subject = subject;
  c.verb = &talk.dice.pick(object_verbs());
  choose_tense(talk, c, wish);
  if ((c.verb->objects & kPeople) && talk.dice.chance(55)) {
    set_object(c, other_person(talk, subject));
    return c;
  }
  Thing thing = some_thing(talk, c.verb->objects, subject.own, wish.is_brief ? 15 : 45);
  const bool is_open = thing.determiner == Determiner::a || thing.determiner == Determiner::none;
  if (c.is_negated && is_open && thing.en_number.empty() && c.verb->frame == Frame::accusative) {
    thing.is_negated = c.has_kein = true;
  }
  set_object(c, nominal(thing));
  const bool has_place = !wish.is_brief && c.en_time.empty() && !c.is_negated &&
                         (c.verb->objects & (kText | kFood | kDrink | kPerson)) &&
                         c.verb->frame == Frame::accusative && talk.dice.chance(35);
  if (has_place) {
    const Place& place = talk.dice.pick(places());
    c.en_place = at_place_en(place), c.de_late = at_place_de(place);
  }
  return c;
}

Clause giving_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  Clause c;
  c.subject = subject;
  c.verb = &talk.dice.pick(giving_verbs());
  choose_tense(talk, c, wish);
  const Nominal receiver = other_person(talk, subject);
  Thing thing = some_thing(talk, c.verb->objects, subject.own, wish.is_brief ? 10 : 40);
  const bool is_open = thing.determiner == Determiner::a || thing.determiner == Determiner::none;
  if (c.is_negated && is_open && thing.en_number.empty()) thing.is_negated = c.has_kein = true;
  c.en_object = receiver.en_object + " " + english(thing);
  const std::string object = german(thing, Case::accusative);
  if (receiver.is_pronoun) {
    c.de_pronoun = receiver.in(Case::dative), c.de_object = object;
  } else {
    c.de_object = receiver.in(Case::dative) + " " + object;
  }
  return c;
}

Clause plain_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  Clause c;
  c.subject = subject;
  c.verb = &talk.dice.pick(plain_verbs());
  choose_tense(talk, c, wish);
  const bool stays = c.verb->prefix.empty() && !c.verb->is_reflexive && c.verb->en != "swim";
  const bool can_have_place = stays && talk.dice.chance(wish.is_brief ? 30 : 65);
  if (can_have_place) {
    const Place& place = talk.dice.pick(places());
    c.en_place = at_place_en(place), c.de_late = at_place_de(place);
  }
  return c;
}

Clause going_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  Clause c;
  c.subject = subject;
  c.verb = &talk.dice.pick(going_verbs());
  choose_tense(talk, c, wish);
  set_destination(talk.dice, c);
  if (!wish.is_brief && talk.dice.chance(50)) set_vehicle(talk.dice, c);
  return c;
}

Spot some_spot(Talk& talk) {
  struct Preposition {
    const char *en, *de;
    uint32_t kinds;
  };
  static const std::vector<Preposition> list = {{"on", "auf", kFurniture},
                                                {"under", "unter", kFurniture},
                                                {"next to", "neben", kFurniture | kOpens},
                                                {"behind", "hinter", kFurniture | kOpens},
                                                {"in front of", "vor", kFurniture | kOpens},
                                                {"in", "in", kContainer}};
  const Preposition& p = talk.dice.pick(list);
  Thing t{.determiner = Determiner::the, .noun = talk.dice.pick(nouns_of(p.kinds))};
  if (talk.dice.chance(30)) t.adjective = adjective_for(talk.dice, *t.noun);
  return {joined({p.en, english(t)}), contracted(p.de, german(t, Case::dative)),
          contracted(p.de, german(t, Case::accusative))};
}

Clause putting_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  Clause c;
  c.subject = subject;
  const Thing thing = some_thing(talk, kThing, subject.own, wish.is_brief ? 10 : 30);
  c.verb = thing.noun->kinds & kLying ? &lay_verb() : &stand_verb();
  Wish positive = wish;
  positive.is_positive = positive.is_brief = true;
  choose_tense(talk, c, positive);
  const Spot spot = some_spot(talk);
  c.en_object = english(thing), c.en_place = spot.en;
  c.de_object = german(thing, Case::accusative), c.de_late = spot.de_to;
  return c;
}

Clause mood_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  Clause c;
  c.subject = subject;
  c.verb = &be_verb();
  c.is_negated = !wish.is_positive && talk.dice.chance(20);
  const bool is_past = wish.era == Era::past || (wish.era == Era::any && talk.dice.chance(35));
  c.tense = is_past && !wish.is_future ? Tense::past : Tense::present;
  if (talk.dice.chance(75)) {
    const Adjective& mood = talk.dice.pick(moods());
    const bool is_very = talk.dice.chance(20) && mood.en != "alone" && mood.en != "ready";
    c.en_object = (is_very ? "very " : "") + mood.en;
    c.de_late = (is_very ? "sehr " : "") + mood.de;
  } else {
    const Place& place = talk.dice.pick(places());
    c.en_object = at_place_en(place), c.de_late = at_place_de(place);
  }
  if (wish.is_brief || talk.dice.chance(50)) return c;
  set_time(c,
           c.tense == Tense::past ? talk.dice.pick(pairs("past_times")) : Pair{"today", "heute"});
  return c;
}

Clause having_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  Clause c;
  c.subject = subject;
  c.verb = &have_verb();
  c.is_negated = !wish.is_positive && talk.dice.chance(45);
  const bool is_past = wish.era == Era::past || (wish.era == Era::any && talk.dice.chance(30));
  c.tense = is_past && !wish.is_future ? Tense::past : Tense::present;
  Thing thing =
      some_thing(talk, kThing | kClothes | kVehicle | kAnimal | kFood | kDrink | kFurniture,
                 Determiner::the, 50);
  thing.determiner =
      thing.is_plural || thing.noun->en_plural.empty() ? Determiner::none : Determiner::a;
  if (thing.noun->is_pair) thing.determiner = Determiner::the;
  if (c.is_negated && thing.en_number.empty() && !thing.noun->is_pair) {
    thing.is_negated = c.has_kein = true;
  }
  c.en_object = english(thing), c.de_object = german(thing, Case::accusative);
  return c;
}

Clause any_clause(Talk& talk, const Nominal& subject, const Wish& wish) {
  const int t = talk.dice.below(100);
  if (t < 34) return object_clause(talk, subject, wish);
  if (t < 46) return giving_clause(talk, subject, wish);
  if (t < 64) return plain_clause(talk, subject, wish);
  if (t < 78) return going_clause(talk, subject, wish);
  if (t < 86) return putting_clause(talk, subject, wish);
  if (wish.is_bare || wish.is_future) return object_clause(talk, subject, wish);
  return t < 95 ? mood_clause(talk, subject, wish) : having_clause(talk, subject, wish);
}

}  // namespace heddle::phrasebook
