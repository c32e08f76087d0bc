// WordPiece and word-level models.
#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/subwords/subword_model.h"

namespace heddle {

namespace {

class WordPiece final : public SubwordModel {
 public:
  WordPiece(Vocabulary vocabulary, WordPieceOptions options, const std::string& source)
      : SubwordModel(std::move(vocabulary)),
        options_(std::move(options)),
        unk_(this->vocabulary().find_unk(options_.unk, source)) {
    const std::string& prefix = options_.continuing_subword_prefix;
    for (int32_t id = 0; id < this->vocabulary().size(); ++id) {
      const std::string* token = this->vocabulary().token(id);
      if (token == nullptr || token->empty()) continue;
      first_.add(*token, id);
      if (token->size() > prefix.size() && token->starts_with(prefix)) {
        inside_.add(std::string_view(*token).substr(prefix.size()), id);
      }
    }
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    if (count_characters(text) <= options_.max_characters) {
      size_t at = 0;
      while (at < text.size()) {
        size_t taken = 0;  // by the longest token
        int32_t longest = -1;
        (at == 0 ? first_ : inside_).each_prefix(text.substr(at), [&](size_t length, int32_t id) {
          taken = length;
          longest = id;
        });
        if (taken == 0) break;
        ids.push_back(longest);
        at += taken;
      }
      if (at == text.size()) return;
    }
    ids.resize(before);
    ids.push_back(unk_);
  }

  std::optional<int32_t> unk() const override { return unk_; }

 private:
  WordPieceOptions options_;
  int32_t unk_;
  TokenTrie first_, inside_;  // tokens, and what follows the prefix of those that have it
};

class WordLevel final : public SubwordModel {
 public:
  WordLevel(Vocabulary vocabulary, const std::string& unk, std::string source)
      : SubwordModel(std::move(vocabulary)),
        unk_(this->vocabulary().find(unk)),
        source_(std::move(source)) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const auto id = vocabulary().find(text);
    check(id || unk_, ErrorKind::data,
          "{}: '{}' is not in the vocabulary, and it has no token for unknown words", source_,
          text);
    ids.push_back(id ? *id : *unk_);
  }

  std::optional<int32_t> unk() const override { return unk_; }

 private:
  std::optional<int32_t> unk_;
  std::string source_;
};

}  // namespace

std::unique_ptr<SubwordModel> make_word_piece(Vocabulary vocabulary, WordPieceOptions options,
                                              const std::string& source) {
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(options), source);
}

std::unique_ptr<SubwordModel> make_word_level(Vocabulary vocabulary, const std::string& unk,
                                              const std::string& source) {
  return std::make_unique<WordLevel>(std::move(vocabulary), unk, source);
}

}  // namespace heddle
