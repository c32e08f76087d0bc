// One pass over new prompts and the last tokens of those that go on, again and again.
#include "heddle/infer/decoding/generate.h"

#include <algorithm>

#include "heddle/autograd/tape.h"
#include "heddle/base/files/mapped_files.h"
#include "heddle/base/profile.h"
#include "heddle/infer/decoding/next_tokens.h"
#include "heddle/infer/sequence_reader.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;
using Results = std::vector<std::vector<Continuation>>;

void check_options(const GenerateOptions& o) {
  check(o.beam >= 1, ErrorKind::usage, "--beam is {}; it must be at least 1 (1 is greedy)", o.beam);
  check(o.n_best >= 1, ErrorKind::usage, "--samples is {}; it must be at least 1", o.n_best);
  check(!o.sampling || o.beam == 1, ErrorKind::usage,
        "--sample draws tokens and --beam {} searches for the likeliest; give one of them", o.beam);
  check(o.sampling || o.n_best <= o.beam, ErrorKind::usage,
        "--n-best is {} but --beam {}; the beam must be at least as wide", o.n_best, o.beam);
  check(o.batch_tokens >= 1, ErrorKind::usage, "--batch-tokens is {}; it must be at least 1",
        o.batch_tokens);
  check_token_rules(o.rules);
  if (o.sampling) check_sampling(*o.sampling);
}

void check_end(const Model& model, const GenerateOptions& o) {
  const int32_t end = o.forced_eos.value_or(0);
  check(end >= 0 && end < model.vocab_size(), ErrorKind::data,
        "forced_eos_token_id is {}; ids must be at least 0 and below {}", end, model.vocab_size());
}

void check_prompts(const Model& model, std::span<const Ids> prompts, int64_t context) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    check(!prompts[i].empty(), ErrorKind::data,
          "prompt {} is empty; the model needs at least one token to go on from", i + 1);
    check(static_cast<int64_t>(prompts[i].size()) <= context, ErrorKind::data,
          "prompt {} has {} tokens; the model takes {} at most", i + 1, prompts[i].size(), context);
    for (const int32_t id : prompts[i]) {
      check(id >= 0 && id < model.vocab_size(), ErrorKind::data,
            "prompt {}: the id {} is not in the vocabulary of {}", i + 1, id, model.vocab_size());
    }
  }
}

Continuation as_continuation(const Hypothesis& h) {
  return {.ids = h.ids, .log_ps = h.log_ps, .log_p = h.log_p, .score = h.score, .ended = h.ended};
}

class Generation {
 public:
  Generation(const Model& model, std::span<const Ids> prompts, const GenerateOptions& o)
      : model_(model),
        prompts_(prompts),
        options_(o),
        context_(context_of(model, o)),
        reader_(make_sequence_reader(model)) {
    run_.use(o.precision);
    wanted_ = {.count = o.sampling ? 1 : continuations(o.beam, o.eos.size()),
               .suppressed = o.suppressed,
               .eos = o.eos,
               .rules = o.rules,
               .sampling = o.sampling,
               .scores = o.scores || o.beam > 1,
               .penalises_log_p = o.beam > 1};
  }

  Results operator()() {
    Results results(prompts_.size());
    for (;;) {
      admit();
      if (sequences_.empty()) return results;
      step();
      retire(results);
    }
  }

 private:
  // A prompt and what follows it. `is_read`: the prompt is with the reader, as one sequence for
  // each hypothesis that goes on; else it waits, as one sequence without tokens.
  struct Sequence {
    int64_t number;
    BeamSearch search;
    bool is_read = false;
    // Tokens of prompt and continuation, by number: the reader's first, and those yet to be read.
    int64_t begin = 0, unread = 0;
  };

  // Tokens that are wanted behind prompt i.
  int64_t wanted_tokens(int64_t i) const {
    if (options_.max_length == 0) return options_.max_new_tokens;
    const auto length = static_cast<int64_t>(prompts_[i].size());
    return std::min(options_.max_new_tokens, std::max<int64_t>(1, options_.max_length - length));
  }

  // Tokens that may follow prompt i; the one behind the last position is still known.
  int64_t new_tokens(int64_t i) const {
    if (options_.slides) return wanted_tokens(i);
    return std::min(wanted_tokens(i), context_ - static_cast<int64_t>(prompts_[i].size()) + 1);
  }

