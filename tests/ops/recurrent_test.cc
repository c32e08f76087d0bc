// Recurrence in batches, alone and in parts: the same bits; sequences without tokens; cached keys.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "heddle/base/parallel.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/recurrent/attentive_recurrence.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

constexpr int64_t kWidth = 37, kSourceWidth = 21;  // no whole vectors

Tensor normal(const Shape& shape, uint32_t seed, float factor, DType dtype) {
  const NoGrad off;
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(shape.elements());
  for (float& v : values) v = factor * distribution(random);
  return cast(Tensor::from(values, shape), dtype);
}

Segments some_segments(int64_t n, int64_t longest, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < n; ++i) lengths.push_back(static_cast<int64_t>(random() % (longest + 1)));
  return Segments::from_lengths(lengths);
}

Tensor rows_of(const Tensor& x, const Segments& s, int64_t i) {
  return x.defined() ? x.slice(0, s.begin(i), s.length(i)).to_contiguous() : x;
}

bool has_same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.to_contiguous(), y = b.to_contiguous();
  return std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.elements() * size_of(x.dtype()))) == 0;
}

// A model of one cell that may attend, and a batch of it.
struct Problem {
  RecurrentCell cell;
  DType dtype;
  bool attends;
  Scoring scoring;
  Segments targets, sources;
  Tensor x, k, v;
  AttentiveWeights w;
  CellState begin;

  Problem(RecurrentCell of, DType type, bool is_attentive, int64_t n = 70,
          Scoring how = Scoring::additive)
      : cell(of),
        dtype(type),
        attends(is_attentive),
        scoring(how),
        targets(some_segments(n, 9, 1)),
        sources(some_segments(n, 7, 2)) {
    const int64_t gates = gates_of(cell) * kWidth, d = 16;
    x = normal({targets.rows(), gates}, 3, 1, dtype);
    k = normal({sources.rows(), d}, 4, 1, dtype);
    v = normal({sources.rows(), kSourceWidth}, 5, 1, dtype);
    w.state = {normal({gates, kWidth}, 6, 0.2f, dtype), normal({gates}, 7, 0.2f, DType::f32)};
    w.context = normal({gates, kSourceWidth}, 8, 0.2f, dtype);
    w.query = normal({d, kWidth}, 9, 0.2f, dtype);
    if (scoring == Scoring::additive) w.score = normal({1, d}, 10, 1, dtype);
    if (scoring == Scoring::linear) w.score = normal({1, 2 * d}, 10, 1, dtype);
    w.gate = normal({1, kWidth}, 11, 0.5f, dtype);
    begin.h = normal({n, kWidth}, 12, 1, dtype);
    if (cell == RecurrentCell::lstm) begin.c = normal({n, kWidth}, 13, 1, DType::f32);
  }
  struct Result {
    Tensor h, last, contexts, dx, dv;
  };
  /// Of some rows and states; with gradients of sum(h²).
  Result run(const Tensor& in, const Segments& segments, const Tensor& keys, const Tensor& values,
             const Segments& of, const CellState& state) const {
    Leaf x_leaf, v_leaf;
    const Tensor leaf = in.with_leaf(&x_leaf), source = values.with_leaf(&v_leaf);
    Result result;
    Recurrence y;
    if (attends) {
      const AttentiveRecurrence a =
          attentive_recurrence(leaf, w, {.k = keys, .v = source, .keys = &of}, state, segments,
                               {.cell = cell, .scoring = scoring});
      y = a.states, result.contexts = a.contexts;
    } else {
      y = recurrence(leaf, w.state, state, segments, {.cell = cell});
    }
    result.h = y.h, result.last = y.last.h;
    if (segments.rows() > 0) backward(sum(mul(y.h, y.h)));
    result.dx = x_leaf.grad, result.dv = v_leaf.grad;
    return result;
  }
  Result whole() const { return run(x, targets, k, v, sources, begin); }
  CellState state_of(int64_t i) const {
    const auto row = [i](const Tensor& s) { return s.defined() ? s.slice(0, i, 1) : s; };
    return {row(begin.h), row(begin.c)};
  }
};

const RecurrentCell kCells[] = {RecurrentCell::tanh, RecurrentCell::relu, RecurrentCell::gru,
                                RecurrentCell::lstm};

template <class F>
void for_each_problem(const F& f) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const RecurrentCell cell : kCells) {
      for (const bool attends : {false, true}) {
        SCOPED_TRACE(fmt::format("{} cell {}{}", dtype_name(dtype), static_cast<int>(cell),
                                 attends ? " with attention" : ""));
        f(Problem(cell, dtype, attends));
      }
    }
  }
}

