// Cross attention of one pair of sentences, by tokens and by words.
#include "heddle/infer/words/word_attention.h"

#include "heddle/infer/words/alignment.h"
#include "heddle/infer/words/word_spans.h"

namespace heddle {
Tensor cross_attention_map(const EncoderDecoder& model, std::span<const int32_t> source,
                           std::span<const int32_t> target, int64_t layer, Precision precision) {
  AlignmentOptions options{.precision = precision};
  if (layer >= 0) options.layers = {layer};
  const std::vector<int32_t> sources[] = {{source.begin(), source.end()}};
  const std::vector<int32_t> targets[] = {{target.begin(), target.end()}};
  return cross_attention_maps(model, sources, targets, options)[0];
}

std::vector<WordLink> word_attention(const LoadedModel& model, std::span<const int32_t> source,
                                     std::span<const int32_t> target, Precision precision) {
  const Tokenizer& tokenizer = model.tokenizer.value();
  const Tensor map = cross_attention_map(model.translator(), source, target, -1, precision);
  const std::vector<WordSpan> source_words = word_spans(tokenizer, source);
  std::vector<WordLink> links;
  for (const WordSpan& word : word_spans(model.target(), target)) {
    if (word.is_punctuation) continue;
    WordLink link{.target = word_text(model.target(), target, word), .source = ""};
    int64_t index = -1;
    for (const WordSpan& candidate : source_words) {
      if (candidate.is_punctuation) continue;
      ++index;
      const double w = word_weight(map, word, candidate);
      if (link.source_index >= 0 && w <= link.weight) continue;
      link.source = word_text(tokenizer, source, candidate);
      link.source_index = index;
      link.weight = w;
    }
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace heddle