  // Tokens of prompt i that the reader will hold at most.
  int64_t tokens_of(int64_t i) const {
    const int64_t width = options_.sampling ? options_.n_best : options_.beam;
    return static_cast<int64_t>(prompts_[i].size()) + std::min(new_tokens(i), context_) * width;
  }

  void admit() {
    for (; next_ < static_cast<int64_t>(prompts_.size()); ++next_) {
      if (!sequences_.empty() && live_tokens_ + tokens_of(next_) > options_.batch_tokens) return;
      live_tokens_ += tokens_of(next_);
      sequences_.push_back({next_, BeamSearch(search_options(next_))});
      reader_->add(1);
    }
  }

  BeamOptions search_options(int64_t i) const {
    BeamOptions o = {.beam = options_.beam,
                     .n_best = options_.n_best,
                     .samples = options_.sampling.has_value(),
                     .penalty = LengthPenalty::power,
                     .length_penalty = options_.length_penalty,
                     .early_stopping = options_.early_stopping,
                     .max_length = new_tokens(i),
                     .needs_end = false,
                     .eos = options_.eos};
    if (options_.on_token) {
      o.goes_on = [this, i](const Hypothesis& h) {
        return options_.on_token({i, h.sample, h.ids});
      };
    }
    return o;
  }

  void step() {
    Ids ids, read;  // of each hypothesis: its sequence with the reader
    std::vector<int64_t> lengths;
    std::vector<TokensSoFar> so_far;
    for (const Sequence& s : sequences_) {
      const Ids& prompt = prompts_[s.number];
      if (!s.is_read) {
        ids.insert(ids.end(), prompt.begin(), prompt.end());
        lengths.push_back(static_cast<int64_t>(prompt.size()));
      }
      for (const Hypothesis& h : s.search.live()) {
        if (s.is_read) {
          for (int64_t t = s.unread; t < length(s); ++t) ids.push_back(token(s, h, t));
          lengths.push_back(length(s) - s.unread);
        }
        read.push_back(static_cast<int32_t>(lengths.size()) - 1);
        const bool is_last = static_cast<int64_t>(h.ids.size()) + 1 == new_tokens(s.number);
        so_far.push_back({.before = prompt,
                          .tokens = h.ids,
                          .forced = is_last ? options_.forced_eos.value_or(-1) : -1,
                          .draw = draw(s, h)});
      }
    }
    const Segments tokens = Segments::from_lengths(lengths);
    const ProfilePhase phase(tokens.rows() > tokens.count() ? "prompt" : "decode step");
    Tensor h = reader_->read(ids, tokens, run_);
    if (read.size() != lengths.size()) h = gather_rows(h, read);  // samples share their prompt
    std::vector<NextToken> next = next_tokens(*model_.heads().output, h, run_, so_far, wanted_);
    for (size_t r = 0; r < so_far.size(); ++r) {
      if (so_far[r].forced >= 0) next[r * static_cast<size_t>(wanted_.count)].log_p = 0;
    }
    advance(h, next);
  }

  // Tokens of the prompt and of what follows it.
  int64_t length(const Sequence& s) const {
    const size_t new_ones = s.search.live().empty() ? 0 : s.search.live()[0].ids.size();
    return static_cast<int64_t>(prompts_[s.number].size() + new_ones);
  }

  int32_t token(const Sequence& s, const Hypothesis& h, int64_t t) const {
    const Ids& prompt = prompts_[s.number];
    const auto i = static_cast<size_t>(t);
    return i < prompt.size() ? prompt[i] : h.ids[i - prompt.size()];
  }

  // Whether the reader has no room for what came last, so that it begins anew.
  bool slide(Sequence& s) const {
    const int64_t n = length(s);
    s.unread = n - 1;
    if (n - s.begin <= context_) return false;
    s.begin = s.unread = n - std::max<int64_t>(1, context_ / 2);
    return true;
  }

  // h: [hypotheses, width]
  void advance(const Tensor& h, std::span<const NextToken> next) {
    std::vector<int64_t> kept;    // of each hypothesis that goes on: the reader's sequence before
    std::vector<size_t> emptied;  // those of them that begin anew
    int64_t row = 0, read = 0;
    for (Sequence& s : sequences_) {
      const auto live = static_cast<int64_t>(s.search.live().size());
      advance(s, h.slice(0, row, live), next.subspan(row * wanted_.count, live * wanted_.count));
      const bool begins_anew = slide(s);
      for (const Hypothesis& going_on : s.search.live()) {
        if (begins_anew) emptied.push_back(kept.size());
        kept.push_back(read + (s.is_read ? going_on.parent : 0));
      }
      row += live;
      read += s.is_read ? live : 1;
      s.is_read = true;
    }
    if (!emptied.empty()) reader_->add(1);
    for (const size_t i : emptied) kept[i] = read;
    bool is_same = emptied.empty() && static_cast<int64_t>(kept.size()) == read;
    for (size_t i = 0; i < kept.size(); ++i)
      is_same = is_same && kept[i] == static_cast<int64_t>(i);
    if (!is_same) reader_->select(kept);
  }

