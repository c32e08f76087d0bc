// Continuing sequences word by word over cached keys and values: ids in, ids out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "heddle/infer/beam.h"
#include "heddle/infer/sample.h"
#include "heddle/infer/word_rules.h"
#include "heddle/models/model.h"

namespace heddle {

/// What follows a prompt.
struct Continuation {
  std::vector<int32_t> ids = {};   ///< new words, without the end
  std::vector<float> log_ps = {};  ///< of each of them, nats; 0 if no scores were asked for
  double log_p = 0;                ///< of the words, and of the end if it came
  double score = 0;                ///< log p over the length penalty
  EndedBy ended = EndedBy::length;
};

/// A word that was just chosen.
struct NewWord {
  int64_t prompt = 0;                   ///< number of the prompt
  int64_t sample = 0;                   ///< which of its samples
  std::span<const int32_t> words = {};  ///< of the continuation so far, the new one last
};

struct GenerateOptions {
  int64_t max_new_tokens = 64;  ///< words added to each prompt at most
  /// Words of a prompt and what follows it at most, where one more fits; 0: no limit.
  int64_t max_length = 0;
  std::vector<int32_t> eos = {};           ///< each of them ends a sequence; none: nothing does
  std::optional<int32_t> forced_eos = {};  ///< the last word that there is room for
  std::vector<int32_t> suppressed = {};    ///< ids that never come
  int64_t beam = 1;                        ///< hypotheses kept of each prompt; 1 is greedy
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::no;
  int64_t n_best = 1;  ///< continuations of each prompt: at most the beam, or samples
  std::optional<Sampling> sampling = {};  ///< draw words at random; the beam is 1
  WordRules rules = {};                   ///< they count the words of the prompt too
  int64_t batch_tokens = 8192;  ///< words of prompts and continuations that are worked on at once
  bool scores = false;          ///< whether log p is wanted: greedy search is faster without
  /// Asked after each word whether that sequence goes on. A beam search asks about words that may
  /// come to nothing; else each sequence is asked once a word, in order.
  std::function<bool(const NewWord&)> on_word = {};
  /// Sees every step.
  std::function<void(const DecodeStep&)> on_step = {};
  /// Gets the continuations of each prompt as soon as they are there, with its number.
  std::function<void(int64_t, const std::vector<Continuation>&)> on_done = {};
  Precision precision = {};
};

/// Continues each prompt with a model that says_next_word(): greedily, by beam search or by
/// samples; n_best continuations of each, best first, fewer if a search found no more. A prompt is
/// read in one pass, then a step takes one row for each sequence that goes on; prompts that wait
/// are read as others are done. What a prompt gets depends neither on its neighbours nor on the
/// threads, bit for bit. A sequence ends at an end, when on_word says so, at max_new_tokens or at
/// the model's longest sequence. With the default of early_stopping this is what Hugging Face's
/// generate() does. Errors: usage for options outside their range; data if a prompt is empty,
/// longer than the model takes, or has an id that is not in the vocabulary, or if the weights are
/// not finite.
std::vector<std::vector<Continuation>> generate_ids(const Model& model,
                                                    std::span<const std::vector<int32_t>> prompts,
                                                    const GenerateOptions& options);

/// The `count` likeliest words after each prompt, likeliest first, with log p; one pass.
/// returns: [prompts][count], fewer if the vocabulary has no more. options: batch_tokens,
/// suppressed and precision count.    Errors: as above
std::vector<std::vector<NextWord>> likely_next_words(const Model& model,
                                                     std::span<const std::vector<int32_t>> prompts,
                                                     int64_t count, const GenerateOptions& options);

}  // namespace heddle
