// Reading over caches of keys; and one pass over the tokens of requests that came and the last
// tokens of those that go on, again and again.
#include "heddle/infer/engine/engine.h"

#include <algorithm>

#include "heddle/autograd/tape.h"
#include "heddle/base/profile.h"
#include "heddle/infer/engine/ordered_reader.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

// h: [rows of tokens, width]    returns: [sequences, width]
Tensor last_of_each(const Tensor& h, const Segments& tokens) {
  if (tokens.rows() == tokens.count()) return h;
  Ids last;
  for (int64_t i = 0; i < tokens.count(); ++i) {
    last.push_back(static_cast<int32_t>(tokens.end(i)) - 1);
  }
  return gather_rows(h, last);
}

class CachedReader final : public SequenceReader {
 public:
  explicit CachedReader(const LanguageModel& model) : model_(model), cache_(0, model.layers()) {}

  void add(Sources sources, const nn::Run&) override { cache_.add(std::ssize(sources)); }
  void select(std::span<const int64_t> sequences) override { cache_.select(sequences); }
  void limit_rows(int64_t rows) override { cache_.limit(rows); }
  int64_t rows() const override { return cache_.rows(); }

  Tensor read(std::span<const int32_t> ids, const Segments& tokens, const nn::Run& run) override {
    cache_.extend(tokens);
    const Tensor h = model_.hidden(
        {.ids = ids, .segments = &tokens, .position_ids = cache_.position_ids(), .cache = &cache_},
        run);
    return last_of_each(h, tokens);
  }

 private:
  const LanguageModel& model_;
  nn::KvCache cache_;
};

// A sequence is a translation that begins; those that fork have the same source.
class TranslationReader final : public SequenceReader {
 public:
  explicit TranslationReader(const EncoderDecoder& model)
      : model_(model),
        tokens_(0, model.facts().decoder_layers),
        sources_(model.facts().decoder_layers) {}

  void add(Sources sources, const nn::Run& run) override {
    const ProfilePhase phase("encode");
    Ids ids, rows;
    std::vector<int64_t> lengths;
    std::vector<Tensor> memories;
    for (const Source& source : sources) {
      ids.insert(ids.end(), source.ids.begin(), source.ids.end());
      if (source.memory.defined()) memories.push_back(source.memory);
      lengths.push_back(source.memory.defined() ? source.memory.size(0) : std::ssize(source.ids));
      auto taken = std::make_shared<Ids>();
      source_pool_.take(lengths.back(), *taken);
      rows.insert(rows.end(), taken->begin(), taken->end());
      source_rows_.push_back(std::move(taken));
    }
    const Segments segments = Segments::from_lengths(lengths);
    const Tensor memory = memories.empty()
                              ? model_.encode(nn::TokenRows{.ids = ids, .segments = &segments}, run)
                              : concat(memories, 0);
    model_.add_sources(sources_, memory, segments, rows, run);
    tokens_.add(std::ssize(sources));
  }

  Tensor read(std::span<const int32_t> ids, const Segments& tokens, const nn::Run& run) override {
    tokens_.extend(tokens);
    Ids rows;
    std::vector<int64_t> queries, keys;  // of each source
    for (size_t i = 0; i < source_rows_.size(); ++i) {
      const Ids& source = *source_rows_[i];
      if (i == 0 || source_rows_[i] != source_rows_[i - 1]) {
        rows.insert(rows.end(), source.begin(), source.end());
        keys.push_back(std::ssize(source));
        queries.push_back(0);
      }
      queries.back() += tokens.length(static_cast<int64_t>(i));
    }
    const Segments of_sources = Segments::from_lengths(keys);
    const Segments asking = Segments::from_lengths(queries);
    const Tensor h = model_.step({.ids = ids,
                                  .segments = &tokens,
                                  .position_ids = tokens_.position_ids(),
                                  .cache = &tokens_},
                                 sources_, {&asking, &of_sources, rows}, run);
    return last_of_each(h, tokens);
  }

