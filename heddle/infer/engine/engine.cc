// One pass over the tokens of requests that came and the last tokens of those that go on, with what
// is drafted behind them, again and again.
#include "heddle/infer/engine/engine.h"

#include <algorithm>
#include <numeric>

#include "heddle/autograd/tape.h"
#include "heddle/base/profile.h"
#include "heddle/base/work_notes.h"
#include "heddle/infer/engine/cached_reader.h"
#include "heddle/infer/engine/ordered_reader.h"
#include "heddle/infer/search/prompt_lookup.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;
const Ids kNoIds;

std::unique_ptr<SequenceReader> make_reader(const Model& model) {
  if (const auto* translator = model.as<EncoderDecoder>()) return make_cached_reader(*translator);
  if (const auto* language = model.as<LanguageModel>()) return make_cached_reader(*language);
  return make_ordered_reader(model.need<TokenModel>("engine"));
}

}  // namespace

// --- requests ------------------------------------------------------------------------------------

// A request with its search. It is with the reader as one sequence for each hypothesis that goes
// on, or, before its tokens are read, as one sequence without tokens.
struct Engine::Running {
  Running(int64_t number, Request asked, int64_t vocab)
      : id(number),
        request(std::move(asked)),
        suppressed(request.search.suppressed_ids()),
        search(request.search, request.penalty, request.longest_output, rule_of(request)) {
    wanted = {.search = &request.search,
              .count = search.continuations(),
              .suppressed = suppressed,
              .banned_ngrams = request.search.banned_ngrams(),
              .ends = search.ends(),
              .scores = request.scores || request.search.beam.value_or(1) > 1,
              .penalises_log_p = request.penalises_log_p};
    if (request.candidates.empty()) return;
    Ids needed = request.prefix;
    needed.insert(needed.end(), wanted.ends.begin(), wanted.ends.end());
    if (const auto last = token_id(request.search.forced_eos)) needed.push_back(*last);
    candidates.emplace(request.candidates, needed, suppressed, vocab);
    wanted.candidates = &*candidates;
  }

  // When a hypothesis ends.
  static GoesOn rule_of(const Request& r) {
    if (!r.constraint) return r.goes_on;
    return [asked = r.goes_on, constraint = r.constraint](const Hypothesis& h) {
      return (!asked || asked(h)) && !constraint->is_over(h.ids);
    };
  }

  // Of what was given and each hypothesis that goes on.
  int64_t length() const { return std::ssize(request.tokens) + written(); }
  // Tokens of the output that each of them has.
  int64_t written() const { return search.live().empty() ? 0 : std::ssize(search.live()[0].ids); }
  int32_t token(const Hypothesis& h, int64_t t) const {
    const auto i = static_cast<size_t>(t);
    return i < request.tokens.size() ? request.tokens[i] : h.ids[i - request.tokens.size()];
  }
  // The only token that may come behind n tokens of the output, or -1.
  int32_t forced(size_t n) const {
    if (n < request.prefix.size()) return request.prefix[n];
    const bool is_last = static_cast<int64_t>(n) + 1 >= request.longest_output;
    return is_last ? token_id(request.search.forced_eos).value_or(-1) : -1;
  }
  bool is_free(size_t n) const {
    if (n < request.prefix.size()) return n < request.free_prefix;
    return request.forced_eos_is_free && forced(n) >= 0;
  }
  // Of the token behind n of the output.
  double draw(const Hypothesis& h, size_t n) const {
    const SearchConfig& s = request.search;
    if (!s.samples) return 0;
    return sample_draw(static_cast<uint64_t>(s.seed.value_or(1)), s.first_line, h.sample,
                       static_cast<int64_t>(n));
  }
  // The output so far and what may follow it. None of the drafts is the last token: that is not
  // read. Behind an end comes nothing.
  Ids ahead(const Hypothesis& h, int64_t context) const {
    const int64_t room =
        std::min(request.longest_output - std::ssize(h.ids) - 1, begin + context - length());
    const int64_t most = std::min(most_drafted, room);
    if (most <= 0) return h.ids;
    Ids text = request.tokens;
    text.insert(text.end(), h.ids.begin(), h.ids.end());
    Ids tokens = h.ids;
    for (const int32_t draft : look_up(text, most)) {
      if (contains(wanted.ends, draft)) break;
      tokens.push_back(draft);
    }
    return tokens;
  }

