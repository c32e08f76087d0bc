// Cross attention of one pair of sentences, by tokens and by words.
#include "heddle/infer/word_attention.h"

#include "heddle/infer/alignment.h"
#include "heddle/infer/piece_words.h"

namespace heddle {
namespace {

// Mean over the target word's rows of the summed columns of the source word.
double weight(const Tensor& map, const PieceWord& target, const PieceWord& source) {
  const float* values = map.data<float>();
  double sum = 0;
  for (size_t i = target.begin; i < target.end; ++i) {
    for (size_t j = source.begin; j < source.end; ++j) sum += values[i * map.size(1) + j];
  }
  return sum / static_cast<double>(target.end - target.begin);
}

}  // namespace

Tensor cross_attention_map(const Transformer& model, std::span<const int32_t> source,
                           std::span<const int32_t> target, int64_t layer, Precision precision) {
  AlignmentOptions options{.precision = precision};
  if (layer >= 0) options.layers = {layer};
  const std::vector<int32_t> sources[] = {{source.begin(), source.end()}};
  const std::vector<int32_t> targets[] = {{target.begin(), target.end()}};
  return cross_attention_maps(model, sources, targets, options)[0];
}

std::vector<WordLink> word_attention(const TranslationModel& model, std::span<const int32_t> source,
                                     std::span<const int32_t> target, Precision precision) {
  const Tokenizer& tokenizer = model.tokenizer.value();
  const Tensor map = cross_attention_map(model.model, source, target, -1, precision);
  const std::vector<PieceWord> source_words = piece_words(tokenizer, source);
  std::vector<WordLink> links;
  for (const PieceWord& word : piece_words(model.target(), target)) {
    if (word.is_punctuation) continue;
    WordLink link{.target = word_text(model.target(), target, word), .source = ""};
    int64_t index = -1;
    for (const PieceWord& candidate : source_words) {
      if (candidate.is_punctuation) continue;
      ++index;
      const double w = weight(map, word, candidate);
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
