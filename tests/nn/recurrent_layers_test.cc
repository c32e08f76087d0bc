// Stacks of recurrent layers against PyTorch's in float64; sequences continued token by token.
#include "heddle/nn/recurrent/recurrent_layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/io/safetensors.h"
#include "heddle/nn/recurrent/attentive_decoder.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/recurrent/attention_penalties.h"
#include "heddle/ops/reduce.h"
#include "tests/nn/slopes.h"
#include "tests/support/places.h"

namespace heddle::nn {
namespace {

bool has_same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to_contiguous(), y = b.to_contiguous();
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.elements() * size_of(x.dtype()))) == 0;
}

// What torch.nn.LSTM, GRU or RNN makes of packed sequences (tools/make_recurrent_fixtures.py).
class TorchLayers : public ::testing::TestWithParam<const char*> {
 protected:
  SafetensorsFile file_ = SafetensorsFile::open(std::string(testing::kFixtures) + "/recurrent/" +
                                                GetParam() + ".safetensors");
  Json config_ = Json::parse(file_.metadata().at("config"));
  Parameters parameters_{1};
  RecurrentLayers layers_{Scope(parameters_), options()};

  RecurrentLayers::Options options() const {
    return {.cell = cell_of(config_.get_string("cell")),
            .in = config_.get_int("inputs"),
            .width = config_.get_int("width"),
            .layers = config_.get_int("layers"),
            .is_two_way = config_.get_bool("two_way"),
            .bias = config_.get_bool("bias")};
  }
  void SetUp() override {
    parameters_.load(file_, {.unneeded = {"grad.", "x", "y", "d", "h", "c", "lengths"}});
  }
  Segments segments() const {
    std::vector<int64_t> lengths;
    for (const float l : file_.info("lengths").floats()) lengths.push_back(std::lround(l));
    return Segments::from_lengths(lengths);
  }
  Tensor stored(const std::string& name) const {
    const StoredTensor& info = file_.info(name);
    return Tensor::from(info.floats(), Shape(info.shape));
  }
  /// One layer's and way's of [layers ways, sequences, width].
  Tensor stored_state(const std::string& name, int64_t i) const {
    const Tensor all = stored(name);
    return all.slice(0, i, 1).to_contiguous().view({all.size(1), all.size(2)});
  }
  // The oracle was computed in float64; over 50 steps f32 rounds each sum of 11 to 22 products.
  static void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
    ASSERT_TRUE(got.defined()) << what;
    const std::vector<float> a = got.to_floats(), b = want.to_floats();
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 2e-5 * std::max(1.0f, std::fabs(b[i]))) << what << " " << i;
    }
  }
};

TEST_P(TorchLayers, values_states_and_gradients_match_pytorch_to_2e_5) {
  const bool is_lstm = options().cell == RecurrentCell::lstm;
  const int64_t states = options().layers * (options().is_two_way ? 2 : 1);
  Leaf x_leaf;
  std::vector<Leaf> h_leaves(states), c_leaves(states);
  std::vector<CellState> begin;
  for (int64_t i = 0; i < states; ++i) {
    begin.push_back({stored_state("h0", i).with_leaf(&h_leaves[i])});
    if (is_lstm) begin.back().c = stored_state("c0", i).with_leaf(&c_leaves[i]);
  }
  const Segments sequences = segments();
  const RecurrentLayers::Result y =
      layers_(stored("x").with_leaf(&x_leaf), {.segments = &sequences}, begin, {});
  expect_near(y.h, stored("y"), "y");
  Tensor loss = dot(y.h, stored("dy"));
  for (int64_t i = 0; i < states; ++i) {
    expect_near(y.last[i].h, stored_state("h_n", i), "h_n");
    loss = add(loss, dot(y.last[i].h, stored_state("dh", i)));
    if (!is_lstm) continue;
    expect_near(y.last[i].c, stored_state("c_n", i), "c_n");
    loss = add(loss, dot(y.last[i].c, stored_state("dc", i)));
  }
  backward(loss);
  expect_near(x_leaf.grad, stored("grad.x"), "grad.x");
  for (int64_t i = 0; i < states; ++i) {
    expect_near(h_leaves[i].grad, stored_state("grad.h0", i), "grad.h0");
    if (is_lstm) expect_near(c_leaves[i].grad, stored_state("grad.c0", i), "grad.c0");
  }
  for (const auto& p : parameters_.all()) {
    expect_near(p->grad(), stored("grad." + p->name()), p->name());
  }
}

