// The cases of models: training steps of the encoder-decoder and of GPT-2, translation, generation,
// BERT's encoding; shapes as in bench/peers.
#include <memory>
#include <numeric>

#include "heddle/autograd/tape.h"
#include "heddle/base/rng.h"
#include "heddle/bench/case.h"
#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/models/registry.h"
#include "heddle/models/transformer.h"
#include "heddle/train/optimizer.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::bench {
namespace {

RngStream random_numbers() { return RngStream(make_key(1, 0, hash_name("bench"))); }

// Tokens from `first` on, equally likely.
std::vector<int32_t> random_tokens(RngStream& random, int64_t n, int64_t vocab, int64_t first = 0) {
  std::vector<int32_t> tokens(n);
  for (int32_t& w : tokens) w = static_cast<int32_t>(first + random.below(vocab - first));
  return tokens;
}

/// Weights and optimizer of a case whose every update learns from one batch.
struct Training {
  nn::Parameters parameters{1};
  std::unique_ptr<Model> model;
  train::Optimizer optimizer;
  nn::Run run;

  Training(const ModelConfig& config, const train::OptimizerOptions& options, DType dtype)
      : model(config.make(nn::Scope(parameters))), optimizer(parameters, options) {
    run.compute = dtype;
    run.dropout.training = true;
    run.dropout.seed = 1;
  }
};

// ---- the encoder-decoder

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

constexpr int64_t kSpecial = 4;  // ids below are special

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
  RngStream random = random_numbers();
  const int64_t least = std::max<int64_t>(4, s.length - 8);
  TranslationBatch b;
  b.source_segments = Segments::from_lengths(random_lengths(random, sentences, least, s.length));
  b.target_segments = Segments::from_lengths(random_lengths(random, sentences, least, s.length));
  b.source = random_tokens(random, b.source_segments.rows(), s.vocab, kSpecial);
  b.target_in = random_tokens(random, b.target_segments.rows(), s.vocab, kSpecial);
  b.target_out = random_tokens(random, b.target_segments.rows(), s.vocab, kSpecial);
  name_rows(b.source_segments, b.source_sample, b.source_position);
  name_rows(b.target_segments, b.target_sample, b.target_position);
  b.samples.resize(sentences);
  std::iota(b.samples.begin(), b.samples.end(), int64_t{0});
  b.target_tokens = b.target_segments.rows();
  return b;
}

