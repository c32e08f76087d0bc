// Batches of sentences through encoder and decoder, token by token, and text around it.
#include "heddle/infer/decoding/translate.h"

#include <algorithm>
#include <mutex>

#include "heddle/autograd/tape.h"
#include "heddle/base/files/mapped_files.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/infer/decoding/next_tokens.h"

namespace heddle {
namespace {

using Sources = std::span<const std::vector<int32_t>>;

std::span<const int32_t> prefix_of(const TranslateOptions& o, int64_t sentence) {
  if (o.prefixes.empty()) return {};
  return o.prefixes[o.prefixes.size() == 1 ? 0 : static_cast<size_t>(sentence)];
}

// The longest translation of so many source tokens, its end included.
int64_t max_length(const EncoderDecoderFacts& facts, const TranslateOptions& o, size_t tokens,
                   size_t prefix) {
  const double length = o.max_length_factor * static_cast<double>(tokens);
  int64_t limit = o.max_length > 0 ? o.max_length + 1
                                   : static_cast<int64_t>(std::min(length, 1e9)) +
                                         o.max_length_extra + static_cast<int64_t>(prefix);
  return std::max<int64_t>(1, std::min(limit, facts.longest_target));
}

// Hands out the sentences to translate, in order, to any number of threads.
class Queue {
 public:
  Queue(Sources sources, std::span<const int64_t> order) : sources_(sources), order_(order) {}

  /// Sentences of at most `budget` encoder rows together, but the first whatever its length if
  /// `at_least_one`.
  std::vector<int64_t> take(int64_t budget, bool at_least_one) {
    const std::lock_guard lock(mutex_);
    std::vector<int64_t> taken;
    while (next_ < order_.size()) {
      budget -= rows_of(order_[next_]);
      if (budget < 0 && !(at_least_one && taken.empty())) break;
      taken.push_back(order_[next_++]);
    }
    return taken;
  }
  std::span<const int32_t> source(int64_t i) const { return sources_[i]; }
  /// Tokens and end.
  int64_t rows_of(int64_t i) const { return static_cast<int64_t>(sources_[i].size()) + 1; }

 private:
  Sources sources_;
  std::span<const int64_t> order_;
  std::mutex mutex_;
  size_t next_ = 0;
};

// Feeds the last tokens of all live hypotheses, step by step. When sentences are done, others of
// the queue take their place.
class Decoding {
 public:
  Decoding(const EncoderDecoder& model, const TranslateOptions& options,
           std::span<const int32_t> suppressed)
      : model_(model),
        options_(options),
        eos_{static_cast<int32_t>(model.facts().eos_token_id)},
        cache_(model.start()) {
    run_.use(options.precision);
    wanted_ = {.count = options.sampling ? 1 : continuations(options.beam),
               .suppressed = suppressed,
               .eos = eos_,
               .rules = options.rules,
               .sampling = options.sampling,
               .scores = options.scores || options.beam > 1,
               .penalises_log_p = options.is_hub && options.beam > 1};
  }

  // Translates sentence i of the queue into results[i], at most `budget` encoder rows at a time.
  void translate(Queue& queue, int64_t budget, std::vector<Translation>& results) {
    for (;;) {
      // Many at a time: an encoder pass over few sentences costs more than slots that stay empty.
      if (live_rows_ <= budget / 2) admit(queue, budget - live_rows_);
      if (sentences_.empty()) return;
      step();
      retire(results);
    }
  }

 private:
  struct Sentence {
    int64_t number;
    std::span<const int32_t> prefix;
    BeamSearch search;
    std::vector<int32_t> source_rows = {};  // of the cache
    std::vector<int32_t> token_rows = {};   // all that were taken for it
    int32_t position = 0;                   // of the next token
  };

  void admit(Queue& queue, int64_t budget) {
    const std::vector<int64_t> taken = queue.take(budget, sentences_.empty());
    if (taken.empty()) return;
    const ProfilePhase phase("encode");
    const EncoderDecoderFacts& c = model_.facts();
    std::vector<int32_t> ids, rows;
    std::vector<int64_t> lengths;
    for (const int64_t i : taken) {
      const std::span<const int32_t> source = queue.source(i);
      ids.insert(ids.end(), source.begin(), source.end());
      ids.push_back(eos_[0]);
      lengths.push_back(queue.rows_of(i));
      const std::span<const int32_t> prefix = prefix_of(options_, i);
      Sentence sentence{
          i, prefix,
          BeamSearch({.beam = options_.beam,
                      .n_best = options_.n_best,
                      .samples = options_.sampling.has_value(),
                      .penalty = options_.is_hub ? LengthPenalty::power : LengthPenalty::wu,
                      .length_penalty = options_.length_penalty,
                      .early_stopping = options_.early_stopping,
                      .max_length = max_length(c, options_, source.size(), prefix.size()),
                      .needs_end = options_.needs_end,
                      .eos = eos_})};
      cache_.sources.take(lengths.back(), sentence.source_rows);
      rows.insert(rows.end(), sentence.source_rows.begin(), sentence.source_rows.end());
      sentences_.push_back(std::move(sentence));
    }
    const Segments segments = Segments::from_lengths(lengths);
    model_.add_sources(cache_, model_.encode({ids, &segments, nullptr}, run_), rows, run_);
    live_rows_ += segments.rows();
  }

