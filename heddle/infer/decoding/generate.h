// Continuing sequences token by token over cached keys and values: ids in, ids out.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/infer/engine/engine.h"
#include "heddle/infer/search/beam.h"
#include "heddle/models/token_model.h"

namespace heddle {

/// What follows a prompt: new tokens without the end, log p of each (0 if no scores were asked
/// for), their sum, and the score, which is that over the length penalty.
struct Continuation : Hypothesis {
  bool has_no_room = false;           ///< ended by a length that is the context's
  int64_t drafted = 0, accepted = 0;  ///< of all continuations of the prompt, see Outcome
};

/// A token that was just chosen.
struct NewToken {
  int64_t prompt = 0;                    ///< number of the prompt
  int64_t sample = 0;                    ///< which of its samples
  std::span<const int32_t> tokens = {};  ///< of the continuation so far, the new one last
};

struct GenerateOptions {
  SearchConfig search = {};
  /// Tokens that the model sees at once at most; 0: TokenModel::max_length(). Once they are full,
  /// the sequence goes on from its last context / 2 tokens, which are read anew as a text of their
  /// own; so a token is chosen from the last context / 2 to context. Else the sequence ends there.
  int64_t context = 0;
  bool slides = true;
  int64_t batch_tokens = 8192;  ///< tokens of prompts and continuations that are worked on at once
  bool scores = false;          ///< whether log p is wanted: greedy search is faster without
  /// The form that each continuation has, see Request::constraint. It takes the place of the rules
  /// of `search` that forbid or force tokens.
  std::shared_ptr<TokenConstraint> constraint = {};
  /// Asked after each token whether that sequence goes on. A beam search asks about tokens that may
  /// come to nothing; else each sequence is asked once a token, in order.
  std::function<bool(const NewToken&)> on_token = {};
  /// Sees every step.
  std::function<void(const DecodeStep&)> on_step = {};
  /// Gets the continuations of each prompt as soon as they are there, with its number.
  std::function<void(int64_t, const std::vector<Continuation>&)> on_done = {};
  Precision precision = {};
};

/// Continues each prompt with a model that predicts_next_token(): greedily, by beam search or by
/// samples; n_best continuations of each, best first, fewer if a search found no more. A prompt is
/// read in one pass, then a step takes one row for each sequence that goes on; prompts that wait
/// are read as others are done. What a prompt gets depends neither on its neighbours nor on the
/// threads, bit for bit. A sequence ends at an end, when on_token says so, at max_new_tokens, or
/// where the context is full and does not slide. (Nor does a window slide token by token, as
/// nanoGPT's: without positions in the cache that would be a pass over the whole window a token.)
/// This is what Hugging Face's generate() does. Errors: usage
/// for options outside their range; data if a prompt is empty, longer than the context, or has an
/// id that is not in the vocabulary, if the weights are not finite, or if the model is another.
std::vector<std::vector<Continuation>> generate_ids(const TokenModel& model,
                                                    std::span<const std::vector<int32_t>> prompts,
                                                    const GenerateOptions& options);

/// What generate_ids() asks an engine of a prompt, for who has an engine of their own: `number` is
/// the prompt's, options.on_token is asked as there and must outlive the request. Errors: the same.
Request generation_request(const TokenModel& model, const std::vector<int32_t>& prompt,
                           const GenerateOptions& options, int64_t number = 0);

/// Tokens behind a prompt of so many, at most: max_new_tokens; without, what max_length leaves, at
/// least one; without both 64.
int64_t wanted_tokens(const SearchConfig& search, int64_t prompt = 0);

/// The context of these options. Errors: usage, naming --context, if it is not 0 to max_length().
int64_t context_of(const TokenModel& model, const GenerateOptions& options);

/// The `count` likeliest tokens after each prompt, likeliest first, with log p.
/// returns: [prompts][count], fewer if the vocabulary has no more. options: context, batch_tokens,
/// suppressed ids and precision count.    Errors: as above
std::vector<std::vector<NextToken>> likely_next_tokens(
    const TokenModel& model, std::span<const std::vector<int32_t>> prompts, int64_t count,
    const GenerateOptions& options);

}  // namespace heddle
