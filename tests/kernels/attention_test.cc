// Attention on the CPU: values and gradients against f64, and the bits that must not change.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/targets.h"
#include "tests/kernels/another_unit.h"
#include "tests/kernels/attention_problem.h"
// after targets.h
#include "hwy/highway.h"

namespace heddle {
namespace {

using test::error_of;
using test::Lengths;
using test::Matrix;
using test::Problem;
using test::Reference;
using test::Shape;

// Calls f(dtype): f32 on each instruction set that was built and that this machine has, bf16 on AMX
// or, where there is none, on each of these sets. A child (see below) leaves f32 to its parent.
template <class F>
void for_each_target(const F& f) {
  const bool has_amx = matrix_unit() == MatrixUnit::amx;
  const bool is_child = std::getenv("HEDDLE_MATRIX_UNIT") != nullptr;
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    if (!is_child) f(DType::f32);
    if (!has_amx) f(DType::bf16);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  SCOPED_TRACE(matrix_unit_name(matrix_unit()));
  if (has_amx) f(DType::bf16);
}

struct Threads {
  explicit Threads(int count) : before(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
  int before;
};

// f32: about 8 eps * sqrt(keys); bf16: outputs are rounded to 2^-9 of the value, and so is the o
// that the gradient of the scores uses.
double tolerance(DType dtype) { return dtype == DType::bf16 ? 8e-3 : 1e-5; }

// Where a query sees a key or two, nothing averages the rounding of its o.
double tolerance(const Shape& shape) {
  const bool sees_few = shape.has_ranges() && shape.dtype == DType::bf16;
  return sees_few ? 3e-2 : tolerance(shape.dtype);
}

void expect_forward_and_backward_match(const Shape& shape) {
  Problem p(shape);
  p.forward();
  const Reference expected(p);
  EXPECT_LT(error_of(p.o, expected.o), tolerance(shape.dtype));
  for (size_t i = 0; i < p.lse.size(); ++i) {
    if (std::isinf(expected.lse[i])) {
      ASSERT_EQ(p.lse[i], -std::numeric_limits<float>::infinity());
    } else {
      ASSERT_NEAR(p.lse[i], expected.lse[i], 1e-5);
    }
  }
  p.backward();
  EXPECT_LT(error_of(p.dq, expected.dq), tolerance(shape));
  EXPECT_LT(error_of(p.dk, expected.dk), tolerance(shape));
  EXPECT_LT(error_of(p.dv, expected.dv), tolerance(shape));
  for (const Matrix* x : {&p.o, &p.dq, &p.dk, &p.dv}) EXPECT_TRUE(x->slack_is_untouched());
  for (size_t i = 0; i < p.bias.size(); ++i) {
    const double size = std::max(1.0, expected.d_bias_size[i]);
    ASSERT_NEAR(p.d_bias[i], expected.d_bias[i], tolerance(shape) * size) << i;
  }
}

TEST(AttentionReference, gradients_match_finite_differences) {
  for (int rule : {0, 1, 2, 3}) {
    Problem p({.segments = {{3, 4}, {2, 2}},
               .head_dim = 3,
               .causal = rule == 1,
               .dropout = 0.4f,
               .window = rule == 2 ? 2 : 0,
               .orders = rule == 3,
               .reach = rule == 0 ? -1 : 1});
    const Reference at(p);
    for (size_t i = 0; i < p.bias.size(); ++i) {
      const float here = p.bias[i];
      p.bias[i] = here + 0x1p-7f;
      const double high = Reference(p).loss;
      p.bias[i] = here - 0x1p-7f;
      const double low = Reference(p).loss;
      p.bias[i] = here;
      ASSERT_NEAR((high - low) * 64, at.d_bias[i], 2e-4);
    }
    const auto check_input = [&](Matrix& x, const std::vector<double>& gradient) {
      for (int64_t r = 0; r < x.count; ++r) {
        for (int64_t c = 0; c < x.width; ++c) {
          const float here = x.get(r, c), up = here + 0x1p-7f, down = here - 0x1p-7f;
          x.set(r, c, up);
          const double high = Reference(p).loss;
          x.set(r, c, down);
          const double low = Reference(p).loss;
          x.set(r, c, here);
          const double slope = (high - low) / (static_cast<double>(up) - static_cast<double>(down));
          ASSERT_NEAR(slope, gradient[static_cast<size_t>(r * x.width + c)], 2e-4);
        }
      }
    };
    check_input(p.q, at.dq);
    check_input(p.k, at.dk);
    check_input(p.v, at.dv);
  }
}

TEST(Attention, every_length_around_vectors_and_tiles_matches_f64) {
  for_each_target([](DType dtype) {
    for (bool causal : {false, true}) {
      Shape shape{.heads = 1, .head_dim = 16, .causal = causal, .dtype = dtype};
      for (int64_t n = 0; n <= 70; ++n) shape.segments.push_back({n, n});
      for (int64_t n : {127, 128, 129, 130, 200, 257, 520}) shape.segments.push_back({n, n});
      expect_forward_and_backward_match(shape);
    }
  });
}

TEST(Attention, queries_and_keys_of_different_number_match_f64) {
  for_each_target([](DType dtype) {
    for (bool causal : {false, true}) {
      Shape shape{.causal = causal, .dtype = dtype};
      shape.segments = {{1, 65},   {5, 0},   {0, 7},   {0, 0},   {63, 3},  {3, 63},    {130, 64},
                        {64, 130}, {200, 1}, {1, 200}, {7, 129}, {129, 7}, {1100, 30}, {30, 1100}};
      expect_forward_and_backward_match(shape);
    }
  });
}

TEST(Attention, every_head_size_matches_f64) {
  for_each_target([](DType dtype) {
    for (int64_t dim : {1, 3, 8, 13, 16, 24, 32, 50, 64, 80, 128}) {
      SCOPED_TRACE("head size " + std::to_string(dim));
      Shape shape{.segments = {{9, 9}, {70, 70}},
                  .heads = 3,
                  .head_dim = dim,
                  .causal = true,
                  .dtype = dtype,
                  .fused = true};
      expect_forward_and_backward_match(shape);
      shape.causal = shape.fused = false;
      shape.segments = {{14, 17}, {5, 66}};
      expect_forward_and_backward_match(shape);
    }
  });
}

TEST(Attention, dropout_matches_its_scalar_definition) {
  for_each_target([](DType dtype) {
    for (bool causal : {false, true}) {
      expect_forward_and_backward_match({.segments = {{14, 14}, {3, 40}, {150, 300}, {17, 600}},
                                         .causal = causal,
                                         .dtype = dtype,
                                         .dropout = 0.3f});
    }
  });
}

TEST(Attention, windows_of_every_width_match_f64) {
  for_each_target([](DType dtype) {
    for (int64_t window : {1, 2, 17, 64, 65, 128, 5000}) {
      SCOPED_TRACE("window " + std::to_string(window));
      Shape shape{.dtype = dtype, .dropout = window % 2 == 0 ? 0.3f : 0, .window = window};
      shape.segments = {{1, 1}, {70, 70}, {200, 200}, {3, 300}, {1, 200}, {9, 4}, {2, 0}, {0, 2}};
      expect_forward_and_backward_match(shape);
    }
    expect_forward_and_backward_match(
        {.segments = {{1100, 1100}}, .heads = 1, .dtype = dtype, .window = 100});
  });
}

TEST(Attention, orders_and_hidden_keys_match_f64) {
  for_each_target([](DType dtype) {
    for (float dropout : {0.0f, 0.3f}) {
      expect_forward_and_backward_match(
          {.segments = {{1, 1}, {14, 14}, {70, 200}, {200, 70}, {3, 130}, {300, 1}, {2, 0}, {0, 3}},
           .dtype = dtype,
           .dropout = dropout,
           .orders = true});
    }
  });
}

TEST(Attention, biases_match_f64) {
  for_each_target([](DType dtype) {
    for (int64_t reach : {0, 20, 700}) {
      SCOPED_TRACE("reach " + std::to_string(reach));
      Shape shape{.dtype = dtype, .reach = reach};
      shape.segments = {{1, 1}, {14, 14}, {150, 150}, {3, 140}, {140, 3}, {2, 0}, {0, 2}};
      expect_forward_and_backward_match(shape);
      shape.causal = true, shape.dropout = 0.2f;
      expect_forward_and_backward_match(shape);
      shape.window = 33;
      expect_forward_and_backward_match(shape);
      shape.window = 0, shape.orders = true;
      expect_forward_and_backward_match(shape);
    }
  });
}

// Windows of Swin: a bias for each pair of their tokens, whole ones and shorter.
TEST(Attention, biases_by_pairs_match_f64) {
  for_each_target([](DType dtype) {
    for (int64_t side : {1, 4, 9, 16, 49, 144}) {
      Shape shape{.dtype = dtype, .side = side};
      shape.segments = {{side, side}, {side, side}, {(side + 1) / 2, side}, {side, (side + 1) / 2}};
      expect_forward_and_backward_match(shape);
      shape.dropout = 0.2f;
      expect_forward_and_backward_match(shape);
      shape.orders = true;
      expect_forward_and_backward_match(shape);
    }
  });
}

TEST(Attention, gradient_of_a_bias_by_pairs_has_the_same_bits_for_any_threads) {
  for_each_target([](DType dtype) {
    Shape shape{.segments = std::vector<Lengths>(900, {16, 16}), .dtype = dtype, .side = 16};
    const auto ran = [&](int count) {
      const Threads threads(count);
      Problem p(shape);
      p.forward(), p.backward();
      return std::pair(p.d_bias, p.dk.bits());
    };
    EXPECT_EQ(ran(1), ran(6));
  });
}

// A window of all and causal attention are one: so are their bits.
TEST(Attention, ranges_that_say_what_causal_says_give_its_bits) {
  for_each_target([](DType dtype) {
    const Shape causal{.segments = {{14, 14}, {300, 300}, {3, 90}, {1, 65}, {70, 9}},
                       .causal = true,
                       .dtype = dtype,
                       .dropout = 0.1f};
    Shape window = causal;
    window.window = 1000;
    Problem a(causal), b(window);
    a.forward(), a.backward(), b.forward(), b.backward();
    EXPECT_EQ(a.o.bits(), b.o.bits());
    EXPECT_EQ(a.lse, b.lse);
    EXPECT_EQ(a.dq.bits(), b.dq.bits());
    EXPECT_EQ(a.dk.bits(), b.dk.bits());
    EXPECT_EQ(a.dv.bits(), b.dv.bits());
  });
}

TEST(Attention, large_scores_neither_overflow_nor_lose_the_maximum) {
  for_each_target([](DType dtype) {
    Problem p({.segments = {{40, 150}, {3, 600}}, .dtype = dtype});
    p.q.fill(5, 40);
    p.k.fill(6, 40);
    p.forward();
    // Scores up to 5e3 carry 3e-4 of rounding.
    EXPECT_LT(error_of(p.o, Reference(p).o), dtype == DType::bf16 ? tolerance(dtype) : 1e-4);
  });
}

TEST(Attention, query_without_keys_gives_zeros_and_no_gradient) {
  for_each_target([](DType dtype) {
    Problem p({.segments = {{3, 0}, {4, 2}}, .causal = true, .dtype = dtype});
    p.forward();
    p.backward();
    for (int64_t row : {0, 1, 2, 3, 4}) {
      for (int64_t c = 0; c < p.o.width; ++c) {
        ASSERT_EQ(std::bit_cast<uint32_t>(p.o.get(row, c)), 0u);
        ASSERT_EQ(std::bit_cast<uint32_t>(p.dq.get(row, c)), 0u);
      }
    }
  });
}

TEST(Attention, one_thread_and_six_give_equal_bits) {
  for_each_target([](DType dtype) {
    for (int rule : {0, 1, 2, 3}) {
      Shape shape{.segments = {{14, 14}, {300, 300}, {65, 65}, {1100, 1100}},
                  .heads = 4,
                  .causal = true,
                  .dtype = dtype,
                  .dropout = rule == 0 ? 0.0f : 0.2f,
                  .window = rule == 2 ? 90 : 0,
                  .orders = rule == 3,
                  .reach = rule < 2 ? -1 : 100};
      Problem one(shape), six(shape);
      {
        Threads threads(1);  // gradients of long segments at once
        one.forward(), one.backward();
      }
      {
        Threads threads(6);  // queries and keys apart
        six.forward(), six.backward();
      }
      EXPECT_EQ(one.o.bits(), six.o.bits());
      EXPECT_EQ(one.lse, six.lse);
      EXPECT_EQ(one.dq.bits(), six.dq.bits());
      EXPECT_EQ(one.dk.bits(), six.dk.bits());
      EXPECT_EQ(one.dv.bits(), six.dv.bits());
      EXPECT_EQ(one.d_bias, six.d_bias);
    }
  });
}

TEST(Attention, segment_alone_and_in_a_batch_give_equal_bits) {
  for_each_target([](DType dtype) {
    for (bool causal : {false, true}) {
      Problem batch({.segments = {{14, 14}, {3, 9}, {90, 140}, {1, 64}, {140, 90}, {30, 65}},
                     .causal = causal,
                     .dtype = dtype,
                     .dropout = 0.1f});
      batch.forward(), batch.backward();
      for (int64_t s = 0; s < 6; ++s) {
        Problem p = alone(batch, s);
        p.forward(), p.backward();
        const auto at = static_cast<size_t>(s);
        const auto &qs = batch.q_offsets, &ks = batch.k_offsets;
        EXPECT_EQ(p.o.bits(), batch.o.bits(qs[at], qs[at + 1]));
        EXPECT_EQ(p.dq.bits(), batch.dq.bits(qs[at], qs[at + 1]));
        EXPECT_EQ(p.dk.bits(), batch.dk.bits(ks[at], ks[at + 1]));
        EXPECT_EQ(p.dv.bits(), batch.dv.bits(ks[at], ks[at + 1]));
      }
    }
  });
}

// Few queries go by vectors unless another segment of the call has more: to the same bits.
TEST(Attention, few_queries_have_equal_bits_beside_many) {
  for_each_target([](DType dtype) {
    const auto answer = [](Problem& p) {
      AttentionArgs args = p.args();
      args.lse = nullptr;
      kernels().attention(args);
    };
    Problem batch({.segments = {{2, 17}, {3, 9}, {4, 130}, {5, 10}, {8, 33}, {1, 70}, {9, 12}},
                   .dtype = dtype});
    answer(batch);
    for (int64_t s = 0; s < 6; ++s) {
      Problem p = alone(batch, s);
      answer(p);
      const auto at = static_cast<size_t>(s);
      EXPECT_EQ(p.o.bits(), batch.o.bits(batch.q_offsets[at], batch.q_offsets[at + 1])) << s;
    }
  });
}

// Row `row` of a causal sequence, asked for as one query over keys that are found by an index.
std::vector<uint32_t> cached_query(Problem& p, int64_t row, const Matrix& cached_k,
                                   const Matrix& cached_v, const std::vector<int32_t>& index) {
  Matrix o(p.shape.dtype, 1, p.o.width);
  const int64_t q_offsets[] = {0, 1}, k_offsets[] = {0, row + 1};
  AttentionArgs args = p.args();
  args.q = p.q.rows().slice(row, 1);
  args.o = o.rows();
  args.k = cached_k.rows();
  args.v = cached_v.rows();
  args.q_offsets = q_offsets;
  args.k_offsets = k_offsets;
  args.segments = 1;
  args.key_rows = index.data();
  args.lse = nullptr;
  if (p.shape.has_ranges()) args.ranges.first += row, args.ranges.limit += row;
  kernels().attention(args);
  return o.bits();
}

TEST(Attention, cached_query_equals_the_same_row_of_the_whole_sequence) {
  const auto expect_equal = [](int64_t n, int64_t head_dim, DType dtype, int64_t window = 0,
                               int64_t reach = -1) {
    Problem p({.segments = {{n, n}},
               .head_dim = head_dim,
               .causal = true,
               .dtype = dtype,
               .window = window,
               .reach = reach});
    p.forward();
    // The cache holds the keys in another order, between rows of NaN.
    Matrix k(dtype, 2 * n, p.k.width), v(dtype, 2 * n, p.v.width);
    std::vector<int32_t> index;
    for (int64_t j = 0; j < n; ++j) {
      index.push_back(static_cast<int32_t>(2 * (j * 77 % n) + 1));
      for (int64_t c = 0; c < p.k.width; ++c) {
        k.set(index.back(), c, p.k.get(j, c));
        v.set(index.back(), c, p.v.get(j, c));
      }
    }
    for (int64_t row = 0; row < n; ++row) {
      ASSERT_EQ(cached_query(p, row, k, v, index), p.o.bits(row, row + 1))
          << "row " << row << ", heads of " << head_dim;
    }
  };
  for_each_target([&](DType dtype) {
    expect_equal(300, 24, dtype);
    for (const int64_t window : {1, 70, 130}) expect_equal(300, 24, dtype, window);
    expect_equal(300, 24, dtype, 70, 50);
    for (const int64_t head_dim : {1, 32, 33, 64, 80, 128, 160}) expect_equal(71, head_dim, dtype);
  });
}

TEST(Attention, later_token_changes_no_earlier_output) {
  for_each_target([](DType dtype) {
    const int64_t n = 100;
    Problem before({.segments = {{n, n}}, .causal = true, .dtype = dtype}), after(before.shape);
    for (int64_t c = 0; c < after.k.width; ++c) {
      after.k.set(70, c, 30);
      after.v.set(70, c, 1e30f);
    }
    before.forward(), after.forward();
    EXPECT_EQ(before.o.bits(0, 70), after.o.bits(0, 70));
    EXPECT_NE(before.o.bits(70, n), after.o.bits(70, n));
  });
}

TEST(Attention, what_a_call_full_of_nan_leaves_in_memory_changes_nothing) {
  for_each_target([](DType dtype) {
    Threads threads(1);  // the memory that is kept is the calling thread's
    Problem before(
        {.segments = {{150, 150}, {3, 5}}, .head_dim = 12, .dtype = dtype, .dropout = 0.1f});
    before.forward(), before.backward();
    Problem poison({.segments = {{200, 200}}, .head_dim = 64, .dtype = dtype});
    for (Matrix* x : {&poison.q, &poison.k, &poison.v, &poison.d_o}) x->fill(1, std::nanf(""));
    poison.forward(), poison.backward();
    Problem after(before.shape);
    after.forward(), after.backward();
    EXPECT_EQ(after.o.bits(), before.o.bits());
    EXPECT_EQ(after.dq.bits(), before.dq.bits());
    EXPECT_EQ(after.dk.bits(), before.dk.bits());
    EXPECT_EQ(after.dv.bits(), before.dv.bits());
  });
}

TEST(Attention, queries_of_a_group_equal_queries_apart) {
  for_each_target([](DType dtype) {
    // The beams of a sentence are one segment of queries over its source.
    for (const float dropout : {0.0f, 0.2f}) {
      Problem p({.segments = {{5, 33}}, .dtype = dtype, .dropout = dropout});
      p.forward();
      for (int64_t row = 0; row < 5; ++row) {
        Matrix o(dtype, 1, p.o.width);
        const int64_t q_offsets[] = {0, 1};
        AttentionArgs args = p.args();
        args.q = p.q.rows().slice(row, 1);
        args.o = o.rows();
        args.q_offsets = q_offsets;
        args.dropout.sample += row;
        args.dropout.position += row;
        args.lse = nullptr;
        kernels().attention(args);
        EXPECT_EQ(o.bits(), p.o.bits(row, row + 1));
      }
    }
  });
}

TEST(AttentionBackward, keys_behind_an_index_are_refused) {
  Problem p({.segments = {{2, 2}}});
  const int32_t index[] = {0, 1};
  AttentionBackwardArgs args{p.args(), p.d_o.rows(), p.dq.rows(), p.dk.rows(), p.dv.rows()};
  args.forward.key_rows = index;
  EXPECT_THROW(kernels().attention_backward(args), Error);
}

TEST(AttentionBackward, rows_outside_every_segment_stay_as_they_are) {
  for_each_target([](DType dtype) {
    Problem p({.segments = {{6, 6}}, .dtype = dtype});
    AttentionBackwardArgs args{p.args(), p.d_o.rows(), p.dq.rows(), p.dk.rows(), p.dv.rows()};
    p.dq.set(5, 0, 42);
    p.dk.set(0, 1, 43);
    const int64_t q_offsets[] = {0, 5}, k_offsets[] = {1, 6};
    args.forward.q_offsets = q_offsets;
    args.forward.k_offsets = k_offsets;
    kernels().attention(args.forward);
    kernels().attention_backward(args);
    EXPECT_EQ(p.dq.get(5, 0), 42);
    EXPECT_EQ(p.dk.get(0, 1), 43);
  });
}

TEST(AttentionByLesserUnits, bf16_holds_on_all_that_this_machine_has) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string run = " '" + self + "' '--gtest_filter=Attention.*:AttentionBackward.*' 1>&2";
  for (const std::string unit : {"vectors", "avx512_fma", "avx512_bf16"}) {
    const bool runs = kernel_test::is_another_here(unit);
    EXPECT_EQ(runs ? std::system(("HEDDLE_MATRIX_UNIT=" + unit + run).c_str()) : 0, 0) << unit;
  }
}

}  // namespace
}  // namespace heddle