  void step() {
    const ProfilePhase phase("decode step");
    const auto start = static_cast<int32_t>(model_.facts().decoder_start_token_id);
    std::vector<int32_t> ids, position_ids, new_rows, token_rows, source_rows;
    std::vector<TokensSoFar> so_far;
    std::vector<int64_t> beams, token_lengths, source_lengths;
    for (Sentence& s : sentences_) {
      beams.push_back(static_cast<int64_t>(s.search.live().size()));
      cache_.tokens.take(beams.back(), new_rows);
      for (Hypothesis& h : s.search.live()) {
        h.rows.push_back(new_rows[ids.size()]);
        s.token_rows.push_back(h.rows.back());
        token_rows.insert(token_rows.end(), h.rows.begin(), h.rows.end());
        token_lengths.push_back(static_cast<int64_t>(h.rows.size()));
        ids.push_back(h.ids.empty() ? start : h.ids.back());
        position_ids.push_back(s.position);
        so_far.push_back({.tokens = h.ids, .forced = forced_token(s), .draw = draw(s, h)});
      }
      ++s.position;
      source_rows.insert(source_rows.end(), s.source_rows.begin(), s.source_rows.end());
      source_lengths.push_back(static_cast<int64_t>(s.source_rows.size()));
    }
    const Segments one_each = Segments::uniform(static_cast<int64_t>(ids.size()), 1);
    const Segments tokens = Segments::from_lengths(token_lengths);
    const Segments hypotheses = Segments::from_lengths(beams);
    const Segments sources = Segments::from_lengths(source_lengths);
    const Tensor h = model_.step(cache_,
                                 {.ids = ids,
                                  .position_ids = position_ids,
                                  .tokens = {&one_each, &tokens, token_rows, new_rows},
                                  .sources = {&hypotheses, &sources, source_rows}},
                                 run_);
    std::vector<NextToken> next = next_tokens(model_.output(), h, run_, so_far, wanted_);
    const auto each = static_cast<size_t>(wanted_.count);
    for (size_t r = 0; options_.is_hub && r < so_far.size(); ++r) {
      if (so_far[r].forced == eos_[0]) next[r * each].log_p = 0;
    }
    int64_t row = 0;
    for (size_t i = 0; i < sentences_.size(); ++i) {
      advance(sentences_[i], h.slice(0, row, beams[i]),
              std::span(next).subspan(static_cast<size_t>(row) * each,
                                      static_cast<size_t>(beams[i]) * each));
      row += beams[i];
    }
  }

  // h: [live, d_model], the states of the sentence's hypotheses.
  void advance(Sentence& s, const Tensor& h, std::span<const NextToken> next) {
    if (!options_.on_step) return s.search.advance(next);
    const std::vector<Hypothesis> before(s.search.live().begin(), s.search.live().end());
    s.search.advance(next);
    options_.on_step({s.number, before, model_.output()(h.to_contiguous(), run_), s.search.live(),
                      s.search.just_ended()});
  }

  // The only token that may come next, or -1.
  int32_t forced_token(const Sentence& s) const {
    const auto position = static_cast<size_t>(s.position);
    if (position < s.prefix.size()) return s.prefix[position];
    return s.search.must_end() ? eos_[0] : -1;
  }

  double draw(const Sentence& s, const Hypothesis& h) const {
    if (!options_.sampling) return 0;
    return sample_draw(options_.sampling->seed, options_.sampling->first_line + s.number, h.sample,
                       static_cast<int64_t>(h.ids.size()));
  }

  // Sentences whose search is done leave, with their rows.
  void retire(std::vector<Translation>& results) {
    std::erase_if(sentences_, [&](Sentence& s) {
      if (!s.search.live().empty()) return false;
      const std::span<const Hypothesis> ended = s.search.results();
      Translation& result = results[s.number];
      result = {.ids = ended[0].ids, .score = ended[0].score, .text = {}};
      for (const Hypothesis& h : ended.subspan(1)) {
        result.others.push_back({.ids = h.ids, .score = h.score, .text = {}});
      }
      cache_.tokens.give_back(s.token_rows);
      cache_.sources.give_back(s.source_rows);
      live_rows_ -= static_cast<int64_t>(s.source_rows.size());
      return true;
    });
  }

