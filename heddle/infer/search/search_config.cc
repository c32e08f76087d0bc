// JSON of a search, and what a search takes of it.
#include "heddle/infer/search/search_config.h"

#include <algorithm>

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
    const bool is_end = tokens.size() == 1 && contains(ends(), static_cast<int32_t>(tokens[0]));
    if (tokens.size() == 1 && tokens[0] >= 0 && !is_end) {
      ids.push_back(static_cast<int32_t>(tokens[0]));
    }
  }
  return ids;
}

BeamOptions SearchConfig::beam_options() const {
  return {.beam = beam.value_or(1),
          .n_best = n_best,
          .samples = samples,
          .length_penalty = length_penalty.value_or(1),
          .early_stopping = early_stopping == "never"  ? EarlyStopping::never
                            : early_stopping == "true" ? EarlyStopping::yes
                                                       : EarlyStopping::no,
          .eos = ends()};
}

TokenRules SearchConfig::rules() const {
  TokenRules rules{.no_repeat_ngram = no_repeat_ngram.value_or(0),
                   .repetition_penalty = repetition_penalty.value_or(1),
                   .min_length = min_new_tokens.value_or(0),
                   .min_total_length = min_length.value_or(0)};
  for (const std::vector<int64_t>& tokens : banned) {
    if (tokens.size() > 1) rules.banned_ngrams.push_back(as_ids(tokens));
  }
  return rules;
}

Sampling SearchConfig::sampling() const {
  const Sampling none;
  return {.temperature = temperature.value_or(none.temperature),
          .top_k = top_k.value_or(none.top_k),
          .top_p = top_p.value_or(none.top_p),
          .min_p = min_p.value_or(none.min_p),
          .seed = seed ? static_cast<uint64_t>(*seed) : none.seed};
}

void SearchConfig::check_ranges() const {
  for (const Field& field : FieldList(*this)) {
    const std::string broken = broken_rule(field), name = field_name(field.key);
    if (broken.empty()) continue;
    if (auto* const* whole = std::get_if<std::optional<int64_t>*>(&field.member)) {
      fail(ErrorKind::usage, "{} is {}; it {}", name, (*whole)->value(), broken);
    }
    if (auto* const* real = std::get_if<std::optional<double>*>(&field.member)) {
      fail(ErrorKind::usage, "{} is {}; it {}", name, (*real)->value(), broken);
    }
    fail(ErrorKind::usage, "{} {}", name, broken);
  }
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
  if (samples) check_sampling(sampling());
}

std::vector<std::string> read_search(SearchConfig& config, const Json& json,
                                     const std::string& source) {
  Json said = Json::object();
  for (const auto& [key, value] : json.as_object(source)) {
    if (value.is_null()) continue;
    const bool is_ids = key == "eos_token_id" || key == "suppress_tokens";
    const bool is_id = key.ends_with("_token_id") && !is_ids;
    if (key == "early_stopping" && value.is_bool()) {
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
