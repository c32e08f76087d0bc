// The pairs on agreement: what is held out, and the grammar of every pair.
#include "corpora/agreement.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "heddle/base/error.h"

namespace heddle {
namespace {

const Phrasebook& book() {
  static const Phrasebook kBook =
      make_agreement({.pairs = 12000, .held_out_val = 300, .held_out_test = 300, .seed = 1});
  return kBook;
}

std::vector<Phrase> all_pairs() {
  std::vector<Phrase> all;
  for (const auto* part : {&book().train, &book().val, &book().test}) {
    all.insert(all.end(), part->begin(), part->end());
  }
  return all;
}

// "The animal didn't cross the street because it was too tired." in any order, or nothing.
struct Refusal {
  std::string subject, object, adjective;
};
bool read(const std::string& source, Refusal& out) {
  static const std::regex kAct("[Tt]he (\\w+) didn't [a-z ]+? the (\\w+)");
  static const std::regex kWhy("ecause it was too (\\w+)");
  std::smatch act, why;
  if (!std::regex_search(source, act, kAct) || !std::regex_search(source, why, kWhy)) return false;
  out = {act[1], act[2], why[1]};
  return true;
}

TEST(Agreement, parts_have_their_sizes_and_share_no_source) {
  EXPECT_EQ(book().train.size(), 11400u);
  EXPECT_EQ(book().val.size(), 300u);
  EXPECT_EQ(book().test.size(), 300u);
  std::set<std::string> sources;
  for (const Phrase& p : all_pairs()) sources.insert(p.source);
  EXPECT_EQ(sources.size(), 12000u);
  for (const Phrase& p : agreement_examples()) EXPECT_FALSE(sources.contains(p.source)) << p.source;
}

TEST(Agreement, the_examples_nouns_and_names_never_meet_in_training) {
  int64_t animals = 0, streets = 0, areas = 0;
  for (const Phrase& p : book().train) {
    Refusal r;
    if (read(p.source, r)) {
      EXPECT_FALSE(r.subject == "animal" && r.object == "street") << p.source;
      EXPECT_FALSE(r.subject == "trophy" && r.object == "suitcase") << p.source;
      animals += r.subject == "animal";
      streets += r.object == "street";
    }
    EXPECT_EQ(p.source.find("European Economic Area"), std::string::npos) << p.source;
    areas += p.source.find(" Area ") != std::string::npos;
  }
  // Each of them is known from others.
  EXPECT_GT(animals, 50);
  EXPECT_GT(streets, 50);
  EXPECT_GT(areas, 50);
}

TEST(Agreement, held_out_pairs_are_of_combinations_that_training_has_not) {
  std::set<std::pair<std::string, std::string>> met;
  Refusal r;
  for (const Phrase& p : book().train) {
    if (read(p.source, r)) met.emplace(r.subject, r.object);
  }
  for (const auto* part : {&book().val, &book().test}) {
    for (const Phrase& p : *part) {
      if (!read(p.source, r)) continue;
      EXPECT_FALSE(met.contains({r.subject, r.object})) << p.source;
    }
  }
}

// An adjective has one form beside il and one beside elle.
TEST(Agreement, adjectives_agree_with_their_pronoun) {
  std::map<std::string, std::set<std::string>> forms;  // an English adjective's, by il and elle
  int64_t il = 0, elle = 0;
  for (const Phrase& p : all_pairs()) {
    Refusal r;
    if (!read(p.source, r)) continue;
    static const std::regex kWhy("qu'(il|elle) était trop ([^ ,.]+)");
    std::smatch why;
    ASSERT_TRUE(std::regex_search(p.target, why, kWhy)) << p.target;
    forms[r.adjective + "/" + why[1].str()].insert(why[2]);
    (why[1] == "il" ? il : elle) += 1;
  }
  for (const auto& [key, seen] : forms) EXPECT_EQ(seen.size(), 1u) << key;
  EXPECT_GT(il, 2000);
  EXPECT_GT(elle, 2000);
  EXPECT_EQ(*forms["old/elle"].begin(), "vieille");
  EXPECT_EQ(*forms["dry/elle"].begin(), "sèche");
}

// With the same nouns another reason changes the pronoun.
TEST(Agreement, the_reason_decides_the_pronoun_between_the_same_nouns) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> pronouns;
  for (const Phrase& p : all_pairs()) {
    Refusal r;
    if (!read(p.source, r)) continue;
    pronouns[{r.subject, r.object}].insert(
        p.target.find("qu'elle était") != std::string::npos ? "elle" : "il");
  }
  int64_t both = 0;
  for (const auto& [nouns, seen] : pronouns) both += seen.size() == 2;
  EXPECT_GT(both, 100);
  EXPECT_EQ((pronouns[{"lorry", "barn"}].size()), 2u);  // le camion, la grange
  EXPECT_EQ((pronouns[{"car", "barn"}]), (std::set<std::string>{"elle"}));
}

TEST(Agreement, names_run_backwards_in_french) {
  for (const Phrase& p : all_pairs()) {
    if (p.source.find("African Monetary Union") != std::string::npos) {
      EXPECT_NE(p.target.find("'union monétaire africaine"), std::string::npos) << p.target;
    }
    if (p.source.find("Baltic Social Market") != std::string::npos) {
      EXPECT_NE(p.target.find(" marché social balte"), std::string::npos) << p.target;
    }
  }
}

TEST(Agreement, every_sentence_is_well_formed) {
  static const std::regex kElision("\\b(le|la) [aeiouhâéœ]");
  static const std::regex kFormat("[A-Z].*[a-z0-9é]\\.");
  for (const Phrase& p : all_pairs()) {
    EXPECT_TRUE(std::regex_match(p.source, kFormat)) << p.source;
    EXPECT_EQ(p.target.back(), '.');
    EXPECT_FALSE(std::regex_search(p.target, kElision)) << p.target;
    for (const std::string* text : {&p.source, &p.target}) {
      EXPECT_EQ(text->find("  "), std::string::npos) << *text;
      EXPECT_EQ(text->find('*'), std::string::npos) << *text;
    }
  }
}

TEST(Agreement, another_seed_gives_others_and_the_same_the_same) {
  const PhrasebookOptions few{.pairs = 50, .held_out_val = 5, .held_out_test = 5, .seed = 7};
  const auto a = make_agreement(few), b = make_agreement(few);
  PhrasebookOptions other = few;
  other.seed = 8;
  EXPECT_EQ(a.train[0].source, b.train[0].source);
  EXPECT_NE(a.train[0].source + a.train[1].source,
            make_agreement(other).train[0].source + make_agreement(other).train[1].source);
}

TEST(Agreement, counts_that_leave_nothing_for_training_are_refused) {
  EXPECT_THROW(make_agreement({.pairs = 10, .held_out_val = 5, .held_out_test = 5, .seed = 1}),
               Error);
}

}  // namespace
}  // namespace heddle