  // After a step behind n tokens of the output: finds where those that go on come from. returns:
  // whether the next token of each of them is known too.
  bool follow(int64_t n) {
    std::vector<int64_t> before;
    before.swap(from);
    bool is_known = true;
    for (const Hypothesis& h : search.live()) {
      from.push_back(before[static_cast<size_t>(h.parent)]);
      const Ids& tokens = drafts[static_cast<size_t>(from.back())];
      is_known =
          is_known && n < std::ssize(tokens) && h.ids.back() == tokens[static_cast<size_t>(n)];
    }
    return is_known && !from.empty();
  }

  // A text that repeats itself is drafted farther ahead, another one at little cost: behind a miss
  // one token more than came, else twice as many.
  void count(int64_t drafted_now, int64_t accepted_now) {
    drafted += drafted_now;
    accepted += accepted_now;
    if (drafted_now == 0) return;
    const int64_t each = accepted_now / std::ssize(answers);
    most_drafted = accepted_now < drafted_now ? each + 1 : 2 * most_drafted;
    most_drafted = std::min(most_drafted, *request.search.drafted);
  }

  const int64_t id;
  const Request request;
  const Ids suppressed;
  BeamSearch search;
  std::optional<Candidates> candidates;
  NextTokensOptions wanted;
  int64_t reserved = 0;  // rows of the KV cache
  bool is_read = false, is_cancelled = false;
  int64_t part = 0;  // tokens of the prompt that this pass reads, if more are to come
  // Tokens of what was given and the output, by number: the reader's first, those yet to be read.
  int64_t begin = 0, unread = 0;
  int64_t sequences = 1;  // of the reader
  int64_t most_drafted = request.search.drafted.value_or(0);
  std::vector<Ids> drafts;       // ahead() of each hypothesis of the last pass
  std::vector<int64_t> answers;  // of each: a token, and one behind each draft
  std::vector<int64_t> from;     // of each hypothesis that goes on: its number in the last pass
  int64_t drafted = 0, accepted = 0;
};

// What a pass reads, and what is asked of it.
struct Engine::Pass {
  Ids ids;
  std::vector<int64_t> lengths, answers;  // of each sequence: tokens, and those of them that answer
  int64_t answered = 0;
  Ids rows;  // of each token that is chosen: its answer
  std::vector<TokensSoFar> so_far;
  std::deque<TokenSet> allowed;  // of those of requests that constrain them
  bool has_prompt = false;
  bool has_parts = false;  // of prompts, which answer and are not asked
  int64_t prompt_rows_left = 0;
};

Engine::Engine(const Model& model, Precision precision)
    : model_(model), reader_(make_reader(model)), kind_(make_reader(model)) {
  if (const auto* translator = model.as<EncoderDecoder>()) facts_ = &translator->facts();
  run_.use(precision);
}

Engine::~Engine() = default;

void Engine::limit_rows(int64_t rows) {
  limit_ = rows;
  reader_->limit_rows(rows);
}

void Engine::keep_beginnings(int64_t rows) {
  if (rows <= 0 || !reader_->can_keep()) return;
  most_kept_ = rows;
  kept_ = std::make_unique<KeptBeginnings>(*reader_, rows);
}

int64_t Engine::context_of(const Request& r) const {
  const int64_t most = facts_ ? facts_->longest_target : model_.as<TokenModel>()->max_length();
  return r.context == 0 ? most : std::min(r.context, most);
}

int64_t Engine::rows_needed(const Request& r) const {
  const int64_t context = context_of(r), n = r.search.width();
  const int64_t given = std::ssize(r.tokens), source = r.source_rows();
  if (given + r.longest_read() > context) return source + kind_->rows_of(0, context, n);
  return source + kind_->rows_of(given, r.longest_read(), n);
}

int64_t Engine::submit(Request request) {
  check_request(request);
  check(request.memory_rows == 0 || request.memory.defined(), ErrorKind::internal,
        "a source that is not encoded yet");
  const int64_t rows = rows_needed(request);
  waiting_.push_back(
      std::make_unique<Running>(next_id_, std::move(request), model_.heads().output->vocab()));
  waiting_.back()->reserved = rows;
  return next_id_++;
}

void Engine::admit() {
  std::vector<SequenceReader::Source> sources;
  while (!waiting_.empty() && reserved_ + waiting_.front()->reserved <= limit_) {
    running_.push_back(std::move(waiting_.front()));  // before its callbacks, which may cancel
    waiting_.pop_front();
    Running& r = *running_.back();
    reserved_ += r.reserved;
    has_new_candidates_ |= r.candidates.has_value();
    if (kept_ == nullptr) sources.push_back({r.request.source, r.request.memory});
    if (r.request.on_start) r.request.on_start();
    if (kept_ != nullptr) begin(r);
  }
  if (!sources.empty()) reader_->add(sources, run_);
}