  void select(std::span<const int64_t> sequences) override {
    tokens_.select(sequences);
    std::vector<std::shared_ptr<Ids>> selected;
    for (const int64_t s : sequences) selected.push_back(source_rows_[static_cast<size_t>(s)]);
    source_rows_.swap(selected);
    for (std::shared_ptr<Ids>& rows : selected) {  // the last holder gives them back
      if (rows.use_count() == 1) source_pool_.give_back(*rows);
      rows.reset();
    }
  }

  void limit_rows(int64_t rows) override {
    tokens_.limit(rows);
    for (nn::RowCache& layer : sources_) layer.limit(rows);
  }
  int64_t rows() const override { return tokens_.rows() + source_pool_.held(); }

 private:
  const EncoderDecoder& model_;
  nn::KvCache tokens_;
  std::vector<nn::RowCache> sources_;  // of each layer
  nn::RowPool source_pool_;
  std::vector<std::shared_ptr<Ids>> source_rows_;  // of each sequence; of one source the same
};

std::unique_ptr<SequenceReader> make_reader(const Model& model) {
  if (const auto* translator = model.as<EncoderDecoder>()) {
    return std::make_unique<TranslationReader>(*translator);
  }
  if (const auto* language = model.as<LanguageModel>()) {
    return std::make_unique<CachedReader>(*language);
  }
  return make_ordered_reader(model.need<TokenModel>("engine"));
}

}  // namespace

// --- requests ------------------------------------------------------------------------------------

// A request with its search. It is with the reader as one sequence for each hypothesis that goes
// on, or, before its tokens are read, as one sequence without tokens.
struct Engine::Running {
  Running(int64_t number, Request asked)
      : id(number),
        request(std::move(asked)),
        suppressed(request.search.suppressed_ids()),
        search(request.search, request.penalty, request.longest_output, request.goes_on) {
    wanted = {.search = &request.search,
              .count = search.continuations(),
              .suppressed = suppressed,
              .banned_ngrams = request.search.banned_ngrams(),
              .ends = search.ends(),
              .scores = request.scores || request.search.beam.value_or(1) > 1,
              .penalises_log_p = request.penalises_log_p};
  }

  // Of what was given and each hypothesis that goes on.
  int64_t length() const {
    const size_t new_ones = search.live().empty() ? 0 : search.live()[0].ids.size();
    return static_cast<int64_t>(request.tokens.size() + new_ones);
  }
  int32_t token(const Hypothesis& h, int64_t t) const {
    const auto i = static_cast<size_t>(t);
    return i < request.tokens.size() ? request.tokens[i] : h.ids[i - request.tokens.size()];
  }
  // The only token that may come behind n tokens of the output, or -1.
  int32_t forced(size_t n) const {
    if (n < request.prefix.size()) return request.prefix[n];
    return search.is_last() ? token_id(request.search.forced_eos).value_or(-1) : -1;
  }
  bool is_free(size_t n) const {
    if (n < request.prefix.size()) return n < request.free_prefix;
    return request.forced_eos_is_free && forced(n) >= 0;
  }
  double draw(const Hypothesis& h) const {
    const SearchConfig& s = request.search;
    if (!s.samples) return 0;
    return sample_draw(static_cast<uint64_t>(s.seed.value_or(1)), s.first_line, h.sample,
                       std::ssize(h.ids));
  }

  const int64_t id;
  const Request request;
  const Ids suppressed;
  BeamSearch search;
  NextTokensOptions wanted;
  int64_t reserved = 0;  // rows of the KV cache
  bool is_read = false, is_cancelled = false;
  // Tokens of what was given and the output, by number: the reader's first, those yet to be read.
  int64_t begin = 0, unread = 0;
  int64_t sequences = 1;  // of the reader
};

Engine::Engine(const Model& model, Precision precision)
    : model_(model), reader_(make_reader(model)) {
  if (const auto* translator = model.as<EncoderDecoder>()) facts_ = &translator->facts();
  run_.use(precision);
}

Engine::~Engine() = default;

void Engine::limit_rows(int64_t rows) {
  limit_ = rows;
  reader_->limit_rows(rows);
}

int64_t Engine::context_of(const Request& r) const {
  const int64_t most = facts_ ? facts_->longest_target : model_.as<TokenModel>()->max_length();
  return r.context == 0 ? most : std::min(r.context, most);
}

