// A grammar that follows each output, and the tokens that may come there.
#include "heddle/infer/search/json_constraint.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "heddle/base/error.h"
#include "heddle/infer/search/json_tokens.h"
#include "heddle/infer/words.h"

namespace heddle {
namespace {

class JsonConstraint final : public TokenConstraint {
 public:
  JsonConstraint(std::shared_ptr<JsonTokens> tokens, Tokenizer tokenizer, std::vector<int32_t> ends)
      : tokens_(std::move(tokens)), tokenizer_(std::move(tokenizer)), ends_(std::move(ends)) {}

  int64_t least_tokens() const override { return tokens_->least(); }

  bool is_over(std::span<const int32_t> tokens) override {
    const std::lock_guard lock(mutex_);
    return behind(tokens).is_over();
  }

  TokenSet allowed(std::span<const int32_t> tokens, int64_t left) override {
    const std::lock_guard lock(mutex_);
    const JsonMatcher& matcher = behind(tokens);
    TokenSet set = tokens_->allowed(matcher, left);
    if (matcher.is_whole()) {
      for (const int32_t end : ends_) set.add(end);
    }
    return set;
  }

  int64_t size() const override {
    const std::lock_guard lock(mutex_);
    return recent_size_ + tokens_->size();
  }

 private:
  // The grammar behind an output: the one behind all of it but the last token is mostly known.
  const JsonMatcher& behind(std::span<const int32_t> tokens) {
    for (Known& known : recent_) {
      if (std::ranges::equal(known.ids, tokens)) return known.matcher;
    }
    Known next{{tokens.begin(), tokens.end()}, JsonMatcher(tokens_->grammar())};
    size_t read = 0;
    for (const Known& known : recent_) {
      const bool is_before = known.ids.size() > read && known.ids.size() < tokens.size() &&
                             std::equal(known.ids.begin(), known.ids.end(), tokens.begin());
      if (is_before) next.matcher = known.matcher, read = known.ids.size();
    }
    for (; read < tokens.size(); ++read) next.matcher.read(token_bytes(tokenizer_, tokens[read]));
    recent_size_ += next.size();
    recent_.push_front(std::move(next));
    while (recent_.size() > kMostKnown || (recent_.size() > 1 && recent_size_ > kMostBytes)) {
      recent_size_ -= recent_.back().size();
      recent_.pop_back();
    }
    return recent_.front().matcher;
  }

  struct Known {
    std::vector<int32_t> ids;
    JsonMatcher matcher;
    int64_t size() const {
      return static_cast<int64_t>(sizeof(Known) + ids.capacity() * sizeof(int32_t)) +
             matcher.size();
    }
  };
  // Outputs of a request grow side by side: of each the last two.
  static constexpr size_t kMostKnown = 64;
  static constexpr int64_t kMostBytes = 1 << 18;

  const std::shared_ptr<JsonTokens> tokens_;
  const Tokenizer tokenizer_;
  const std::vector<int32_t> ends_;
  mutable std::mutex mutex_;  // of all below
  std::list<Known> recent_;   // the last first
  int64_t recent_size_ = 0;
};

}  // namespace

std::unique_ptr<TokenConstraint> make_json_constraint(const Json& schema,
                                                      const Tokenizer& tokenizer, int64_t vocab,
                                                      std::vector<int32_t> ends) {
  const std::string& kind = tokenizer.kind();
  const bool is_of_bytes = kind.find("BPE") != std::string::npos ||
                           kind.find("SentencePiece") != std::string::npos ||
                           kind.find("nigram") != std::string::npos;
  check(is_of_bytes, ErrorKind::usage,
        "JSON cannot be asked of a {} tokenizer, whose tokens are not the bytes of a text", kind);
  auto tokens = JsonTokens::of(schema, tokenizer, vocab, ends);
  return std::make_unique<JsonConstraint>(std::move(tokens), tokenizer, std::move(ends));
}

}  // namespace heddle