TEST(Recurrence, a_batch_has_the_bits_of_its_sequences_alone) {
  set_num_threads(4);
  for_each_problem([](const Problem& p) {
    const Problem::Result all = p.whole();
    for (int64_t i = 0; i < p.targets.count(); ++i) {
      const Segments target = Segments::uniform(1, p.targets.length(i));
      const Segments source = Segments::uniform(1, p.sources.length(i));
      const Problem::Result alone =
          p.run(rows_of(p.x, p.targets, i), target, rows_of(p.k, p.sources, i),
                rows_of(p.v, p.sources, i), source, p.state_of(i));
      ASSERT_TRUE(has_same_bits(alone.h, rows_of(all.h, p.targets, i))) << i;
      ASSERT_TRUE(has_same_bits(alone.last, all.last.slice(0, i, 1))) << i;
      if (target.rows() == 0) continue;
      ASSERT_TRUE(has_same_bits(alone.dx, rows_of(all.dx, p.targets, i))) << i;
      if (p.attends && source.rows() > 0) {
        ASSERT_TRUE(has_same_bits(alone.contexts, rows_of(all.contexts, p.targets, i))) << i;
        ASSERT_TRUE(has_same_bits(alone.dv, rows_of(all.dv, p.sources, i))) << i;
      }
    }
  });
  set_num_threads(available_cores());
}

TEST(Recurrence, any_number_of_threads_gives_the_same_bits) {
  for_each_problem([](const Problem& p) {
    set_num_threads(1);
    const Problem::Result one = p.whole();
    for (const int threads : {2, 3, 4}) {
      set_num_threads(threads);
      const Problem::Result other = p.whole();
      ASSERT_TRUE(has_same_bits(one.h, other.h));
      ASSERT_TRUE(has_same_bits(one.dx, other.dx));
      ASSERT_TRUE(!p.attends || has_same_bits(one.dv, other.dv));
    }
  });
  set_num_threads(available_cores());
}

// What decoding does: a token of each sequence at a time, several sequences of one source, keys
// anywhere in a cache.
TEST(AttentiveRecurrence, tokens_one_by_one_over_cached_keys_have_the_bits_of_the_whole) {
  const NoGrad off;
  for (const Scoring scoring : {Scoring::dot, Scoring::additive, Scoring::linear}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const RecurrentCell cell : kCells) {
        const Problem p(cell, dtype, true, 5, scoring);
        // Keys backwards in a cache.
        std::vector<int32_t> places, source_of = {3, 3, 0, 4, 4, 4};
        const int64_t rows = p.sources.rows();
        for (int64_t r = 0; r < rows; ++r) places.push_back(static_cast<int32_t>(rows - 1 - r));
        const auto turned = [&](const Tensor& x) {
          Tensor y = empty_like(x);
          kernels().gather_rows(x.rows(), places.data(), y.rows());
          return y;
        };
        const AttendedSources cached{turned(p.k), turned(p.v), &p.sources, places, source_of};
        const Segments steps = Segments::uniform(6, 4);
        const Tensor x = normal({24, p.x.size(1)}, 20, 1, dtype);
        const AttentiveOptions options{.cell = cell, .scoring = scoring};
        const AttentiveRecurrence whole = attentive_recurrence(x, p.w, cached, {}, steps, options);
        CellState state;
        for (int64_t t = 0; t < 4; ++t) {
          std::vector<Tensor> parts;
          for (int64_t s = 0; s < 6; ++s) parts.push_back(x.slice(0, 4 * s + t, 1));
          const AttentiveRecurrence y = attentive_recurrence(concat(parts, 0), p.w, cached, state,
                                                             Segments::uniform(6, 1), options);
          for (int64_t s = 0; s < 6; ++s) {
            const auto row = [&](const Tensor& all, int64_t r) { return all.slice(0, r, 1); };
            ASSERT_TRUE(has_same_bits(row(y.states.h, s), row(whole.states.h, 4 * s + t)));
            ASSERT_TRUE(has_same_bits(row(y.contexts, s), row(whole.contexts, 4 * s + t)));
            ASSERT_TRUE(has_same_bits(row(y.queries, s), row(whole.queries, 4 * s + t)));
          }
          state = y.states.last;
        }
      }
    }
  }
}

TEST(Recurrence, a_sequence_without_tokens_ends_as_it_began) {
  const Problem p(RecurrentCell::lstm, DType::f32, false, 3);
  const Segments none = Segments::from_lengths(std::vector<int64_t>{0, 1, 0});
  Leaf leaf;
  const CellState begin{p.begin.h.with_leaf(&leaf), p.begin.c};
  const Recurrence y =
      recurrence(p.x.slice(0, 0, 1), p.w.state, begin, none, {.cell = RecurrentCell::lstm});
  for (const int64_t i : {0, 2}) {
    EXPECT_TRUE(has_same_bits(y.last.h.slice(0, i, 1), p.begin.h.slice(0, i, 1)));
    EXPECT_TRUE(has_same_bits(y.last.c.slice(0, i, 1), p.begin.c.slice(0, i, 1)));
  }
  backward(sum(y.last.h));
  for (int64_t c = 0; c < kWidth; ++c) EXPECT_EQ(leaf.grad.data<float>()[2 * kWidth + c], 1);
}

