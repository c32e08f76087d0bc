// Prompts become requests of an engine.
#include "heddle/infer/decoding/generate.h"

#include <algorithm>

#include "heddle/base/files/mmap.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;
using Results = std::vector<std::vector<Continuation>>;

void check_options(const GenerateOptions& o) {
  o.search.check();
  check(o.batch_tokens >= 1, ErrorKind::usage, "`batch_tokens` is {}; it must be at least 1",
        o.batch_tokens);
}

void check_prompts(const TokenModel& model, std::span<const Ids> prompts, int64_t context) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    check(!prompts[i].empty(), ErrorKind::data,
          "prompt {} is empty; the model needs at least one token to go on from", i + 1);
    check(static_cast<int64_t>(prompts[i].size()) <= context, ErrorKind::data,
          "prompt {} has {} tokens; the model takes {} at most", i + 1, prompts[i].size(), context);
    nn::check_ids(prompts[i], model.vocab_size(), fmt::format("prompt {}", i + 1));
  }
}

// What prompt i asks of the engine.
Request request_of(const GenerateOptions& o, const Ids& prompt, int64_t i, int64_t context) {
  const int64_t wanted = wanted_tokens(o.search, std::ssize(prompt));
  // The token behind the last position is still known.
  const int64_t room = context - std::ssize(prompt) + 1;
  Request r{.number = i,
            .tokens = prompt,
            .search = o.search,
            .longest_output = o.slides ? wanted : std::min(wanted, room),
            .penalises_log_p = o.search.beam.value_or(1) > 1,
            .scores = o.scores,
            .context = context,
            .slides = o.slides,
            .on_step = o.on_step};
  r.search.first_line += i;
  if (o.constraint) {
    r.constraint = o.constraint;
    SearchConfig& s = r.search;
    s.suppressed.clear(), s.banned.clear(), s.banned_beginnings.clear();
    s.no_repeat_ngram.reset(), s.min_new_tokens.reset(), s.min_length.reset();
    s.forced_eos.reset(), s.drafted.reset();
  }
  if (o.on_token) {
    r.goes_on = [&o, i](const Hypothesis& h) { return o.on_token({i, h.sample, h.ids}); };
  }
  return r;
}

}  // namespace

int64_t wanted_tokens(const SearchConfig& search, int64_t prompt) {
  if (search.max_new_tokens) return *search.max_new_tokens;
  return search.max_length ? std::max<int64_t>(1, *search.max_length - prompt) : 64;
}

int64_t context_of(const TokenModel& model, const GenerateOptions& options) {
  check(options.context >= 0 && options.context <= model.max_length(), ErrorKind::usage,
        "`context` is {}; the model sees 1 to {} tokens at once", options.context,
        model.max_length());
  return options.context == 0 ? model.max_length() : options.context;
}

Request generation_request(const TokenModel& model, const Ids& prompt,
                           const GenerateOptions& options, int64_t number) {
  check_options(options);
  const int64_t context = context_of(model, options);
  check_prompts(model, std::span(&prompt, 1), context);
  return request_of(options, prompt, number, context);
}

std::vector<std::vector<Continuation>> generate_ids(const TokenModel& model,
                                                    std::span<const Ids> prompts,
                                                    const GenerateOptions& options) {
  check_mapped_files();
  check_options(options);
  check_prompts(model, prompts, context_of(model, options));
  Results results(prompts.size());
  Engine engine(model, options.precision);
  std::vector<Request> requests;
  int64_t rows = options.batch_tokens;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    Request r = request_of(options, prompts[i], number, context_of(model, options));
    const bool has_room = r.longest_output == wanted_tokens(options.search, std::ssize(prompts[i]));
    r.on_done = [&, number, has_room](const Outcome& outcome) {
      for (const Hypothesis& h : outcome.hypotheses) {
        results[number].push_back(
            {h, h.ended == EndedBy::length && !has_room, outcome.drafted, outcome.accepted});
      }
      if (options.on_done) options.on_done(number, results[number]);
    };
    rows = std::max(rows, engine.rows_needed(r));  // one that is larger than a batch runs too
    requests.push_back(std::move(r));
  }
  engine.limit_rows(rows);
  for (Request& r : requests) engine.submit(std::move(r));
  while (engine.step()) {
  }
  return results;
}

std::vector<std::vector<NextToken>> likely_next_tokens(const TokenModel& model,
                                                       std::span<const Ids> prompts, int64_t count,
                                                       const GenerateOptions& options) {
  check(count >= 0, ErrorKind::usage, "{} tokens are asked for behind each prompt; the least is 0",
        count);
  const Ids suppressed = options.search.suppressed_ids();
  std::vector<std::vector<NextToken>> found(prompts.size());
  const GenerateOptions one_token = {
      .search = {.max_new_tokens = 1},
      .context = options.context,
      .batch_tokens = options.batch_tokens,
      .on_step =
          [&](const DecodeStep& step) {
            auto& tokens = found[static_cast<size_t>(step.sentence)];
            tokens = best_tokens(step.logits, {.count = std::min(count, model.vocab_size()),
                                               .suppressed = suppressed});
            std::erase_if(tokens, [](const NextToken& token) { return token.id < 0; });
          },
      .precision = options.precision};
  generate_ids(model, prompts, one_token);
  return found;
}

}  // namespace heddle