// A sequence of the reader, with as much of the prompt as is known.
void Engine::begin(Running& r) {
  const auto match = r.request.slides ? KeptBeginnings::Match() : kept_->find(r.request.tokens);
  const SequenceReader::Source none;
  match.tokens > 0 ? kept_->begin(match) : reader_->add({&none, 1}, run_);
  r.unread = match.tokens;
  kept_->shrink_to(limit_ - reserved_);
  if (r.request.on_cached) r.request.on_cached(match.tokens);
}

// What the reader has of the first hypothesis is there for others that begin so.
void Engine::keep(const Running& r, int64_t sequence) {
  if (r.begin > 0 || r.request.slides) return;
  Ids tokens = r.request.tokens;
  tokens.insert(tokens.end(), r.drafts[0].begin(), r.drafts[0].end());
  kept_->keep(sequence, std::move(tokens));
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
    waiting_.clear();
    reserved_ = 0;
    reader_ = make_reader(model_);
    reader_->limit_rows(limit_);
    if (kept_ != nullptr) keep_beginnings(most_kept_);
    is_in_step_ = has_cancelled_ = false;
    throw;
  }
  is_in_step_ = false;
  drop_cancelled();
  note_work();
  return !running_.empty() || !waiting_.empty();
}

void Engine::pass() {
  Pass p;
  p.prompt_rows_left = most_prompt_rows_;
  for (const auto& r : running_) ask(*r, p);
  const Segments tokens = Segments::from_lengths(p.lengths);
  const ProfilePhase phase(p.has_prompt ? "prompt" : "decode step");
  Tensor h = reader_->read(p.ids, tokens, p.answers, run_);
  if (p.rows.empty()) return select();
  if (p.has_parts || std::ssize(p.rows) != p.answered)
    h = gather_rows(h, p.rows);  // samples share what was given
  if (has_new_candidates_) hold_candidates();
  std::vector<NextToken> next =
      next_tokens(*model_.heads().output, h, run_, p.so_far, limited_.get());
  int64_t row = 0;
  size_t at = 0;
  for (const auto& r : running_) {
    if (r->part > 0) continue;
    const int64_t rows = std::reduce(r->answers.begin(), r->answers.end());
    const auto count = static_cast<size_t>(rows * r->wanted.count);
    take(*r, h.slice(0, row, rows), std::span(next).subspan(at, count));
    row += rows, at += count;
  }
  select();
}

void Engine::hold_candidates() {
  if (limited_ == nullptr) limited_ = std::make_unique<CandidateOutput>(*model_.heads().output);
  std::vector<Candidates*> all;
  for (const auto& r : running_) {
    if (r->candidates) all.push_back(&*r->candidates);
  }
  limited_->hold(all, run_);
  has_new_candidates_ = false;
}

// Of a prompt that is too long for what is left of this pass so much. returns: whether it was
bool Engine::read_part(Running& r, Pass& p) const {
  const int64_t rows = r.length() - r.unread, most = std::max<int64_t>(1, p.prompt_rows_left);
  r.part = 0;
  if (r.is_read || facts_ != nullptr || !reader_->checks_drafts()) return false;
  p.prompt_rows_left -= std::min(rows, most);
  if (rows <= most) return false;
  r.part = most;
  for (int64_t t = r.unread; t < r.unread + most; ++t) {
    p.ids.push_back(r.token(r.search.live()[0], t));
  }
  p.lengths.push_back(most);
  p.answers.push_back(1);
  ++p.answered;
  return p.has_parts = p.has_prompt = true;
}

