// Windows over a text, many in a batch, of which each predicts the tokens that no window before it
// did; or segments that a memory connects, one after the other.
#include "heddle/infer/perplexity.h"

#include <algorithm>

#include "heddle/autograd/tape.h"
#include "heddle/base/files/mmap.h"
#include "heddle/base/profile.h"
#include "heddle/base/work_notes.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/nn/relative/relative_rows.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/moe.h"

namespace heddle {
namespace {

// Tokens [begin, end) of the text, by which tokens [first, last] are predicted.
struct TextWindow {
  int64_t begin, end, first, last;
};

std::vector<TextWindow> windows_of(int64_t tokens, int64_t context, int64_t stride) {
  std::vector<TextWindow> windows;
  for (int64_t begin = 0, done = 1; done < tokens; begin += stride) {
    const int64_t end = std::min(begin + context, tokens);
    windows.push_back({begin, end, done, end - 1});
    done = end;
  }
  return windows;
}

// Segments that lie end to end: the last token of each predicts the first of the next.
std::vector<TextWindow> segments_of(int64_t tokens, int64_t context) {
  std::vector<TextWindow> segments;
  for (int64_t begin = 0; begin + 1 < tokens; begin += context) {
    const int64_t end = std::min(begin + context, tokens - 1);
    segments.push_back({begin, end, begin + 1, end});
  }
  return segments;
}

bool has_memory(const LanguageModel& model) { return model.as<WithMemory>() != nullptr; }

// Of a model with memory.
void check_segments(const LanguageModel& model, PerplexityOptions& o) {
  check(
      o.stride == 0, ErrorKind::usage,
      "`stride` is {}; a model with memory reads segments end to end: leave it away, or set their "
      "length by `context`",
      o.stride);
  // Of a model that has no memory, or one state, which says nothing of lengths.
  constexpr int64_t kWithoutMemory = 512;
  const int64_t remembered = memory_length(model);
  if (o.context == 0) o.context = remembered > 1 ? remembered : kWithoutMemory;
  o.stride = o.context;
}

void check_windows(const LanguageModel& model, PerplexityOptions& o) {
  check(o.memory, ErrorKind::usage, "`no_memory`: the model has none to do without; leave it away");
  if (o.context == 0) o.context = model.max_length();
  if (o.stride == 0) o.stride = std::max<int64_t>(1, o.context / 2);
  check(o.context < 2 || (o.stride >= 1 && o.stride < o.context), ErrorKind::usage,
        "`stride` is {}; it must be at least 1 and below the context of {}", o.stride, o.context);
}

void check_options(const LanguageModel& model, std::span<const int32_t> ids, PerplexityOptions& o) {
  const int64_t longest = model.max_length();
  has_memory(model) ? check_segments(model, o) : check_windows(model, o);
  check(o.context >= 2 && o.context <= longest, ErrorKind::usage,
        "`context` is {}; it must be from 2 to the {} tokens that the model takes", o.context,
        longest);
  check(o.batch_tokens >= 1, ErrorKind::usage, "`batch_tokens` is {}; it must be at least 1",
        o.batch_tokens);
  check(o.details >= 0, ErrorKind::internal, "likelihood_of_text: {} details", o.details);
  check(ids.size() >= 2, ErrorKind::data,
        "the text has {} tokens; at least 2 are needed, since the first is not predicted",
        ids.size());
  nn::check_ids(ids, model.vocab_size(), "the text");
}

// Counts the experts that tokens of a pass go through, layer by layer.
class RoutingCount {
 public:
  explicit RoutingCount(const LanguageModel& model) {
    if (const auto* mixture = model.as<WithExperts>()) chosen_ = mixture->chosen_experts();
    observer_.router = [this](const std::string&, const Tensor& logits) { add(logits); };
  }
  RoutingCount(const RoutingCount&) = delete;
  RoutingCount& operator=(const RoutingCount&) = delete;

