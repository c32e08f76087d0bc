// The dictionary of the pairs on agreement, and the two kinds of sentences made of it.
#include "corpora/agreement.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "corpora/lexicon.h"
#include "corpora/phrase_sampling.h"
#include "corpora/phrasebook_clause.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

using phrasebook::Dice;

// A French noun has a gender; its article is elided before a vowel and before the h of this list,
// which is silent (an aspirated one, as in le hangar, would need a mark of its own).
struct AgreementNoun {
  std::string en, fr;
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
    return (is_elided() ? "l'" : is_feminine ? "la " : "le ") + fr;
  }
};

struct AgreementAdjective {
  std::string en, masculine, feminine;
  const std::string& of(const AgreementNoun& noun) const {
    return noun.is_feminine ? feminine : masculine;
  }
};

using Nouns = std::vector<AgreementNoun>;
using Adjectives = std::vector<AgreementAdjective>;
using Words = std::vector<std::array<std::string, 2>>;  // English, French

// Who did not do what to what, and the reasons that lie with the one or with the other. In the
// French verb an asterisk is the ending of a participle that agrees with the subject.
struct Scene {
  Nouns subjects;
  std::string en_verb, fr_verb;
  Nouns objects;
  Adjectives of_subject, of_object;
};

// lexicons/agreement.json: "street/rue/f", "tired/fatigué/fatiguée", "yesterday/hier".
const std::vector<Json>& list_of(const std::string& key) {
  return lexicon("agreement").at(key).as_array();
}

Nouns nouns_of(const std::string& key) {
  Nouns nouns;
  for (const Json& line : list_of(key)) {
    const auto f = fields_of(line.as_string(), 3);
    nouns.push_back({f[0], f[1], f[2] == "f"});
  }
  return nouns;
}

Adjectives adjectives_of(const std::string& key) {
  Adjectives adjectives;
  for (const Json& line : list_of(key)) {
    const auto f = fields_of(line.as_string(), 3);
    adjectives.push_back({f[0], f[1], f[2]});
  }
  return adjectives;
}

Words words_of(const std::string& key) {
  Words words;
  for (const Json& line : list_of(key)) {
    const auto f = fields_of(line.as_string(), 2);
    words.push_back({f[0], f[1]});
  }
  return words;
}

// The reasons that a scene names by their English words.
Adjectives reasons_of(const Json& names) {
  static const Adjectives all = adjectives_of("reasons");
  Adjectives reasons;
  for (const std::string& name : names.as_strings()) {
    reasons.push_back(*std::find_if(all.begin(), all.end(),
                                    [&](const AgreementAdjective& a) { return a.en == name; }));
  }
  return reasons;
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> list = [] {
    std::vector<Scene> all;
    for (const Json& s : list_of("scenes")) {
      all.push_back({nouns_of(s.get_string("subjects")), s.get_string("en"), s.get_string("fr"),
                     nouns_of(s.get_string("objects")), reasons_of(s.at("of_subject")),
                     reasons_of(s.at("of_object"))});
    }
    return all;
  }();
  return list;
}

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
  static const Words times = words_of("times");
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
    const auto& time = dice.pick(times);
    d.en = fmt::format("{}, {} {}", time[0], act_en, why_en);
    d.fr = fmt::format("{}, {} {}", time[1], act_fr, why_fr);
  } else {
    d.en = act_en + " " + why_en, d.fr = act_fr + " " + why_fr;
  }
  return d;
}

Draft some_record(Dice& dice) {
  static const Nouns institutions = nouns_of("institutions");
  static const Adjectives regions = adjectives_of("regions");
  static const Adjectives fields = adjectives_of("fields");
  static const Nouns documents = nouns_of("documents");
  static const Adjectives past = adjectives_of("done");
  static const Adjectives changes = adjectives_of("became");
  static const Words months = words_of("months");
  const AgreementNoun& institution = dice.pick(institutions);
  const AgreementAdjective* region = dice.chance(85) ? &dice.pick(regions) : nullptr;
  const AgreementAdjective* field =
      region == nullptr || dice.chance(85) ? &dice.pick(fields) : nullptr;
  std::string name_en = "the", name_fr = institution.with_article();
  if (region != nullptr) name_en += fmt::format(" {}", region->en);
  if (field != nullptr) name_en += fmt::format(" {}", field->en);
  name_en += fmt::format(" {}", institution.en);
  if (field != nullptr) name_fr += fmt::format(" {}", field->of(institution));
  if (region != nullptr) name_fr += fmt::format(" {}", region->of(institution));
  Draft d{.en = {}, .fr = {}, .combination = name_en};
  if (dice.chance(75)) {
    const AgreementNoun& document = dice.pick(documents);
    const AgreementAdjective& done = dice.pick(past);
    d.en = fmt::format("the {} on {} was {}", document.en, name_en, done.en);
    d.fr = fmt::format("{} sur {} a été {}", document.with_article(), name_fr, done.of(document));
  } else {
    const AgreementAdjective& became = dice.pick(changes);
    d.en = fmt::format("{} was {}", name_en, became.en);
    d.fr = fmt::format("{} a été {}", name_fr, became.of(institution));
  }
  const auto& month = dice.pick(months);
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
