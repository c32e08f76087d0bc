// The cases of language models and encoders: training steps and generation of GPT-2, BERT's
// encoding; sizes as in bench/peers.
#include <memory>
#include <optional>

#include "heddle/autograd/tape.h"
#include "heddle/bench/case.h"
#include "heddle/bench/model_work.h"
#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/quantize.h"
#include "heddle/models/registry.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::bench {
namespace {

/// A size of GPT-2 and the batch that it is trained with; dropouts are Hugging Face's, 0.1.
struct LanguageSize {
  const char* name;
  int64_t layers, heads, width, positions, vocab;
  int64_t sequences, length;    // of a batch
  bool counts_updates = false;  // in a second, not tokens
};

// So small that what surrounds the products counts.
constexpr LanguageSize kStepGpt = {"gpt2 d64 L2", 2, 2, 64, 16, 65, 8, 16, true};
constexpr LanguageSize kCharGpt = {"gpt2 d128 L4", 4, 4, 128, 64, 65, 12, 64};
constexpr LanguageSize kBabyGpt = {"gpt2 d384 L6", 6, 6, 384, 256, 65, 16, 256};
constexpr LanguageSize kGpt2 = {"gpt2 124M", 12, 12, 768, 1024, 50257, 1, 512};

constexpr int64_t kPrompt = 32, kNewTokens = 64;
constexpr int64_t kLongPrompt = 512;
constexpr int64_t kBertBatch = 8, kBertLength = 128;

// Tokens of SST-2's 872 validation sentences at 64 equal steps of their order by length
// (bert-base-uncased, [CLS] and [SEP] counted).
constexpr int64_t kMixedLengths[] = {
    6,  7,  8,  9,  9,  10, 11, 11, 12, 13, 13, 13, 14, 15, 15, 16, 16, 17, 17, 17, 18, 18,
    19, 19, 20, 20, 21, 21, 21, 22, 22, 23, 23, 24, 24, 24, 25, 25, 26, 26, 27, 27, 27, 28,
    28, 29, 29, 30, 30, 31, 32, 33, 34, 34, 35, 36, 37, 38, 38, 40, 41, 43, 47, 51};

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
          .units = s.counts_updates ? 1 : static_cast<double>(rows),
          .batch = sequences,
          .parameters = t->parameters.elements(),
          .model = s.name,
          .products = std::move(products),
          .least = s.counts_updates ? 100 : 3};
}

BenchCase training_case(const std::string& name, const LanguageSize& s) {
  return {.name = name,
          .unit = s.counts_updates ? "updates/s" : "tokens/s",
          .about = fmt::format("an update of a language model, {}: {} x {} tokens", s.name,
                               s.sequences, s.length),
          .dtypes = {"f32", "bf16"},
          .make = [&s](const BenchOptions& o) { return make_training(s, o); }};
}

// Bytes of GPT-2 that each step reads: every weight but positions, norms and biases.
int64_t bytes_of_token(const nn::Parameters& parameters, const BenchOptions& o) {
  const int64_t width = kGpt2.width;
  if (o.bits == 0) {
    return o.precision.weight_bytes() * (kGpt2.layers * 12 * width * width + kGpt2.vocab * width);
  }
  int64_t bytes = 0;
  for (const auto& p : parameters.all()) {
    if (p->quantized() != nullptr) bytes += p->quantized()->rows().bytes();
  }
  return bytes;
}

