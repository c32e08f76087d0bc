// The phrasebook: its grammar point by point, and what the sampling promises.
#include "corpora/phrasebook.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "corpora/phrasebook_patterns.h"
#include "heddle/base/error.h"

namespace heddle::phrasebook {
namespace {

// The four cases of a phrase, joined by " | ".
std::string four_cases(Determiner d, const std::string& adjective, const std::string& english_noun,
                       bool is_plural = false) {
  std::string text;
  for (Case c : {Case::nominative, Case::accusative, Case::dative, Case::genitive}) {
    if (!text.empty()) text += " | ";
    text += noun_phrase(d, adjective, noun(english_noun), is_plural, c);
  }
  return text;
}

TEST(PhrasebookDeclension, weak_after_der) {
  EXPECT_EQ(four_cases(Determiner::the, "neu", "table"),
            "der neue Tisch | den neuen Tisch | dem neuen Tisch | des neuen Tisches");
  EXPECT_EQ(four_cases(Determiner::the, "neu", "lamp"),
            "die neue Lampe | die neue Lampe | der neuen Lampe | der neuen Lampe");
  EXPECT_EQ(four_cases(Determiner::the, "neu", "book"),
            "das neue Buch | das neue Buch | dem neuen Buch | des neuen Buches");
  EXPECT_EQ(four_cases(Determiner::the, "neu", "book", true),
            "die neuen Bücher | die neuen Bücher | den neuen Büchern | der neuen Bücher");
}

TEST(PhrasebookDeclension, dieser_and_jeder_decline_like_der) {
  EXPECT_EQ(
      four_cases(Determiner::this_, "alt", "coat"),
      "dieser alte Mantel | diesen alten Mantel | diesem alten Mantel | dieses alten Mantels");
  EXPECT_EQ(four_cases(Determiner::every, "alt", "shirt"),
            "jedes alte Hemd | jedes alte Hemd | jedem alten Hemd | jedes alten Hemdes");
}

TEST(PhrasebookDeclension, mixed_after_ein) {
  EXPECT_EQ(four_cases(Determiner::a, "teur", "coat"),
            "ein teurer Mantel | einen teuren Mantel | einem teuren Mantel | eines teuren Mantels");
  EXPECT_EQ(four_cases(Determiner::a, "teur", "bag"),
            "eine teure Tasche | eine teure Tasche | einer teuren Tasche | einer teuren Tasche");
  EXPECT_EQ(four_cases(Determiner::a, "teur", "car"),
            "ein teures Auto | ein teures Auto | einem teuren Auto | eines teuren Autos");
}

TEST(PhrasebookDeclension, mixed_after_kein_and_mein_with_plural) {
  EXPECT_EQ(four_cases(Determiner::no, "gut", "letter", true),
            "keine guten Briefe | keine guten Briefe | keinen guten Briefen | keiner guten Briefe");
  EXPECT_EQ(four_cases(Determiner::my, "klein", "daughter"),
            "meine kleine Tochter | meine kleine Tochter | meiner kleinen Tochter | "
            "meiner kleinen Tochter");
  EXPECT_EQ(four_cases(Determiner::our, "alt", "house"),
            "unser altes Haus | unser altes Haus | unserem alten Haus | unseres alten Hauses");
  EXPECT_EQ(four_cases(Determiner::your_polite, "alt", "cupboard"),
            "Ihr alter Schrank | Ihren alten Schrank | Ihrem alten Schrank | Ihres alten Schranks");
}

TEST(PhrasebookDeclension, strong_without_an_article) {
  EXPECT_EQ(four_cases(Determiner::none, "frisch", "bread"),
            "frisches Brot | frisches Brot | frischem Brot | frischen Brotes");
  EXPECT_EQ(four_cases(Determiner::none, "kalt", "milk"),
            "kalte Milch | kalte Milch | kalter Milch | kalter Milch");
  EXPECT_EQ(four_cases(Determiner::none, "rot", "apple", true),
            "rote Äpfel | rote Äpfel | roten Äpfeln | roter Äpfel");
}

TEST(PhrasebookDeclension, weak_masculines_take_n_outside_the_nominative) {
  EXPECT_EQ(four_cases(Determiner::the, "", "student"),
            "der Student | den Studenten | dem Studenten | des Studenten");
  EXPECT_EQ(four_cases(Determiner::my, "", "neighbour"),
            "mein Nachbar | meinen Nachbarn | meinem Nachbarn | meines Nachbarn");
}

TEST(PhrasebookDeclension, prepositions_melt_with_the_article) {
  EXPECT_EQ(contracted("in", "dem Garten"), "im Garten");
  EXPECT_EQ(contracted("in", "das Kino"), "ins Kino");
  EXPECT_EQ(contracted("zu", "der Schule"), "zur Schule");
  EXPECT_EQ(contracted("in", "die Küche"), "in die Küche");
  EXPECT_EQ(contracted("an", "diesem Tisch"), "an diesem Tisch");
}

Clause clause(const std::string& who, const std::string& verb_en, Tense tense) {
  Clause c;
  c.subject = pronoun(who);
  c.verb = &verb(verb_en);
  c.tense = tense;
  return c;
}

TEST(PhrasebookWordOrder, separable_verb_parts_in_main_and_joins_in_subordinate_clause) {
  Clause c = clause("I", "get up", Tense::present);
  c.en_time = "at seven o'clock", c.de_time = "um sieben Uhr";
  EXPECT_EQ(english_statement(c), "I get up at seven o'clock");
  EXPECT_EQ(german_statement(c), "ich stehe um sieben Uhr auf");
  EXPECT_EQ(german_question(c), "stehe ich um sieben Uhr auf");
  EXPECT_EQ(german_verb_last(c), "ich um sieben Uhr aufstehe");
  EXPECT_EQ(german_infinitive(c, true), "um sieben Uhr aufzustehen");
}

TEST(PhrasebookWordOrder, perfect_takes_haben_or_sein_and_ends_with_the_participle) {
  EXPECT_EQ(german_statement(clause("she", "arrive", Tense::past)), "sie ist angekommen");
  EXPECT_EQ(german_verb_last(clause("they", "arrive", Tense::past)), "sie angekommen sind");
  Clause c = clause("he", "read", Tense::past);
  c.de_object = "den Brief";
  EXPECT_EQ(german_statement(c), "er hat den Brief gelesen");
  EXPECT_EQ(german_verb_last(c), "er den Brief gelesen hat");
}

TEST(PhrasebookWordOrder, modal_verb_sends_the_infinitive_to_the_end) {
  Clause c = clause("we", "call", Tense::modal);
  c.modal = &modals().front();
  c.is_negated = true;
  c.en_object = "him", c.de_pronoun = "ihn", c.has_pronoun = true;
  EXPECT_EQ(english_statement(c), "we can't call him");
  EXPECT_EQ(german_statement(c), "wir können ihn nicht anrufen");
  EXPECT_EQ(german_verb_last(c), "wir ihn nicht anrufen können");
}

TEST(PhrasebookWordOrder, nicht_stands_before_a_place_and_after_an_object) {
  Clause c = clause("I", "go", Tense::future);
  c.is_negated = true;
  c.de_time = "morgen", c.de_late = "in die Schule";
  EXPECT_EQ(german_statement(c), "ich werde morgen nicht in die Schule gehen");
  Clause d = clause("I", "find", Tense::present);
  d.is_negated = true;
  d.de_object = "die Tasche";
  EXPECT_EQ(german_statement(d), "ich finde die Tasche nicht");
}

TEST(PhrasebookWordOrder, imperative_is_familiar_or_polite) {
  Clause c = clause("you", "read out", Tense::present);
  c.de_object = "den Brief";
  EXPECT_EQ(german_imperative(c, false), "lies bitte den Brief vor");
  EXPECT_EQ(german_imperative(c, true), "lesen Sie bitte den Brief vor");
}

TEST(PhrasebookWordOrder, reflexive_pronoun_follows_the_subject) {
  EXPECT_EQ(german_statement(clause("I", "rest", Tense::present)), "ich ruhe mich aus");
  EXPECT_EQ(german_verb_last(clause("we", "rest", Tense::past)), "wir uns ausgeruht haben");
  EXPECT_EQ(german_question(clause("they", "hurry", Tense::present)), "beeilen sie sich");
}

TEST(PhrasebookWordOrder, english_pronoun_goes_before_the_particle) {
  Clause c = clause("he", "give back", Tense::past);
  c.en_object = "it", c.has_pronoun = true;
  EXPECT_EQ(english_statement(c), "he gave it back");
  c.en_object = "the ring", c.has_pronoun = false;
  EXPECT_EQ(english_statement(c), "he gave back the ring");
}

TEST(PhrasebookPlaces, one_is_there_with_the_dative_and_goes_there_with_the_accusative) {
  std::map<std::string, std::string> forms;
  for (const Place& p : places()) forms[to_place_en(p)] = at_place_de(p) + " | " + to_place_de(p);
  EXPECT_EQ(forms["into the kitchen"], "in der Küche | in die Küche");
  EXPECT_EQ(forms["to the cinema"], "im Kino | ins Kino");
  EXPECT_EQ(forms["to the station"], "am Bahnhof | zum Bahnhof");
  EXPECT_EQ(forms["to the market"], "auf dem Markt | auf den Markt");
}

TEST(PhrasebookPronouns, it_takes_the_gender_of_its_noun) {
  EXPECT_EQ(third_person(noun("key").gender, false).in(Case::accusative), "ihn");
  EXPECT_EQ(third_person(noun("lamp").gender, false).in(Case::nominative), "sie");
  EXPECT_EQ(third_person(noun("book").gender, false).in(Case::nominative), "es");
  EXPECT_EQ(third_person(noun("book").gender, true).in(Case::accusative), "sie");
}

TEST(PhrasebookNumbers, tens_and_ones_are_reversed) {
  EXPECT_EQ(german_number(1), "eins");
  EXPECT_EQ(german_number(16), "sechzehn");
  EXPECT_EQ(german_number(17), "siebzehn");
  EXPECT_EQ(german_number(21), "einundzwanzig");
  EXPECT_EQ(german_number(30), "dreißig");
  EXPECT_EQ(german_number(66), "sechsundsechzig");
  EXPECT_EQ(german_number(77), "siebenundsiebzig");
  EXPECT_EQ(german_number(101), "einhunderteins");
  EXPECT_EQ(german_number(999), "neunhundertneunundneunzig");
  EXPECT_EQ(english_number(723), "seven hundred and twenty-three");
  EXPECT_EQ(german_number(723), "siebenhundertdreiundzwanzig");
}

TEST(PhrasebookNumbers, zero_to_999_are_all_different) {
  std::set<std::string> english_words, german_words;
  for (int n = 0; n < 1000; ++n) {
    english_words.insert(english_number(n));
    german_words.insert(german_number(n));
  }
  EXPECT_EQ(english_words.size(), 1000u);
  EXPECT_EQ(german_words.size(), 1000u);
  EXPECT_THROW(german_number(1000), Error);
}

TEST(PhrasebookTimes, half_counts_towards_the_next_hour) {
  EXPECT_EQ(clock_time(7, 30).de, "halb acht");
  EXPECT_EQ(clock_time(12, 30).de, "halb eins");
  EXPECT_EQ(clock_time(3, 15).de, "Viertel nach drei");
  EXPECT_EQ(clock_time(12, 45).de, "Viertel vor eins");
  EXPECT_EQ(clock_time(12, 45).en, "a quarter to one");
  EXPECT_EQ(clock_time(1, 0).de, "ein Uhr");
  EXPECT_EQ(clock_time(4, 50).de, "zehn vor fünf");
  EXPECT_EQ(clock_time(8, 25).de, "fünf vor halb neun");
  EXPECT_EQ(clock_time(8, 35).de, "fünf nach halb neun");
}

TEST(PhrasebookDates, ordinals_have_their_own_stems) {
  EXPECT_EQ(english_ordinal(3) + "/" + german_ordinal_stem(3), "third/dritt");
  EXPECT_EQ(english_ordinal(7) + "/" + german_ordinal_stem(7), "seventh/siebt");
  EXPECT_EQ(english_ordinal(8) + "/" + german_ordinal_stem(8), "eighth/acht");
  EXPECT_EQ(english_ordinal(12) + "/" + german_ordinal_stem(12), "twelfth/zwölft");
  EXPECT_EQ(english_ordinal(20) + "/" + german_ordinal_stem(20), "twentieth/zwanzigst");
  EXPECT_EQ(english_ordinal(31) + "/" + german_ordinal_stem(31), "thirty-first/einunddreißigst");
}

TEST(PhrasebookText, capital_letter_also_for_umlauts) {
  EXPECT_EQ(capitalised("übermorgen"), "Übermorgen");
  EXPECT_EQ(capitalised("öffnest"), "Öffnest");
  EXPECT_EQ(capitalised("wir"), "Wir");
}

TEST(PhrasebookLexicon, every_noun_has_an_adjective_and_every_verb_its_parts) {
  for (const auto* list : {&object_verbs(), &giving_verbs(), &plain_verbs(), &going_verbs()}) {
    for (const Verb& v : *list) {
      EXPECT_FALSE(v.participle.empty()) << v.en;
      EXPECT_TRUE(v.stem_infinitive.ends_with("n")) << v.en;
      EXPECT_TRUE(v.participle.starts_with(v.prefix)) << v.en;
      EXPECT_TRUE(v.frame == Frame::none || !nouns_of(v.objects).empty()) << v.en;
    }
  }
  for (const Noun& n : nouns()) {
    EXPECT_FALSE(n.de_genitive.empty()) << n.en;
    EXPECT_EQ(n.en_plural.empty() && !(n.kinds & kFamily), n.de_plural.empty()) << n.en;
  }
}

// The whole default phrasebook, made once.
const Phrasebook& book() {
  static const Phrasebook made = make_phrasebook({});
  return made;
}

std::vector<const std::vector<Phrase>*> parts(const Phrasebook& b) {
  return {&b.train, &b.val, &b.test};
}

TEST(Phrasebook, default_has_120000_pairs_in_three_parts) {
  EXPECT_EQ(book().train.size(), 118000u);
  EXPECT_EQ(book().val.size(), 1000u);
  EXPECT_EQ(book().test.size(), 1000u);
}

TEST(Phrasebook, no_source_occurs_twice_in_or_across_the_parts) {
  std::set<std::string> sources;
  for (const auto* part : parts(book())) {
    for (const Phrase& p : *part) {
      EXPECT_TRUE(sources.insert(p.source).second) << "twice: " << p.source;
    }
  }
}

TEST(Phrasebook, same_source_always_has_the_same_target) {
  // 200,000 throws with repetition: a sentence that comes again must be translated alike.
  std::map<std::string, std::string> targets;
  Dice dice(7);
  int again = 0;
  for (int i = 0; i < 200000; ++i) {
    Phrase p = some_phrase(dice);
    const auto [entry, is_new] = targets.emplace(p.source, p.target);
    again += !is_new;
    EXPECT_EQ(entry->second, p.target) << p.source;
  }
  EXPECT_GT(again, 1000);
}

TEST(Phrasebook, sentences_have_3_to_18_words_and_clean_text) {
  for (const Phrase& p : book().train) {
    std::istringstream words(p.source);
    const auto count = std::distance(std::istream_iterator<std::string>(words), {});
    EXPECT_TRUE(count >= 3 && count <= 18) << p.source;
    for (const std::string& text : {p.source, p.target}) {
      EXPECT_EQ(text.find("  "), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_TRUE(text.back() == '.' || text.back() == '?') << text;
      EXPECT_EQ(text.find(" ,"), std::string::npos) << text;
    }
  }
}

TEST(Phrasebook, same_seed_gives_the_same_pairs_and_another_seed_others) {
  const PhrasebookOptions options{
      .pairs = 3000, .held_out_val = 10, .held_out_test = 20, .seed = 5};
  const Phrasebook one = make_phrasebook(options), two = make_phrasebook(options);
  for (size_t i = 0; i < 3; ++i) {
    const auto &x = *parts(one)[i], &y = *parts(two)[i];
    ASSERT_EQ(x.size(), y.size());
    for (size_t j = 0; j < x.size(); ++j) {
      EXPECT_EQ(x[j].source, y[j].source);
      EXPECT_EQ(x[j].target, y[j].target);
    }
  }
  PhrasebookOptions other = options;
  other.seed = 6;
  EXPECT_NE(make_phrasebook(other).train[0].source, one.train[0].source);
}

TEST(Phrasebook, demo_sentences_are_held_out_and_made_of_trained_words) {
  std::set<std::string> sources, words;
  for (const auto* part : parts(book())) {
    for (const Phrase& p : *part) {
      sources.insert(p.source);
      for (const std::string& text : {p.source, p.target}) {
        std::istringstream in(text);
        for (std::string word; in >> word;) words.insert(word);
      }
    }
  }
  ASSERT_EQ(demo_sentences().size(), 5u);
  for (const Phrase& p : demo_sentences()) {
    EXPECT_FALSE(sources.contains(p.source)) << p.source;
    std::istringstream in(p.source + " " + p.target);
    for (std::string word; in >> word;) EXPECT_TRUE(words.contains(word)) << word;
  }
}

TEST(Phrasebook, impossible_counts_are_usage_errors) {
  EXPECT_THROW(make_phrasebook({.pairs = 2000}), Error);
  EXPECT_THROW(make_phrasebook({.pairs = 10, .held_out_val = -1, .held_out_test = 0}), Error);
}

}  // namespace
}  // namespace heddle::phrasebook
