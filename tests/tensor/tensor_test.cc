// Shapes, views, element types, segments and the caching allocator.
#include "heddle/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heddle/tensor/convert.h"
#include "heddle/tensor/segments.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

Tensor counting(const Shape& shape) {
  std::vector<float> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(values, shape);
}

TEST(Shape, negative_axis_counts_from_the_end) {
  EXPECT_EQ((Shape{2, 3, 5})[-1], 5);
  EXPECT_EQ((Shape{2, 3, 5}).elements(), 30);
  EXPECT_EQ((Shape{2, 3}).str(), "[2, 3]");
}

TEST(Shape, axis_beyond_the_rank_is_a_shape_error) {
  const Shape shape{2, 3};
  EXPECT_THROW(static_cast<void>(shape[2]), Error);
  EXPECT_THROW(static_cast<void>(shape[-3]), Error);
}

TEST(Shape, negative_size_and_too_many_axes_are_shape_errors) {
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
}

TEST(Shape, elements_beyond_what_memory_can_hold_are_a_shape_error) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THROW(static_cast<void>((Shape{kHuge, 4}).elements()), Error);
  EXPECT_THROW(static_cast<void>((Shape{kHuge}).elements()), Error);  // in bytes
  EXPECT_EQ((Shape{kHuge, kHuge, 0}).elements(), 0);
}

TEST(Tensor, slice_shares_memory_and_keeps_strides) {
  const Tensor x = counting({4, 6});
  const Tensor y = x.slice(1, 2, 3).slice(0, 1, 2);
  EXPECT_EQ(y.to_floats(), (std::vector<float>{8, 9, 10, 14, 15, 16}));
  EXPECT_FALSE(y.contiguous());
  EXPECT_EQ(y.storage(), x.storage());
  EXPECT_EQ(y.rows().stride, 6);
}

TEST(Tensor, without_elements_is_contiguous_however_large_its_other_axes_are) {
  const Tensor vast = Tensor::zeros({0, int64_t{1} << 40, int64_t{1} << 40}, DType::f32);
  EXPECT_TRUE(vast.contiguous());
  const Tensor columns = Tensor::zeros({0, 8}, DType::f32).slice(1, 2, 4);
  EXPECT_TRUE(columns.contiguous());
  EXPECT_EQ(columns.view({4, 0}).shape(), Shape({4, 0}));
}

TEST(Tensor, slice_beyond_an_axis_is_a_shape_error) {
  EXPECT_THROW(counting({4, 6}).slice(1, 4, 3), Error);
  EXPECT_THROW(counting({4, 6}).slice(0, -1, 2), Error);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();  // from 1 on it overflows
  expect_error(ErrorKind::shape, {"axis 0"}, [] { counting({4, 6}).slice(0, 1, kMost); });
}

TEST(Tensor, that_holds_nothing_is_a_shape_error_where_it_is_read) {
  const Tensor none;
  expect_error(ErrorKind::shape, {"holds nothing"}, [&] { none.to_floats(); });
  expect_error(ErrorKind::shape, {"holds nothing"}, [&] { none.clone(); });
  expect_error(ErrorKind::shape, {"holds nothing"}, [&] { none.rows(); });
  expect_error(ErrorKind::shape, {"holds nothing"}, [&] { none.data<float>(); });
}