  // What the next pass is to be observed by, null if no router is there; `rows`: the tokens of it
  // that count.
  const nn::Observer* next(std::span<const int32_t> rows) {
    rows_ = rows, layer_ = 0;
    return chosen_ > 0 ? &observer_ : nullptr;
  }
  std::vector<std::vector<int64_t>> counts;  // [layer][expert]

 private:
  void add(const Tensor& logits) {
    if (layer_ == counts.size()) counts.emplace_back(logits.size(1));
    for (const int32_t expert : route(gather_rows(logits, rows_), chosen_).experts) {
      ++counts[layer_][expert];
    }
    ++layer_;
  }

  nn::Observer observer_;
  std::span<const int32_t> rows_;
  int64_t chosen_ = 0;
  size_t layer_ = 0;
};

// Predicts windows, the details of the first `details` of their tokens too.
class Prediction {
 public:
  Prediction(const LanguageModel& model, std::span<const int32_t> ids, const Precision& precision,
             int64_t details)
      : model_(model), ids_(ids), details_(static_cast<size_t>(details)), routing_(model) {
    run_.use(precision);
  }

  // `memory`, of the windows' number of sequences, may be null.
  void add(std::span<const TextWindow> windows, nn::Memory* memory, WindowsLikelihood& result) {
    check_mapped_files();
    std::vector<int32_t> tokens, rows, targets;
    std::vector<int64_t> lengths;
    for (const TextWindow& w : windows) {
      const auto at = static_cast<int64_t>(tokens.size());
      tokens.insert(tokens.end(), ids_.begin() + w.begin, ids_.begin() + w.end);
      lengths.push_back(w.end - w.begin);
      for (int64_t i = w.first; i <= w.last; ++i) {  // row i - 1 predicts token i
        rows.push_back(static_cast<int32_t>(at + i - 1 - w.begin));
        targets.push_back(ids_[static_cast<size_t>(i)]);
      }
    }
    const Segments segments = Segments::from_lengths(lengths);
    run_.observer = routing_.next(rows);
    const Tensor all =
        model_.hidden({.ids = tokens, .segments = &segments, .memory = memory}, run_);
    const Tensor h = gather_rows(all, rows);
    // The logits of some rows at a time, for both the tokens that came and the likeliest.
    const int64_t at_once = std::max<int64_t>(1, kLogitsAtOnce / model_.vocab_size());
    std::vector<float> log_p;
    for (int64_t begin = 0; begin < h.size(0); begin += at_once) {
      const int64_t n = std::min(at_once, h.size(0) - begin);
      add(model_.output()(h.slice(0, begin, n), run_), std::span(targets).subspan(begin, n), log_p,
          result);
    }
    // A sum for each window: what else is predicted with it changes none of its bits.
    auto next = log_p.begin();
    for (const TextWindow& w : windows) {
      double& nll = result.nll.emplace_back();
      for (int64_t i = w.first; i <= w.last; ++i) nll -= static_cast<double>(*next++);
    }
    note_work();
  }
  const std::vector<std::vector<int64_t>>& routing() const { return routing_.counts; }

 private:
  static constexpr int64_t kLogitsAtOnce = 16 << 20;  // 64 MB

  // logits: [targets, vocab]
  void add(const Tensor& logits, std::span<const int32_t> targets, std::vector<float>& log_p,
           WindowsLikelihood& result) const {
    const auto of_targets = best_tokens(logits, {}, targets);
    const auto likeliest = best_tokens(logits, {.scores = false});
    for (size_t i = 0; i < targets.size(); ++i) {
      log_p.push_back(of_targets[i].log_p);
      result.hits += likeliest[i].id == targets[i];
      if (result.details.size() == details_) continue;
      result.details.push_back(
          detail_of(logits.rows(), static_cast<int64_t>(i), targets[i], likeliest[i].id));
      result.details.back().log_p = of_targets[i].log_p;
    }
    result.tokens += static_cast<int64_t>(targets.size());
  }

