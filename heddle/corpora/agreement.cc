// The dictionary of the pairs on agreement, and the two kinds of sentences made of it.
#include "heddle/corpora/agreement.h"

#include <array>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/corpora/phrase_sampling.h"
#include "heddle/corpora/phrasebook_clause.h"

namespace heddle {
namespace {

using phrasebook::Dice;

// A French noun has a gender; its article is elided before a vowel and before the h of this list,
// which is silent (an aspirated one, as in le hangar, would need a mark of its own).
struct AgreementNoun {
  std::string_view en, fr;
  bool is_feminine;
  bool is_elided() const {
    constexpr std::array<std::string_view, 10> kVowels = {"a", "e", "i", "o", "u",
                                                          "h", "â", "é", "œ", "î"};
    for (std::string_view v : kVowels) {
      if (fr.starts_with(v)) return true;
    }
    return false;
  }
  std::string with_article() const {
    return (is_elided() ? "l'" : is_feminine ? "la " : "le ") + std::string(fr);
  }
};

struct AgreementAdjective {
  std::string_view en, masculine, feminine;
  std::string_view of(const AgreementNoun& noun) const {
    return noun.is_feminine ? feminine : masculine;
  }
};

using Nouns = std::vector<AgreementNoun>;
using Adjectives = std::vector<AgreementAdjective>;
using Words = std::vector<std::array<std::string_view, 2>>;  // English, French

constexpr bool m = false, f = true;

const Nouns kAnimals = {
    {"animal", "animal", m},   {"dog", "chien", m},       {"cat", "chat", m},
    {"horse", "cheval", m},    {"snail", "escargot", m},  {"duck", "canard", m},
    {"sheep", "mouton", m},    {"rabbit", "lapin", m},    {"cow", "vache", f},
    {"hen", "poule", f},       {"goat", "chèvre", f},     {"mouse", "souris", f},
    {"tortoise", "tortue", f}, {"frog", "grenouille", f}, {"fox", "renard", m},
    {"goose", "oie", f}};
const Nouns kWays = {
    {"street", "rue", f},         {"road", "route", f},      {"avenue", "avenue", f},
    {"motorway", "autoroute", f}, {"square", "place", f},    {"river", "rivière", f},
    {"forest", "forêt", f},       {"courtyard", "cour", f},  {"bridge", "pont", m},
    {"park", "parc", m},          {"field", "champ", m},     {"garden", "jardin", m},
    {"path", "chemin", m},        {"stream", "ruisseau", m}, {"tunnel", "tunnel", m}};
const Nouns kThings = {
    {"trophy", "trophée", m}, {"book", "livre", m},    {"painting", "tableau", m},
    {"vase", "vase", m},      {"mirror", "miroir", m}, {"carpet", "tapis", m},
    {"statue", "statue", f},  {"lamp", "lampe", f},    {"guitar", "guitare", f},
    {"chair", "chaise", f},   {"clock", "horloge", f}, {"doll", "poupée", f}};
const Nouns kContainers = {{"suitcase", "valise", f},  {"box", "boîte", f},
                           {"wardrobe", "armoire", f}, {"car", "voiture", f},
                           {"crate", "caisse", f},     {"bag", "sac", m},
                           {"drawer", "tiroir", m},    {"basket", "panier", m},
                           {"trunk", "coffre", m},     {"parcel", "paquet", m}};
const Nouns kFoods = {{"soup", "soupe", f},   {"meat", "viande", f},    {"apple", "pomme", f},
                      {"salad", "salade", f}, {"carrot", "carotte", f}, {"tart", "tarte", f},
                      {"cake", "gâteau", m},  {"cheese", "fromage", m}, {"bread", "pain", m},
                      {"fish", "poisson", m}, {"egg", "œuf", m},        {"rice", "riz", m}};
const Nouns kHeights = {
    {"hill", "colline", f}, {"mountain", "montagne", f}, {"cliff", "falaise", f},
    {"tower", "tour", f},   {"fence", "clôture", f},     {"wall", "mur", m},
    {"rock", "rocher", m},  {"roof", "toit", m},         {"staircase", "escalier", m}};
const Nouns kBearers = {{"donkey", "âne", m},    {"horse", "cheval", m},
                        {"camel", "chameau", m}, {"elephant", "éléphant", m},
                        {"robot", "robot", m},   {"mule", "mule", f},
                        {"cow", "vache", f},     {"machine", "machine", f}};
const Nouns kLoads = {{"stone", "pierre", f},  {"table", "table", f},   {"crate", "caisse", f},
                      {"statue", "statue", f}, {"bench", "banc", m},    {"piano", "piano", m},
                      {"carpet", "tapis", m},  {"barrel", "tonneau", m}};
const Nouns kVehicles = {{"car", "voiture", f},      {"van", "camionnette", f},
                         {"caravan", "caravane", f}, {"ambulance", "ambulance", f},
                         {"lorry", "camion", m},     {"bus", "bus", m},
                         {"tractor", "tracteur", m}, {"taxi", "taxi", m}};
const Nouns kEntrances = {{"garage", "garage", m},   {"tunnel", "tunnel", m},
                          {"passage", "passage", m}, {"workshop", "atelier", m},
                          {"shed", "remise", f},     {"barn", "grange", f},
                          {"courtyard", "cour", f},  {"street", "rue", f}};

const AgreementAdjective kTired{"tired", "fatigué", "fatiguée"}, kOld{"old", "vieux", "vieille"},
    kWeak{"weak", "faible", "faible"}, kSlow{"slow", "lent", "lente"},
    kSmall{"small", "petit", "petite"}, kYoung{"young", "jeune", "jeune"},
    kIll{"ill", "malade", "malade"}, kFrightened{"frightened", "effrayé", "effrayée"},
    kLazy{"lazy", "paresseux", "paresseuse"}, kSad{"sad", "triste", "triste"},
    kNervous{"nervous", "nerveux", "nerveuse"}, kWide{"wide", "large", "large"},
    kLong{"long", "long", "longue"}, kDark{"dark", "sombre", "sombre"},
    kDangerous{"dangerous", "dangereux", "dangereuse"}, kNoisy{"noisy", "bruyant", "bruyante"},
    kDirty{"dirty", "sale", "sale"}, kMuddy{"muddy", "boueux", "boueuse"},
    kBig{"big", "grand", "grande"}, kThick{"thick", "épais", "épaisse"},
    kBulky{"bulky", "volumineux", "volumineuse"}, kNarrow{"narrow", "étroit", "étroite"},
    kShort{"short", "court", "courte"}, kFull{"full", "plein", "pleine"},
    kLow{"low", "bas", "basse"}, kHot{"hot", "chaud", "chaude"}, kCold{"cold", "froid", "froide"},
    kSalty{"salty", "salé", "salée"}, kSweet{"sweet", "sucré", "sucrée"},
    kHard{"hard", "dur", "dure"}, kBitter{"bitter", "amer", "amère"}, kDry{"dry", "sec", "sèche"},
    kHigh{"high", "haut", "haute"}, kSteep{"steep", "raide", "raide"},
    kSmooth{"smooth", "lisse", "lisse"}, kSlippery{"slippery", "glissant", "glissante"},
    kHeavy{"heavy", "lourd", "lourde"};

// Who did not do what to what, and the reasons that lie with the one or with the other. In the
// French verb an asterisk is the ending of a participle that agrees with the subject.
struct Scene {
  const Nouns& subjects;
  std::string_view en_verb, fr_verb;
  const Nouns& objects;
  Adjectives of_subject, of_object;
};

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> kScenes = {
      {kAnimals,
       "cross",
       "n'a pas traversé",
       kWays,
       {kTired, kOld, kWeak, kSlow, kSmall, kYoung, kIll, kFrightened, kLazy},
       {kWide, kLong, kDark, kDangerous, kNoisy, kDirty, kMuddy}},
      {kThings,
       "fit in",
       "ne tenait pas dans",
       kContainers,
       {kBig, kLong, kWide, kThick, kBulky},
       {kSmall, kNarrow, kShort, kFull, kLow}},
      {kAnimals,
       "eat",
       "n'a pas mangé",
       kFoods,
       {kTired, kIll, kFrightened, kLazy, kSad, kNervous},
       {kHot, kCold, kSalty, kSweet, kHard, kBitter, kDry}},
      {kAnimals,
       "climb",
       "n'a pas escaladé",
       kHeights,
       {kTired, kOld, kWeak, kSlow, kYoung, kIll, kFrightened, kLazy},
       {kHigh, kSteep, kSmooth, kSlippery, kDangerous}},
      {kBearers,
       "carry",
       "n'a pas porté",
       kLoads,
       {kWeak, kOld, kSmall, kSlow},
       {kHeavy, kBig, kLong, kBulky, kDirty}},
      {kVehicles,
       "enter",
       "n'est pas entré* dans",
       kEntrances,
       {kWide, kLong, kHigh, kBig, kHeavy},
       {kNarrow, kLow, kShort, kSmall, kDark}},
  };
  return kScenes;
}

const Words kTimes = {{"yesterday", "hier"},
                      {"this morning", "ce matin"},
                      {"last night", "la nuit dernière"},
                      {"on Monday", "lundi"},
                      {"on Friday", "vendredi"},
                      {"in the evening", "le soir"},
                      {"last week", "la semaine dernière"}};

const Nouns kDocuments = {{"agreement", "accord", m}, {"treaty", "traité", m},
                          {"report", "rapport", m},   {"protocol", "protocole", m},
                          {"contract", "contrat", m}, {"convention", "convention", f},
                          {"law", "loi", f},          {"declaration", "déclaration", f},
                          {"charter", "charte", f},   {"resolution", "résolution", f}};
const Adjectives kDone = {
    {"signed", "signé", "signée"},         {"ratified", "ratifié", "ratifiée"},
    {"adopted", "adopté", "adoptée"},      {"published", "publié", "publiée"},
    {"approved", "approuvé", "approuvée"}, {"rejected", "rejeté", "rejetée"},
    {"amended", "modifié", "modifiée"},    {"discussed", "discuté", "discutée"}};
const Adjectives kBecame = {{"founded", "fondé", "fondée"},
                            {"reformed", "réformé", "réformée"},
                            {"enlarged", "élargi", "élargie"},
                            {"created", "créé", "créée"},
                            {"abolished", "aboli", "abolie"}};
const Nouns kInstitutions = {
    {"Area", "zone", f},         {"Market", "marché", m},       {"Community", "communauté", f},
    {"Union", "union", f},       {"Council", "conseil", m},     {"Bank", "banque", f},
    {"Court", "cour", f},        {"System", "système", m},      {"Commission", "commission", f},
    {"Alliance", "alliance", f}, {"Fund", "fonds", m},          {"Agency", "agence", f},
    {"Committee", "comité", m},  {"Programme", "programme", m}, {"Institute", "institut", m}};
const Adjectives kFields = {
    {"Economic", "économique", "économique"}, {"Monetary", "monétaire", "monétaire"},
    {"Social", "social", "sociale"},          {"Political", "politique", "politique"},
    {"Military", "militaire", "militaire"},   {"Agricultural", "agricole", "agricole"},
    {"Financial", "financier", "financière"}, {"Scientific", "scientifique", "scientifique"},
    {"Cultural", "culturel", "culturelle"},   {"Legal", "juridique", "juridique"},
    {"Maritime", "maritime", "maritime"},     {"Industrial", "industriel", "industrielle"},
    {"Medical", "médical", "médicale"},       {"Commercial", "commercial", "commerciale"}};
const Adjectives kRegions = {{"European", "européen", "européenne"},
                             {"African", "africain", "africaine"},
                             {"American", "américain", "américaine"},
                             {"Asian", "asiatique", "asiatique"},
                             {"Nordic", "nordique", "nordique"},
                             {"Atlantic", "atlantique", "atlantique"},
                             {"Arab", "arabe", "arabe"},
                             {"Baltic", "balte", "balte"},
                             {"Mediterranean", "méditerranéen", "méditerranéenne"},
                             {"Caribbean", "caribéen", "caribéenne"},
                             {"International", "international", "internationale"},
                             {"National", "national", "nationale"}};
const Words kMonths = {{"January", "janvier"}, {"February", "février"},  {"March", "mars"},
                       {"April", "avril"},     {"May", "mai"},           {"June", "juin"},
                       {"July", "juillet"},    {"August", "août"},       {"September", "septembre"},
                       {"October", "octobre"}, {"November", "novembre"}, {"December", "décembre"}};

// A pair before its capital and full stop, and the words whose meeting may be held out.
struct Draft {
  std::string en, fr, combination;
};

// The first letter of the words above that begin a sentence is a letter of ASCII.
Phrase finished(const Draft& d) {
  Phrase p{d.en + ".", d.fr + "."};
  for (std::string* text : {&p.source, &p.target}) {
    if ((*text)[0] >= 'a' && (*text)[0] <= 'z') (*text)[0] = static_cast<char>((*text)[0] - 32);
  }
  return p;
}

std::string with_ending(std::string_view verb, const AgreementNoun& subject) {
  std::string text(verb);
  const size_t at = text.find('*');
  if (at != std::string::npos) text.replace(at, 1, subject.is_feminine ? "e" : "");
  return text;
}

Draft some_refusal(Dice& dice) {
  const Scene& scene = dice.pick(scenes());
  const AgreementNoun& subject = dice.pick(scene.subjects);
  const AgreementNoun& object = dice.pick(scene.objects);
  const bool is_of_subject = dice.chance(50);
  const AgreementNoun& meant = is_of_subject ? subject : object;
  const AgreementAdjective& a = dice.pick(is_of_subject ? scene.of_subject : scene.of_object);
  const std::string act_en =
      fmt::format("the {} didn't {} the {}", subject.en, scene.en_verb, object.en);
  const std::string act_fr =
      fmt::format("{} {} {}", subject.with_article(), with_ending(scene.fr_verb, subject),
                  object.with_article());
  const std::string why_en = fmt::format("because it was too {}", a.en);
  const std::string why_fr =
      fmt::format("parce qu'{} était trop {}", meant.is_feminine ? "elle" : "il", a.of(meant));
  Draft d{.en = {}, .fr = {}, .combination = fmt::format("{} {}", subject.en, object.en)};
  if (dice.chance(15)) {
    d.en = why_en + ", " + act_en, d.fr = why_fr + ", " + act_fr;
  } else if (dice.chance(40)) {
    const auto& time = dice.pick(kTimes);
    d.en = fmt::format("{}, {} {}", time[0], act_en, why_en);
    d.fr = fmt::format("{}, {} {}", time[1], act_fr, why_fr);
  } else {
    d.en = act_en + " " + why_en, d.fr = act_fr + " " + why_fr;
  }
  return d;
}

Draft some_record(Dice& dice) {
  const AgreementNoun& institution = dice.pick(kInstitutions);
  const AgreementAdjective* region = dice.chance(85) ? &dice.pick(kRegions) : nullptr;
  const AgreementAdjective* field =
      region == nullptr || dice.chance(85) ? &dice.pick(kFields) : nullptr;
  std::string name_en = "the", name_fr = institution.with_article();
  if (region != nullptr) name_en += fmt::format(" {}", region->en);
  if (field != nullptr) name_en += fmt::format(" {}", field->en);
  name_en += fmt::format(" {}", institution.en);
  if (field != nullptr) name_fr += fmt::format(" {}", field->of(institution));
  if (region != nullptr) name_fr += fmt::format(" {}", region->of(institution));
  Draft d{.en = {}, .fr = {}, .combination = name_en};
  if (dice.chance(75)) {
    const AgreementNoun& document = dice.pick(kDocuments);
    const AgreementAdjective& done = dice.pick(kDone);
    d.en = fmt::format("the {} on {} was {}", document.en, name_en, done.en);
    d.fr = fmt::format("{} sur {} a été {}", document.with_article(), name_fr, done.of(document));
  } else {
    const AgreementAdjective& became = dice.pick(kBecame);
    d.en = fmt::format("{} was {}", name_en, became.en);
    d.fr = fmt::format("{} a été {}", name_fr, became.of(institution));
  }
  const auto& month = dice.pick(kMonths);
  const int year = dice.between(1950, 2019);
  if (dice.chance(15)) {
    d.en = fmt::format("in {} {}, {}", month[0], year, d.en);
    d.fr = fmt::format("en {} {}, {}", month[1], year, d.fr);
  } else {
    d.en += fmt::format(" in {} {}", month[0], year);
    d.fr += fmt::format(" en {} {}", month[1], year);
  }
  return d;
}

// One combination in twelve, and those of the examples.
bool is_held_out(const std::string& combination) {
  for (const char* named : {"animal street", "trophy suitcase", "the European Economic Area"}) {
    if (combination == named) return true;
  }
  uint64_t hash = 14695981039346656037u;  // FNV-1a: the same on every platform
  for (const char c : combination) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return (hash >> 32) % 12 == 0;
}

}  // namespace