// Adds what the request reads: of each hypothesis its last token and its drafts, or all tokens.
void Engine::ask(Running& r, Pass& p) {
  const int64_t context = context_of(r.request), length = r.length();
  p.has_prompt |= length - r.unread > 1;
  r.drafts.clear();
  r.answers.clear();
  if (read_part(r, p)) return;
  for (const Hypothesis& h : r.search.live()) {
    r.drafts.push_back(r.ahead(h, context));
    const std::span<const int32_t> tokens = r.drafts.back();
    const int64_t answers = std::ssize(tokens) - r.written() + 1;
    r.answers.push_back(answers);
    if (r.is_read || r.drafts.size() == 1) {
      for (int64_t t = r.unread; t < length; ++t) p.ids.push_back(r.token(h, t));
      p.ids.insert(p.ids.end(), tokens.begin() + r.written(), tokens.end());
      p.lengths.push_back(length - r.unread + answers - 1);
      p.answers.push_back(answers);
      p.answered += answers;
    }
    for (size_t n = h.ids.size(); n <= tokens.size(); ++n) {
      p.rows.push_back(
          static_cast<int32_t>(p.answered - 1 - (std::ssize(tokens) - static_cast<int64_t>(n))));
      p.so_far.push_back({.options = &r.wanted,
                          .before = r.request.rules_count_tokens ? r.request.tokens : kNoIds,
                          .tokens = tokens.first(n),
                          .forced = r.forced(n),
                          .draw = r.draw(h, n)});
      if (!r.request.constraint) continue;
      const int64_t left = r.request.longest_output - static_cast<int64_t>(n);
      p.allowed.push_back(r.request.constraint->allowed(tokens.first(n), left));
      p.so_far.back().allowed = &p.allowed.back();
    }
  }
}

// Each hypothesis takes a token, and another one for as long as all took what was drafted.
// h: [rows, width]; next: the tokens of each row
void Engine::take(Running& r, const Tensor& h, std::span<NextToken> next) {
  if (!r.is_read && r.request.on_read) r.request.on_read();
  const auto count = static_cast<int64_t>(r.wanted.count);
  const int64_t written = r.written();
  const Segments rows = Segments::from_lengths(r.answers);
  r.from.resize(r.answers.size());
  std::iota(r.from.begin(), r.from.end(), int64_t{0});
  int64_t accepted = 0;
  for (bool goes_on = true; goes_on;) {
    const int64_t n = r.written();
    std::vector<NextToken> own;
    Ids own_rows;
    for (const int64_t i : r.from) {
      const int64_t row = rows.begin(i) + n - written;
      own_rows.push_back(static_cast<int32_t>(row));
      const auto tokens = next.subspan(static_cast<size_t>(row * count), r.wanted.count);
      if (r.is_free(static_cast<size_t>(n))) tokens[0].log_p = 0;
      own.insert(own.end(), tokens.begin(), tokens.end());
    }
    if (n > written) accepted += std::ssize(own_rows);
    std::vector<Hypothesis> before;
    if (r.request.on_step) before.assign(r.search.live().begin(), r.search.live().end());
    r.search.advance(own);
    if (r.request.on_step) {
      r.request.on_step({r.request.number, before,
                         (*model_.heads().output)(gather_rows(h, own_rows), run_), r.search.live(),
                         r.search.just_ended()});
    }
    goes_on = r.follow(n);
  }
  r.count(rows.rows() - rows.count(), accepted);
}

// The reader's sequences become those of the hypotheses that go on.
void Engine::select() {
  std::vector<int64_t> kept;      // of each hypothesis: the reader's sequence before
  std::vector<size_t> emptied;    // those of them that begin anew
  std::vector<int64_t> rejected;  // tokens of each sequence that were drafted and did not come
  for (const auto& r : running_) {
    if (r->part > 0) {
      r->unread += r->part;
      kept.push_back(std::ssize(rejected));
      rejected.push_back(0);
      continue;
    }
    const int64_t length = r->length(), context = context_of(r->request);
    const bool begins_anew = length - r->begin > context;  // no room for what came last
    if (begins_anew) r->begin = length - std::max<int64_t>(1, context / 2);
    r->unread = begins_anew ? r->begin : length - 1;
    const auto first = std::ssize(rejected);
    if (kept_ != nullptr && (!r->is_read || r->from.empty())) keep(*r, first);
    rejected.resize(static_cast<size_t>(first + r->sequences));
    for (const int64_t i : r->from) {
      if (begins_anew) emptied.push_back(kept.size());
      kept.push_back(first + (r->is_read ? i : 0));
      const int64_t read = std::ssize(r->drafts[static_cast<size_t>(i)]);
      rejected[static_cast<size_t>(kept.back())] = read - (r->written() - 1);
    }
    r->sequences = std::ssize(r->from);
    r->is_read = true;
  }
  const auto read = std::ssize(rejected);
  if (std::ranges::any_of(rejected, [](int64_t n) { return n > 0; })) reader_->drop_last(rejected);
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
    if (!r->request.on_done || r->is_cancelled) continue;
    r->request.on_done({r->search.results(), r->drafted, r->accepted});
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
