// Which tokens a translation may consist of, by the tokens of its source: a lexical shortlist.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/io/safetensors.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

/// What a shortlist holds before it is written.
struct ShortlistTokens {
  std::vector<int32_t> always = {};                  ///< that stand in each list
  std::vector<std::vector<int32_t>> of_source = {};  ///< of each token of a source
};

/// A shortlist in a file, which is mapped. Layout: safetensors with `always` [n], `begins`
/// [source tokens + 1] and `candidates` [all], i32: those of source token s are
/// candidates[begins[s]] to candidates[begins[s + 1] - 1]; ids rise. Metadata: `format`
/// "heddle_shortlist", `source_tokenizer` and `target_tokenizer`: Tokenizer::fingerprint().
/// Source: Jean et al. 2015, "On Using Very Large Target Vocabulary for Neural Machine
/// Translation", section 3.2; by source tokens as in Junczys-Dowmunt et al. 2018, "Marian".
class Shortlist {
 public:
  /// Errors: data, naming the file, for anything that is none, or is damaged.
  explicit Shortlist(const std::string& path);
  /// Errors: data unless it was made for models with these tokenizers and so many target tokens.
  void check_fits(const Tokenizer& source, const Tokenizer& target, int64_t target_vocab,
                  const std::string& model) const;

  /// The tokens that may come, rising. source: ids; those beyond its source tokens add none.
  std::vector<int32_t> candidates(std::span<const int32_t> source) const;
  std::span<const int32_t> always() const { return always_; }
  int64_t source_tokens() const { return std::ssize(begins_) - 1; }

 private:
  SafetensorsFile file_;
  std::span<const int32_t> always_, begins_, candidates_;
};

/// Writes it, atomically. Lists are sorted, and what is twice in them or always there left out.
/// Errors: system.
void write_shortlist(const std::string& path, const ShortlistTokens& tokens,
                     const Tokenizer& source, const Tokenizer& target);

}  // namespace heddle
