// What an engine refuses before it takes a request in: a step that fails drops all that run.
#include <algorithm>

#include "heddle/infer/engine/engine.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

// Rules leave an end where nothing else may come; what is suppressed never comes.
void check_suppressed(const Request& r, int64_t vocab) {
  Ids never = r.search.suppressed_ids();
  std::erase_if(never, [&](int32_t id) { return id >= vocab; });
  std::ranges::sort(never);
  never.erase(std::unique(never.begin(), never.end()), never.end());
  Ids may_come = r.candidates;
  if (!may_come.empty()) {  // what Candidates adds to them
    const Ids ends = r.search.ends();
    may_come.insert(may_come.end(), r.prefix.begin(), r.prefix.end());
    may_come.insert(may_come.end(), ends.begin(), ends.end());
    if (const auto last = token_id(r.search.forced_eos)) may_come.push_back(*last);
  }
  const bool is_left =
      may_come.empty() ? std::ssize(never) < vocab : std::ranges::any_of(may_come, [&](int32_t id) {
        return !std::ranges::binary_search(never, id);
      });
  check(is_left, ErrorKind::usage,
        "all of the {} tokens that could come are suppressed (`suppress_tokens`, `bad_words_ids`); "
        "leave one at least",
        may_come.empty() ? vocab : std::ssize(may_come));
}

}  // namespace

void Engine::check_ids_of(const Request& r) const {
  const int64_t vocab = model_.heads().output->vocab();
  const auto check_id = [&](const std::optional<int64_t>& field, const char* name) {
    if (const auto id = token_id(field)) nn::check_ids({&*id, 1}, vocab, name);
  };
  nn::check_ids(r.tokens, vocab, "tokens");
  nn::check_ids(r.prefix, vocab, "prefix");
  nn::check_ids(r.candidates, vocab, "candidates");
  check_id(r.search.forced_bos, "forced_bos_token_id");
  check_id(r.search.forced_eos, "forced_eos_token_id");
  nn::check_ids(r.search.ends(), vocab, "eos_token_id");
  for (const auto& row : r.search.banned) {
    nn::check_ids(Ids(row.begin(), row.end()), vocab, "bad_words_ids");
  }
  if (!r.source.empty()) {
    nn::check_ids(r.source, facts_ ? facts_->source_vocab_size : vocab, "source");
  }
  check_suppressed(r, vocab);
}

void Engine::check_source(const Request& r) const {
  check(facts_ == nullptr || r.source_rows() > 0, ErrorKind::data,
        "there is no source; the model reads one");
  const bool is_encoded = r.memory.defined() || r.memory_rows > 0;
  check(!is_encoded || (facts_ != nullptr && facts_->source_vocab_size == 0), ErrorKind::internal,
        "a source that is encoded already, of a model that reads tokens");
  const int64_t most = facts_ ? facts_->longest_source : 0;
  check(r.source_rows() <= most, ErrorKind::data,
        "the source has {} tokens; the model takes {} at most", r.source_rows(), most);
}

void Engine::check_form(const Request& r) const {
  if (!r.constraint) return;
  check(r.longest_output >= r.constraint->least_tokens(), ErrorKind::usage,
        "`max_new_tokens` is {}, or what the context leaves; the least text of the form may "
        "need {}",
        r.longest_output, r.constraint->least_tokens());
  check(r.candidates.empty(), ErrorKind::internal, "candidates and a form at once");
  check(r.search.drafted.value_or(0) == 0, ErrorKind::usage,
        "`prompt_lookup_num_tokens` is {}, but tokens of a form are not drafted; set it to 0",
        r.search.drafted.value_or(0));
}

void Engine::check_request(const Request& r) const {
  r.search.check();
  check_ids_of(r);
  check(!r.tokens.empty(), ErrorKind::data,
        "there are no tokens; the model needs at least one to go on from");
  check_source(r);
  check_form(r);
  check(r.longest_output >= 1, ErrorKind::usage, "`max_new_tokens` is {}; it must be at least 1",
        r.longest_output);
  check(
      r.search.drafted.value_or(0) == 0 || kind_->checks_drafts(), ErrorKind::usage,
      "`prompt_lookup_num_tokens` is {}, but what this model says of a token depends on the tokens "
      "that are read beside it, so that drafts cannot be checked together; set it to 0",
      r.search.drafted.value_or(0));
  const int64_t context = context_of(r);
  const int64_t read = std::ssize(r.tokens) + (r.slides ? 0 : r.longest_read());
  check(read <= context, ErrorKind::data,
        "{} tokens and at most {} new ones; the model takes {} and gives one more", r.tokens.size(),
        r.longest_output, context);
  const int64_t rows = rows_needed(r);
  check(rows <= limit_, ErrorKind::data,
        "the request may need {} rows of the KV cache, which has {}; ask for fewer new tokens, "
        "fewer hypotheses, or give less text",
        rows, limit_);
}

}  // namespace heddle