INSTANTIATE_TEST_SUITE_P(All, TorchLayers,
                         ::testing::Values("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_one_way",
                                           "gru_one_way_no_bias"),
                         [](const auto& each) { return each.param; });

TEST(RecurrentLayers, parameters_begin_as_in_pytorch) {
  Parameters all(3);
  const RecurrentLayers layers(Scope(all, "encoder"),
                               {.in = 3, .width = 16, .layers = 2, .is_two_way = true});
  std::vector<std::string> names;
  double largest = 0;
  for (const auto& p : all.all()) {
    names.push_back(p->name());
    for (const float v : p->value().to_floats()) largest = std::max<double>(largest, std::fabs(v));
  }
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(names[0], "encoder.weight_ih_l0");
  EXPECT_EQ(names[15], "encoder.bias_hh_l1_reverse");
  EXPECT_LE(largest, 0.25);
  EXPECT_GT(largest, 0.24);
}

TEST(RecurrentLayers, open_forget_gates_begin_at_one) {
  Parameters all(3);
  const CellWeights weights(Scope(all), "_l0", {.in = 3, .width = 4, .opens_forget_gates = true});
  for (const auto& p : all.all()) {
    if (p->name() != "bias_ih_l0") continue;
    const std::vector<float> bias = p->value().to_floats();
    for (size_t i = 0; i < bias.size(); ++i) EXPECT_EQ(bias[i] == 1, i >= 4 && i < 8) << i;
  }
}

TEST(RecurrentLayers, an_unknown_cell_is_a_data_error_that_names_them_all) {
  try {
    cell_of("elman");
    ADD_FAILURE() << "it was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_NE(std::string(e.what()).find("rnn_tanh, rnn_relu, gru, lstm"), std::string::npos);
  }
}

TEST(RecurrentLayers, two_way_layers_cannot_continue_sequences) {
  Parameters all(3);
  const RecurrentLayers layers(Scope(all), {.in = 3, .width = 4, .is_two_way = true});
  KvCache cache(1, 2);
  const Segments one = Segments::uniform(1, 1);
  cache.extend(one);
  EXPECT_THROW(
      layers(Tensor::zeros({1, 3}, DType::f32), {.segments = &one, .cache = &cache}, {}, {}),
      Error);
}

// Sequences of a cache as a test drives them: a row of `tokens` each, whole or in parts.
struct Continued {
  std::vector<std::vector<int64_t>> rows;  // of each sequence, in the order read

  Tensor of(const Tensor& tokens, std::vector<int64_t>* lengths) const {
    std::vector<int32_t> index;
    for (const auto& each : rows) {
      index.insert(index.end(), each.begin(), each.end());
      lengths->push_back(std::ssize(each));
    }
    return gather_rows(tokens, index);
  }
};

template <class F>
void for_cells(const F& f) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::string& name : cell_names()) {
      SCOPED_TRACE(name + " " + dtype_name(dtype));
      f(cell_of(name), dtype);
    }
  }
}

CellState random_state(RecurrentCell cell, int64_t n, int64_t width, uint32_t seed, DType dtype) {
  CellState state{cast(random_rows(n, width, seed), dtype)};
  if (cell == RecurrentCell::lstm) state.c = random_rows(n, width, seed + 1);
  return state;
}

CellState rows_of_state(const CellState& state, const std::vector<int32_t>& rows) {
  return {gather_rows(state.h, rows), state.c.defined() ? gather_rows(state.c, rows) : Tensor()};
}

