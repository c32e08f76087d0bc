// Choices of a language model that grow, in the words of OpenAI's completions or chat completions.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "heddle/infer/decoding/generate.h"
#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

/// What a request asks a language model for.
struct GenerationWork {
  SharedModel model = {};
  std::vector<std::vector<int32_t>> prompts = {};
  std::vector<std::string> texts = {};  ///< of the prompts, where they are echoed
  GenerateOptions options = {};
  std::vector<std::string> stops = {};
  bool is_chat = false;  ///< whose words: chat completions', or completions'
  bool streams = false, echoes = false, wants_usage = false;
  /// Of a chat: functions that the model may call; none: what it writes is text. Whether it must,
  /// and so many calls at most.
  std::vector<std::string> tools = {};
  bool must_call = false;
  size_t most_calls = std::numeric_limits<size_t>::max();
  /// Likeliest tokens that are listed beside each chosen one; -1: no log probabilities at all.
  int64_t top_log_probs = -1;
};

/// The model that generates, with what all generation takes from a body: n, temperature, top_p,
/// top_k, min_p, repetition_penalty, seed, stop, stream, stream_options. How many tokens may come
/// is the caller's to say. Errors: Refusal.
GenerationWork generation_work(const Exchange& e, const Json& body);
/// What is written will be JSON of a schema; null: of any object. Errors: Refusal, Error.
void constrain(GenerationWork& work, const Json& schema);
/// Hands the work to the engine, and answers with what it comes to.
void start_generation(const SharedExchange& e, GenerationWork work);

}  // namespace heddle::serve
