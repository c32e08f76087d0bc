// Repetitions are counted: a long run of them means that the grammar is nearly exhausted.
#include "corpora/phrase_sampling.h"

#include <utility>

#include "heddle/base/error.h"

namespace heddle {

std::vector<Phrase> distinct_phrases(int64_t count, const std::string& name,
                                     const std::function<Phrase()>& draw,
                                     std::unordered_set<std::string>& seen) {
  constexpr int64_t kPatience = 10000;
  std::vector<Phrase> phrases;
  int64_t repetitions = 0;
  while (static_cast<int64_t>(phrases.size()) < count) {
    Phrase p = draw();
    if (!p.source.empty() && seen.insert(p.source).second) {
      phrases.push_back(std::move(p));
      repetitions = 0;
      continue;
    }
    check(++repetitions < kPatience, ErrorKind::usage,
          "{}: after {} pairs of {} the grammar gives no new ones; ask for fewer", name,
          phrases.size(), count);
  }
  return phrases;
}

void check_phrase_counts(const PhrasebookOptions& o, const std::string& name) {
  check(o.held_out_val >= 0 && o.held_out_test >= 0, ErrorKind::usage,
        "{}: held out are {} validation and {} test pairs; neither can be negative", name,
        o.held_out_val, o.held_out_test);
  // No sum: it could be beyond the integers.
  check(o.pairs > o.held_out_val && o.pairs - o.held_out_val > o.held_out_test, ErrorKind::usage,
        "{}: of {} pairs {} and {} are held out, which leaves none for training; ask for more "
        "pairs",
        name, o.pairs, o.held_out_val, o.held_out_test);
}

}  // namespace heddle