// Prompts of several tokens, then single ones; a sequence is forgotten, another one forks.
TEST(RecurrentLayers, sequences_in_parts_have_the_bits_of_whole_ones) {
  const NoGrad off;
  for_cells([](RecurrentCell cell, DType dtype) {
    Parameters all(5);
    const RecurrentLayers layers(Scope(all), {.cell = cell, .in = 7, .width = 13, .layers = 2});
    nn::Run run;
    run.compute = dtype;
    const Tensor tokens = cast(random_rows(20, 7, 1), dtype);
    const std::vector<CellState> begin = {random_state(cell, 3, 13, 2, dtype),
                                          random_state(cell, 3, 13, 4, dtype)};
    const auto pass = [&](const Continued& c, std::span<const CellState> states, KvCache* cache) {
      std::vector<int64_t> lengths;
      const Tensor x = c.of(tokens, &lengths);
      const Segments segments = Segments::from_lengths(lengths);
      if (cache != nullptr) cache->extend(segments);
      return layers(x, {.segments = &segments, .cache = cache}, states, run).h;
    };
    // Sequences 2, 0 and 0 again go on.
    const std::vector<int32_t> kept = {2, 0, 0};
    std::vector<CellState> begin_of_kept;
    for (const CellState& state : begin) begin_of_kept.push_back(rows_of_state(state, kept));
    const Tensor whole =
        pass({{{7, 8, 9, 10}, {1, 2, 11, 12}, {1, 2, 13, 14}}}, begin_of_kept, nullptr);
    KvCache cache(3, 2);
    const Tensor prompts = pass({{{1, 2}, {3, 4, 5}, {7, 8}}}, begin, &cache);
    cache.select(std::vector<int64_t>{2, 0, 0});
    const Tensor third = pass({{{9}, {11}, {13}}}, begin_of_kept, &cache);
    const Tensor fourth = pass({{{10}, {12}, {14}}}, {}, &cache);
    EXPECT_TRUE(has_same_bits(prompts.slice(0, 5, 2), whole.slice(0, 0, 2)));
    EXPECT_TRUE(has_same_bits(prompts.slice(0, 0, 2), whole.slice(0, 4, 2)));
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(has_same_bits(third.slice(0, i, 1), whole.slice(0, 4 * i + 2, 1))) << i;
      EXPECT_TRUE(has_same_bits(fourth.slice(0, i, 1), whole.slice(0, 4 * i + 3, 1))) << i;
    }
  });
}

AttentiveDecoder::Options decoder_options(RecurrentCell cell, const std::string& scoring) {
  return {.cell = cell,
          .in = 7,
          .width = 13,
          .memory_width = 9,
          .attention_width = 11,
          .scoring = scoring,
          .is_gated = scoring == "dot",
          .layers = 2,
          .observed = "cross_attentions.0"};
}

// Hypotheses of two sentences, whose keys lie in a cache; one forks.
TEST(AttentiveDecoder, hypotheses_token_by_token_have_the_bits_of_whole_ones) {
  const NoGrad off;
  for_cells([](RecurrentCell cell, DType dtype) {
    for (const std::string& scoring : scoring_names()) {
      Parameters all(5);
      const AttentiveDecoder decoder(Scope(all), decoder_options(cell, scoring));
      nn::Run run;
      run.compute = dtype;
      const Tensor tokens = cast(random_rows(20, 7, 1), dtype);
      const Tensor memory = cast(random_rows(7, 9, 3), dtype);
      const std::vector<CellState> begin = {random_state(cell, 2, 13, 5, dtype),
                                            random_state(cell, 2, 13, 7, dtype)};
      const Continued both{{{0, 1, 2}, {3, 4, 5}}};
      std::vector<int64_t> lengths;
      const Tensor x = both.of(tokens, &lengths);
      const Segments targets = Segments::from_lengths(lengths);
      const Segments sources = Segments::from_lengths(std::vector<int64_t>{3, 4});
      const AttentiveDecoder::Result whole = decoder(
          x, {.segments = &targets}, AttentiveDecoder::Source{&memory, &sources}, begin, run);

      RowCache kept;  // the second sentence's rows before the first's
      const std::vector<int32_t> places = {10, 11, 12, 2, 3, 4, 5};
      kept.put(decoder.keys_and_values(memory, run), places);
      KvCache cache(2, 2);
      const auto step = [&](const Continued& c, const std::vector<int64_t>& hypotheses) {
        std::vector<int64_t> ones;
        const Tensor token = c.of(tokens, &ones);
        const Segments segments = Segments::from_lengths(ones);
        cache.extend(segments);
        const Segments of_sources = Segments::from_lengths(hypotheses);
        const CachedKeys keys{.queries = &of_sources, .keys = &sources, .key_rows = places};
        return decoder(
            token, {.segments = &segments, .cache = &cache},
            AttentiveDecoder::CachedSource{&kept, &keys},
            ones.size() == 2 ? std::span<const CellState>(begin) : std::span<const CellState>(),
            run);
      };
      const auto expect_row = [&](const AttentiveDecoder::Result& got, int64_t row, int64_t of) {
        EXPECT_TRUE(has_same_bits(got.h.slice(0, row, 1), whole.h.slice(0, of, 1))) << scoring;
        EXPECT_TRUE(has_same_bits(got.contexts.slice(0, row, 1), whole.contexts.slice(0, of, 1)));
      };
      const AttentiveDecoder::Result first = step({{{0}, {3}}}, {1, 1});
      expect_row(first, 0, 0), expect_row(first, 1, 3);
      cache.select(std::vector<int64_t>{0, 1, 1});  // the second sentence has two hypotheses
      const AttentiveDecoder::Result second = step({{{1}, {9}, {4}}}, {1, 2});
      expect_row(second, 0, 1), expect_row(second, 2, 4);
      cache.select(std::vector<int64_t>{0, 2, 1});
      const AttentiveDecoder::Result third = step({{{2}, {5}, {8}}}, {1, 2});
      expect_row(third, 0, 2), expect_row(third, 1, 5);
    }
  });
}