// Forward, backward, clipping at 1, Adam: an update as the trainer makes it.
BenchWorkload make_training(const TransformerSize& s, const BenchOptions& o) {
  const TransformerConfig config = config_of(s);
  const int64_t sentences = o.batch > 0 ? o.batch : s.sentences;
  const auto t = std::make_shared<Training>(*model_config(config), train::OptimizerOptions{},
                                            o.precision.compute);
  const auto batch = std::make_shared<const TranslationBatch>(random_batch(s, sentences));
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
          .model = s.name,
          .products = training_products(config, batch->source_segments.rows(), batch->target_tokens,
                                        o.precision)};
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
  RngStream random = random_numbers();
  std::vector<std::vector<int32_t>> sentences;
  for (const int64_t length : random_lengths(random, n, 8, 24)) {
    sentences.push_back(random_tokens(random, length, vocab, kSpecial));
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
                .longest_factor = 0,
                .longest_extra = kForced,
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

// ---- language models and encoders

/// A size of GPT-2 and the batch that it is trained with; dropouts are Hugging Face's, 0.1.
struct LanguageSize {
  const char* name;
  int64_t layers, heads, width, positions, vocab;
  int64_t sequences, length;  // of a batch
};

constexpr LanguageSize kCharGpt = {"gpt2 d128 L4", 4, 4, 128, 64, 65, 12, 64};
constexpr LanguageSize kBabyGpt = {"gpt2 d384 L6", 6, 6, 384, 256, 65, 16, 256};
constexpr LanguageSize kGpt2 = {"gpt2 124M", 12, 12, 768, 1024, 50257, 1, 512};

constexpr int64_t kPrompt = 32, kNewTokens = 64;
constexpr int64_t kLongPrompt = 512;
constexpr int64_t kBertBatch = 8, kBertLength = 128;

std::unique_ptr<ModelConfig> config_of(const LanguageSize& s) {
  return read_model_config(Json::object({{"model_type", "gpt2"},
                                         {"n_layer", s.layers},
                                         {"n_head", s.heads},
                                         {"n_embd", s.width},
                                         {"n_positions", s.positions},
                                         {"vocab_size", s.vocab}}),
                           "bench");
}

// Forward, backward, AdamW as PyTorch has it; no clipping.
BenchWorkload make_training(const LanguageSize& s, const BenchOptions& o) {
  struct Batch {
    std::vector<int32_t> ids;
    Segments segments;
    std::shared_ptr<const RowIds> rows;
  };
  const int64_t sequences = o.batch > 0 ? o.batch : s.sequences, rows = sequences * s.length;
  const train::OptimizerOptions adam_w{
      .decoupled_decay = true, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01};
  const auto t = std::make_shared<Training>(*config_of(s), adam_w, o.precision.compute);
  RngStream random = random_numbers();
  const auto batch = std::make_shared<Batch>(
      Batch{random_tokens(random, rows, s.vocab), Segments::uniform(sequences, s.length), {}});
  RowIds ids;
  name_rows(batch->segments, ids.sample, ids.position);
  batch->rows = std::make_shared<const RowIds>(std::move(ids));
  const auto update = [t, batch] {
    ++t->run.dropout.update;
    const train::LossSums sums = train::accumulate_gradients(
        *t->model->as<LanguageModel>(),
        {.ids = batch->ids, .segments = &batch->segments, .rows = batch->rows}, t->run);
    t->optimizer.step(1e-4, 1.0 / static_cast<double>(sums.predicted));
  };
  Products products(o.precision, true);
  products.blocks(rows, s.width, 4 * s.width, s.layers);
  products.logits(rows, s.width, s.vocab);
  return {.step = update,
          .units = static_cast<double>(rows),
          .batch = sequences,
          .parameters = t->parameters.elements(),
          .model = s.name,
          .products = std::move(products)};
}

BenchCase training_case(const std::string& name, const LanguageSize& s) {
  return {.name = name,
          .unit = "tokens/s",
          .about = fmt::format("an update of a language model, {}: {} x {} tokens", s.name,
                               s.sequences, s.length),
          .dtypes = {"f32", "bf16"},
          .make = [&s](const BenchOptions& o) { return make_training(s, o); }};
}

// What follows prompts of so many tokens; one token: the prompt alone.
BenchWorkload make_generation(const BenchOptions& o, int64_t prompt, int64_t new_tokens) {
  struct Generating {
    nn::Parameters parameters{1};
    std::unique_ptr<Model> model = config_of(kGpt2)->make(nn::Scope(parameters));
    std::vector<std::vector<int32_t>> prompts;
    GenerateOptions options;
  };
  const int64_t batch = o.batch > 0 ? o.batch : 1;
  const auto g = std::make_shared<Generating>();
  RngStream random = random_numbers();
  const std::vector<int32_t> tokens = random_tokens(random, batch * prompt, kGpt2.vocab);
  for (int64_t i = 0; i < batch; ++i) {
    g->prompts.emplace_back(tokens.begin() + i * prompt, tokens.begin() + (i + 1) * prompt);
  }
  g->options = {.search = {.max_new_tokens = new_tokens}, .precision = o.precision};
  Products products(o.precision, false);
  const int64_t width = kGpt2.width, layers = kGpt2.layers, steps = new_tokens - 1;
  products.blocks(batch * prompt, width, 4 * width, layers);
  products.blocks(batch, width, 4 * width, layers * steps);
  products.logits(batch, width, kGpt2.vocab, new_tokens);
  const int64_t element = o.precision.weight_bytes();
  // The prompt and each step read every weight but the positions.
  const int64_t read = new_tokens * (layers * 12 * width * width + kGpt2.vocab * width);
  return {.step = [g] { generate_ids(*g->model->as<LanguageModel>(), g->prompts, g->options); },
          .units = static_cast<double>(batch * (new_tokens > 1 ? new_tokens : prompt)),
          .batch = batch,
          .parameters = g->parameters.elements(),
          .model = kGpt2.name,
          .products = std::move(products),
          .bytes_read = batch == 1 && new_tokens > 1 ? element * read : 0,
          .model_bytes = element * g->parameters.elements()};
}

BenchWorkload make_encoding(const BenchOptions& o) {
  struct Encoding {
    nn::Parameters parameters{1};
    std::unique_ptr<Model> model = preset_config("bert-base")->make(nn::Scope(parameters));
    std::vector<int32_t> ids;
    Segments segments;
    nn::Run run;
  };
  const int64_t batch = o.batch > 0 ? o.batch : kBertBatch, rows = batch * kBertLength;
  const auto e = std::make_shared<Encoding>();
  const int64_t width = e->model->width();
  RngStream random = random_numbers();
  e->ids = random_tokens(random, rows, e->model->need<TokenModel>("bench").vocab_size());
  e->segments = Segments::uniform(batch, kBertLength);
  e->run.use(o.precision);
  Products products(o.precision, false);
  products.blocks(rows, width, 4 * width, e->model->layers());
  products.linear(batch, width, width);  // the pooler
  return {.step =
              [e] {
                const NoGrad off;
                e->model->forward(nn::TokenRows{.ids = e->ids, .segments = &e->segments}, e->run);
              },
          .units = static_cast<double>(batch),
          .batch = batch,
          .parameters = e->parameters.elements(),
          .model = "bert base",
          .products = std::move(products),
          .model_bytes = o.precision.weight_bytes() * e->parameters.elements()};
}

}  // namespace

std::vector<BenchCase> model_cases() {
  return {training_case("train-tiny", kTrainTiny),
          training_case("train-base", kTrainBase),
          translation_case("translate-tiny", kTranslateTiny, 1),
          translation_case("translate-base", kTranslateBase, 1),
          translation_case("translate-base-beam4", kTranslateBase, 4),
          training_case("train-chargpt", kCharGpt),
          training_case("train-babygpt", kBabyGpt),
          training_case("train-gpt2", kGpt2),
          {.name = "generate-gpt2",
           .unit = "new tokens/s",
           .about = fmt::format("{} new tokens after a prompt of {}, greedily, {}", kNewTokens,
                                kPrompt, kGpt2.name),
           .dtypes = {"f32", "bf16", "int8"},
           .make = [](const BenchOptions& o) { return make_generation(o, kPrompt, kNewTokens); }},
          {.name = "prompt-gpt2",
           .unit = "tokens/s",
           .about = fmt::format("a prompt of {} tokens and the token after it, {}", kLongPrompt,
                                kGpt2.name),
           .dtypes = {"f32", "bf16", "int8"},
           .make = [](const BenchOptions& o) { return make_generation(o, kLongPrompt, 1); }},
          {.name = "encode-bert",
           .unit = "sequences/s",
           .about = fmt::format("encoding {} x {} tokens, bert base", kBertBatch, kBertLength),
           .dtypes = {"f32", "bf16", "int8"},
           .make = make_encoding}};
}

}  // namespace heddle::bench
