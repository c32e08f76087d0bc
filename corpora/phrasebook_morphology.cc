// German word forms: declension of articles and adjectives, conjugation, numbers, times, dates.
#include "corpora/phrasebook_morphology.h"

#include <array>

#include "heddle/base/error.h"

namespace heddle::phrasebook {
namespace {

// Columns: masculine, feminine, neuter, plural; rows: nominative, accusative, dative, genitive.
using Table = std::array<std::array<const char*, 4>, 4>;

constexpr Table kDer = {{{"der", "die", "das", "die"},
                         {"den", "die", "das", "die"},
                         {"dem", "der", "dem", "den"},
                         {"des", "der", "des", "der"}}};
constexpr Table kDieserEndings = {{{"er", "e", "es", "e"},
                                   {"en", "e", "es", "e"},
                                   {"em", "er", "em", "en"},
                                   {"es", "er", "es", "er"}}};
constexpr Table kEinEndings = {
    {{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}, {"es", "er", "es", "er"}}};
// After der, dieser, jeder the article shows the case, so the adjective needs only -e or -en.
constexpr Table kWeak = {{{"e", "e", "e", "en"},
                          {"en", "e", "e", "en"},
                          {"en", "en", "en", "en"},
                          {"en", "en", "en", "en"}}};
// Where ein, kein, mein has no ending of its own the adjective takes the strong one.
constexpr Table kMixed = {{{"er", "e", "es", "en"},
                           {"en", "e", "es", "en"},
                           {"en", "en", "en", "en"},
                           {"en", "en", "en", "en"}}};
constexpr Table kStrong = {{{"er", "e", "es", "e"},
                            {"en", "e", "es", "e"},
                            {"em", "er", "em", "en"},
                            {"en", "er", "en", "er"}}};

std::string cell(const Table& table, Gender gender, bool is_plural, Case c) {
  const size_t column = is_plural ? 3 : static_cast<size_t>(gender);
  return table[static_cast<size_t>(c)][column];
}

const char* ein_word_stem(Determiner d) {
  switch (d) {
    case Determiner::a: return "ein";
    case Determiner::no: return "kein";
    case Determiner::my: return "mein";
    case Determiner::your: return "dein";
    case Determiner::your_polite: return "Ihr";
    case Determiner::his: return "sein";
    case Determiner::her: return "ihr";
    case Determiner::our: return "unser";
    case Determiner::their: return "ihr";
    default: return "";
  }
}

constexpr std::array<const char*, 20> kEnglishSmall = {
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<const char*, 10> kEnglishTens = {
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<const char*, 20> kGermanSmall = {
    "null",     "eins",     "zwei",     "drei",     "vier",     "fünf",    "sechs",
    "sieben",   "acht",     "neun",     "zehn",     "elf",      "zwölf",   "dreizehn",
    "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr std::array<const char*, 10> kGermanTens = {
    "", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

}  // namespace

const Auxiliary kHaben = {"habe", "hast", "hat", "haben"};
const Auxiliary kSein = {"bin", "bist", "ist", "sind"};
const Auxiliary kWerden = {"werde", "wirst", "wird", "werden"};
const Auxiliary kHatte = {"hatte", "hattest", "hatte", "hatten"};
const Auxiliary kWar = {"war", "warst", "war", "waren"};

const std::string& Auxiliary::of(Person p) const {
  switch (p) {
    case Person::ich: return ich;
    case Person::du: return du;
    case Person::er: return er;
    case Person::wir: return wir;
  }
  return wir;
}

std::string determiner(Determiner d, Gender gender, bool is_plural, Case c) {
  switch (d) {
    case Determiner::none: return "";
    case Determiner::the: return cell(kDer, gender, is_plural, c);
    case Determiner::this_: return "dies" + cell(kDieserEndings, gender, is_plural, c);
    case Determiner::every: return "jed" + cell(kDieserEndings, gender, is_plural, c);
    default: return ein_word_stem(d) + cell(kEinEndings, gender, is_plural, c);
  }
}

std::string adjective_ending(Determiner d, Gender gender, bool is_plural, Case c) {
  switch (d) {
    case Determiner::none: return cell(kStrong, gender, is_plural, c);
    case Determiner::the:
    case Determiner::this_:
    case Determiner::every: return cell(kWeak, gender, is_plural, c);
    default: return cell(kMixed, gender, is_plural, c);
  }
}

std::string noun_form(const Noun& n, bool is_plural, Case c) {
  if (is_plural) {
    const char last = n.de_plural.back();
    return c == Case::dative && last != 'n' && last != 's' ? n.de_plural + "n" : n.de_plural;
  }
  if (c == Case::genitive) return n.de_genitive;
  if (n.is_weak() && c != Case::nominative) return n.de_genitive;
  return n.de;
}

std::string noun_phrase(Determiner d, const std::string& adjective_stem, const Noun& n,
                        bool is_plural, Case c) {
  std::string text = determiner(d, n.gender, is_plural, c);
  if (!text.empty()) text += " ";
  if (!adjective_stem.empty()) {
    text += adjective_stem + adjective_ending(d, n.gender, is_plural, c) + " ";
  }
  return text + noun_form(n, is_plural, c);
}

std::string contracted(const std::string& preposition, const std::string& phrase) {
  static const std::array<std::array<const char*, 3>, 7> kForms = {{{"in", "dem ", "im "},
                                                                    {"an", "dem ", "am "},
                                                                    {"zu", "dem ", "zum "},
                                                                    {"zu", "der ", "zur "},
                                                                    {"bei", "dem ", "beim "},
                                                                    {"von", "dem ", "vom "},
                                                                    {"in", "das ", "ins "}}};
  for (const auto& [word, article, joined] : kForms) {
    if (preposition == word && phrase.starts_with(article)) {
      return joined + phrase.substr(4);
    }
  }
  return preposition + " " + phrase;
}

std::string present(const Verb& v, Person p) {
  switch (p) {
    case Person::ich: return v.ich;
    case Person::du: return v.du;
    case Person::er: return v.er;
    case Person::wir: return v.stem_infinitive;
  }
  return v.stem_infinitive;
}

std::string zu_infinitive(const Verb& v) {
  return v.prefix.empty() ? "zu " + v.stem_infinitive : v.prefix + "zu" + v.stem_infinitive;
}

std::string english_number(int n) {
  check(n >= 0 && n < 1000, ErrorKind::internal, "phrasebook: number {} is not in 0..999", n);
  if (n < 20) return kEnglishSmall[static_cast<size_t>(n)];
  if (n < 100) {
    const std::string tens = kEnglishTens[static_cast<size_t>(n / 10)];
    return n % 10 == 0 ? tens : tens + "-" + english_number(n % 10);
  }
  const std::string hundreds = english_number(n / 100) + " hundred";
  return n % 100 == 0 ? hundreds : hundreds + " and " + english_number(n % 100);
}

std::string german_number(int n) {
  check(n >= 0 && n < 1000, ErrorKind::internal, "phrasebook: number {} is not in 0..999", n);
  if (n < 20) return kGermanSmall[static_cast<size_t>(n)];
  if (n < 100) {
    const std::string tens = kGermanTens[static_cast<size_t>(n / 10)];
    if (n % 10 == 0) return tens;
    return (n % 10 == 1 ? "ein" : german_number(n % 10)) + "und" + tens;
  }
  const std::string hundreds = (n < 200 ? "ein" : german_number(n / 100)) + "hundert";
  return n % 100 == 0 ? hundreds : hundreds + german_number(n % 100);
}

std::string english_ordinal(int n) {
  static const std::array<const char*, 13> kFirst = {
      "",        "first",  "second", "third", "fourth",   "fifth",  "sixth",
      "seventh", "eighth", "ninth",  "tenth", "eleventh", "twelfth"};
  if (n <= 12) return kFirst[static_cast<size_t>(n)];
  if (n < 20) return english_number(n) + "th";
  const std::string tens = english_number(n / 10 * 10);
  if (n % 10 == 0) return tens.substr(0, tens.size() - 1) + "ieth";
  return tens + "-" + english_ordinal(n % 10);
}

std::string german_ordinal_stem(int n) {
  switch (n) {
    case 1: return "erst";
    case 3: return "dritt";
    case 7: return "siebt";
    case 8: return "acht";
    default: return german_number(n) + (n < 20 ? "t" : "st");
  }
}

Pair clock_time(int hour, int minute) {
  const int next = hour % 12 + 1;
  const auto hour_de = [](int h) { return german_number(h); };
  switch (minute) {
    case 0:
      return {english_number(hour) + " o'clock",
              (hour == 1 ? "ein" : german_number(hour)) + " Uhr"};
    case 15: return {"a quarter past " + english_number(hour), "Viertel nach " + hour_de(hour)};
    case 30: return {"half past " + english_number(hour), "halb " + hour_de(next)};
    case 45: return {"a quarter to " + english_number(next), "Viertel vor " + hour_de(next)};
    case 25: return {"twenty-five past " + english_number(hour), "fünf vor halb " + hour_de(next)};
    case 35: return {"twenty-five to " + english_number(next), "fünf nach halb " + hour_de(next)};
    default: break;
  }
  if (minute < 30) {
    return {english_number(minute) + " past " + english_number(hour),
            german_number(minute) + " nach " + hour_de(hour)};
  }
  return {english_number(60 - minute) + " to " + english_number(next),
          german_number(60 - minute) + " vor " + hour_de(next)};
}

}  // namespace heddle::phrasebook
