// Recurrent translators and language models: what is cached gives what whole passes give; configs
// that do not fit.
#include <gtest/gtest.h>

#include "heddle/infer/forward.h"
#include "heddle/infer/perplexity.h"
#include "heddle/infer/words.h"
#include "heddle/models/registry.h"
#include "heddle/nn/relative/relative_rows.h"
#include "tests/base/temporary.h"
#include "tests/infer/plain_decoding.h"

namespace heddle::testing {
namespace {

struct RnnTranslator {
  nn::Parameters parameters{5};
  std::unique_ptr<Model> made;
  const EncoderDecoder* model;

  explicit RnnTranslator(const std::string& more) {
    made = make_model(nn::Scope(parameters),
                      Json::parse(R"({"model_type": "rnn_seq2seq", "vocab_size": 40,
                        "embedding_size": 12, "hidden_size": 16)" +
                                  more + "}"));
    model = made->as<EncoderDecoder>();
    for (auto& p : parameters.all()) {  // so that tokens differ, and sentences end
      for (int64_t i = 0; i < p->elements(); ++i) p->value().data<float>()[i] *= 3;
      p->changed(true);
    }
  }
};

const std::vector<std::string> kKinds = {
    "",
    R"(, "attention_scoring": "dot", "cell": "gru", "encoder_hidden_size": 8)",
    R"(, "attention_scoring": "scaled_dot", "attention_size": 6, "decoder_layers": 2)",
    R"(, "attention_scoring": "linear", "cell": "rnn_tanh")",
    R"(, "attention_scoring": "dot", "attention_query": "state_and_token")",
    R"(, "attention_scoring": "none", "encoder_layers": 2, "decoder_layers": 2)",
    R"(, "attention_scoring": "none", "cell": "gru", "bidirectional": false)"};

// Token by token, each from a pass over all that stands before it.
Ids uncached_greedy(const EncoderDecoder& model, const Ids& source, const Precision& precision) {
  nn::Run run;
  run.use(precision);
  Ids ids;
  for (int i = 0; i < 12 && (ids.empty() || ids.back() != 3); ++i) {
    const NoGrad off;
    Tensor logits = cast(uncached_logits(model, source, ids, run), DType::f32);
    float* const x = logits.data<float>();
    x[0] = x[2] = -1e9f;  // pad and start never come
    ids.push_back(static_cast<int32_t>(std::max_element(x, x + 40) - x));
  }
  return ids;
}

TEST(RnnSeq2Seq, cached_greedy_tokens_are_those_of_whole_passes) {
  for (const Precision precision : {Precision{}, Precision{DType::f32, true}}) {
    for (const std::string& kind : kKinds) {
      SCOPED_TRACE(kind + (precision.int8 ? " int8" : ""));
      const RnnTranslator rnn(kind);
      for (const Ids& source : random_sentences(4, 9, 40)) {
        const Ids plain = uncached_greedy(*rnn.model, source, precision);
        const Ids sources[] = {source};
        const auto found =
            translate_ids(*rnn.model, sources,
                          {.longest_factor = 0, .longest_extra = 12, .precision = precision});
        const Ids& ids = found[0].ids;
        ASSERT_LE(ids.size(), plain.size());
        EXPECT_TRUE(std::equal(ids.begin(), ids.end(), plain.begin()));
        EXPECT_TRUE(ids.size() + 1 >= plain.size());
      }
    }
  }
}

TEST(RnnSeq2Seq, a_later_token_changes_no_earlier_state) {
  for (const std::string& kind : kKinds) {
    SCOPED_TRACE(kind);
    const RnnTranslator rnn(kind);
    const NoGrad off;
    const Ids source = {4, 9, 17, 3};
    const Segments keys = Segments::uniform(1, 4), queries = Segments::uniform(1, 3);
    const Tensor memory = rnn.model->encode(nn::TokenRows{source, &keys}, {});
    const auto states = [&](const Ids& target) {
      return rnn.model->decode({target, &queries}, memory, keys, {}).slice(0, 0, 2).to_floats();
    };
    EXPECT_EQ(states({2, 8, 11}), states({2, 8, 30}));
  }
}

TEST(RnnSeq2Seq, weights_of_attention_are_seen_and_sum_to_one) {
  for (const std::string& kind : kKinds) {
    if (kind.find("none") != std::string::npos) continue;
    SCOPED_TRACE(kind);
    const RnnTranslator rnn(kind);
    const Ids source = {4, 9, 17, 22, 6}, target = {8, 11, 30};
    const Tensor map = cross_attention_map(*rnn.model, source, target, -1, {});
    ASSERT_EQ(map.shape(), Shape({4, 6}));  // the start and three tokens; five tokens and the end
    for (int64_t i = 0; i < 4; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < 6; ++j) sum += map.data<float>()[i * 6 + j];
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(RnnSeq2Seq, a_fixed_context_has_no_alignment) {
  const RnnTranslator rnn(R"(, "attention_scoring": "none")");
  const Ids source = {4, 9}, target = {8};
  expect_error(ErrorKind::data, {"no attention over its source"},
               [&] { cross_attention_map(*rnn.model, source, target, -1, {}); });
}

TEST(RnnSeq2Seq, configs_that_do_not_fit_are_refused) {
  expect_error(ErrorKind::data, {"set attention_size, which projects both, encoder_hidden_size 8"},
               [] { RnnTranslator(R"(, "attention_scoring": "dot")"); });
  expect_error(ErrorKind::data, {"attention_size is 4, but there is no attention"},
               [] { RnnTranslator(R"(, "attention_scoring": "none", "attention_size": 4)"); });
  expect_error(
      ErrorKind::data, {"attention_query is state_and_token, but there is no attention"}, [] {
        RnnTranslator(R"(, "attention_scoring": "none", "attention_query": "state_and_token")");
      });
  expect_error(ErrorKind::data, {"set share_encoder_decoder_embeddings to false"},
               [] { RnnTranslator(R"(, "decoder_vocab_size": 30)"); });
  expect_error(ErrorKind::data, {"attention_scoring"},
               [] { RnnTranslator(R"(, "attention_scoring": "cosine")"); });
}

// --- language models -----------------------------------------------------------------------------

constexpr const char* kCells[] = {"rnn_tanh", "rnn_relu", "gru", "lstm"};

std::unique_ptr<Model> small_lm(nn::Parameters& parameters, const std::string& cell) {
  Json config = Json::parse(R"({"model_type": "rnn_lm", "vocab_size": 60, "embedding_size": 12,
                                "hidden_size": 20})");
  config["cell"] = cell;
  return make_model(nn::Scope(parameters), config);
}

Ids text_of(size_t n) {
  Ids ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(i * i * 7 % 59));
  return ids;
}

TEST(RnnLm, state_that_is_carried_makes_segments_as_good_as_the_whole_text) {
  for (const char* cell : kCells) {
    SCOPED_TRACE(cell);
    nn::Parameters parameters(5);
    const auto made = small_lm(parameters, cell);
    const LanguageModel& model = *made->as<LanguageModel>();
    const Ids ids = text_of(43);
    const double whole = likelihood_of_text(model, ids, {.context = 43}).nll;
    for (const int64_t context : {2, 5, 20}) {
      const TextLikelihood parts = likelihood_of_text(model, ids, {.context = context});
      EXPECT_NEAR(parts.nll, whole, 1e-9 * whole) << context;
      EXPECT_EQ(parts.tokens, 42);
    }
    EXPECT_NEAR(likelihood_of_text(model, ids, {}).nll, whole, 1e-9 * whole);
    const TextLikelihood alone = likelihood_of_text(model, ids, {.context = 5, .memory = false});
    EXPECT_GT(std::abs(alone.nll - whole), 1e-4 * whole);
  }
}

// What forward leaves of a pass it takes again: bit for bit the pass over all tokens.
TEST(RnnLm, forward_goes_on_from_the_states_that_it_wrote) {
  const TemporaryFolder folder;
  const std::vector<int64_t> ids = {4, 5, 6, 7, 8, 9, 10, 11, 12, 3, 2, 1};  // two of 6 tokens
  for (const char* cell : kCells) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(fmt::format("{} {}", cell, dtype_name(compute)));
      nn::Parameters parameters(5);
      const auto made = small_lm(parameters, cell);
      // Columns [first, first + count) of the ids, behind what is in `memory`.
      const auto pass = [&](int64_t first, int64_t count, const std::string& memory) {
        std::vector<int64_t> some;
        for (const int64_t row : {0, 6}) {
          some.insert(some.end(), ids.begin() + row + first, ids.begin() + row + first + count);
        }
        std::vector<NamedTensorView> views = {
            {"input_ids", DType::i64, {2, count}, std::as_bytes(std::span(some))}};
        std::optional<SafetensorsFile> before;
        if (!memory.empty()) before = SafetensorsFile::open(folder / memory);
        for (const char* name : {"mems.0", "mems.1"}) {
          if (!before) continue;
          const StoredTensor& info = before->info(name);
          views.push_back({name, info.dtype, info.shape, info.bytes});
        }
        write_safetensors(folder / "in", views);
        const std::string out = fmt::format("out{}-{}", first, count);
        forward_tensors(*made, SafetensorsFile::open(folder / "in"), folder / out,
                        {.precision = {compute}});
        return out;
      };
      const auto logits = [&](const std::string& file, int64_t first, int64_t count) {
        const SafetensorsFile outputs = SafetensorsFile::open(folder / file);
        const StoredTensor& info = outputs.info("logits");
        const std::vector<float> all = info.floats();
        const int64_t n = info.shape[1], vocab = info.shape[2];
        std::vector<float> some;
        for (int64_t b = 0; b < 2; ++b) {
          const auto from = all.begin() + (b * n + first) * vocab;
          some.insert(some.end(), from, from + count * vocab);
        }
        return some;
      };
      const std::string whole = pass(0, 6, ""), second = pass(2, 4, pass(0, 2, ""));
      EXPECT_EQ(logits(second, 0, 4), logits(whole, 2, 4));
    }
  }
}

TEST(RnnLm, memory_of_other_sequences_is_refused) {
  nn::Parameters parameters(5);
  const auto made = small_lm(parameters, "lstm");
  const Ids ids = {4, 5, 6, 7};
  const Segments two = Segments::uniform(2, 2), one = Segments::uniform(1, 4);
  const NoGrad off;
  nn::Memory memory;
  made->as<LanguageModel>()->hidden({.ids = ids, .segments = &two, .memory = &memory}, {});
  EXPECT_EQ(memory.segments.count(), 2);
  expect_error(ErrorKind::shape, {"a memory of 2 layers and 2 sequences, for 2 and 1"}, [&] {
    made->as<LanguageModel>()->hidden({.ids = ids, .segments = &one, .memory = &memory}, {});
  });
}

}  // namespace
}  // namespace heddle::testing
