// What each kind of tokenizer gives to Tokenizer.
#pragma once

#include <string>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// -1 where there is none.
struct SpecialIds {
  int32_t pad = -1, unk = -1, bos = -1, eos = -1, cls = -1, sep = -1, mask = -1;
};

/// What stands around the ids of one text, or of two.
struct Template {
  struct Item {
    int text = -1;  ///< 0 or 1: the ids of that text; -1: `ids`
    int32_t type = 0;
    std::vector<int32_t> ids = {};
  };
  std::vector<Item> single = {{.text = 0}}, pair = {{.text = 0}, {.text = 1, .type = 1}};
};

class Tokenizer::Impl {
 public:
  virtual ~Impl() = default;

  /// The text is UTF-8.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// The ids are in [0, vocab_size).
  virtual std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const = 0;
  virtual int64_t vocab_size() const = 0;
  /// Empty for an id that is in a gap of the vocabulary.
  virtual std::string token(int32_t id) const = 0;
  virtual int32_t token_id(std::string_view token) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  /// What save_folder() puts beside `files`, so that they are read so again, and by transformers;
  /// part of no fingerprint.
  virtual std::vector<TokenizerFile> beside() const { return {}; }

  std::string kind;
  SpecialIds special;
  Template around;
  std::vector<TokenizerFile> files;
  std::string fingerprint;
};

}  // namespace heddle
