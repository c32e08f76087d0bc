// Reads the phrasebook's dictionary from lexicons/phrasebook.json. Its lines:
//   noun       English singular, plural (a pair has "=" for a singular); German with article,
//              genitive, plural. A place goes on with how one is there, English and German, and how
//              one goes there.
//   verb       English present, third person, past, participle, -ing; German infinitive
//              (prefix|stem where it separates), du, er, perfect, imperative. "*" before it: a verb
//              of state, no "I am needing".
//   adjective  English, comparative, superlative; German, comparative, superlative, stem
#include "corpora/phrasebook_lexicon.h"

#include <map>
#include <sstream>

#include "corpora/lexicon.h"
#include "heddle/base/error.h"

namespace heddle::phrasebook {
namespace {

const std::vector<Json>& list_of(const char* key) {
  return lexicon("phrasebook").at(key).as_array();
}

uint32_t kinds_of(const std::string& names) {
  static const std::map<std::string, uint32_t> bits = {
      {"family", kFamily},       {"person", kPerson},     {"food", kFood},
      {"food_mass", kFoodMass},  {"drink", kDrink},       {"clothes", kClothes},
      {"lying", kLying},         {"standing", kStanding}, {"furniture", kFurniture},
      {"vehicle", kVehicle},     {"animal", kAnimal},     {"text", kText},
      {"building", kBuilding},   {"event", kEvent},       {"opens", kOpens},
      {"container", kContainer}, {"colour", kColour}};
  uint32_t kinds = 0;
  std::istringstream words(names);
  for (std::string word; words >> word;) kinds |= bits.at(word);
  return kinds;
}

Noun read_noun(const std::vector<std::string>& f, uint32_t kinds) {
  Noun n;
  n.is_pair = f[0] == "=";
  n.en_plural = f[1];
  n.en = n.is_pair ? f[1] : f[0];
  const std::string article = f[2].substr(0, 3);
  n.gender = article == "der"   ? Gender::masculine
             : article == "die" ? Gender::feminine
                                : Gender::neuter;
  n.de = f[2].substr(4);
  n.de_genitive = f[3];
  n.de_plural = f[4];
  n.kinds = kinds;
  return n;
}

std::string first_person(const std::string& infinitive) {
  const bool ends_in_en = infinitive.ends_with("en");
  return infinitive.substr(0, infinitive.size() - (ends_in_en ? 2 : 1)) + "e";
}

std::string text_of(const Json& entry, const char* key) {
  const Json* value = entry.find(key);
  return value ? value->as_string() : "";
}

Verb read_verb(const Json& entry) {
  const std::string line = text_of(entry, "verb"), frame = text_of(entry, "frame");
  Verb v;
  v.is_state = line[0] == '*';
  const auto f = fields_of(line.substr(v.is_state ? 1 : 0), 10);
  v.en = f[0], v.en_s = f[1], v.en_past = f[2], v.en_participle = f[3], v.en_ing = f[4];
  const std::string sich = "sich ";
  v.is_reflexive = f[5].starts_with(sich);
  const std::string infinitive = v.is_reflexive ? f[5].substr(sich.size()) : f[5];
  const size_t bar = infinitive.find('|');
  v.prefix = bar == std::string::npos ? "" : infinitive.substr(0, bar);
  v.stem_infinitive = bar == std::string::npos ? infinitive : infinitive.substr(bar + 1);
  v.ich = first_person(v.stem_infinitive);
  v.du = f[6], v.er = f[7];
  v.with_sein = f[8].starts_with("ist");
  v.participle = f[8].substr(4);
  v.imperative = f[9];
  v.frame = frame == "accusative"    ? Frame::accusative
            : frame == "dative"      ? Frame::dative
            : frame == "preposition" ? Frame::preposition
                                     : Frame::none;
  v.objects = kinds_of(text_of(entry, "objects"));
  v.en_preposition = text_of(entry, "en"), v.de_preposition = text_of(entry, "de");
  v.preposition_case = text_of(entry, "case") == "dative" ? Case::dative : Case::accusative;
  return v;
}

std::vector<Verb> read_verbs(const char* key) {
  std::vector<Verb> verbs;
  for (const Json& entry : list_of(key)) verbs.push_back(read_verb(entry));
  return verbs;
}

Adjective read_adjective(const std::string& line, uint32_t kinds) {
  const auto f = fields_of(line, 7);
  return {f[0], f[3], f[6], f[1], f[4], f[2], f[5], kinds};
}

std::vector<Pair> read_pairs(const char* key) {
  std::vector<Pair> pairs;
  for (const Json& line : list_of(key)) {
    const auto f = fields_of(line.as_string(), 2);
    pairs.push_back({f[0], f[1]});
  }
  return pairs;
}

}  // namespace

const std::vector<Noun>& nouns() {
  static const std::vector<Noun> list = [] {
    std::vector<Noun> all;
    for (const Json& group : list_of("nouns")) {
      const uint32_t kinds = kinds_of(text_of(group, "kinds"));
      for (const Json& line : group.at("nouns").as_array()) {
        all.push_back(read_noun(fields_of(line.as_string(), 5), kinds));
      }
    }
    return all;
  }();
  return list;
}

const std::vector<Place>& places() {
  static const std::vector<Place> list = [] {
    std::vector<Place> all;
    for (const Json& line : list_of("places")) {
      const auto f = fields_of(line.as_string(), 9);
      all.push_back({read_noun(f, 0), f[5], f[6], f[7], f[8]});
    }
    return all;
  }();
  return list;
}

const std::vector<Adjective>& adjectives() {
  static const std::vector<Adjective> list = [] {
    std::vector<Adjective> all;
    for (const Json& entry : list_of("adjectives")) {
      all.push_back(read_adjective(text_of(entry, "adjective"), kinds_of(text_of(entry, "kinds"))));
    }
    return all;
  }();
  return list;
}

const std::vector<Adjective>& moods() {
  static const std::vector<Adjective> list = [] {
    std::vector<Adjective> all;
    for (const Json& line : list_of("moods")) all.push_back(read_adjective(line.as_string(), 0));
    return all;
  }();
  return list;
}

const std::vector<Verb>& object_verbs() {
  static const auto list = read_verbs("object_verbs");
  return list;
}
const std::vector<Verb>& giving_verbs() {
  static const auto list = read_verbs("giving_verbs");
  return list;
}
const std::vector<Verb>& plain_verbs() {
  static const auto list = read_verbs("plain_verbs");
  return list;
}
const std::vector<Verb>& going_verbs() {
  static const auto list = read_verbs("going_verbs");
  return list;
}

const std::vector<Pair>& pairs(const char* key) {
  static const std::map<std::string, std::vector<Pair>> all = [] {
    std::map<std::string, std::vector<Pair>> lists;
    for (const char* name :
         {"first_names", "surnames", "cities", "past_times", "present_times", "future_times",
          "habit_times", "habit_adverbs", "weekdays", "months"}) {
      lists[name] = read_pairs(name);
    }
    return lists;
  }();
  return all.at(key);
}

const Noun& noun(const std::string& en) {
  for (const Noun& n : nouns()) {
    if (n.en == en) return n;
  }
  fail(ErrorKind::internal, "phrasebook: no noun '{}' in the dictionary", en);
}

const Verb& verb(const std::string& en) {
  for (const auto* list : {&object_verbs(), &giving_verbs(), &plain_verbs(), &going_verbs()}) {
    for (const Verb& v : *list) {
      if (v.en == en) return v;
    }
  }
  fail(ErrorKind::internal, "phrasebook: no verb '{}' in the dictionary", en);
}

const std::vector<const Noun*>& nouns_of(uint32_t kinds) {
  // Asked for the same few sets of kinds a million times; node addresses in a map stay.
  thread_local std::map<uint32_t, std::vector<const Noun*>> known;
  const auto [entry, is_new] = known.try_emplace(kinds);
  if (is_new) {
    for (const Noun& n : nouns()) {
      if (n.kinds & kinds) entry->second.push_back(&n);
    }
  }
  return entry->second;
}

}  // namespace heddle::phrasebook