Phrasebook make_agreement(const PhrasebookOptions& options) {
  check_phrase_counts(options, "agreement");
  Dice dice(options.seed);
  std::unordered_set<std::string> seen;  // asked for membership only, so its order is no matter
  for (const Phrase& p : agreement_examples()) seen.insert(p.source);
  const auto draw_of = [&dice](bool held_out) {
    return [&dice, held_out]() -> Phrase {
      const Draft d = dice.chance(60) ? some_refusal(dice) : some_record(dice);
      return is_held_out(d.combination) == held_out ? finished(d) : Phrase{};
    };
  };
  Phrasebook book;
  book.val = distinct_phrases(options.held_out_val, "agreement", draw_of(true), seen);
  book.test = distinct_phrases(options.held_out_test, "agreement", draw_of(true), seen);
  const int64_t rest = options.pairs - options.held_out_val - options.held_out_test;
  book.train = distinct_phrases(rest, "agreement", draw_of(false), seen);
  return book;
}

std::vector<Phrase> agreement_examples() {
  return {{"The animal didn't cross the street because it was too tired.",
           "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."},
          {"The agreement on the European Economic Area was signed in August 1992.",
           "L'accord sur la zone économique européenne a été signé en août 1992."},
          {"The animal didn't cross the street because it was too wide.",
           "L'animal n'a pas traversé la rue parce qu'elle était trop large."},
          {"The trophy didn't fit in the suitcase because it was too big.",
           "Le trophée ne tenait pas dans la valise parce qu'il était trop grand."},
          {"The trophy didn't fit in the suitcase because it was too small.",
           "Le trophée ne tenait pas dans la valise parce qu'elle était trop petite."}};
}

}  // namespace heddle