TEST(AttentiveDecoder, observer_sees_the_weights_that_were_used) {
  const NoGrad off;
  for (const std::string& scoring : scoring_names()) {
    Parameters all(5);
    const AttentiveDecoder decoder(Scope(all), decoder_options(RecurrentCell::gru, scoring));
    const Tensor memory = random_rows(7, 9, 3);
    const Segments targets = Segments::from_lengths(std::vector<int64_t>{2, 3});
    const Segments sources = Segments::from_lengths(std::vector<int64_t>{3, 4});
    std::vector<float> seen;
    Observer observer;
    observer.attention = [&](const AttentionCall& call) {
      EXPECT_EQ(call.name(), "cross_attentions.0");
      for (int64_t s = 0; s < 2; ++s) {
        for (const float w : call.weights(s, 0).to_floats()) seen.push_back(w);
      }
    };
    nn::Run run;
    run.observer = &observer;
    const Tensor used = decoder(random_rows(5, 7, 1), {.segments = &targets},
                                AttentiveDecoder::Source{&memory, &sources}, {}, run)
                            .weights;
    ASSERT_EQ(seen.size(), 18u);
    // Computed again by other code: a few roundings of exponentials.
    for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(used.data<float>()[i], seen[i], 1e-6);
  }
}

TEST(AttentiveDecoder, every_gradient_is_the_slope_of_the_loss) {
  for (const std::string& scoring : scoring_names()) {
    Parameters all(5);
    const AttentiveDecoder decoder(Scope(all), decoder_options(RecurrentCell::lstm, scoring));
    const Tensor x = random_rows(5, 7, 1), memory = random_rows(7, 9, 3);
    const Segments targets = Segments::from_lengths(std::vector<int64_t>{2, 3});
    const Segments sources = Segments::from_lengths(std::vector<int64_t>{3, 4});
    const auto loss = [&] {
      const AttentiveDecoder::Result y =
          decoder(x, {.segments = &targets}, AttentiveDecoder::Source{&memory, &sources}, {}, {});
      return add(add(dot(y.h, random_rows(5, 13, 8)), dot(y.contexts, random_rows(5, 9, 9))),
                 unevenness(y.weights, targets, sources));
    };
    backward(loss());
    for (const auto& p : all.all()) {
      // Queries do not count in linear scores, nor do biases of keys in any: the softmax takes
      // them out, and only rounding is left.
      if (squared_length(p->grad().to_floats()) < 1e-9) {
        EXPECT_TRUE(p->name() == "key.bias" || (scoring == "linear" && p->name() == "query.weight"))
            << scoring << " " << p->name();
        continue;
      }
      EXPECT_NEAR(slope_apart_from_gradient(*p, loss), 0, 0.1) << scoring << " " << p->name();
      EXPECT_NEAR(slope_along_gradient(*p, loss), 1, 0.02) << scoring << " " << p->name();
    }
  }
}

}  // namespace
}  // namespace heddle::nn
