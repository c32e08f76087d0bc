// Samples the phrasebook's grammar without repetition and splits the pairs.
#include "corpora/phrasebook.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "corpora/phrase_sampling.h"
#include "corpora/phrasebook_patterns.h"

namespace heddle {
namespace {

constexpr int kMinWords = 3, kMaxWords = 18;

int64_t words_in(const std::string& text) { return 1 + std::count(text.begin(), text.end(), ' '); }

}  // namespace

Phrasebook make_phrasebook(const PhrasebookOptions& options) {
  check_phrase_counts(options, "phrasebook");
  phrasebook::Dice dice(options.seed);
  std::unordered_set<std::string> seen;  // asked for membership only, so its order is no matter
  for (const Phrase& p : demo_sentences()) seen.insert(p.source);
  const auto draw = [&dice]() -> Phrase {
    Phrase p = phrasebook::some_phrase(dice);
    const int64_t words = words_in(p.source);
    return words >= kMinWords && words <= kMaxWords ? std::move(p) : Phrase{};
  };
  std::vector<Phrase> all = distinct_phrases(options.pairs, "phrasebook", draw, seen);
  // What is drawn late is rarer, so the held-out pairs are taken from all over (Fisher-Yates).
  const auto held_out = static_cast<size_t>(options.held_out_val + options.held_out_test);
  for (size_t i = 0; i < held_out; ++i) {
    const auto rest = static_cast<uint64_t>(all.size() - i);
    std::swap(all[i], all[i + static_cast<size_t>(dice.next() % rest)]);
  }
  const auto val_end = all.begin() + options.held_out_val;
  const auto test_end = val_end + options.held_out_test;
  Phrasebook book;
  book.val.assign(std::make_move_iterator(all.begin()), std::make_move_iterator(val_end));
  book.test.assign(std::make_move_iterator(val_end), std::make_move_iterator(test_end));
  book.train.assign(std::make_move_iterator(test_end), std::make_move_iterator(all.end()));
  return book;
}

std::vector<Phrase> demo_sentences() {
  return {
      {"I am looking for my key, but I can't find it.",
       "Ich suche meinen Schlüssel, aber ich kann ihn nicht finden."},
      {"The next train to Munich departs at half past seven.",
       "Der nächste Zug nach München fährt um halb acht ab."},
      {"My sister is going to the market in order to buy fresh bread.",
       "Meine Schwester geht auf den Markt, um frisches Brot zu kaufen."},
      {"The blue coat costs ninety-four euros.", "Der blaue Mantel kostet vierundneunzig Euro."},
      {"If it rains tomorrow, we will stay at the hotel.",
       "Wenn es morgen regnet, werden wir im Hotel bleiben."}};
}

}  // namespace heddle
