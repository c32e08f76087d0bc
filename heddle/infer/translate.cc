// Batches of sentences through encoder and decoder, word by word, and text around it.
#include "heddle/infer/translate.h"

#include <algorithm>
#include <numeric>

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

// One batch: encodes, then feeds the last words of all live hypotheses until none is left.
class Decoding {
 public:
  Decoding(const Transformer& model, const TranslateOptions& options,
           std::span<const int32_t> suppressed)
      : model_(model), options_(options), suppressed_(suppressed) {
    run_.use(options.precision);
  }

  // Translates sources[i] for each i of `batch` into results[i].
  void translate(Sources sources, std::span<const int64_t> batch,
                 std::vector<Translation>& results) {
    begin(sources, batch);
    while (step()) {
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      results[batch[i]].ids = searches_[i].best_ids();
      results[batch[i]].score = searches_[i].best_score();
    }
  }

 private:
  void begin(Sources sources, std::span<const int64_t> batch) {
    const ProfilePhase phase("encode");
    const TransformerConfig& c = model_.config();
    std::vector<int32_t> ids;
    std::vector<int64_t> lengths;
    for (const int64_t i : batch) {
      ids.insert(ids.end(), sources[i].begin(), sources[i].end());
      ids.push_back(static_cast<int32_t>(c.eos_token_id));
      lengths.push_back(static_cast<int64_t>(sources[i].size()) + 1);
      searches_.emplace_back(BeamOptions{.beam = options_.beam,
                                         .length_penalty = options_.length_penalty,
                                         .max_length = max_length(c, options_, sources[i].size()),
                                         .eos = static_cast<int32_t>(c.eos_token_id)});
    }
    const Segments segments = Segments::from_lengths(lengths);
    const Tensor memory = model_.encode({ids, &segments, nullptr}, run_);
    cache_ = model_.start(memory, segments, run_);
  }

  // Feeds the newest word of each live hypothesis; false if there is none.
  bool step() {
    const ProfilePhase phase("decode step");
    const auto start = static_cast<int32_t>(model_.config().decoder_start_token_id);
    std::vector<int32_t> ids, key_rows;
    std::vector<uint8_t> must_end;
    std::vector<int64_t> beams;
    for (BeamSearch& search : searches_) {
      beams.push_back(static_cast<int64_t>(search.live().size()));
      for (Hypothesis& h : search.live()) {
        h.rows.push_back(static_cast<int32_t>(cache_.used + static_cast<int64_t>(ids.size())));
        key_rows.insert(key_rows.end(), h.rows.begin(), h.rows.end());
        ids.push_back(h.ids.empty() ? start : h.ids.back());
        must_end.push_back(search.must_end());
      }
    }
    if (ids.empty()) return false;
    const Tensor h = model_.step(cache_,
                                 {.ids = ids,
                                  .position = position_++,
                                  .beams = Segments::from_lengths(beams),
                                  .key_rows = key_rows},
                                 run_);
    const std::vector<NextWord> next = best_words(
        model_.logits(h, run_), {.count = continuations(options_.beam),
                                 .suppressed = suppressed_,
                                 .is_forced = must_end,
                                 .forced_id = static_cast<int32_t>(model_.config().eos_token_id)});
    advance(next);
    return true;
  }

  void advance(std::span<const NextWord> next) {
    size_t at = 0;
    for (BeamSearch& search : searches_) {
      const size_t n = search.live().size() * static_cast<size_t>(continuations(options_.beam));
      if (n > 0) search.advance(next.subspan(at, n));
      at += n;
    }
  }

  const Transformer& model_;
  const TranslateOptions& options_;
  std::span<const int32_t> suppressed_;
  nn::Run run_;
  std::vector<BeamSearch> searches_;
  DecoderCache cache_;
  int64_t position_ = 0;
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

// Cuts sentences into batches of at most `budget` rows of the encoder times the beam.
std::vector<std::span<const int64_t>> cut_batches(Sources sources, std::span<const int64_t> order,
                                                  int64_t beam, int64_t budget) {
  std::vector<std::span<const int64_t>> batches;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    int64_t tokens = 0;
    for (; end < order.size(); ++end) {
      tokens += (static_cast<int64_t>(sources[order[end]].size()) + 1) * beam;
      if (end > begin && tokens > budget) break;
    }
    batches.push_back(order.subspan(begin, end - begin));
  }
  return batches;
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
  const auto translate_batch = [&](std::span<const int64_t> batch) {
    const NoGrad off_here;  // on this thread
    Decoding(model, options, suppressed).translate(sources, batch, results);
  };
  int64_t budget = options.batch_tokens;
  const bool is_small = matrix_weights(model.config()) <= kSmallModel && order.size() > 1;
  // A profile follows one thread.
  if (!is_small || num_threads() == 1 || is_profiling()) {
    for (const auto batch : cut_batches(sources, order, options.beam, budget)) {
      translate_batch(batch);
    }
    return results;
  }
  // The shortest sentence goes first and alone: it makes the copies of weights that threads share.
  const int64_t shortest = order.back();
  translate_batch(std::span(&shortest, 1));
  order.pop_back();
  int64_t tokens = 0;
  for (const int64_t i : order) tokens += static_cast<int64_t>(sources[i].size()) + 1;
  budget = std::min(budget, tokens * options.beam / num_threads() + 1);
  const auto batches = cut_batches(sources, order, options.beam, budget);
  parallel_for(static_cast<int64_t>(batches.size()),
               [&](int64_t i) { translate_batch(batches[i]); });
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
