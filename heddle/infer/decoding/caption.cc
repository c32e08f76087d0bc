// Images are encoded pass by pass; their memories are the sources of an engine's requests.
#include "heddle/infer/decoding/caption.h"

#include <algorithm>

#include "heddle/base/profile.h"
#include "heddle/infer/words.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

constexpr int64_t kLongestCaption = 48;  // tokens
constexpr size_t kForcedAtOnce = 64;

// Weights of the aligning layer, [tokens, cells] of each caption, averaged over the heads.
std::vector<Tensor> forced_weights(const Captioner& model, std::span<const Tensor> memories,
                                   std::span<const std::vector<int32_t>> captions,
                                   const Precision& precision) {
  std::vector<int32_t> ids;
  std::vector<int64_t> tokens, cells;
  for (size_t i = 0; i < captions.size(); ++i) {
    ids.push_back(static_cast<int32_t>(model.facts().decoder_start_token_id));
    ids.insert(ids.end(), captions[i].begin(), captions[i].end());
    tokens.push_back(std::ssize(captions[i]) + 1);
    cells.push_back(memories[i].size(0));
  }
  const Segments targets = Segments::from_lengths(tokens), sources = Segments::from_lengths(cells);
  const std::string layer = fmt::format("cross_attentions.{}", aligning_layer(model.facts()));
  std::vector<Tensor> all;
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& call) {
    if (call.name() != layer) return;
    for (int64_t i = 0; i < targets.count(); ++i) {
      Tensor sum = call.weights(i, 0);
      for (int64_t h = 1; h < call.heads(); ++h) sum = sum + call.weights(i, h);
      all.push_back(scale(sum, 1.0f / static_cast<float>(call.heads())));
    }
  };
  nn::Run run;
  run.use(precision);
  run.observer = &observer;
  model.decode({.ids = ids, .segments = &targets}, concat({memories.begin(), memories.end()}, 0),
               sources, run);
  return all;
}

std::vector<SeenWord> words_of(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                               const Tensor& weights) {
  std::vector<SeenWord> words;
  const int64_t cells = weights.size(1);
  for (const WordSpan& span : word_spans(tokenizer, ids)) {
    SeenWord word{word_text(tokenizer, ids, span), std::vector<float>(static_cast<size_t>(cells))};
    const auto count = static_cast<float>(span.end - span.begin);
    for (int64_t t = span.begin; t < span.end; ++t) {
      const float* const row = weights.data<float>() + t * cells;
      for (int64_t c = 0; c < cells; ++c) word.weights[static_cast<size_t>(c)] += row[c] / count;
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

CaptionReader load_captioner(const std::string& path) {
  CaptionReader reader{load_model(path), {}};
  reader.model();  // says what is wanted
  load_tokenizers(reader.loaded, true);
  reader.processor = ImageProcessor::of_folder(reader.loaded.path);
  return reader;
}

TranslateOptions caption_options(const LoadedModel& model, const SearchConfig& above) {
  TranslateOptions options = default_options(model, above);
  if (options.longest_without_end == 0) options.longest_without_end = kLongestCaption;
  return options;
}

EncodedImages encode_images(const Captioner& model, const ImageProcessor& processor,
                            std::span<const Image> fitted, const Precision& precision,
                            int64_t most_pixels) {
  const ProfilePhase phase("encode");
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  EncodedImages encoded;
  size_t begin = 0;
  for (const size_t end : pass_ends(fitted, most_pixels)) {
    const ImageBatch batch(fitted.subspan(begin, end - begin), processor);
    const nn::ImageRows rows = batch.rows();
    const Tensor memory = model.encode(rows, run);
    const Segments cells = model.memory_segments(rows);
    for (int64_t i = 0; i < cells.count(); ++i) {
      encoded.memories.push_back(memory.slice(0, cells.begin(i), cells.length(i)).to_contiguous());
      encoded.grids.push_back(model.grid(batch.sizes()[static_cast<size_t>(i)]));
    }
    begin = end;
  }
  return encoded;
}

std::vector<Translation> caption_images(const Captioner& model, const Tokenizer& tokenizer,
                                        std::span<const Tensor> memories,
                                        TranslateOptions options) {
  if (tokenizer.unk_id() >= 0) options.search.suppressed.push_back(tokenizer.unk_id());
  std::vector<Translation> captions = translate_memories(model, memories, options);
  decode_texts(captions, tokenizer);
  return captions;
}

std::vector<std::vector<SeenWord>> seen_words(const Captioner& model, const Tokenizer& tokenizer,
                                              std::span<const Tensor> memories,
                                              std::span<const std::vector<int32_t>> captions,
                                              const Precision& precision) {
  const NoGrad off;
  std::vector<std::vector<SeenWord>> all(captions.size());
  if (model.facts().cross_attention_layers == 0) return all;
  for (size_t begin = 0; begin < captions.size(); begin += kForcedAtOnce) {
    const size_t count = std::min(kForcedAtOnce, captions.size() - begin);
    const std::vector<Tensor> weights = forced_weights(model, memories.subspan(begin, count),
                                                       captions.subspan(begin, count), precision);
    for (size_t i = 0; i < count; ++i) {
      all[begin + i] = words_of(tokenizer, captions[begin + i], weights[i]);
    }
  }
  return all;
}

}  // namespace heddle
