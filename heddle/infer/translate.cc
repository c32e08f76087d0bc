// Batches of sentences through encoder and decoder, word by word, and text around it.
#include "heddle/infer/translate.h"

#include <algorithm>
#include <mutex>

#include "heddle/autograd/tape.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/infer/beam.h"
#include "heddle/text/utf8.h"

namespace heddle {
namespace {

using Sources = std::span<const std::vector<int32_t>>;

// The longest translation of so many source words, its end included.
int64_t max_length(const TransformerConfig& config, const TranslateOptions& o, size_t words) {
  const double length = o.max_length_factor * static_cast<double>(words);
  int64_t limit = static_cast<int64_t>(std::min(length, 1e9)) + o.max_length_extra;
  if (config.position_embedding_type == "learned") {
    limit = std::min(limit, config.max_position_embeddings);
  }
  return std::max<int64_t>(1, limit);
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
  /// Words and end.
  int64_t rows_of(int64_t i) const { return static_cast<int64_t>(sources_[i].size()) + 1; }

 private:
  Sources sources_;
  std::span<const int64_t> order_;
  std::mutex mutex_;
  size_t next_ = 0;
};

// Feeds the last words of all live hypotheses, step by step. When sentences are done, others of the
// queue take their place.
class Decoding {
 public:
  Decoding(const Transformer& model, const TranslateOptions& options,
           std::span<const int32_t> suppressed)
      : model_(model), options_(options), suppressed_(suppressed), cache_(model.start()) {
    run_.use(options.precision);
  }

  // Translates sentence i of the queue into results[i], at most `budget` encoder rows at a time.
  void translate(Queue& queue, int64_t budget, std::vector<Translation>& results) {
    for (;;) {
      // Many at a time: an encoder pass over few sentences costs more than places that stay empty.
      if (live_rows_ <= budget / 2) admit(queue, budget - live_rows_);
      if (sentences_.empty()) return;
      step();
      retire(results);
    }
  }

 private:
  struct Sentence {
    int64_t number;
    BeamSearch search;
    std::vector<int32_t> source_rows = {};  // of the cache
    std::vector<int32_t> word_rows = {};    // all that were taken for it
    int32_t place = 0;                      // of the next word
  };

