// Requests of one model, worked on together: each step is one packed pass over all that run.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "heddle/infer/engine/kept_beginnings.h"
#include "heddle/infer/engine/sequence_reader.h"
#include "heddle/infer/search/beam.h"
#include "heddle/models/encoder_decoder.h"

namespace heddle {

/// What a request comes to.
struct Outcome {
  std::span<const Hypothesis> hypotheses = {};  ///< BeamSearch::results()
  /// Tokens that were drafted for all of them (SearchConfig::drafted), and how many of those came.
  int64_t drafted = 0, accepted = 0;
};

/// What is asked of the engine: tokens to go on from, how, and who hears of it.
struct Request {
  int64_t number = 0;  ///< DecodeStep::sentence of its steps
  /// What is gone on from: a prompt, or what the decoder of an encoder-decoder begins with.
  std::vector<int32_t> tokens = {};
  std::vector<int32_t> source = {};  ///< what an encoder-decoder translates, with its end
  Tensor memory = {};  ///< in its place, where a source is no tokens: encode() of it, [rows, width]
  int64_t memory_rows = 0;           ///< that it has, if it is encoded later: before submit()
  std::vector<int32_t> prefix = {};  ///< that the output begins with; its log p counts, but
  size_t free_prefix = 0;            ///< for so many tokens
  /// The only tokens that may come, beside those of the prefix and the ends; empty: all. log p then
  /// counts the others by a sample.
  std::vector<int32_t> candidates = {};

  /// But how long the output is, and what it begins with. Its rules count `tokens` too.
  SearchConfig search = {};
  bool rules_count_tokens = true;  ///< where they are what a decoder begins with, Hugging Face's do
  int64_t longest_output = 1;      ///< tokens and end
  LengthPenalty penalty = LengthPenalty::power;
  GoesOn goes_on = {};
  /// The form that the output has: only what it allows comes, and it ends once that is over. Others
  /// may share it; none of its tokens is drafted.
  std::shared_ptr<TokenConstraint> constraint = {};
  bool forced_eos_is_free = true;  ///< the log p of search.forced_eos is 0
  bool penalises_log_p = false;    ///< see NextTokensOptions
  bool scores = true;              ///< whether log p is wanted: greedy search is faster without
  /// Tokens that the model sees at once at most; 0: as many as it can. Where they are full a text
  /// that slides goes on from its last context / 2 tokens, which are read anew as a text of their
  /// own.
  int64_t context = 0;
  bool slides = false;

  /// Called once, when it waits no longer.
  std::function<void()> on_start = {};
  /// The same, with how many of its tokens need not be read: see Engine::keep_beginnings().
  std::function<void(int64_t)> on_cached = {};
  /// Called once, when all that is given has been read and its first token is chosen.
  std::function<void()> on_read = {};
  /// Sees every step.
  std::function<void(const DecodeStep&)> on_step = {};
  /// Gets what was found once the search is done.
  std::function<void(const Outcome&)> on_done = {};

  /// Rows that its source takes.
  int64_t source_rows() const {
    return memory.defined() ? memory.size(0) : std::max(memory_rows, std::ssize(source));
  }
  /// Tokens of the output that the model reads at most: never the last.
  int64_t longest_read() const { return std::max<int64_t>(0, longest_output - 1); }
};

/// Requests wait in the order in which they came until the KV cache has room for all that they may
/// need, join at the next step, and leave when their search is done or they are cancelled. What a
/// request gets depends neither on when it came nor on its neighbours, on drafts
/// (SearchConfig::drafted) nor on the threads, bit for bit. One thread uses an engine. The
/// callbacks of requests may submit and cancel.
class Engine {
 public:
  /// model: one that predicts_next_token(), or an EncoderDecoder; outlives the engine.
  Engine(const Model& model, Precision precision);
  ~Engine();

  /// Rows of the KV cache, each keys and values of one token or source token in all layers, that
  /// all requests may hold together. Not limited before.
  void limit_rows(int64_t rows);
  /// Keeps what a language model has read in so many of these rows, so that a prompt that begins
  /// alike is read from there on, to the same bits. Does nothing where drafts cannot be checked
  /// (SearchConfig::drafted); a text that slides has no part in it.
  void keep_beginnings(int64_t rows);
  /// Rows of prompts, but one of each, that a step reads at most, so that others do not wait for a
  /// long one: it is read in parts, to the same bits. Not limited before.
  void limit_prompt_rows(int64_t rows) { most_prompt_rows_ = rows; }
  /// Rows that the request holds at most. From any thread.
  int64_t rows_needed(const Request& request) const;

  /// From any thread, once the limits are set.
  /// Errors: usage for options outside their ranges, or where all tokens are suppressed; data if
  /// tokens or source are empty or too long for the model, an id that may be read or come is not of
  /// its vocabulary, or if it needs more rows than the limit.
  void check_request(const Request& request) const;
  /// Takes a request in. returns: its id: 0, 1, ..    Errors: those of check_request()
  int64_t submit(Request request);
  /// One token for all that run, and more where drafts come true; nothing if there are none.
  /// returns: whether there is more to do
  /// Errors: data if the weights are not finite; those of callbacks. All requests are dropped then.
  bool step();
  /// Drops a request that waits or runs; its rows are free at once, or, in a callback, when the
  /// step is over. It gets no on_done. An id that is done is passed over.
  void cancel(int64_t id);

  int64_t waiting() const { return std::ssize(waiting_); }
  int64_t running() const { return std::ssize(running_); }
  /// Rows of the KV cache that are held now.
  int64_t rows() const { return reader_->rows(); }

 private:
  struct Running;
  struct Pass;
  using RunningList = std::vector<std::unique_ptr<Running>>;

  void check_ids_of(const Request& request) const;
  void check_source(const Request& request) const;
  void check_form(const Request& request) const;
  void admit();
  void begin(Running& r);
  void pass();
  void ask(Running& r, Pass& p);
  bool read_part(Running& r, Pass& p) const;
  void keep(const Running& r, int64_t sequence);
  void take(Running& r, const Tensor& h, std::span<NextToken> next);
  void select();
  void retire();
  void drop_cancelled();
  void hold_candidates();
  int64_t context_of(const Request& request) const;

  const Model& model_;
  const EncoderDecoderFacts* facts_ = nullptr;  // null: a model of one stack
  nn::Run run_;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  std::unique_ptr<SequenceReader> reader_;
  const std::unique_ptr<const SequenceReader> kind_;  // reads nothing: what all of its kind say
  int64_t most_kept_ = 0, most_prompt_rows_ = std::numeric_limits<int64_t>::max();
  std::unique_ptr<KeptBeginnings> kept_;  // null: nothing is kept
  std::deque<std::unique_ptr<Running>> waiting_;
  RunningList running_;
  int64_t reserved_ = 0;  // rows that those that run may hold
  int64_t next_id_ = 0;
  bool is_in_step_ = false, has_cancelled_ = false;
  std::unique_ptr<CandidateOutput> limited_;  // null: nobody had candidates
  bool has_new_candidates_ = false;           // since they were held
};

}  // namespace heddle
