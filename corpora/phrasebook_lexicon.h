// The phrasebook's dictionary: nouns, verbs, adjectives, places and times as a teacher lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::phrasebook {

enum class Gender { masculine, feminine, neuter };

/// What a noun is, as a set of bits: it decides which verbs and adjectives go with it.
enum Kind : uint32_t {
  kFamily = 1u << 0,      // my brother
  kPerson = 1u << 1,      // the teacher
  kFood = 1u << 2,        // an apple: can be counted
  kFoodMass = 1u << 3,    // bread: no article, no plural
  kDrink = 1u << 4,       // water: no article, no plural
  kClothes = 1u << 5,     // a coat
  kLying = 1u << 6,       // a book: one lays it down (legen, liegen)
  kStanding = 1u << 7,    // a lamp: one stands it up (stellen, stehen)
  kFurniture = 1u << 8,   // a table
  kVehicle = 1u << 9,     // a car
  kAnimal = 1u << 10,     // a dog
  kText = 1u << 11,       // a letter: can be read
  kBuilding = 1u << 12,   // a house: can be seen, looked for
  kEvent = 1u << 13,      // a journey: begins, ends, can be looked forward to
  kOpens = 1u << 14,      // a door: can be opened and shut
  kContainer = 1u << 15,  // a drawer: holds things
  kColour = 1u << 16      // of adjectives: has no degrees
};
inline constexpr uint32_t kThing = kLying | kStanding;

struct Noun {
  std::string en, en_plural;  // "table", "tables"
  Gender gender;
  std::string de, de_genitive, de_plural;  // "Tisch", "Tisches", "Tische"
  uint32_t kinds;
  bool is_pair = false;  // plural in English, singular in German: the trousers, die Hose
  bool is_weak() const { return gender == Gender::masculine && de_genitive.back() == 'n'; }
};

struct Adjective {
  bool is_colour() const { return (kinds & kColour) != 0; }
  std::string en, de;            // "expensive", "teuer"
  std::string de_stem;           // before an ending: "teur"
  std::string en_more, de_more;  // "more expensive", "teurer"
  std::string en_most, de_most;  // "most expensive", "teuerst"
  uint32_t kinds;
};

enum class Case { nominative, accusative, dative, genitive };

/// What stands beside a verb.
enum class Frame { none, accusative, dative, preposition };

struct Verb {
  std::string en, en_s, en_past, en_participle, en_ing;
  std::string prefix, stem_infinitive;  // "auf", "stehen"; the prefix is empty unless separable
  std::string ich, du, er;              // "stehe", "stehst", "steht"
  std::string participle;               // "aufgestanden"
  bool with_sein;                       // ist aufgestanden
  std::string imperative;               // "steh"
  Frame frame = Frame::none;
  uint32_t objects = 0;  // the kinds of its object
  std::string en_preposition, de_preposition;
  Case preposition_case = Case::accusative;
  bool is_state = false;      // no progressive in English: I need, I know
  bool is_reflexive = false;  // sich freuen
  std::string infinitive() const { return prefix + stem_infinitive; }
};

/// Where one is and where one goes: "at the station", "to the station"; am Bahnhof, zum Bahnhof.
struct Place {
  Noun noun;
  bool is_room() const { return en_to == "into"; }
  bool is_settlement() const { return noun.en == "town" || noun.en == "village"; }
  std::string en_at, de_at;  // with the dative
  std::string en_to, de_to;  // with the accusative, or with the dative after zu
};

struct Pair {
  std::string en, de;
};

const std::vector<Noun>& nouns();
const std::vector<Place>& places();  // the station, the kitchen
const std::vector<Adjective>& adjectives();
const std::vector<Adjective>& moods();    // tired, ill: of persons, only after "to be"
const std::vector<Verb>& object_verbs();  // buy, read, wait for, help
const std::vector<Verb>& giving_verbs();  // give somebody something
const std::vector<Verb>& plain_verbs();   // sleep, get up: no object
const std::vector<Verb>& going_verbs();   // go, drive: to a place
/// first_names (which also says the pronoun: {"Anna", "sie"}), surnames, cities, past_times
/// (yesterday), present_times (now), future_times (tomorrow), habit_times (every day),
/// habit_adverbs (often: before the verb in English), weekdays, months.
const std::vector<Pair>& pairs(const char* key);

const Noun& noun(const std::string& en);
const Verb& verb(const std::string& en);                   // of any of the verb lists
const std::vector<const Noun*>& nouns_of(uint32_t kinds);  // of any of the kinds

}  // namespace heddle::phrasebook
