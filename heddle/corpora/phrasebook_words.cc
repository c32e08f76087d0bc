// The phrasebook's adjectives, times, names and numerals' neighbours.
#include "heddle/corpora/phrasebook_lexicon.h"

namespace heddle::phrasebook {
namespace {

constexpr uint32_t kPeople = kFamily | kPerson;
constexpr uint32_t kGoods = kThing | kClothes | kFurniture | kVehicle | kOpens;

struct WordEntry {
  const char* line;  // English, comparative, superlative; German, comparative, superlative, stem
  uint32_t kinds;
};

const std::vector<WordEntry>& adjective_entries() {
  static const std::vector<WordEntry> entries = {
      {"new/newer/newest/neu/neuer/neuest/neu", kGoods | kBuilding | kText},
      {"old/older/oldest/alt/älter/ältest/alt", kGoods | kBuilding | kPeople | kAnimal},
      {"young/younger/youngest/jung/jünger/jüngst/jung", kPeople | kAnimal},
      {"big/bigger/biggest/groß/größer/größt/groß",
       kThing | kFurniture | kVehicle | kBuilding | kAnimal | kFood | kOpens},
      {"small/smaller/smallest/klein/kleiner/kleinst/klein",
       kThing | kFurniture | kVehicle | kBuilding | kAnimal | kFood | kOpens},
      {"beautiful/more beautiful/most beautiful/schön/schöner/schönst/schön",
       kGoods | kBuilding | kAnimal | kEvent},
      {"ugly/uglier/ugliest/hässlich/hässlicher/hässlichst/hässlich", kGoods | kBuilding},
      {"expensive/more expensive/most expensive/teuer/teurer/teuerst/teur",
       kGoods | kBuilding | kFood | kFoodMass | kDrink},
      {"cheap/cheaper/cheapest/billig/billiger/billigst/billig",
       kGoods | kFood | kFoodMass | kDrink},
      {"red/redder/reddest/rot/röter/rötest/rot",
       kColour | kClothes | kThing | kFurniture | kVehicle},
      {"blue/bluer/bluest/blau/blauer/blauest/blau",
       kColour | kClothes | kThing | kFurniture | kVehicle},
      {"green/greener/greenest/grün/grüner/grünst/grün",
       kColour | kClothes | kThing | kFurniture | kVehicle},
      {"black/blacker/blackest/schwarz/schwärzer/schwärzest/schwarz",
       kColour | kClothes | kThing | kFurniture | kVehicle | kAnimal},
      {"white/whiter/whitest/weiß/weißer/weißest/weiß",
       kColour | kClothes | kThing | kFurniture | kVehicle | kAnimal},
      {"brown/browner/brownest/braun/brauner/braunst/braun",
       kColour | kClothes | kThing | kFurniture | kAnimal},
      {"grey/greyer/greyest/grau/grauer/grauest/grau",
       kColour | kClothes | kThing | kFurniture | kVehicle | kAnimal},
      {"yellow/yellower/yellowest/gelb/gelber/gelbst/gelb",
       kColour | kClothes | kThing | kFurniture | kVehicle},
      {"dark/darker/darkest/dunkel/dunkler/dunkelst/dunkl", kClothes | kFurniture | kBuilding},
      {"heavy/heavier/heaviest/schwer/schwerer/schwerst/schwer", kThing | kFurniture},
      {"light/lighter/lightest/leicht/leichter/leichtest/leicht", kThing | kFurniture | kClothes},
      {"long/longer/longest/lang/länger/längst/lang", kText | kEvent | kClothes},
      {"short/shorter/shortest/kurz/kürzer/kürzest/kurz", kText | kEvent | kClothes},
      {"dirty/dirtier/dirtiest/schmutzig/schmutziger/schmutzigst/schmutzig",
       kClothes | kStanding | kVehicle | kOpens | kFurniture},
      {"clean/cleaner/cleanest/sauber/sauberer/sauberst/sauber",
       kClothes | kStanding | kVehicle | kOpens | kFurniture},
      {"warm/warmer/warmest/warm/wärmer/wärmst/warm", kClothes | kDrink | kFoodMass},
      {"fresh/fresher/freshest/frisch/frischer/frischest/frisch", kFood | kFoodMass | kDrink},
      {"cold/colder/coldest/kalt/kälter/kältest/kalt", kDrink | kFoodMass},
      {"hot/hotter/hottest/heiß/heißer/heißest/heiß", kDrink},
      {"good/better/best/gut/besser/best/gut",
       kFood | kFoodMass | kDrink | kText | kEvent | kPeople},
      {"sweet/sweeter/sweetest/süß/süßer/süßest/süß", kFood | kDrink},
      {"friendly/friendlier/friendliest/freundlich/freundlicher/freundlichst/freundlich",
       kPeople | kAnimal},
      {"famous/more famous/most famous/berühmt/berühmter/berühmtest/berühmt",
       kPeople | kBuilding | kText},
      {"rich/richer/richest/reich/reicher/reichst/reich", kPeople},
      {"tall/taller/tallest/groß/größer/größt/groß", kPeople},
      {"strong/stronger/strongest/stark/stärker/stärkst/stark", kPeople | kAnimal},
      {"funny/funnier/funniest/lustig/lustiger/lustigst/lustig", kPeople | kEvent | kText},
      {"clever/cleverer/cleverest/klug/klüger/klügst/klug", kPeople | kAnimal},
      {"polite/more polite/most polite/höflich/höflicher/höflichst/höflich", kPeople},
      {"important/more important/most important/wichtig/wichtiger/wichtigst/wichtig",
       kText | kEvent},
      {"interesting/more interesting/most "
       "interesting/interessant/interessanter/interessantest/interessant",
       kText | kEvent | kBuilding},
      {"boring/more boring/most boring/langweilig/langweiliger/langweiligst/langweilig",
       kText | kEvent},
      {"high/higher/highest/hoch/höher/höchst/hoh", kBuilding},
      {"fast/faster/fastest/schnell/schneller/schnellst/schnell", kVehicle | kAnimal},
      {"slow/slower/slowest/langsam/langsamer/langsamst/langsam", kVehicle | kAnimal},
      {"comfortable/more comfortable/most comfortable/bequem/bequemer/bequemst/bequem",
       kFurniture | kClothes | kVehicle},
      {"modern/more modern/most modern/modern/moderner/modernst/modern",
       kFurniture | kBuilding | kStanding},
      {"pretty/prettier/prettiest/hübsch/hübscher/hübschest/hübsch", kClothes | kStanding},
      {"useful/more useful/most useful/nützlich/nützlicher/nützlichst/nützlich", kThing | kText},
      {"quiet/quieter/quietest/ruhig/ruhiger/ruhigst/ruhig", kPeople | kAnimal | kBuilding},
  };
  return entries;
}

const std::vector<WordEntry>& mood_entries() {
  static const std::vector<WordEntry> entries = {
      {"tired/more tired/most tired/müde/müder/müdest/müde", 0},
      {"ill/iller/illest/krank/kränker/kränkst/krank", 0},
      {"hungry/hungrier/hungriest/hungrig/hungriger/hungrigst/hungrig", 0},
      {"thirsty/thirstier/thirstiest/durstig/durstiger/durstigst/durstig", 0},
      {"happy/happier/happiest/glücklich/glücklicher/glücklichst/glücklich", 0},
      {"sad/sadder/saddest/traurig/trauriger/traurigst/traurig", 0},
      {"angry/angrier/angriest/wütend/wütender/wütendst/wütend", 0},
      {"healthy/healthier/healthiest/gesund/gesünder/gesündest/gesund", 0},
      {"satisfied/more satisfied/most satisfied/zufrieden/zufriedener/zufriedenst/zufrieden", 0},
      {"nervous/more nervous/most nervous/nervös/nervöser/nervösest/nervös", 0},
      {"curious/more curious/most curious/neugierig/neugieriger/neugierigst/neugierig", 0},
      {"busy/busier/busiest/beschäftigt/beschäftigter/beschäftigtest/beschäftigt", 0},
      {"ready/readier/readiest/fertig/fertiger/fertigst/fertig", 0},
      {"alone/more alone/most alone/allein/alleiner/alleinst/allein", 0},
  };
  return entries;
}

std::vector<Adjective> read_adjectives(const std::vector<WordEntry>& entries) {
  std::vector<Adjective> list;
  for (const WordEntry& entry : entries) {
    const auto f = fields_of(entry.line);
    list.push_back({f[0], f[3], f[6], f[1], f[4], f[2], f[5], entry.kinds});
  }
  return list;
}

std::vector<Pair> read_pairs(const std::vector<const char*>& lines) {
  std::vector<Pair> list;
  for (const char* line : lines) {
    const auto f = fields_of(line);
    list.push_back({f[0], f[1]});
  }
  return list;
}

}  // namespace

const std::vector<Adjective>& adjectives() {
  static const auto list = read_adjectives(adjective_entries());
  return list;
}

const std::vector<Adjective>& moods() {
  static const auto list = read_adjectives(mood_entries());
  return list;
}

const std::vector<Pair>& first_names() {
  static const auto list =
      read_pairs({"Anna/sie", "Peter/er", "Maria/sie", "Thomas/er", "Julia/sie", "Paul/er",
                  "Laura/sie", "Felix/er", "Sophie/sie", "Lukas/er", "Emma/sie", "Max/er"});
  return list;
}

const std::vector<Pair>& surnames() {
  static const auto list = read_pairs({"Weber/Weber", "Fischer/Fischer", "Schmidt/Schmidt",
                                       "Wagner/Wagner", "Becker/Becker", "Hoffmann/Hoffmann"});
  return list;
}

const std::vector<Pair>& cities() {
  static const auto list = read_pairs({"Berlin/Berlin", "Munich/München", "Vienna/Wien",
                                       "Cologne/Köln", "Hamburg/Hamburg", "Zurich/Zürich",
                                       "Prague/Prag", "Rome/Rom", "Paris/Paris", "London/London"});
  return list;
}

const std::vector<Pair>& past_times() {
  static const auto list = read_pairs(
      {"yesterday/gestern", "last week/letzte Woche", "last year/letztes Jahr",
       "last month/letzten Monat", "two days ago/vor zwei Tagen", "three weeks ago/vor drei Wochen",
       "yesterday evening/gestern Abend", "a month ago/vor einem Monat",
       "an hour ago/vor einer Stunde", "the day before yesterday/vorgestern",
       "a year ago/vor einem Jahr", "last night/letzte Nacht", "last summer/letzten Sommer"});
  return list;
}

const std::vector<Pair>& present_times() {
  static const auto list = read_pairs({"now/jetzt", "today/heute", "at the moment/im Moment"});
  return list;
}

const std::vector<Pair>& future_times() {
  static const auto list =
      read_pairs({"tomorrow/morgen", "next week/nächste Woche", "next year/nächstes Jahr",
                  "next month/nächsten Monat", "in two hours/in zwei Stunden",
                  "in three days/in drei Tagen", "tomorrow evening/morgen Abend",
                  "tomorrow morning/morgen früh", "soon/bald", "the day after tomorrow/übermorgen",
                  "this evening/heute Abend", "in an hour/in einer Stunde",
                  "in a week/in einer Woche", "at the weekend/am Wochenende", "later/später"});
  return list;
}

const std::vector<Pair>& habit_times() {
  static const auto list = read_pairs(
      {"every day/jeden Tag", "every week/jede Woche", "every year/jedes Jahr",
       "in the evening/am Abend", "in the morning/am Morgen", "in summer/im Sommer",
       "in winter/im Winter", "twice a week/zweimal in der Woche", "every evening/jeden Abend",
       "once a month/einmal im Monat", "at night/in der Nacht", "in the afternoon/am Nachmittag"});
  return list;
}

const std::vector<Pair>& habit_adverbs() {
  static const auto list =
      read_pairs({"often/oft", "always/immer", "never/nie", "sometimes/manchmal",
                  "usually/normalerweise", "rarely/selten"});
  return list;
}

const std::vector<Pair>& weekdays() {
  static const auto list =
      read_pairs({"Monday/Montag", "Tuesday/Dienstag", "Wednesday/Mittwoch", "Thursday/Donnerstag",
                  "Friday/Freitag", "Saturday/Samstag", "Sunday/Sonntag"});
  return list;
}

const std::vector<Pair>& months() {
  static const auto list =
      read_pairs({"January/Januar", "February/Februar", "March/März", "April/April", "May/Mai",
                  "June/Juni", "July/Juli", "August/August", "September/September",
                  "October/Oktober", "November/November", "December/Dezember"});
  return list;
}

}  // namespace heddle::phrasebook
