// The cases of the encoder-decoder: training steps and translation, shapes as in bench/peers.
#include <memory>
#include <numeric>

#include "heddle/base/rng.h"
#include "heddle/bench/case.h"
#include "heddle/bench/transformer_products.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/models/transformer.h"
#include "heddle/train/optimizer.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::bench {
namespace {

/// A size of the model, and the batches that it is timed with.
struct TransformerSize {
  const char* name;
  int64_t width, layers, heads, hidden, vocab;
  int64_t sentences;  // of a batch
  int64_t length;     // of the longest sentence in training, in tokens
};

constexpr TransformerSize kTrainTiny = {"tiny d128 L4", 128, 4, 4, 256, 10000, 128, 24};
constexpr TransformerSize kTrainBase = {"base d512 L6", 512, 6, 8, 2048, 10000, 64, 32};
constexpr TransformerSize kTranslateTiny = {"tiny d128 L4", 128, 4, 4, 256, 10000, 64, 0};
constexpr TransformerSize kTranslateBase = {"base d512 L6", 512, 6, 8, 2048, 32000, 64, 0};

// Post-norm and ReLU as in the paper, learned positions, one matrix for both embeddings and the
// output. Dropout as PyTorch's nn.Transformer has it: sublayers, attention weights, inside the
// feed-forward layers; none on the embeddings.
TransformerConfig config_of(const TransformerSize& s) {
  TransformerConfig c;
  c.vocab_size = s.vocab;
  c.set_sizes(s.layers, s.width, s.hidden, s.heads);
  c.dropout = c.attention_dropout = c.activation_dropout = 0.1;
  c.embedding_dropout = 0;
  c.position_embedding_type = "learned";
  return c;
}

// Tokens above the special ids, equally likely.
std::vector<int32_t> random_tokens(RngStream& random, int64_t n, int64_t vocab) {
  std::vector<int32_t> tokens(n);
  for (int32_t& w : tokens) w = static_cast<int32_t>(4 + random.below(vocab - 4));
  return tokens;
}

std::vector<int64_t> random_lengths(RngStream& random, int64_t n, int64_t least, int64_t most) {
  std::vector<int64_t> lengths(n);
  for (int64_t& l : lengths) l = least + static_cast<int64_t>(random.below(most - least + 1));
  return lengths;
}

void name_rows(const Segments& segments, std::vector<uint32_t>& sample,
               std::vector<uint32_t>& position) {
  for (int64_t i = 0; i < segments.count(); ++i) {
    for (int64_t r = 0; r < segments.length(i); ++r) {
      sample.push_back(static_cast<uint32_t>(i));
      position.push_back(static_cast<uint32_t>(r));
    }
  }
}

// Source and target rows of each sentence: between 8 below the longest and the longest.
TranslationBatch random_batch(const TransformerSize& s, int64_t sentences) {
  RngStream random(make_key(1, 0, hash_name("bench")));
  const int64_t least = std::max<int64_t>(4, s.length - 8);
  TranslationBatch b;
  b.source_segments = Segments::from_lengths(random_lengths(random, sentences, least, s.length));
  b.target_segments = Segments::from_lengths(random_lengths(random, sentences, least, s.length));
  b.source = random_tokens(random, b.source_segments.rows(), s.vocab);
  b.target_in = random_tokens(random, b.target_segments.rows(), s.vocab);
  b.target_out = random_tokens(random, b.target_segments.rows(), s.vocab);
  name_rows(b.source_segments, b.source_sample, b.source_position);
  name_rows(b.target_segments, b.target_sample, b.target_position);
  b.samples.resize(sentences);
  std::iota(b.samples.begin(), b.samples.end(), int64_t{0});
  b.target_tokens = b.target_segments.rows();
  return b;
}

/// Weights, optimizer and one batch that every update learns from.
struct TransformerTraining {
  nn::Parameters parameters{1};
  Transformer model;
  train::Optimizer optimizer;
  TranslationBatch batch;
  nn::Run run;

  TransformerTraining(const TransformerConfig& c, TranslationBatch b, DType dtype)
      : model(nn::Scope(parameters), c), optimizer(parameters, {}), batch(std::move(b)) {
    run.compute = dtype;
    run.training = true;
    run.seed = 1;
  }