int64_t Engine::rows_needed(const Request& r) const {
  const int64_t context = context_of(r), n = r.search.width();
  const int64_t given = std::ssize(r.tokens), source = r.source_rows();
  if (given + r.longest_read() > context) return source + reader_->rows_of(0, context, n);
  return source + reader_->rows_of(given, r.longest_read(), n);
}

void Engine::check_request(const Request& r) const {
  r.search.check();
  const int64_t vocab = model_.heads().output->vocab(), context = context_of(r);
  nn::check_ids(r.tokens, vocab, "tokens");
  nn::check_ids(r.prefix, vocab, "prefix");
  if (!r.source.empty()) {
    nn::check_ids(r.source, facts_ ? facts_->source_vocab_size : vocab, "source");
  }
  check(!r.tokens.empty(), ErrorKind::data,
        "there are no tokens; the model needs at least one to go on from");
  check(facts_ == nullptr || r.source_rows() > 0, ErrorKind::data,
        "there is no source; the model reads one");
  check(!r.memory.defined() || (facts_ != nullptr && facts_->source_vocab_size == 0),
        ErrorKind::internal, "a source that is encoded already, of a model that reads tokens");
  const int64_t most = facts_ ? facts_->longest_source : 0;
  check(r.source_rows() <= most, ErrorKind::data,
        "the source has {} tokens; the model takes {} at most", r.source_rows(), most);
  check(r.longest_output >= 1, ErrorKind::usage, "`max_new_tokens` is {}; it must be at least 1",
        r.longest_output);
  const int64_t read = std::ssize(r.tokens) + (r.slides ? 0 : r.longest_read());
  check(read <= context, ErrorKind::data,
        "{} tokens and at most {} new ones; the model takes {} and gives one more", r.tokens.size(),
        r.longest_output, context);
}

int64_t Engine::submit(Request request) {
  check_request(request);
  const int64_t rows = rows_needed(request);
  check(rows <= limit_, ErrorKind::data,
        "the request may need {} rows of the KV cache, which has {}; ask for fewer new tokens, "
        "fewer hypotheses, or give less text",
        rows, limit_);
  waiting_.push_back(std::make_unique<Running>(next_id_, std::move(request)));
  waiting_.back()->reserved = rows;
  return next_id_++;
}

