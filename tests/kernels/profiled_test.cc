// The timed table of kernels: complete, and with the right bytes and operations.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "heddle/base/profile.h"
#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

Rows matrix(std::vector<float>& data, int64_t rows, int64_t width) {
  data.assign(static_cast<size_t>(rows * width), 1.0f);
  return {data.data(), rows, width, width, DType::f32};
}

TEST(ProfiledKernels, every_kernel_is_another_function_while_profiling) {
  using Slots = std::array<void*, sizeof(Kernels) / sizeof(void*)>;
  Slots plain, timed;
  std::memcpy(&plain, &kernels(), sizeof(Kernels));
  start_profile();
  std::memcpy(&timed, &kernels(), sizeof(Kernels));
  stop_profile();
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i] == nullptr, timed[i] == nullptr) << i;
    if (plain[i] != nullptr) {
      EXPECT_NE(plain[i], timed[i]) << i;
    }
  }
  Slots after;
  std::memcpy(&after, &kernels(), sizeof(Kernels));
  EXPECT_EQ(after, plain);
}

TEST(ProfiledKernels, call_gives_the_result_and_is_counted_with_its_work) {
  std::vector<float> a, b, c;
  const Rows x = matrix(a, 3, 5), y = matrix(b, 4, 5), z = matrix(c, 3, 4);
  start_profile();
  kernels().gemm({.a = x, .b = y, .c = z, .transpose_b = true});
  const double sum = kernels().sum_squares(c.data(), 12);
  const auto p = stop_profile();
  EXPECT_EQ(c, std::vector<float>(12, 5.0f));
  EXPECT_EQ(sum, 300);
  ASSERT_EQ(p->rows.size(), 2u);
  EXPECT_EQ(p->rows[0].kernel, "gemm");
  EXPECT_EQ(p->rows[0].totals.work.bytes, 4 * (15 + 20 + 12));
  EXPECT_EQ(p->rows[0].totals.work.flops, 2 * 3 * 4 * 5);
  EXPECT_EQ(p->rows[1].kernel, "sum_squares");
  EXPECT_EQ(p->rows[1].totals.work.bytes, 48);
}

TEST(Work, of_a_product_takes_the_inner_size_from_the_transposed_side) {
  std::vector<float> a, b, c;
  const Rows x = matrix(a, 7, 3), y = matrix(b, 7, 2), z = matrix(c, 3, 2);
  const Work w = work_of(GemmArgs{.a = x, .b = y, .c = z, .transpose_a = true, .accumulate = true});
  EXPECT_EQ(w.flops, 2 * 3 * 2 * 7);
  EXPECT_EQ(w.bytes, 4 * (21 + 14 + 2 * 6));  // c is read and written
}

TEST(Work, of_causal_attention_counts_the_pairs_that_the_mask_leaves) {
  const std::vector<int64_t> lengths[2] = {{4, 2, 5, 0}, {4, 5, 2, 3}};  // queries, keys
  std::vector<int64_t> q_offsets = {0}, k_offsets = {0};
  int64_t all = 0, seen = 0;
  for (size_t i = 0; i < 4; ++i) {
    const int64_t n = lengths[0][i], m = lengths[1][i];
    q_offsets.push_back(q_offsets.back() + n);
    k_offsets.push_back(k_offsets.back() + m);
    all += n * m;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t key = 0; key < m; ++key) seen += key <= j + m - n;
    }
  }
  std::vector<float> a, b, c, d;
  AttentionArgs args{.q = matrix(a, 11, 6),
                     .k = matrix(b, 14, 6),
                     .v = matrix(c, 14, 6),
                     .o = matrix(d, 11, 6),
                     .q_offsets = q_offsets.data(),
                     .k_offsets = k_offsets.data(),
                     .segments = 4,
                     .heads = 2,
                     .head_dim = 3};
  EXPECT_EQ(work_of(args).flops, 4.0 * static_cast<double>(all * 6));
  args.causal = true;
  EXPECT_EQ(work_of(args).flops, 4.0 * static_cast<double>(seen * 6));
  EXPECT_EQ(work_of(args).bytes, 4 * 6 * (11 + 14 + 14 + 11));
  const AttentionBackwardArgs backward{
      .forward = args, .d_o = args.o, .dq = args.q, .dk = args.k, .dv = args.v};
  EXPECT_EQ(work_of(backward).flops, 10.0 * static_cast<double>(seen * 6));
  const std::vector<int32_t> key_rows(14);
  args.k = args.v = matrix(b, 100, 6);  // a cache: only the rows that are asked for are read
  args.key_rows = key_rows.data();
  EXPECT_EQ(work_of(args).bytes, 4 * 6 * (11 + 14 + 14 + 11));
}

TEST(Work, of_an_embedding_is_the_rows_that_it_takes_not_the_table) {
  std::vector<float> a, b;
  const Rows table = matrix(a, 1000, 8), y = matrix(b, 3, 8);
  const int32_t* ids = nullptr;
  EXPECT_EQ(work_of(table, ids, 1.0f, Rows{}, ids, Dropout{}, y).bytes, 4 * 8 * 6);
  EXPECT_EQ(work_of(y, ids, 1.0f, Dropout{}, table).bytes, 4 * 8 * 9);
  EXPECT_EQ(work_of(table, ids, y).bytes, 4 * 8 * 6);
}

TEST(Work, of_an_absent_view_is_nothing) {
  std::vector<float> a;
  const Rows x = matrix(a, 2, 4);
  EXPECT_EQ(work_of(NormArgs{.x = x, .y = x}).bytes, 2 * 32);
  EXPECT_EQ(work_of(NormArgs{.x = x, .sub = x, .h = x, .y = x}).bytes, 4 * 32);
  EXPECT_EQ(work_of(CrossEntropyArgs{.logits = x}).bytes, 32);
}

}  // namespace
}  // namespace heddle
