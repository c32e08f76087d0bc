// One pass over the tokens of requests that came and the last tokens of those that go on, again and
// again.
#include "heddle/infer/engine/engine.h"

#include <algorithm>

#include "heddle/autograd/tape.h"
#include "heddle/base/profile.h"
#include "heddle/infer/search/next_tokens.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

}  // namespace

// A request with its search. It is with the reader as one sequence for each hypothesis that goes
// on, or, before its tokens are read, as one sequence without tokens.
struct Engine::Running {
  Running(int64_t number, Request asked)
      : id(number),
        request(std::move(asked)),
        suppressed(request.search.suppressed_ids()),
        search(request.search, request.penalty, request.max_length, request.goes_on) {
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
  int64_t rows = 0;  // reserved
  bool is_read = false, is_cancelled = false;
  // Tokens of what was given and the output, by number: the reader's first, those yet to be read.
  int64_t begin = 0, unread = 0;
  int64_t sequences = 1;  // of the reader
};

Engine::Engine(const TokenModel& model, Precision precision)
    : model_(model), translator_(model.as<EncoderDecoder>()), reader_(make_sequence_reader(model)) {
  run_.use(precision);
}

Engine::~Engine() = default;

void Engine::limit_rows(int64_t rows) {
  limit_ = rows;
  reader_->limit_rows(rows);
}

int64_t Engine::context_of(const Request& r) const {
  const int64_t most = translator_ ? translator_->facts().longest_target : model_.max_length();
  return r.context == 0 ? most : std::min(r.context, most);
}

int64_t Engine::rows_needed(const Request& r) const {
  const int64_t context = context_of(r), n = r.search.width();
  const auto given = std::ssize(r.tokens), source = std::ssize(r.source);
  const int64_t own = std::max<int64_t>(0, r.max_length - 1);  // the last is never read
  if (given + own > context) return source + reader_->rows_of(0, context, n);
  return source + reader_->rows_of(given, own, n);
}

void Engine::check_request(const Request& r) const {
  r.search.check();
  const int64_t vocab = model_.heads().output->vocab(), context = context_of(r);
  nn::check_ids(r.tokens, vocab, "tokens");
  nn::check_ids(r.prefix, vocab, "prefix");
  nn::check_ids(r.source, model_.vocab_size(), "source");
  check(!r.tokens.empty(), ErrorKind::data,
        "there are no tokens; the model needs at least one to go on from");
  check(translator_ == nullptr || !r.source.empty(), ErrorKind::data,
        "there is no source; the model translates one");
  const int64_t most = translator_ ? model_.max_length() : 0;
  check(std::ssize(r.source) <= most, ErrorKind::data,
        "the source has {} tokens; the model takes {} at most", r.source.size(), most);
  check(r.max_length >= 1, ErrorKind::usage, "`max_new_tokens` is {}; it must be at least 1",
        r.max_length);
  const int64_t read = std::ssize(r.tokens) + (r.slides ? 0 : r.max_length - 1);
  check(read <= context, ErrorKind::data,
        "{} tokens and at most {} new ones; the model takes {} and gives one more", r.tokens.size(),
        r.max_length, context);
}

int64_t Engine::submit(Request request) {
  check_request(request);
  const int64_t rows = rows_needed(request);
  check(rows <= limit_, ErrorKind::data,
        "the request may need {} rows of the KV cache, which has {}; ask for fewer new tokens, "
        "fewer hypotheses, or give less text",
        rows, limit_);
  waiting_.push_back(std::make_unique<Running>(next_id_, std::move(request)));
  waiting_.back()->rows = rows;
  return next_id_++;
}

void Engine::admit() {
  std::vector<std::span<const int32_t>> sources;
  while (!waiting_.empty() && reserved_ + waiting_.front()->rows <= limit_) {
    reserved_ += waiting_.front()->rows;
    sources.push_back(waiting_.front()->request.source);
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
    reader_ = make_sequence_reader(model_);
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
                        .before = translator_ ? std::span<const int32_t>() : given,
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
    if (r->request.on_step) {
      const std::vector<Hypothesis> before(r->search.live().begin(), r->search.live().end());
      r->search.advance(own);
      const Tensor rows = h.slice(0, row, live).to_contiguous();
      r->request.on_step({r->request.number, before, (*model_.heads().output)(rows, run_),
                          r->search.live(), r->search.just_ended()});
    } else {
      r->search.advance(own);
    }
    row += live;
  }
}

// Whether the reader has no room for what came last, so that it begins anew.
bool Engine::slide(Running& r) const {
  const int64_t n = r.length(), context = context_of(r.request);
  r.unread = n - 1;
  if (n - r.begin <= context) return false;
  r.begin = r.unread = n - std::max<int64_t>(1, context / 2);
  return true;
}

// The reader's sequences become those of the hypotheses that go on.
void Engine::select() {
  std::vector<int64_t> kept;    // of each hypothesis: the reader's sequence before
  std::vector<size_t> emptied;  // those of them that begin anew
  int64_t read = 0;
  for (const auto& r : running_) {
    const bool begins_anew = slide(*r);
    for (const Hypothesis& h : r->search.live()) {
      if (begins_anew) emptied.push_back(kept.size());
      kept.push_back(read + (r->is_read ? h.parent : 0));
    }
    read += r->sequences;
    r->sequences = std::ssize(r->search.live());
    r->is_read = true;
  }
  const std::span<const int32_t> none;
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
  for (const auto& r : leaving) reserved_ -= r->rows;
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
    if (r->is_cancelled) reserved_ -= r->rows;
  }
  std::erase_if(running_, [](const auto& r) { return r->is_cancelled; });
  reader_->select(kept);
}

}  // namespace heddle