  // Forward, backward, clipping at 1, Adam: an update as the trainer makes it.
  void update() {
    ++run.update;
    const train::LossSums sums = train::accumulate_gradients(model, batch, run, 0.1);
    const auto tokens = static_cast<double>(sums.predicted);
    const double norm = optimizer.gradient_norm() / tokens;
    optimizer.step(1e-4, (norm > 1 ? 1 / norm : 1) / tokens);
  }
};

BenchWorkload make_training(const TransformerSize& s, const BenchOptions& o) {
  const TransformerConfig config = config_of(s);
  const int64_t sentences = o.batch > 0 ? o.batch : s.sentences;
  const auto t = std::make_shared<TransformerTraining>(config, random_batch(s, sentences),
                                                       o.precision.compute);
  const int64_t source_rows = t->batch.source_segments.rows(), tokens = t->batch.target_tokens;
  return {.step = [t] { t->update(); },
          .units = static_cast<double>(tokens),
          .batch = sentences,
          .parameters = t->parameters.elements(),
          .model = s.name,
          .products = training_products(config, source_rows, tokens, o.precision)};
}

BenchCase training_case(const std::string& name, const TransformerSize& s) {
  return {.name = name,
          .unit = "target tokens/s",
          .about = fmt::format("an update of the encoder-decoder, {}: {} pairs of {} to {} tokens",
                               s.name, s.sentences, s.length - 8, s.length),
          .dtypes = {"f32", "bf16"},
          .make = [&s](const BenchOptions& o) { return make_training(s, o); }};
}

constexpr int64_t kForced = 20;  // tokens of each translation, its end included

/// Weights and the sentences to translate.
struct Translating {
  nn::Parameters parameters{1};
  Transformer model;
  std::vector<std::vector<int32_t>> sources;
  TranslateOptions options;

  explicit Translating(const TransformerConfig& c) : model(nn::Scope(parameters), c) {
    // No translation ends before it must: the end never is likelier than a token.
    for (auto& p : parameters.all()) {
      if (p->value().shape() != Shape{1, c.vocab_size}) continue;
      p->value().data<float>()[c.eos_token_id] = -1e9f;
      p->changed(true);
    }
  }
  int64_t source_rows() const {  // with the ends
    int64_t rows = 0;
    for (const auto& s : sources) rows += static_cast<int64_t>(s.size()) + 1;
    return rows;
  }
};

std::vector<std::vector<int32_t>> random_sentences(int64_t n, int64_t vocab) {
  RngStream random(make_key(1, 0, hash_name("bench")));
  std::vector<std::vector<int32_t>> sentences;
  for (const int64_t length : random_lengths(random, n, 8, 24)) {
    sentences.push_back(random_tokens(random, length, vocab));
  }
  return sentences;
}

BenchWorkload make_translation(const TransformerSize& s, int64_t beam, const BenchOptions& o) {
  TransformerConfig config = config_of(s);
  config.output_bias = true;
  const int64_t sentences = o.batch > 0 ? o.batch : s.sentences;
  const auto t = std::make_shared<Translating>(config);
  t->sources = random_sentences(sentences, s.vocab);
  t->options = {.search = {.beam = beam},
                .batch_tokens = 2 * beam * t->source_rows(),  // one batch
                .max_length_factor = 0,
                .max_length_extra = kForced,
                .scores = false,
                .precision = o.precision};
  const int64_t element = o.precision.weight_bytes();
  const TranslationSize size = {
      .source_rows = t->source_rows(), .sentences = sentences, .beam = beam, .steps = kForced};
  return {.step = [t] { translate_ids(t->model, t->sources, t->options); },
          .units = static_cast<double>(sentences * kForced),
          .batch = sentences,
          .parameters = t->parameters.elements(),
          .model = s.name,
          .products = translation_products(config, size, o.precision),
          .bytes_read = sentences == 1 ? element * translation_weights_read(config, kForced) : 0,
          .model_bytes = element * t->parameters.elements()};
}

BenchCase translation_case(const std::string& name, const TransformerSize& s, int64_t beam) {
  return {.name = name,
          .unit = "target tokens/s",
          .about = fmt::format(
              "translating {} sentences of 8 to 24 tokens into {} tokens each, {}, {}", s.sentences,
              kForced, s.name, beam == 1 ? "greedily" : fmt::format("beam {}", beam)),
          .dtypes = {"f32", "bf16", "int8"},
          .make = [&s, beam](const BenchOptions& o) { return make_translation(s, beam, o); }};
}

}  // namespace

std::vector<BenchCase> transformer_cases() {
  return {training_case("train-tiny", kTrainTiny), training_case("train-base", kTrainBase),
          translation_case("translate-tiny", kTranslateTiny, 1),
          translation_case("translate-base", kTranslateBase, 1),
          translation_case("translate-base-beam4", kTranslateBase, 4)};
}

}  // namespace heddle::bench