  // Without its log p.
  static PredictedToken detail_of(const Rows& logits, int64_t row, int32_t target,
                                  int32_t likeliest) {
    const float* x = logits.row<float>(row);
    PredictedToken token{.rank = 1, .likeliest = likeliest};
    for (int64_t id = 0; id < logits.width; ++id) {
      token.rank += x[id] > x[target] || (x[id] == x[target] && id < target);
    }
    token.likeliest_log_p = scale_of_row(logits, row).log_p(x[likeliest]);
    return token;
  }

  const LanguageModel& model_;
  std::span<const int32_t> ids_;
  size_t details_;
  nn::Run run_;
  RoutingCount routing_;
};

}  // namespace

struct TextPrediction::Impl {
  const LanguageModel& model;
  std::span<const int32_t> ids;
  PerplexityOptions options;
  std::vector<TextWindow> windows;
  bool remembers;

  // Windows of a part.
  std::span<const TextWindow> part(int64_t number) const {
    if (remembers) return windows;
    const auto each =
        static_cast<size_t>(std::max<int64_t>(1, options.batch_tokens / options.context));
    const size_t begin = static_cast<size_t>(number) * each;
    return std::span(windows).subspan(begin, std::min(each, windows.size() - begin));
  }
};

TextPrediction::TextPrediction(const LanguageModel& model, std::span<const int32_t> ids,
                               PerplexityOptions o) {
  check_options(model, ids, o);
  const auto tokens = static_cast<int64_t>(ids.size());
  impl_ = std::make_unique<const Impl>(Impl{
      model, ids, o,
      has_memory(model) ? segments_of(tokens, o.context) : windows_of(tokens, o.context, o.stride),
      o.memory && memory_length(model) > 0});
}
TextPrediction::~TextPrediction() = default;

int64_t TextPrediction::parts() const {
  if (impl_->remembers) return 1;
  const PerplexityOptions& o = impl_->options;
  const int64_t each = std::max<int64_t>(1, o.batch_tokens / o.context);
  return (std::ssize(impl_->windows) + each - 1) / each;
}

WindowsLikelihood TextPrediction::predict(int64_t part) const {
  const NoGrad off;
  const ProfilePhase phase("perplexity");
  const PerplexityOptions& o = impl_->options;
  const std::span<const TextWindow> windows = impl_->part(part);
  const int64_t before = windows[0].first - 1;  // tokens that were predicted
  Prediction prediction(impl_->model, impl_->ids, o.precision,
                        std::max<int64_t>(0, o.details - before));
  WindowsLikelihood result;
  if (impl_->remembers) {
    nn::Memory memory;
    for (const TextWindow& window : windows) prediction.add({&window, 1}, &memory, result);
  } else {
    prediction.add(windows, nullptr, result);
  }
  result.routing = prediction.routing();
  return result;
}

TextLikelihood TextPrediction::join(std::span<const WindowsLikelihood> all) const {
  const PerplexityOptions& o = impl_->options;
  TextLikelihood text{
      .windows = std::ssize(impl_->windows), .context = o.context, .stride = o.stride};
  if (has_memory(impl_->model)) text.memory = impl_->remembers ? memory_length(impl_->model) : 0;
  for (const WindowsLikelihood& part : all) {
    for (const double nll : part.nll) text.nll += nll;
    text.tokens += part.tokens, text.hits += part.hits;
    text.details.insert(text.details.end(), part.details.begin(), part.details.end());
    if (text.routing.empty()) {
      text.routing = part.routing;
      continue;
    }
    for (size_t layer = 0; layer < text.routing.size(); ++layer) {
      for (size_t expert = 0; expert < text.routing[layer].size(); ++expert) {
        text.routing[layer][expert] += part.routing[layer][expert];
      }
    }
  }
  return text;
}

TextLikelihood likelihood_of_text(const LanguageModel& model, std::span<const int32_t> ids,
                                  PerplexityOptions options) {
  const TextPrediction prediction(model, ids, options);
  std::vector<WindowsLikelihood> all;
  for (int64_t part = 0; part < prediction.parts(); ++part) all.push_back(prediction.predict(part));
  return prediction.join(all);
}

}  // namespace heddle
