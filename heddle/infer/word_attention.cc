// Cross attention of one pair of sentences, by tokens and by words.
#include "heddle/infer/word_attention.h"

#include "heddle/infer/piece_words.h"
#include "heddle/ops/attention.h"

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

std::vector<int32_t> with_end(std::span<const int32_t> ids, int64_t eos) {
  std::vector<int32_t> result(ids.begin(), ids.end());
  result.push_back(static_cast<int32_t>(eos));
  return result;
}

}  // namespace

Tensor cross_attention_map(const Transformer& model, std::span<const int32_t> source,
                           std::span<const int32_t> target, int64_t layer, Precision precision) {
  const TransformerConfig& c = model.config();
  if (layer < 0) layer = c.decoder_layers - (c.decoder_layers <= 4 ? 1 : 2);
  check(layer < c.decoder_layers, ErrorKind::shape,
        "cross attention of decoder layer {}: the model has {}", layer, c.decoder_layers);
  const NoGrad off;
  const std::string wanted = fmt::format("cross_attentions.{}", layer);
  Tensor map;
  nn::Observer observer;
  observer.attention = [&](const std::string& name, const Tensor& q, const Tensor& k,
                           const Segments& queries, const Segments& keys,
                           const AttentionOptions& options) {
    if (name != wanted) return;
    map = Tensor::zeros({q.size(0), k.size(0)}, DType::f32);
    for (int64_t h = 0; h < options.heads; ++h) {
      const Tensor w = attention_weights(q, k, queries, keys, options, 0, h);
      for (int64_t i = 0; i < map.elements(); ++i) map.data<float>()[i] += w.data<float>()[i];
    }
    for (int64_t i = 0; i < map.elements(); ++i) {
      map.data<float>()[i] /= static_cast<float>(options.heads);
    }
  };
  nn::Run run;
  run.use(precision);
  const std::vector<int32_t> source_rows = with_end(source, c.eos_token_id);
  std::vector<int32_t> target_rows = {static_cast<int32_t>(c.decoder_start_token_id)};
  target_rows.insert(target_rows.end(), target.begin(), target.end());
  const Segments keys = Segments::uniform(1, static_cast<int64_t>(source_rows.size()));
  const Segments queries = Segments::uniform(1, static_cast<int64_t>(target_rows.size()));
  const Tensor memory = model.encode({source_rows, &keys, nullptr}, run);
  run.observer = &observer;
  model.decode({target_rows, &queries, nullptr}, memory, keys, run);
  return map;
}

std::vector<WordLink> word_attention(const TranslationModel& model, std::span<const int32_t> source,
                                     std::span<const int32_t> target, Precision precision) {
  const Tokenizer& tokenizer = model.tokenizer.value();
  const Tensor map = cross_attention_map(model.model, source, target, -1, precision);
  const std::vector<PieceWord> source_words = piece_words(tokenizer, source);
  std::vector<WordLink> links;
  for (const PieceWord& word : piece_words(tokenizer, target)) {
    if (word.is_punctuation) continue;
    WordLink link{.target = word_text(tokenizer, target, word), .source = ""};
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