TEST(Tensor, transposed_swaps_axes_and_clone_makes_it_contiguous) {
  const Tensor y = counting({2, 3}).transposed(0, 1);
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_EQ(y.clone().to_floats(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(y.clone().contiguous());
  EXPECT_THROW(y.transposed(0, 2), Error);
}

TEST(Tensor, rows_of_strided_columns_are_refused) {
  expect_error(ErrorKind::shape, {"strided columns"}, [] {
    counting({2, 3}).transposed(0, 1).rows();
  });
  expect_error(ErrorKind::shape, {"evenly spaced"}, [] {
    counting({2, 3, 4}).transposed(0, 1).rows();
  });
}

TEST(Tensor, rows_flatten_all_axes_but_the_last) {
  const Rows rows = counting({2, 3, 4}).rows();
  EXPECT_EQ(rows.rows, 6);
  EXPECT_EQ(rows.width, 4);
}

TEST(Tensor, rows_of_no_elements_are_those_of_the_shape) {
  for (const Shape& shape : {Shape{2, 0, 5}, Shape{0, 3, 5}, Shape{2, 3, 0}}) {
    const Rows rows = Tensor::zeros(shape, DType::f32).rows();
    EXPECT_EQ(rows.rows, shape[0] * shape[1]);
    EXPECT_EQ(rows.width, shape[2]);
  }
  EXPECT_EQ(counting({2, 3, 4}).slice(1, 0, 0).rows().rows, 0);
}

TEST(Tensor, view_of_another_size_or_of_a_slice_is_refused) {
  const Tensor x = counting({4, 6});
  EXPECT_THROW(x.view({5, 5}), Error);
  expect_error(ErrorKind::shape, {"not contiguous"}, [&] { x.slice(1, 0, 3).view({12}); });
  EXPECT_EQ(x.view({2, 12}).size(1), 12);
}

TEST(Tensor, data_of_another_type_is_refused) {
  EXPECT_THROW(counting({2}).data<int32_t>(), Error);
  EXPECT_THROW(counting({2}).item(), Error);
}

TEST(Bf16, rounds_to_nearest_with_ties_to_even) {
  EXPECT_EQ(static_cast<float>(bf16(1.0f + 0x1p-8f)), 1.0f);  // a tie: even below
  EXPECT_EQ(static_cast<float>(bf16(1.0f + 0x1p-7f + 0x1p-8f)), 1.0f + 0x1p-6f);  // even above
  EXPECT_EQ(static_cast<float>(bf16(1.0f + 0x1p-8f + 0x1p-20f)), 1.0f + 0x1p-7f);
}

TEST(Bf16, keeps_infinity_and_nan) {
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::nanf("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isinf(static_cast<float>(bf16(std::numeric_limits<float>::infinity()))));
  EXPECT_TRUE(std::isinf(static_cast<float>(bf16(std::numeric_limits<float>::max()))));
}

TEST(Convert, half_gives_normal_subnormal_and_special_values) {
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0xc000), -2.0f);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_TRUE(std::isinf(half_to_float(0x7c00)));
  EXPECT_TRUE(std::isnan(half_to_float(0x7e00)));
}

TEST(Segments, offsets_and_positions_follow_from_lengths) {
  const Segments s = Segments::from_lengths(std::vector<int64_t>{2, 0, 3});
  EXPECT_EQ(s.count(), 3);
  EXPECT_EQ(s.rows(), 5);
  EXPECT_EQ(s.max_length(), 3);
  EXPECT_EQ(s.positions(), (std::vector<int32_t>{0, 1, 0, 1, 2}));
  EXPECT_THROW(Segments::from_lengths(std::vector<int64_t>{1, -1}), Error);
  expect_error(ErrorKind::shape, {"-1 sequences"}, [] { Segments::uniform(-1, 3); });
}

TEST(Storage, freed_block_is_handed_out_again_without_asking_the_system) {
  for (int i = 0; i < 3; ++i) Tensor::empty({1000, 37}, DType::f32);
  const int64_t before = allocator_stats().system_allocations;
  for (int i = 0; i < 100; ++i) Tensor::empty({1000 + i % 4, 37}, DType::f32);  // one size class
  EXPECT_EQ(allocator_stats().system_allocations, before);
}

TEST(Storage, bytes_in_use_return_to_where_they_were) {
  const int64_t before = allocator_stats().in_use;
  {
    const Tensor x = Tensor::empty({1 << 16}, DType::f32);
    EXPECT_GE(allocator_stats().in_use, before + (1 << 18));
  }
  EXPECT_EQ(allocator_stats().in_use, before);
}

TEST(Storage, memory_is_filled_with_nan_when_asked) {
  set_fill_allocations(true);
  const Tensor x = Tensor::empty({8}, DType::f32);
  set_fill_allocations(false);
  EXPECT_TRUE(std::isnan(x.to_floats()[3]));
}

}  // namespace
}  // namespace heddle
