// Choices of a language model that grow, in the words of OpenAI's completions or chat completions.
#pragma once

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
  /// Likeliest tokens that are listed beside each chosen one; -1: no log probabilities at all.
  int64_t top_log_probs = -1;
};

/// The model that generates, with what all generation takes from a body: n, temperature, top_p,
/// top_k, min_p, repetition_penalty, seed, stop, stream, stream_options. most_tokens: new ones
/// Errors: Refusal.
GenerationWork generation_work(const Exchange& e, const Json& body, int64_t most_tokens);
/// Errors: Refusal that names a member that does something and is none of those that are there.
void refuse_members(const Json& body, std::initializer_list<const char*> keys);
/// Hands the work to the engine, and answers with what it comes to.
void start_generation(const SharedExchange& e, GenerationWork work);

}  // namespace heddle::serve
