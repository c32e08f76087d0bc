// Windows over a text, many in a batch; each predicts the words that no window before it did.
#include "heddle/infer/perplexity.h"

#include <algorithm>

#include "heddle/autograd/tape.h"
#include "heddle/base/profile.h"
#include "heddle/infer/best_words.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

// Words [begin, end) of the text; those from `first` on are predicted.
struct Window {
  int64_t begin, end, first;
};

std::vector<Window> windows_of(int64_t words, int64_t context, int64_t stride) {
  std::vector<Window> windows;
  for (int64_t begin = 0, done = 1; done < words; begin += stride) {
    const int64_t end = std::min(begin + context, words);
    windows.push_back({begin, end, done});
    done = end;
  }
  return windows;
}

void check_options(const LanguageModel& model, std::span<const int32_t> ids, PerplexityOptions& o) {
  const int64_t longest = model.max_length();
  if (o.context == 0) o.context = longest;
  check(o.context >= 2 && o.context <= longest, ErrorKind::usage,
        "--context is {}; it must be from 2 to the {} tokens that the model takes", o.context,
        longest);
  if (o.stride == 0) o.stride = std::max<int64_t>(1, o.context / 2);
  check(o.stride >= 1 && o.stride < o.context, ErrorKind::usage,
        "--stride is {}; it must be at least 1 and below the context of {}", o.stride, o.context);
  check(o.batch_tokens >= 1, ErrorKind::usage, "--batch-tokens is {}; it must be at least 1",
        o.batch_tokens);
  check(ids.size() >= 2, ErrorKind::data,
        "the text has {} tokens; at least 2 are needed, since the first is not predicted",
        ids.size());
  for (const int32_t id : ids) {
    check(id >= 0 && id < model.vocab_size(), ErrorKind::data,
          "the text has the id {}, which is not in the model's vocabulary of {}", id,
          model.vocab_size());
  }
}

class Prediction {
 public:
  Prediction(const LanguageModel& model, std::span<const int32_t> ids, const Precision& precision)
      : model_(model), ids_(ids) {
    run_.use(precision);
  }

  void add(std::span<const Window> windows, TextLikelihood& result) {
    std::vector<int32_t> words, rows, targets;
    std::vector<int64_t> lengths;
    for (const Window& w : windows) {
      const auto at = static_cast<int64_t>(words.size());
      words.insert(words.end(), ids_.begin() + w.begin, ids_.begin() + w.end);
      lengths.push_back(w.end - w.begin);
      for (int64_t i = w.first; i < w.end; ++i) {  // row i - 1 predicts word i
        rows.push_back(static_cast<int32_t>(at + i - 1 - w.begin));
        targets.push_back(ids_[static_cast<size_t>(i)]);
      }
    }
    const Segments segments = Segments::from_lengths(lengths);
    const Tensor h = gather_rows(model_.hidden({.ids = words, .segments = &segments}, run_), rows);
    const auto of_targets = best_words(model_.output(), h, run_, {.forced = targets});
    const auto likeliest = best_words(model_.output(), h, run_, {.scores = false});
    for (size_t i = 0; i < targets.size(); ++i) {
      result.nll -= static_cast<double>(of_targets[i].log_p);
      result.hits += likeliest[i].id == targets[i];
    }
    result.words += static_cast<int64_t>(targets.size());
  }

 private:
  const LanguageModel& model_;
  std::span<const int32_t> ids_;
  nn::Run run_;
};

}  // namespace

TextLikelihood likelihood_of_text(const LanguageModel& model, std::span<const int32_t> ids,
                                  PerplexityOptions o) {
  check_options(model, ids, o);
  const NoGrad off;
  const ProfilePhase phase("perplexity");
  const std::vector<Window> windows =
      windows_of(static_cast<int64_t>(ids.size()), o.context, o.stride);
  const auto at_once = static_cast<size_t>(std::max<int64_t>(1, o.batch_tokens / o.context));
  TextLikelihood result;
  result.context = o.context, result.stride = o.stride;
  result.windows = static_cast<int64_t>(windows.size());
  Prediction prediction(model, ids, o.precision);
  for (size_t i = 0; i < windows.size(); i += at_once) {
    prediction.add(std::span(windows).subspan(i, std::min(at_once, windows.size() - i)), result);
  }
  return result;
}

}  // namespace heddle