  void advance(Sequence& s, const Tensor& h, std::span<const NextToken> next) {
    if (!options_.on_step) return s.search.advance(next);
    const std::vector<Hypothesis> before(s.search.live().begin(), s.search.live().end());
    s.search.advance(next);
    options_.on_step({s.number, before, (*model_.heads().output)(h.to_contiguous(), run_),
                      s.search.live(), s.search.just_ended()});
  }

  double draw(const Sequence& s, const Hypothesis& h) const {
    if (!options_.sampling) return 0;
    return sample_draw(options_.sampling->seed, options_.sampling->first_line + s.number, h.sample,
                       static_cast<int64_t>(h.ids.size()));
  }

  void retire(Results& results) {
    std::erase_if(sequences_, [&](const Sequence& s) {
      if (!s.search.live().empty()) return false;
      std::vector<Continuation>& result = results[s.number];
      for (const Hypothesis& h : s.search.results()) {
        result.push_back(as_continuation(h));
        result.back().has_no_room =
            h.ended == EndedBy::length && new_tokens(s.number) < wanted_tokens(s.number);
      }
      live_tokens_ -= tokens_of(s.number);
      if (options_.on_done) options_.on_done(s.number, result);
      return true;
    });
  }

  const Model& model_;
  std::span<const Ids> prompts_;
  const GenerateOptions& options_;
  int64_t context_;
  NextTokensOptions wanted_;
  nn::Run run_;
  std::unique_ptr<SequenceReader> reader_;
  std::vector<Sequence> sequences_;
  int64_t next_ = 0;  // prompt that is read next
  int64_t live_tokens_ = 0;
};

}  // namespace

int64_t context_of(const Model& model, const GenerateOptions& options) {
  check(options.context >= 0 && options.context <= model.max_length(), ErrorKind::usage,
        "--context is {}; the model sees 1 to {} tokens at once", options.context,
        model.max_length());
  return options.context == 0 ? model.max_length() : options.context;
}

std::vector<std::vector<Continuation>> generate_ids(const Model& model,
                                                    std::span<const Ids> prompts,
                                                    const GenerateOptions& options) {
  check_mapped_files();
  check_options(options);
  check_end(model, options);
  check_prompts(model, prompts, context_of(model, options));
  if (options.max_new_tokens <= 0) {
    return Results(prompts.size(), std::vector<Continuation>(1));
  }
  const NoGrad off;
  return Generation(model, prompts, options)();
}

std::vector<std::vector<NextToken>> likely_next_tokens(const Model& model,
                                                       std::span<const Ids> prompts, int64_t count,
                                                       const GenerateOptions& options) {
  check_mapped_files();
  check_prompts(model, prompts, context_of(model, options));
  const NoGrad off;
  nn::Run run;
  run.use(options.precision);
  std::vector<std::vector<NextToken>> found;
  for (size_t begin = 0, end = 0; begin < prompts.size(); begin = end) {
    Ids ids;
    std::vector<int64_t> lengths;
    while (end < prompts.size() &&
           (end == begin ||
            static_cast<int64_t>(ids.size() + prompts[end].size()) <= options.batch_tokens)) {
      ids.insert(ids.end(), prompts[end].begin(), prompts[end].end());
      lengths.push_back(static_cast<int64_t>(prompts[end++].size()));
    }
    const auto reader = make_sequence_reader(model);
    reader->add(static_cast<int64_t>(lengths.size()));
    const Tensor h = reader->read(ids, Segments::from_lengths(lengths), run);
    const std::vector<NextToken> best = best_tokens(
        *model.heads().output, h, run,
        {.count = std::min(count, model.vocab_size()), .suppressed = options.suppressed});
    for (size_t i = 0; i < lengths.size(); ++i) {
      const size_t each = best.size() / lengths.size();
      found.emplace_back(best.begin() + i * each, best.begin() + (i + 1) * each);
      std::erase_if(found.back(), [](const NextToken& token) { return token.id < 0; });
    }
  }
  return found;
}

}  // namespace heddle
