// Random pairs and sentences; an update, and the translation of a batch.
#include "heddle/bench/translation_work.h"

#include <algorithm>
#include <numeric>

#include "heddle/bench/model_work.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::bench {
namespace {

constexpr int64_t kSpecial = 4;  // ids below are special
constexpr int64_t kForced = 20;  // tokens of each translation, its end included

std::vector<int64_t> random_lengths(RngStream& random, int64_t n, int64_t least, int64_t most) {
  std::vector<int64_t> lengths(n);
  for (int64_t& l : lengths) l = least + static_cast<int64_t>(random.below(most - least + 1));
  return lengths;
}

TranslationBatch random_batch(const PairsCase& c, int64_t sentences) {
  RngStream random = random_numbers();
  const int64_t least = std::max<int64_t>(4, c.length - 8);
  TranslationBatch b;
  b.source_segments = Segments::from_lengths(random_lengths(random, sentences, least, c.length));
  b.target_segments = Segments::from_lengths(random_lengths(random, sentences, least, c.length));
  b.source = random_tokens(random, b.source_segments.rows(), c.vocab, kSpecial);
  b.target_in = random_tokens(random, b.target_segments.rows(), c.vocab, kSpecial);
  b.target_out = random_tokens(random, b.target_segments.rows(), c.vocab, kSpecial);
  name_rows(b.source_segments, b.source_sample, b.source_position);
  name_rows(b.target_segments, b.target_sample, b.target_position);
  b.samples.resize(sentences);
  std::iota(b.samples.begin(), b.samples.end(), int64_t{0});
  b.target_tokens = b.target_segments.rows();
  return b;
}

BenchWorkload make_training(const PairsCase& c, const BenchOptions& o) {
  const int64_t sentences = o.batch > 0 ? o.batch : c.sentences;
  const auto t =
      std::make_shared<Training>(*c.config(), train::OptimizerOptions{}, o.precision.compute);
  const auto batch = std::make_shared<const TranslationBatch>(random_batch(c, sentences));
  const auto update = [t, batch] {
    ++t->run.dropout.update;
    const train::LossSums sums =
        train::accumulate_gradients(*t->model->as<EncoderDecoder>(), *batch, t->run, 0.1);
    const auto tokens = static_cast<double>(sums.predicted);
    const double norm = t->optimizer.gradient_norm() / tokens;
    t->optimizer.step(1e-4, (norm > 1 ? 1 / norm : 1) / tokens);
  };
  return {.step = update,
          .units = static_cast<double>(batch->target_tokens),
          .batch = sentences,
          .parameters = t->parameters.elements(),
          .model = c.model,
          .products = c.of_training(batch->source_segments, batch->target_segments, o.precision)};
}

/// Weights and the sentences to translate.
struct Translating {
  nn::Parameters parameters{1};
  std::unique_ptr<Model> model;
  std::vector<std::vector<int32_t>> sources;
  TranslateOptions options;

  explicit Translating(const PairsCase& c) : model(c.config()->make(nn::Scope(parameters))) {
    // No translation ends before it must: the end never is likelier than a token.
    for (auto& p : parameters.all()) {
      if (p->value().elements() != c.vocab) continue;
      p->value().data<float>()[decoder().facts().eos_token_id] = -1e9f;
      p->changed(true);
    }
  }
  const EncoderDecoder& decoder() const { return *model->as<EncoderDecoder>(); }
  Segments source_segments() const {  // with the ends
    std::vector<int64_t> lengths;
    for (const auto& s : sources) lengths.push_back(std::ssize(s) + 1);
    return Segments::from_lengths(lengths);
  }
};

std::vector<std::vector<int32_t>> random_sentences(int64_t n, int64_t vocab) {
  RngStream random = random_numbers();
  std::vector<std::vector<int32_t>> sentences;
  for (const int64_t length : random_lengths(random, n, 8, 24)) {
    sentences.push_back(random_tokens(random, length, vocab, kSpecial));
  }
  return sentences;
}

BenchWorkload make_translation(const PairsCase& c, const BenchOptions& o) {
  const int64_t sentences = o.batch > 0 ? o.batch : c.sentences;
  const auto t = std::make_shared<Translating>(c);
  t->sources = random_sentences(sentences, c.vocab);
  const Segments sources = t->source_segments();
  t->options = {.search = {.beam = c.beam},
                .batch_tokens = 2 * c.beam * sources.rows(),  // one batch
                .longest_factor = 0,
                .longest_extra = kForced,
                .scores = false,
                .precision = o.precision};
  const int64_t element = o.precision.weight_bytes();
  const Products products = c.of_translation(sources, kForced, o.precision);
  return {.step = [t] { translate_ids(t->decoder(), t->sources, t->options); },
          .units = static_cast<double>(sentences * kForced),
          .batch = sentences,
          .parameters = t->parameters.elements(),
          .model = c.model,
          .products = products,
          .bytes_read = sentences == 1 ? element * products.weights_read() : 0,
          .model_bytes = element * t->parameters.elements()};
}

}  // namespace

BenchCase training_case(const PairsCase& c) {
  return {.name = c.name,
          .unit = "target tokens/s",
          .about = fmt::format("an update of the encoder-decoder, {}: {} pairs of {} to {} tokens",
                               c.model, c.sentences, c.length - 8, c.length),
          .dtypes = c.dtypes,
          .make = [c](const BenchOptions& o) { return make_training(c, o); }};
}

BenchCase translation_case(const PairsCase& c) {
  return {.name = c.name,
          .unit = "target tokens/s",
          .about = fmt::format(
              "translating {} sentences of 8 to 24 tokens into {} tokens each, {}, {}", c.sentences,
              kForced, c.model, c.beam == 1 ? "greedily" : fmt::format("beam {}", c.beam)),
          .dtypes = c.dtypes,
          .make = [c](const BenchOptions& o) { return make_translation(c, o); }};
}

}  // namespace heddle::bench
