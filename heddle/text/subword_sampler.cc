// Words out of ids, and their segmentations.
#include "heddle/text/subword_sampler.h"

#include "heddle/base/error.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/subwords/subword_model.h"

namespace heddle {

SubwordSampler::SubwordSampler(const Tokenizer& tokenizer, double rate) : rate_(rate) {
  check(rate > 0 && rate <= 1, ErrorKind::usage,
        "segmentations are drawn at a rate above 0 and at most 1, not {}", rate);
  model_ = subwords_of(tokenizer);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string token = tokenizer.token(id);
    const bool stays =
        id == tokenizer.unk_id() || tokenizer.is_special(id) || byte_of_token(token).has_value();
    texts_.push_back(stays ? "" : token);
  }
}

void SubwordSampler::sample(std::span<const int32_t> ids, RngStream& random,
                            std::vector<int32_t>& out) const {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) model_->sample(word, rate_, random, out);
    word.clear();
  };
  for (const int32_t id : ids) {
    const std::string& text = texts_.at(static_cast<size_t>(id));
    if (text.empty() || text.starts_with(kSpaceSign)) end_word();
    if (text.empty()) out.push_back(id);
    word += text;
  }
  end_word();
}

}  // namespace heddle
