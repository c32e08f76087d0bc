// How the next tokens are searched or drawn, as a model's folder, a command or a request says it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json/fields.h"

namespace heddle {

/// The widest beam. Memory and time grow with it.
inline constexpr int64_t kMostBeams = 1024;
/// The most tokens that are drafted at once: as many rows more has a step.
inline constexpr int64_t kMostDrafted = 1024;

/// Hugging Face's keys of generation_config.json, and the same of flags and requests. What is
/// absent is as the layer below says: model, then command, then request, see lay_over().
struct SearchConfig {
  std::optional<int64_t> max_new_tokens = {}, max_length = {}, min_new_tokens = {}, min_length = {};
  std::optional<int64_t> beam = {};
  std::optional<double> length_penalty = {};
  /// When a beam search is done: "true": as many hypotheses ended as the beam is wide; "false" (and
  /// ""): and the best that goes on would be worse, did it end now; "never" for this reason. In any
  /// case once none that goes on can be among the n_best.
  std::string early_stopping = {};
  std::optional<int64_t> no_repeat_ngram = {};
  std::optional<double> repetition_penalty = {};
  std::string renormalize_logits = "";  ///< "true", "false"; "": false
  std::optional<int64_t> drafted = {};  ///< tokens; changes how fast a text comes, not the text

  // Which tokens may be drawn, and how evenly: limits in this order, each to what the one before
  // left.
  std::optional<double> temperature = {};        ///< 0: only the likeliest token may be drawn
  std::optional<int64_t> top_k = {};             ///< 0: all
  std::optional<double> top_p = {}, min_p = {};  ///< in (0, 1]; in [0, 1]
  std::optional<int64_t> seed = {};

  std::vector<int64_t> eos = {}, suppressed = {};
  std::optional<int64_t> bos = {}, decoder_start = {}, forced_bos = {}, forced_eos = {};
  std::vector<std::vector<int64_t>> banned = {};

  // What a request alone says; no layer is laid over it.
  int64_t n_best = 1;      ///< results wanted, <= beam unless drawn
  bool samples = false;    ///< n_best draws, each on its own, instead of a search; the beam is 1
  int64_t first_line = 1;  ///< number of the first text, part of the key of randomness
  /// Ids in a row that what is written does not begin with; they may come later.
  std::vector<std::vector<int32_t>> banned_beginnings = {};

  template <class V>
  void fields(V& v) {
    constexpr double kMost = std::numeric_limits<int32_t>::max();
    const FieldRule count = between(0, kMost), at_least_one = between(1, kMost);
    const FieldRule id = between(-1, kMost);
    v("max_new_tokens", max_new_tokens, "tokens at most [as the model says, or 64]", at_least_one);
    v("max_length", max_length, "tokens that were given and new ones at most", at_least_one);
    v("min_new_tokens", min_new_tokens, "tokens before which the end must not come", count);
    v("min_length", min_length,
      "the same, with those that were given; not where min_new_tokens is there", count);
    v("num_beams", beam, "hypotheses kept; 1 is greedy [as the model says, or 1]",
      between(1, kMostBeams));
    v("length_penalty", length_penalty,
      "of a beam, alpha: log p is divided by length^alpha, of heddle's translators by ((5 + "
      "length) "
      "/ 6)^alpha; larger favours longer texts [as the model says, or 1]",
      between(-100, 100));
    v("early_stopping", early_stopping, "when a beam search is done",
      one_of({"", "true", "false", "never"}));
    v("no_repeat_ngram_size", no_repeat_ngram,
      "no so many tokens in a row come twice, a prompt's counted; 0: they may", count);
    v("repetition_penalty", repetition_penalty,
      "divides the logits of tokens that came already (multiplies negative ones); 1: no penalty",
      between(1e-6, 1e6));
    v("renormalize_logits", renormalize_logits, "log p is that among the tokens that rules leave",
      one_of({"", "true", "false"}));
    v("prompt_lookup_num_tokens", drafted,
      "draft up to so many tokens from what the text repeats, and check them in one pass: the same "
      "text, sooner [as the model says, or 0]",
      between(0, kMostDrafted));
    v("temperature", temperature,
      "divides the logits; below 1 likelier tokens gain; 0 takes the likeliest");
    v("top_k", top_k, "draw among the likeliest k tokens only; 0: all", count);
    v("top_p", top_p, "draw among the fewest tokens that have this probability together");
    v("min_p", min_p, "draw among tokens with this share of the likeliest's probability");
    v("seed", seed,
      "of the draws: those of a line or prompt are a function of seed and its number alone [1]",
      at_least(0));
    v("eos_token_id", eos, "each of them ends a sequence", id);
    v("bos_token_id", bos, "begins a text", id);
    v("decoder_start_token_id", decoder_start, "begins a translation", id);
    v("forced_bos_token_id", forced_bos, "the first token that a decoder writes", id);
    v("forced_eos_token_id", forced_eos, "the last token that there is room for", id);
    v("suppress_tokens", suppressed, "ids that never come", id);
    v("bad_words_ids", banned, "ids in a row that never come", id);
  }

  /// Whether one of the fields that only draws look at is there.
  bool draws() const { return temperature || top_k || top_p || min_p || seed; }

  bool renormalizes() const { return renormalize_logits == "true"; }
  std::vector<int32_t> ends() const;
  /// suppress_tokens, and bad_words_ids of one token that is no end, as in Hugging Face.
  std::vector<int32_t> suppressed_ids() const;
  /// bad_words_ids of several tokens.
  std::vector<std::vector<int32_t>> banned_ngrams() const;
  /// Hypotheses at once.
  int64_t width() const { return samples ? n_best : beam.value_or(1); }
  /// Errors: usage, naming the field, for values outside their ranges.
  void check_ranges() const;
  /// The same of temperature, top_k, top_p and min_p.
  void check_draws() const;
  /// All of these, and values that exclude each other.
  void check() const;
};

/// The id that a field holds; -1 is none.
inline std::optional<int32_t> token_id(const std::optional<int64_t>& field) {
  if (field.value_or(-1) < 0) return {};
  return static_cast<int32_t>(*field);
}

/// Fields of a JSON object; keys that are null are absent, ids may stand alone or in a list.
/// returns: the keys that are none of them. Errors: data, beginning with `source` and the key, for
/// a value of a wrong type or range.
std::vector<std::string> read_search(SearchConfig& config, const Json& json,
                                     const std::string& source);

}  // namespace heddle