// What follows prompts of so many tokens; one token: the prompt alone.
BenchWorkload make_generation(const BenchOptions& o, int64_t prompt, int64_t new_tokens) {
  struct Generating {
    nn::Parameters parameters{1};
    std::unique_ptr<Model> model;
    std::optional<TemporaryFolder> folder;  // of quantized weights, which are mapped
    std::vector<std::vector<int32_t>> prompts;
    GenerateOptions options;
  };
  const int64_t batch = o.batch > 0 ? o.batch : 1;
  const auto g = std::make_shared<Generating>();
  g->model = config_of(kGpt2)->make(nn::Scope(g->parameters));
  if (o.bits > 0) {
    const QuantizedFormat format = {.bits = o.bits};
    quantize_weights(*g->model, g->parameters, format, "bench");
    g->folder.emplace();
    save_model(g->folder->path, *g->model, g->parameters,
               {.dtype = DType::bf16, .quantization = quantization_config(format)});
    g->model.reset();
    g->parameters = nn::Parameters(1);
    forget_peak_memory();
    LoadedModel loaded = load_model(g->folder->path);
    g->parameters = std::move(loaded.parameters), g->model = std::move(loaded.model);
  }
  RngStream random = random_numbers();
  const std::vector<int32_t> tokens = random_tokens(random, batch * prompt, kGpt2.vocab);
  for (int64_t i = 0; i < batch; ++i) {
    g->prompts.emplace_back(tokens.begin() + i * prompt, tokens.begin() + (i + 1) * prompt);
  }
  g->options = {.search = {.max_new_tokens = new_tokens}, .precision = o.precision};
  Products products(o.precision, false);
  const int64_t width = kGpt2.width, layers = kGpt2.layers, steps = new_tokens - 1;
  products.blocks(batch * prompt, width, 4 * width, layers - 1);
  products.linear(batch * prompt, width, 3 * width);  // of the last block all keys and values
  products.linear(batch, width, width);
  products.linear(batch, width, 4 * width);
  products.linear(batch, 4 * width, width);
  products.blocks(batch, width, 4 * width, layers * steps);
  products.logits(batch, width, kGpt2.vocab, new_tokens);
  const int64_t read = bytes_of_token(g->parameters, o);
  return {.step = [g] { generate_ids(*g->model->as<LanguageModel>(), g->prompts, g->options); },
          .units = static_cast<double>(batch * (new_tokens > 1 ? new_tokens : prompt)),
          .batch = batch,
          .parameters = g->parameters.elements(),
          .model = kGpt2.name,
          .products = std::move(products),
          .bytes_read = batch == 1 && new_tokens > 1 ? new_tokens * read : 0,
          .model_bytes = read};
}

// The first `batch` of the lengths, again from the first where they end.
std::vector<int64_t> mixed_lengths(const BenchOptions& o) {
  const int64_t all = std::ssize(kMixedLengths), batch = o.batch > 0 ? o.batch : all;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch; ++i) lengths.push_back(kMixedLengths[i % all]);
  return lengths;
}

// Sequences of these lengths in one packed pass.
BenchWorkload make_encoding(const BenchOptions& o, const std::vector<int64_t>& lengths) {
  struct Encoding {
    nn::Parameters parameters{1};
    std::unique_ptr<Model> model = preset_config("bert-base")->make(nn::Scope(parameters));
    std::vector<int32_t> ids;
    Segments segments;
    nn::Run run;
  };
  const auto batch = std::ssize(lengths);
  const auto e = std::make_shared<Encoding>();
  e->segments = Segments::from_lengths(lengths);
  const int64_t rows = e->segments.rows();
  const int64_t width = e->model->width();
  RngStream random = random_numbers();
  e->ids = random_tokens(random, rows, e->model->need<TokenModel>("bench").vocab_size());
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

std::vector<BenchCase> language_cases() {
  return {
      training_case("train-steps", kStepGpt),
      training_case("train-chargpt", kCharGpt),
      training_case("train-babygpt", kBabyGpt),
      training_case("train-gpt2", kGpt2),
      {.name = "generate-gpt2",
       .unit = "new tokens/s",
       .about = fmt::format("{} new tokens after a prompt of {}, greedily, {}", kNewTokens, kPrompt,
                            kGpt2.name),
       .dtypes = {"f32", "bf16", "int8", "int4"},
       .make = [](const BenchOptions& o) { return make_generation(o, kPrompt, kNewTokens); }},
      {.name = "prompt-gpt2",
       .unit = "tokens/s",
       .about =
           fmt::format("a prompt of {} tokens and the token after it, {}", kLongPrompt, kGpt2.name),
       .dtypes = {"f32", "bf16", "int8", "int4"},
       .make = [](const BenchOptions& o) { return make_generation(o, kLongPrompt, 1); }},
      {.name = "encode-bert",
       .unit = "sequences/s",
       .about = fmt::format("encoding {} x {} tokens, bert base", kBertBatch, kBertLength),
       .dtypes = {"f32", "bf16", "int8"},
       .make =
           [](const BenchOptions& o) {
             const int64_t batch = o.batch > 0 ? o.batch : kBertBatch;
             return make_encoding(o, std::vector<int64_t>(static_cast<size_t>(batch), kBertLength));
           }},
      {.name = "encode-mixed",
       .unit = "sequences/s",
       .about = fmt::format("encoding {} sentences of the lengths of SST-2's, packed, bert base",
                            std::size(kMixedLengths)),
       .dtypes = {"f32", "bf16", "int8"},
       .make = [](const BenchOptions& o) { return make_encoding(o, mixed_lengths(o)); }}};
}

}  // namespace heddle::bench