void Engine::admit() {
  std::vector<SequenceReader::Source> sources;
  while (!waiting_.empty() && reserved_ + waiting_.front()->reserved <= limit_) {
    reserved_ += waiting_.front()->reserved;
    const Request& request = waiting_.front()->request;
    sources.push_back({request.source, request.memory});
    if (request.on_start) request.on_start();
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (!sources.empty()) reader_->add(sources, run_);
}

bool Engine::step() {
  const NoGrad off;
  is_in_step_ = true;
  try {
    admit();
    if (!running_.empty()) pass();
    retire();
  } catch (...) {
    running_.clear();
    reserved_ = 0;
    reader_ = make_reader(model_);
    reader_->limit_rows(limit_);
    is_in_step_ = has_cancelled_ = false;
    throw;
  }
  is_in_step_ = false;
  drop_cancelled();
  return !running_.empty() || !waiting_.empty();
}

void Engine::pass() {
  Ids ids, read;  // of each hypothesis: its sequence with the reader
  std::vector<int64_t> lengths;
  std::vector<TokensSoFar> so_far;
  for (const auto& r : running_) {
    const Ids& given = r->request.tokens;
    if (!r->is_read) {
      ids.insert(ids.end(), given.begin(), given.end());
      lengths.push_back(std::ssize(given));
    }
    const int64_t length = r->length();
    for (const Hypothesis& h : r->search.live()) {
      if (r->is_read) {
        for (int64_t t = r->unread; t < length; ++t) ids.push_back(r->token(h, t));
        lengths.push_back(length - r->unread);
      }
      read.push_back(static_cast<int32_t>(lengths.size()) - 1);
      so_far.push_back({.options = &r->wanted,
                        .before = facts_ ? std::span<const int32_t>() : given,
                        .tokens = h.ids,
                        .forced = r->forced(h.ids.size()),
                        .draw = r->draw(h)});
    }
  }
  const Segments tokens = Segments::from_lengths(lengths);
  const ProfilePhase phase(tokens.rows() > tokens.count() ? "prompt" : "decode step");
  Tensor h = reader_->read(ids, tokens, run_);
  if (read.size() != lengths.size()) h = gather_rows(h, read);  // samples share what was given
  advance(h, next_tokens(*model_.heads().output, h, run_, so_far));
  select();
}

// h: [hypotheses, width]; next: the tokens of each of them
void Engine::advance(const Tensor& h, std::vector<NextToken> next) {
  int64_t row = 0;
  size_t at = 0;
  for (const auto& r : running_) {
    const auto live = std::ssize(r->search.live());
    const size_t count = static_cast<size_t>(r->wanted.count), begin = at;
    const bool is_free = r->is_free(r->search.live()[0].ids.size());
    for (int64_t i = 0; i < live; ++i, at += count) {
      if (is_free) next[at].log_p = 0;
    }
    const std::span<const NextToken> own = std::span(next).subspan(begin, at - begin);
    std::vector<Hypothesis> before;
    if (r->request.on_step) before.assign(r->search.live().begin(), r->search.live().end());
    r->search.advance(own);
    if (r->request.on_step) {
      const Tensor rows = h.slice(0, row, live).to_contiguous();
      r->request.on_step({r->request.number, before, (*model_.heads().output)(rows, run_),
                          r->search.live(), r->search.just_ended()});
    }
    row += live;
  }
}

// The reader's sequences become those of the hypotheses that go on.
void Engine::select() {
  std::vector<int64_t> kept;    // of each hypothesis: the reader's sequence before
  std::vector<size_t> emptied;  // those of them that begin anew
  int64_t read = 0;
  for (const auto& r : running_) {
    const int64_t length = r->length(), context = context_of(r->request);
    const bool begins_anew = length - r->begin > context;  // no room for what came last
    if (begins_anew) r->begin = length - std::max<int64_t>(1, context / 2);
    r->unread = begins_anew ? r->begin : length - 1;
    for (const Hypothesis& h : r->search.live()) {
      if (begins_anew) emptied.push_back(kept.size());
      kept.push_back(read + (r->is_read ? h.parent : 0));
    }
    read += r->sequences;
    r->sequences = std::ssize(r->search.live());
    r->is_read = true;
  }
  const SequenceReader::Source none;
  if (!emptied.empty()) reader_->add(std::span(&none, 1), run_);
  for (const size_t i : emptied) kept[i] = read;
  bool is_same = emptied.empty() && std::ssize(kept) == read;
  for (size_t i = 0; i < kept.size(); ++i) is_same = is_same && kept[i] == static_cast<int64_t>(i);
  if (!is_same) reader_->select(kept);
}

void Engine::retire() {
  const auto done = std::stable_partition(running_.begin(), running_.end(),
                                          [](const auto& r) { return !r->search.live().empty(); });
  const RunningList leaving(std::make_move_iterator(done), std::make_move_iterator(running_.end()));
  running_.erase(done, running_.end());
  for (const auto& r : leaving) reserved_ -= r->reserved;
  for (const auto& r : leaving) {
    if (r->request.on_done && !r->is_cancelled) r->request.on_done(r->search.results());
  }
}

void Engine::cancel(int64_t id) {
  std::erase_if(waiting_, [&](const auto& r) { return r->id == id; });
  for (const auto& r : running_) {
    if (r->id == id) r->is_cancelled = has_cancelled_ = true;
  }
  if (!is_in_step_) drop_cancelled();
}

void Engine::drop_cancelled() {
  if (!has_cancelled_) return;
  has_cancelled_ = false;
  std::vector<int64_t> kept;
  int64_t sequence = 0;
  for (const auto& r : running_) {
    for (int64_t i = 0; i < r->sequences; ++i, ++sequence) {
      if (!r->is_cancelled) kept.push_back(sequence);
    }
    if (r->is_cancelled) reserved_ -= r->reserved;
  }
  std::erase_if(running_, [](const auto& r) { return r->is_cancelled; });
  reader_->select(kept);
}

}  // namespace heddle
