// JSON of a search, its ranges, and the ids that it names.
#include "heddle/infer/search/search_config.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/names.h"

namespace heddle {
namespace {

std::vector<int32_t> as_ids(const std::vector<int64_t>& values) {
  std::vector<int32_t> ids;
  for (const int64_t id : values) {
    if (id >= 0) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace

std::vector<int32_t> SearchConfig::ends() const { return as_ids(eos); }

std::vector<int32_t> SearchConfig::suppressed_ids() const {
  std::vector<int32_t> ids = as_ids(suppressed);
  for (const std::vector<int64_t>& tokens : banned) {
    if (tokens.size() != 1 || tokens[0] < 0) continue;
    const bool is_end = std::ranges::count(eos, tokens[0]) > 0;
    if (!is_end) ids.push_back(static_cast<int32_t>(tokens[0]));
  }
  return ids;
}

std::vector<std::vector<int32_t>> SearchConfig::banned_ngrams() const {
  std::vector<std::vector<int32_t>> ngrams;
  for (const std::vector<int64_t>& tokens : banned) {
    std::vector<int32_t> ids = as_ids(tokens);
    if (tokens.size() > 1 && ids.size() == tokens.size()) ngrams.push_back(std::move(ids));
  }
  return ngrams;
}

void SearchConfig::check_ranges() const {
  for (const Field& field : FieldList(*this)) {
    const std::string broken = broken_rule(field);
    if (broken.empty()) continue;
    const std::string name = field_name(field.key);
    if (auto* const* whole = std::get_if<std::optional<int64_t>*>(&field.member)) {
      fail(ErrorKind::usage, "{} is {}; it {}", name, (*whole)->value(), broken);
    }
    if (auto* const* real = std::get_if<std::optional<double>*>(&field.member)) {
      fail(ErrorKind::usage, "{} is {}; it {}", name, (*real)->value(), broken);
    }
    fail(ErrorKind::usage, "{} {}", name, broken);
  }
  for (const std::vector<int64_t>& tokens : banned) {  // elsewhere -1 is no token: not in a row
    for (const int64_t id : tokens) {
      heddle::check(id >= 0, ErrorKind::usage, "`bad_words_ids` has the id {}; the least is 0", id);
    }
  }
}

void SearchConfig::check_draws() const {
  const double heat = temperature.value_or(1), p = top_p.value_or(1), least = min_p.value_or(0);
  heddle::check(
      std::isfinite(heat) && heat >= 0, ErrorKind::usage,
      "`temperature` is {}; it must be at least 0, which takes the likeliest token each time",
      heat);
  heddle::check(top_k.value_or(0) >= 0, ErrorKind::usage,
                "`top_k` is {}; it must be at least 1, or 0 for all tokens", top_k.value_or(0));
  heddle::check(p > 0 && p <= 1, ErrorKind::usage,
                "`top_p` is {}; it must be above 0 and at most 1", p);
  heddle::check(least >= 0 && least <= 1, ErrorKind::usage, "`min_p` is {}; it must be from 0 to 1",
                least);
}

void SearchConfig::check() const {
  check_ranges();
  const int64_t wide = beam.value_or(1);
  heddle::check(n_best >= 1, ErrorKind::usage, "`n_best` is {}; it must be at least 1", n_best);
  heddle::check(!samples || wide == 1, ErrorKind::usage,
                "`sample` draws tokens and `num_beams` {} searches for the likeliest; give one of "
                "them",
                wide);
  heddle::check(samples || n_best <= wide, ErrorKind::usage,
                "`n_best` is {} but `num_beams` {}; the beam must be at least as wide (or give "
                "`sample`)",
                n_best, wide);
  heddle::check(wide == 1 || drafted.value_or(0) == 0, ErrorKind::usage,
                "`prompt_lookup_num_tokens` is {} but `num_beams` {}; drafts are checked of one "
                "hypothesis, not of a beam: give one of them, 0 or 1 for the other",
                drafted.value_or(0), wide);
  if (samples) check_draws();
}

std::vector<std::string> read_search(SearchConfig& config, const Json& json,
                                     const std::string& source) {
  Json said = Json::object();
  for (const auto& [key, value] : json.as_object(source)) {
    if (value.is_null()) continue;
    const bool is_ids = key == "eos_token_id" || key == "suppress_tokens";
    const bool is_id = key.ends_with("_token_id") && !is_ids;
    const bool is_switch = key == "early_stopping" || key == "renormalize_logits";
    if (is_switch && value.is_bool()) {
      said[key] = value.as_bool() ? "true" : "false";
    } else if (is_ids && value.is_number()) {
      said[key] = Json::Array{value};
    } else if (is_id && value.is_array()) {
      if (value.size() > 0) said[key] = value.as_array()[0];
    } else {
      said[key] = value;
    }
  }
  return from_json(config, said, source);
}

}  // namespace heddle
