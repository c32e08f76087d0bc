// Embedding rows and their gradients.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

// Ids with one that is frequent, as in text.
std::vector<int32_t> frequent_ids(int64_t rows, int32_t vocab) {
  std::mt19937 generator(7);
  std::vector<int32_t> ids;
  for (int64_t r = 0; r < rows; ++r) {
    ids.push_back(generator() % 3 == 0 ? vocab / 2 : static_cast<int32_t>(generator() % vocab));
  }
  return ids;
}

TEST(Embedding, rows_are_scaled_placed_and_dropped) {
  constexpr int64_t kRows = 9;
  const DropoutCase d(kRows, 0.25f);
  const std::vector<int32_t> ids = frequent_ids(kRows, 11);
  const std::vector<int32_t> position_ids = {0, 1, 2, 0, 1, 2, 3, 0, 1};
  for_each_case([&](int64_t width, DType dtype) {
    Matrix table(11, width, dtype, 3), positions(4, width), y(kRows, width, dtype, 1);
    table.fill_normal(1);
    positions.fill_normal(2);
    kernels().embedding(table, ids.data(), 3, positions, position_ids.data(), d.dropout, y);
    expect_near(
        y,
        [&](int64_t r, int64_t c) {
          return (3 * table.get(ids[r], c) + positions.get(position_ids[r], c)) *
                 d.dropout.factor(r, c);
        },
        3 * epsilon(dtype));
  });
}

TEST(Embedding, without_positions_scale_or_dropout_rows_are_copied) {
  const std::vector<int32_t> ids = {3, 0, 3};
  for_each_target([&] {
    Matrix table(4, 37, DType::bf16), y(3, 37, DType::bf16);
    table.fill_normal(1);
    kernels().embedding(table, ids.data(), 1, {}, nullptr, {}, y);
    expect_near(
        y, [&](int64_t r, int64_t c) { return table.get(ids[r], c); }, 0);
  });
}

TEST(Embedding, rows_of_an_f32_table_count_as_rounded_to_the_dtype_of_the_result) {
  const DropoutCase d(5, 0.25f);
  const std::vector<int32_t> ids = {3, 0, 3, 2, 1}, position_ids = {0, 1, 1, 0, 1};
  for_each_target([&] {
    Matrix table(4, 37), rounded(4, 37, DType::bf16), positions(2, 37, DType::bf16);
    Matrix y(5, 37, DType::bf16), wanted(5, 37, DType::bf16);
    table.fill_normal(1);
    positions.fill_normal(2);
    kernels().convert(table, rounded);
    kernels().embedding(table, ids.data(), 3, positions, position_ids.data(), d.dropout, y);
    kernels().embedding(rounded, ids.data(), 3, positions, position_ids.data(), d.dropout, wanted);
    EXPECT_TRUE(y == wanted);
  });
}

TEST(EmbeddingBackward, every_width_and_dtype_matches_float64) {
  constexpr int64_t kRows = 50;
  const DropoutCase d(kRows, 0.25f);
  const std::vector<int32_t> ids = frequent_ids(kRows, 11);
  for_each_case([&](int64_t width, DType dtype) {
    Matrix dy(kRows, width, dtype, 3), dtable(11, width, DType::f32, 2);
    dy.fill_normal(1);
    dtable.fill_normal(2);
    const Matrix before = dtable;
    kernels().embedding_backward(dy, ids.data(), 3, d.dropout, dtable);
    expect_near(
        dtable,
        [&](int64_t id, int64_t c) {
          double sum = before.get(id, c);  // added to
          for (int64_t r = 0; r < kRows; ++r) {
            if (ids[r] == id) sum += 3 * dy.get(r, c) * d.dropout.factor(r, c);
          }
          return sum;
        },
        2e-6, 10);
  });
}

TEST(EmbeddingBackward, rows_of_an_id_are_summed_in_order_for_any_threads) {
  const std::vector<int32_t> ids = frequent_ids(2000, 50);
  expect_same_bits_for_any_threads([&] {
    Matrix dy(2000, 133), dtable(50, 133), want(50, 133);
    dy.fill_normal(1);
    for (Matrix* m : {&dtable, &want}) m->fill([](int64_t, int64_t) { return 0; });
    kernels().embedding_backward(dy, ids.data(), 1, {}, dtable);
    for (int64_t r = 0; r < 2000; ++r) {
      for (int64_t c = 0; c < 133; ++c) {
        const auto sum = static_cast<float>(want.get(ids[r], c)) + static_cast<float>(dy.get(r, c));
        want.set(ids[r], c, static_cast<double>(sum));
      }
    }
    EXPECT_TRUE(dtable == want);
    return dtable;
  });
}

TEST(EmbeddingBackward, no_rows_leave_the_gradient_as_it_is) {
  Matrix dy(0, 8), dtable(3, 8);
  dtable.fill_normal(1);
  const Matrix before = dtable;
  kernels().embedding_backward(dy, nullptr, 1, {}, dtable);
  EXPECT_TRUE(dtable == before);
}

TEST(GatherRows, rows_follow_the_index_in_every_pair_of_dtypes) {
  const std::vector<int32_t> index = {4, 0, 4, 2};
  for_each_target([&] {
    for (DType from : computed_dtypes()) {
      for (DType to : computed_dtypes()) {
        for (int64_t width : {1, 7, 37}) {
          Matrix x(5, width, from, 2), y(4, width, to, 3);
          x.fill_normal(1);
          kernels().gather_rows(x, index.data(), y);
          expect_near(
              y, [&](int64_t r, int64_t c) { return x.get(index[r], c); },
              from == to ? 0 : epsilon(to), 0);
        }
      }
    }
  });
}

TEST(GatherRows, integers_are_gathered_too) {
  const std::vector<int32_t> index = {2, 0};
  std::vector<int64_t> x = {1, 2, 3, 4, 5, INT64_MIN}, y(4);
  kernels().gather_rows({x.data(), 3, 2, 2, DType::i64}, index.data(),
                        {y.data(), 2, 2, 2, DType::i64});
  EXPECT_EQ(y, (std::vector<int64_t>{5, INT64_MIN, 1, 2}));
}

}  // namespace
}  // namespace heddle::kernel_test