TEST(AttentiveRecurrence, a_source_without_tokens_gives_zero_contexts) {
  const Problem p(RecurrentCell::gru, DType::f32, true, 2);
  const Segments none = Segments::from_lengths(std::vector<int64_t>{0, 2});
  const AttentiveRecurrence y = attentive_recurrence(
      p.x.slice(0, 0, 3), p.w,
      {.k = normal({2, 16}, 1, 1, DType::f32), .v = p.v.slice(0, 0, 2).clone(), .keys = &none}, {},
      Segments::from_lengths(std::vector<int64_t>{2, 1}), {.cell = RecurrentCell::gru});
  for (int64_t i = 0; i < 2 * kSourceWidth; ++i) EXPECT_EQ(y.contexts.data<float>()[i], 0);
  EXPECT_EQ(y.weights.elements(), 2);
}

TEST(Recurrence, sizes_that_do_not_fit_are_shape_errors) {
  const Problem p(RecurrentCell::gru, DType::f32, true, 3);
  const auto expect_refused = [](const auto& f) {
    try {
      f();
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::shape) << e.what();
    }
  };
  expect_refused([&] { recurrence(p.x, p.w.state, {}, p.targets, {.cell = RecurrentCell::lstm}); });
  expect_refused([&] { recurrence(p.x, p.w.state, {}, p.sources, {.cell = RecurrentCell::gru}); });
  expect_refused([&] {
    recurrence(p.x, p.w.state, {p.begin.h.slice(0, 0, 2)}, p.targets, {.cell = RecurrentCell::gru});
  });
  const AttentiveOptions linear{.cell = RecurrentCell::gru, .scoring = Scoring::linear};
  expect_refused([&] {
    attentive_recurrence(p.x, p.w, {p.k, p.v, &p.sources}, {}, p.targets, linear);
  });
}

TEST(AttentiveRecurrence, cached_keys_have_no_gradient) {
  const Problem p(RecurrentCell::gru, DType::f32, true, 3);
  const std::vector<int32_t> own = {0, 1, 2};
  Leaf leaf;
  EXPECT_THROW(attentive_recurrence(p.x.with_leaf(&leaf), p.w,
                                    {.k = p.k, .v = p.v, .keys = &p.sources, .source_of = own}, {},
                                    p.targets, {.cell = RecurrentCell::gru}),
               Error);
  clear_tape();
}

// The matrices of a problem as constants that are multiplied in int8.
AttentiveWeights in_int8(AttentiveWeights w) {
  w.state.int8 = true;
  for (uint64_t* constant : {&w.state.constant, &w.context_constant, &w.query_constant}) {
    *constant = new_constant();
  }
  return w;
}

TEST(Recurrence, states_in_int8_are_near_those_in_f32_but_are_not_they) {
  const NoGrad off;
  for (const RecurrentCell cell : kCells) {
    for (const bool attends : {false, true}) {
      SCOPED_TRACE(fmt::format("cell {}{}", static_cast<int>(cell), attends ? " attends" : ""));
      const Problem p(cell, DType::f32, attends);
      const auto states = [&](const AttentiveWeights& w) {
        return (attends ? attentive_recurrence(p.x, w, {.k = p.k, .v = p.v, .keys = &p.sources},
                                               p.begin, p.targets, {.cell = cell})
                              .states
                        : recurrence(p.x, w.state, p.begin, p.targets, {.cell = cell}))
            .h.to_floats();
      };
      const std::vector<float> exact = states(p.w), rounded = states(in_int8(p.w));
      double error = 0, size = 0;
      for (size_t i = 0; i < exact.size(); ++i) {
        error += std::pow(exact[i] - rounded[i], 2), size += std::pow(exact[i], 2);
      }
      // A product of rows of 37 numbers, each to 1/254 of the largest; ReLU passes all on.
      EXPECT_LT(std::sqrt(error / size), 0.03);
      EXPECT_GT(std::sqrt(error / size), 1e-4);
    }
  }
}

TEST(Recurrence, int8_has_no_gradient) {
  const Problem p(RecurrentCell::lstm, DType::f32, true, 3);
  const AttentiveWeights w = in_int8(p.w);
  Leaf leaf;
  const Tensor x = p.x.with_leaf(&leaf);
  EXPECT_THROW(recurrence(x, w.state, {}, p.targets, {}), Error);
  EXPECT_THROW(
      attentive_recurrence(x, w, {.k = p.k, .v = p.v, .keys = &p.sources}, {}, p.targets, {}),
      Error);
  clear_tape();
}

}  // namespace
}  // namespace heddle
