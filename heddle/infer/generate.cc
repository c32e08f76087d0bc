// One pass over the prompts, then steps of one row a sequence.
#include "heddle/infer/generate.h"

#include <algorithm>

#include "heddle/autograd/tape.h"
#include "heddle/base/profile.h"
#include "heddle/infer/best_words.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

void check_prompts(const LanguageModel& model, std::span<const Ids> prompts) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    check(!prompts[i].empty(), ErrorKind::data,
          "prompt {} is empty; the model needs at least one token to go on from", i + 1);
    check(static_cast<int64_t>(prompts[i].size()) <= model.max_length(), ErrorKind::data,
          "prompt {} has {} tokens; the model takes {} at most", i + 1, prompts[i].size(),
          model.max_length());
    for (const int32_t id : prompts[i]) {
      check(id >= 0 && id < model.vocab_size(), ErrorKind::data,
            "prompt {}: the id {} is not in the vocabulary of {}", i + 1, id, model.vocab_size());
    }
  }
}

class Generation {
 public:
  Generation(const LanguageModel& model, std::span<const Ids> prompts, const GenerateOptions& o)
      : model_(model),
        options_(o),
        cache_(static_cast<int64_t>(prompts.size()), model.layers()),
        results_(prompts.size()) {
    run_.use(o.precision);
    for (size_t i = 0; i < prompts.size(); ++i) live_.push_back(i);
  }

  std::vector<Ids> operator()(std::span<const Ids> prompts) {
    Ids ids;
    std::vector<int64_t> lengths;
    for (const Ids& prompt : prompts) {
      ids.insert(ids.end(), prompt.begin(), prompt.end());
      lengths.push_back(static_cast<int64_t>(prompt.size()));
    }
    Segments words = Segments::from_lengths(lengths);
    if (options_.max_new_tokens <= 0) return std::move(results_);
    while (!live_.empty()) {
      ids = take(next_words(ids, words));
      words = Segments::uniform(static_cast<int64_t>(ids.size()), 1);
    }
    return std::move(results_);
  }

 private:
  // The likeliest word after each live sequence, which goes on with `words`.
  std::vector<NextWord> next_words(const Ids& ids, const Segments& words) {
    const ProfilePhase phase(words.rows() > words.count() ? "prompt" : "decode step");
    cache_.extend(words);
    Tensor h = model_.hidden(
        {.ids = ids, .segments = &words, .places = cache_.places(), .cache = &cache_}, run_);
    if (words.rows() > words.count()) {  // of a prompt only the last word's logits are wanted
      Ids last;
      for (int64_t i = 0; i < words.count(); ++i) {
        last.push_back(static_cast<int32_t>(words.end(i) - 1));
      }
      h = gather_rows(h, last);
    }
    return best_words(model_.output(), h, run_,
                      {.suppressed = options_.suppressed, .scores = false});
  }

  // Adds the words to the results and drops what has ended; returns the words that are to be read.
  Ids take(const std::vector<NextWord>& next) {
    Ids ids;
    std::vector<size_t> live;
    std::vector<int64_t> kept;
    for (size_t i = 0; i < live_.size(); ++i) {
      Ids& result = results_[live_[i]];
      if (options_.eos && next[i].id == *options_.eos) continue;
      result.push_back(next[i].id);
      const bool is_full = cache_.length(static_cast<int64_t>(i)) >= model_.max_length();
      if (is_full || static_cast<int64_t>(result.size()) >= options_.max_new_tokens) continue;
      ids.push_back(next[i].id);
      live.push_back(live_[i]);
      kept.push_back(static_cast<int64_t>(i));
    }
    if (kept.size() < live_.size()) cache_.keep(kept);
    live_ = std::move(live);
    return ids;
  }

  const LanguageModel& model_;
  const GenerateOptions& options_;
  nn::Run run_;
  nn::WordCache cache_;
  std::vector<size_t> live_;  // the prompt of each sequence that goes on
  std::vector<Ids> results_;
};

}  // namespace

std::vector<Ids> generate_ids(const LanguageModel& model, std::span<const Ids> prompts,
                              const GenerateOptions& options) {
  check_prompts(model, prompts);
  if (prompts.empty()) return {};
  const NoGrad off;
  return Generation(model, prompts, options)(prompts);
}

}  // namespace heddle