  const EncoderDecoder& model_;
  const TranslateOptions& options_;
  std::vector<int32_t> eos_;
  NextTokensOptions wanted_;
  nn::Run run_;
  DecoderCache cache_;
  std::vector<Sentence> sentences_;
  int64_t live_rows_ = 0;  // of the encoder
};

// A model of up to so many weights stays in the cache of a core: there threads that decode
// sentences of their own, and never wait for each other, are faster than threads that share each
// product. (Whom a sentence is decoded with changes none of its bits.)
constexpr int64_t kSmallModel = 8'000'000;

// Ids that no translation holds: those of the config that are no tokens, and the caller's.
std::vector<int32_t> suppressed_ids(const EncoderDecoderFacts& c, const TranslateOptions& o) {
  std::vector<int32_t> ids = o.suppressed;
  for (const int64_t id : {c.pad_token_id, c.bos_token_id, c.decoder_start_token_id}) {
    if (!o.is_hub) ids.push_back(static_cast<int32_t>(id));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase_if(
      ids, [&](int32_t id) { return id == c.eos_token_id || id < 0 || id >= c.target_vocab_size; });
  return ids;
}

// Hypotheses of a sentence at once.
int64_t width(const TranslateOptions& o) { return o.sampling ? o.n_best : o.beam; }

void check_options(const TranslateOptions& o) {
  check(o.beam >= 1, ErrorKind::usage, "--beam is {}; it must be at least 1", o.beam);
  check(o.batch_tokens >= 1, ErrorKind::usage, "--batch-tokens is {}; it must be at least 1",
        o.batch_tokens);
  check(o.n_best >= 1, ErrorKind::usage, "--n-best is {}; it must be at least 1", o.n_best);
  check(!o.sampling || o.beam == 1, ErrorKind::usage,
        "--sample draws tokens and --beam {} searches for the likeliest; give one of them", o.beam);
  check(o.sampling || o.n_best <= o.beam, ErrorKind::usage,
        "--n-best is {} but --beam {}; the beam must be at least as wide (or give --sample)",
        o.n_best, o.beam);
  check(o.max_length >= 0, ErrorKind::usage,
        "--max-length is {}; it must be at least 1, or 0 for one that follows the source's",
        o.max_length);
  check(o.max_length == 0 || o.rules.min_length <= o.max_length, ErrorKind::usage,
        "--min-length is {} but --max-length {}; the first must not be above the second",
        o.rules.min_length, o.max_length);
  check_token_rules(o.rules);
  if (o.sampling) check_sampling(*o.sampling);
}

void check_prefixes(const EncoderDecoderFacts& c, const TranslateOptions& o, size_t sources) {
  check(o.prefixes.size() <= 1 || o.prefixes.size() == sources, ErrorKind::usage,
        "there are {} prefixes for {} sentences; give one for all, or one for each",
        o.prefixes.size(), sources);
  for (size_t i = 0; i < o.prefixes.size(); ++i) {
    const auto length = static_cast<int64_t>(o.prefixes[i].size());
    check(o.max_length == 0 || length <= o.max_length, ErrorKind::data,
          "prefix {} has {} tokens, more than --max-length {}", i + 1, length, o.max_length);
    check(length < c.longest_target, ErrorKind::data,
          "prefix {} has {} tokens; the model takes {} with the end", i + 1, length,
          c.longest_target);
    for (const int32_t id : o.prefixes[i]) {
      check(id >= 0 && id < c.target_vocab_size && id != c.eos_token_id, ErrorKind::data,
            "prefix {}: the id {} is no token of the vocabulary of {}", i + 1, id,
            c.target_vocab_size);
    }
  }
}

}  // namespace

std::vector<Translation> translate_ids(const EncoderDecoder& model, Sources sources,
                                       const TranslateOptions& options) {
  check_mapped_files();
  check_options(options);
  check_prefixes(model.facts(), options, sources.size());
  std::vector<Translation> results(sources.size());
  std::vector<int64_t> order;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return sources[a].size() > sources[b].size(); });
  const std::vector<int32_t> suppressed = suppressed_ids(model.facts(), options);
  const auto translate = [&](Queue& queue, int64_t tokens) {
    const NoGrad off_here;  // on this thread
    Decoding(model, options, suppressed).translate(queue, tokens / width(options), results);
  };
  int64_t budget = options.batch_tokens;
  const bool is_small = model.facts().multiplied <= kSmallModel && order.size() > 1;
  // A profile follows one thread.
  if (!is_small || num_threads() == 1 || is_profiling()) {
    Queue all(sources, order);
    translate(all, budget);
    return results;
  }
  int64_t tokens = 0;
  for (const int64_t i : order) tokens += static_cast<int64_t>(sources[i].size()) + 1;
  budget = std::min(budget, (tokens / num_threads() + 1) * width(options));
  Queue all(sources, order);
  parallel_for(num_threads(), [&](int64_t) { translate(all, budget); });
  return results;
}

}  // namespace heddle