  void admit(Queue& queue, int64_t budget) {
    const std::vector<int64_t> taken = queue.take(budget, sentences_.empty());
    if (taken.empty()) return;
    const ProfilePhase phase("encode");
    const TransformerConfig& c = model_.config();
    const auto eos = static_cast<int32_t>(c.eos_token_id);
    std::vector<int32_t> ids, rows;
    std::vector<int64_t> lengths;
    for (const int64_t i : taken) {
      const std::span<const int32_t> source = queue.source(i);
      ids.insert(ids.end(), source.begin(), source.end());
      ids.push_back(eos);
      lengths.push_back(queue.rows_of(i));
      Sentence sentence{i, BeamSearch({.beam = options_.beam,
                                       .length_penalty = options_.length_penalty,
                                       .max_length = max_length(c, options_, source.size()),
                                       .eos = eos})};
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
    const auto start = static_cast<int32_t>(model_.config().decoder_start_token_id);
    std::vector<int32_t> ids, places, new_rows, word_rows, source_rows;
    std::vector<uint8_t> must_end;
    std::vector<int64_t> beams, word_lengths, source_lengths;
    for (Sentence& s : sentences_) {
      beams.push_back(static_cast<int64_t>(s.search.live().size()));
      cache_.words.take(beams.back(), new_rows);
      for (Hypothesis& h : s.search.live()) {
        h.rows.push_back(new_rows[ids.size()]);
        s.word_rows.push_back(h.rows.back());
        word_rows.insert(word_rows.end(), h.rows.begin(), h.rows.end());
        word_lengths.push_back(static_cast<int64_t>(h.rows.size()));
        ids.push_back(h.ids.empty() ? start : h.ids.back());
        places.push_back(s.place);
        must_end.push_back(s.search.must_end());
      }
      ++s.place;
      source_rows.insert(source_rows.end(), s.source_rows.begin(), s.source_rows.end());
      source_lengths.push_back(static_cast<int64_t>(s.source_rows.size()));
    }
    const Segments one_each = Segments::uniform(static_cast<int64_t>(ids.size()), 1);
    const Segments words = Segments::from_lengths(word_lengths);
    const Segments hypotheses = Segments::from_lengths(beams);
    const Segments sources = Segments::from_lengths(source_lengths);
    const Tensor h = model_.step(cache_,
                                 {.ids = ids,
                                  .places = places,
                                  .words = {&one_each, &words, word_rows, new_rows},
                                  .sources = {&hypotheses, &sources, source_rows}},
                                 run_);
    const std::vector<NextWord> next = best_words(
        model_.logits(h, run_), {.count = continuations(options_.beam),
                                 .suppressed = suppressed_,
                                 .is_forced = must_end,
                                 .forced_id = static_cast<int32_t>(model_.config().eos_token_id)});
    const auto each = static_cast<size_t>(continuations(options_.beam));
    size_t at = 0;
    for (size_t i = 0; i < sentences_.size(); ++i) {
      const size_t n = static_cast<size_t>(beams[i]) * each;
      sentences_[i].search.advance(std::span(next).subspan(at, n));
      at += n;
    }
  }

  // Sentences whose search is done leave, with their rows.
  void retire(std::vector<Translation>& results) {
    std::erase_if(sentences_, [&](Sentence& s) {
      if (!s.search.live().empty()) return false;
      results[s.number].ids = s.search.best_ids();
      results[s.number].score = s.search.best_score();
      cache_.words.give_back(s.word_rows);
      cache_.sources.give_back(s.source_rows);
      live_rows_ -= static_cast<int64_t>(s.source_rows.size());
      return true;
    });
  }

  const Transformer& model_;
  const TranslateOptions& options_;
  std::span<const int32_t> suppressed_;
  nn::Run run_;
  DecoderCache cache_;
  std::vector<Sentence> sentences_;
  int64_t live_rows_ = 0;  // of the encoder
};

// A model of up to so many weights stays in the cache of a core: there threads that decode
// sentences of their own, and never wait for each other, are faster than threads that share each
// product. (Whom a sentence is decoded with changes none of its bits.)
constexpr int64_t kSmallModel = 8'000'000;

int64_t matrix_weights(const TransformerConfig& c) {
  const int64_t d = c.d_model;
  return c.vocab_size * d + c.encoder_layers * d * (4 * d + 2 * c.encoder_ffn_dim) +
         c.decoder_layers * d * (8 * d + 2 * c.decoder_ffn_dim);
}

// Ids that no translation holds: those of the config that are no words, and the caller's.
std::vector<int32_t> suppressed_ids(const TransformerConfig& c, const TranslateOptions& o) {
  std::vector<int32_t> ids = o.suppressed;
  for (const int64_t id : {c.pad_token_id, c.bos_token_id, c.decoder_start_token_id}) {
    ids.push_back(static_cast<int32_t>(id));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase_if(ids,
                [&](int32_t id) { return id == c.eos_token_id || id < 0 || id >= c.vocab_size; });
  return ids;
}

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string::npos;
}

// A piece may be the byte of a line break; a line in must stay a line out.
std::string without_breaks(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

using Ids = std::vector<std::vector<int32_t>>;

Ids tokenise(const TranslationModel& model, std::span<const std::string> lines, bool truncate,
             int64_t first_line, int64_t* cut) {
  const ProfilePhase phase("tokenise");
  Ids sources;
  for (size_t i = 0; i < lines.size(); ++i) {
    bool was_cut = false;
    sources.push_back(source_ids(model, lines[i],
                                 fmt::format("line {}", first_line + static_cast<int64_t>(i)),
                                 truncate, &was_cut));
    if (cut != nullptr && was_cut) ++*cut;
  }
  return sources;
}

}  // namespace

std::vector<Translation> translate_ids(const Transformer& model, Sources sources,
                                       const TranslateOptions& options) {
  check(options.beam >= 1, ErrorKind::usage, "--beam is {}; it must be at least 1", options.beam);
  check(options.batch_tokens >= 1, ErrorKind::usage, "--batch-tokens is {}; it must be at least 1",
        options.batch_tokens);
  std::vector<Translation> results(sources.size());
  std::vector<int64_t> order;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return sources[a].size() > sources[b].size(); });
  const std::vector<int32_t> suppressed = suppressed_ids(model.config(), options);
  const auto translate = [&](Queue& queue, int64_t tokens) {
    const NoGrad off_here;  // on this thread
    Decoding(model, options, suppressed).translate(queue, tokens / options.beam, results);
  };
  int64_t budget = options.batch_tokens;
  const bool is_small = matrix_weights(model.config()) <= kSmallModel && order.size() > 1;
  // A profile follows one thread.
  if (!is_small || num_threads() == 1 || is_profiling()) {
    Queue all(sources, order);
    translate(all, budget);
    return results;
  }
  int64_t tokens = 0;
  for (const int64_t i : order) tokens += static_cast<int64_t>(sources[i].size()) + 1;
  budget = std::min(budget, (tokens / num_threads() + 1) * options.beam);
  Queue all(sources, order);
  parallel_for(num_threads(), [&](int64_t) { translate(all, budget); });
  return results;
}

std::vector<int32_t> source_ids(const TranslationModel& model, const std::string& line,
                                const std::string& where, bool truncate, bool* was_cut) {
  if (was_cut != nullptr) *was_cut = false;
  if (const auto at = first_invalid_utf8(line)) {
    fail(ErrorKind::data, "{}: not UTF-8: byte 0x{:02x} at offset {}; convert the text to UTF-8",
         where, static_cast<unsigned char>(line[*at]), *at);
  }
  if (is_blank(line)) return {};
  std::vector<int32_t> ids = model.tokenizer.value().encode(line);
  const int64_t limit = model.config.max_position_embeddings - 1;
  if (static_cast<int64_t>(ids.size()) > limit) {
    check(truncate, ErrorKind::data,
          "{}: {} tokens with the end of the sentence; the model takes {} "
          "(max_position_embeddings). Split the line, or cut it with --truncate",
          where, ids.size() + 1, limit + 1);
    ids.resize(static_cast<size_t>(limit));
    if (was_cut != nullptr) *was_cut = true;
  }
  return ids;
}

std::vector<Translation> translate_lines(const TranslationModel& model,
                                         std::span<const std::string> lines,
                                         const TranslateOptions& options, int64_t first_line,
                                         int64_t* cut) {
  const Ids sources = tokenise(model, lines, options.truncate, first_line, cut);
  const Tokenizer& tokenizer = model.tokenizer.value();
  TranslateOptions with_unk = options;
  if (tokenizer.unk_id() >= 0) with_unk.suppressed.push_back(tokenizer.unk_id());
  std::vector<Translation> results = translate_ids(model.model, sources, with_unk);
  const ProfilePhase phase("detokenise");
  for (Translation& t : results) t.text = without_breaks(tokenizer.decode(t.ids));
  return results;
}

}  // namespace heddle
