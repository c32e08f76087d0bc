// Captions over the engine: cached steps give the rows of whole passes, an image its caption in any
// company; words and their maps.
#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/infer/decoding/caption.h"
#include "heddle/infer/engine/engine.h"
#include "heddle/ops/recurrent/attention_penalties.h"
#include "heddle/ops/shape.h"
#include "tests/base/temporary.h"
#include "tests/infer/plain_decoding.h"
#include "tests/infer/small_captioner.h"

namespace heddle::testing {
namespace {

const std::vector<std::string> kKinds = {
    "",
    kTransformer,
    kTransformer + R"(, "normalize_before": false, "decoder_position_embedding_type": "learned",
        "max_position_embeddings": 16)",
    kTransformer + R"(, "decoder_position_embedding_type": "rotary")",
    R"(, "embedding_size": 12, "attention_query": "state_and_token")",
    R"(, "initial_state": "mean", "cell": "gru", "attention_gate": false)",
    R"(, "initial_state": "mean", "decoder_layers": 2, "attention_scoring": "scaled_dot")",
    R"(, "attention_scoring": "none", "decoder_layers": 2)",
    R"(, "attention_scoring": "none", "initial_state": "mean", "cell": "rnn_tanh")"};

Image noise(int64_t height, int64_t width, uint64_t number) {
  Image image(height, width);
  RngStream random(make_key(1, 2, number));
  for (uint8_t& level : image.pixels) level = static_cast<uint8_t>(random.below(256));
  return image;
}

std::vector<Image> images_of(int64_t count) {
  std::vector<Image> images;
  for (int64_t i = 0; i < count; ++i) {
    images.push_back(noise(12 + 4 * (i % 3), 16 + 8 * (i % 2), static_cast<uint64_t>(i)));
  }
  return images;
}

TEST(Captions, cached_greedy_tokens_are_those_of_whole_passes) {
  for (const std::string& kind : kKinds) {
    SCOPED_TRACE(kind);
    const SmallCaptioner small(kind);
    const EncodedImages images = encode_images(*small.model, {}, images_of(4), {});
    const auto found =
        translate_memories(*small.model, images.memories, {.longest_without_end = 11});
    for (size_t i = 0; i < found.size(); ++i) {
      const NoGrad off;
      const Segments cells = Segments::uniform(1, images.memories[i].size(0));
      Ids plain;
      while (plain.size() < 12 && (plain.empty() || plain.back() != 3)) {
        Ids to = {2};
        to.insert(to.end(), plain.begin(), plain.end());
        const Segments target = Segments::uniform(1, std::ssize(to));
        const Tensor h = small.model->decode({to, &target}, images.memories[i], cells, {});
        Tensor logits = small.model->output()(h.slice(0, h.size(0) - 1, 1), {});
        float* const x = logits.data<float>();
        x[0] = x[2] = -1e9f;  // pad and start never come
        plain.push_back(static_cast<int32_t>(std::max_element(x, x + 40) - x));
      }
      ASSERT_LE(found[i].ids.size(), plain.size());
      EXPECT_TRUE(std::equal(found[i].ids.begin(), found[i].ids.end(), plain.begin()));
      EXPECT_GE(found[i].ids.size() + 1, plain.size());
    }
  }
}

// Bit for bit: other images beside it, another pass of the encoder, a beam.
TEST(Captions, an_image_has_its_caption_in_any_company) {
  for (const std::string& kind : kKinds) {
    SCOPED_TRACE(kind);
    const SmallCaptioner small(kind);
    const std::vector<Image> images = images_of(7);
    for (const int64_t beam : {1, 4}) {
      const TranslateOptions options{.search = {.beam = beam, .n_best = beam},
                                     .longest_without_end = 9};
      const EncodedImages all = encode_images(*small.model, {}, images, {});
      const auto together = translate_memories(*small.model, all.memories, options);
      for (size_t i = 0; i < images.size(); ++i) {
        const EncodedImages one = encode_images(*small.model, {}, {&images[i], 1}, {}, 1);
        EXPECT_EQ(one.memories[0].to_floats(), all.memories[i].to_floats());
        EXPECT_EQ(one.grids[0], all.grids[i]);
        expect_same(translate_memories(*small.model, one.memories, options), {together[i]});
      }
    }
  }
}

// A memory may come while others run.
TEST(Captions, requests_with_memories_join_those_that_run) {
  const SmallCaptioner small("");
  const EncodedImages images = encode_images(*small.model, {}, images_of(5), {});
  const auto run = [&](int64_t steps_between) {
    Engine engine(*small.model, {});
    std::vector<Ids> found(images.memories.size());
    for (size_t i = 0; i < found.size(); ++i) {
      engine.submit({.tokens = {2},
                     .memory = images.memories[i],
                     .search = {.beam = 2, .eos = {3}},
                     .longest_output = 8,
                     .on_done = [&found, i](const Outcome& o) { found[i] = o.hypotheses[0].ids; }});
      for (int64_t s = 0; s < steps_between; ++s) engine.step();
    }
    while (engine.step()) {
    }
    EXPECT_EQ(engine.rows(), 0);
    return found;
  };
  const auto at_once = run(0);
  EXPECT_EQ(run(1), at_once);
  EXPECT_EQ(run(3), at_once);
}

// What an observer sees of a caption: weights of each token, [tokens, cells], means over the heads
// of the last layer.
std::vector<float> observed_weights(const Captioner& model, const Ids& ids, const Tensor& memory) {
  Ids to = {2};
  to.insert(to.end(), ids.begin(), ids.end());
  const Segments target = Segments::uniform(1, std::ssize(to));
  const Segments cells = Segments::uniform(1, memory.size(0));
  std::vector<float> sum(to.size() * static_cast<size_t>(memory.size(0)));
  float calls = 0;
  nn::Observer observer;
  const std::string last =
      fmt::format("cross_attentions.{}", model.facts().cross_attention_layers - 1);
  observer.attention = [&](const nn::AttentionCall& call) {
    for (int64_t h = 0; h < call.heads() && call.name() == last; ++h, ++calls) {
      const std::vector<float> weights = call.weights(0, h).to_floats();
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += weights[i];
    }
  };
  nn::Run run;
  run.observer = &observer;
  const NoGrad off;
  model.decode({to, &target}, memory, cells, run);
  for (float& x : sum) x /= calls;
  return sum;
}

class CaptionWords : public ::testing::TestWithParam<std::string> {};

TEST_P(CaptionWords, have_the_weights_of_their_steps) {
  const SmallCaptioner small(GetParam());
  const Tokenizer tokenizer = captioner_words();
  const EncodedImages images = encode_images(*small.model, {}, images_of(3), {});
  const auto captions =
      caption_images(*small.model, tokenizer, images.memories, {.longest_without_end = 6});
  std::vector<Ids> ids;
  for (const Translation& caption : captions) {
    EXPECT_EQ(caption.text, tokenizer.decode(caption.ids));
    EXPECT_EQ(std::ranges::count(caption.ids, tokenizer.unk_id()), 0);
    ids.push_back(caption.ids);
  }
  const auto seen = seen_words(*small.model, tokenizer, images.memories, ids, {});
  for (size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i].size(), ids[i].size());  // a token a word
    const int64_t n = images.memories[i].size(0);
    const std::vector<float> weights = observed_weights(*small.model, ids[i], images.memories[i]);
    for (size_t w = 0; w < seen[i].size(); ++w) {
      EXPECT_EQ(seen[i][w].text, tokenizer.decode({&ids[i][w], 1}));
      double sum = 0;
      for (int64_t c = 0; c < n; ++c) {
        const float x = seen[i][w].weights[static_cast<size_t>(c)];
        // Computed by other code, of scores beyond 10: some of their roundings.
        EXPECT_NEAR(x, weights[w * static_cast<size_t>(n) + static_cast<size_t>(c)], 1e-5);
        sum += static_cast<double>(x);
      }
      EXPECT_NEAR(sum, 1, 1e-5);
      ASSERT_EQ(seen[i][w].gate.has_value(), GetParam().empty());
      if (seen[i][w].gate) {
        EXPECT_GT(*seen[i][w].gate, 0);
        EXPECT_LT(*seen[i][w].gate, 1);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, CaptionWords, ::testing::Values("", kTransformer));

// By a gate that is always shut a context counts for nothing, and the words say so.
TEST(Captions, gates_are_those_of_the_decoder) {
  SmallCaptioner small("");
  for (auto& p : small.parameters.all()) {
    if (p->name() != "model.decoder.gate.bias") continue;
    p->value().data<float>()[0] = -30;
    p->changed(true);
  }
  const EncodedImages images = encode_images(*small.model, {}, images_of(1), {});
  const std::vector<Ids> ids = {{5, 9, 11}};
  const auto seen = seen_words(*small.model, captioner_words(), images.memories, ids, {});
  ASSERT_EQ(seen[0].size(), 3u);
  for (const SeenWord& word : seen[0]) {
    EXPECT_LT(word.gate.value(), 1e-4f);
  }
}

TEST(Captions, words_of_a_model_without_attention_have_no_maps) {
  const Tokenizer tokenizer = captioner_words();
  const EncodedImages images = encode_images(*SmallCaptioner("").model, {}, images_of(3), {});
  const std::vector<Ids> ids = {{5}, {6, 7}, {8}};
  const SmallCaptioner blind(R"(, "attention_scoring": "none")");
  for (const auto& none : seen_words(*blind.model, tokenizer, images.memories, ids, {})) {
    EXPECT_TRUE(none.empty());
  }
}

// The regulariser reaches what asks: pushing weights to be even changes the query's gradient.
TEST(Captions, regulariser_has_a_gradient_by_the_query) {
  const SmallCaptioner small("");
  const std::vector<Image> images = images_of(2);
  const Ids ids = {2, 5, 9, 2, 7, 7, 8};
  const Segments target = Segments::from_lengths(std::vector<int64_t>{3, 4});
  const EncodedImages encoded = encode_images(*small.model, {}, images, {});
  const Segments cells = Segments::from_lengths(
      std::vector<int64_t>{encoded.memories[0].size(0), encoded.memories[1].size(0)});
  const auto penalty = [&] {
    return unevenness(
        small.model->decode_attending({ids, &target}, concat(encoded.memories, 0), cells, {})
            .weights,
        target, cells);
  };
  backward(penalty());
  nn::Parameter* query = nullptr;
  for (auto& p : small.parameters.all()) {
    if (p->name() == "model.decoder.query.weight") query = p.get();
  }
  ASSERT_NE(query, nullptr);
  const std::vector<float> gradient = query->grad().to_floats();
  for (const size_t i : {size_t{0}, size_t{37}, gradient.size() - 1}) {
    const NoGrad off;
    float& weight = query->value().data<float>()[i];
    const float before = weight;
    const auto at = [&](float x) {
      weight = x;
      query->changed(true);
      return static_cast<double>(penalty().item());
    };
    const double step = 2e-2, slope = (at(before + 2e-2f) - at(before - 2e-2f)) / (2 * step);
    at(before);
    EXPECT_NEAR(static_cast<double>(gradient[i]), slope, 1e-2 * std::abs(slope) + 2e-3) << i;
  }
}

}  // namespace
}  // namespace heddle::testing
