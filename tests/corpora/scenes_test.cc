// Drawn scenes: what they show lies where their boxes say, and is a function of seed and index.
#include "corpora/scenes.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "corpora/canvas.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(Scenes, are_a_function_of_seed_and_index) {
  const DrawnScene a = draw_shapes({}, 3, 8), b = draw_shapes({}, 3, 8);
  EXPECT_EQ(a.image, b.image);
  EXPECT_EQ(a.boxes, b.boxes);
  EXPECT_NE(a.image, draw_shapes({}, 3, 9).image);
  EXPECT_NE(a.image, draw_shapes({}, 4, 8).image);
  EXPECT_EQ(draw_cells({96, 128}, 3, 8).image, draw_cells({96, 128}, 3, 8).image);
}

// One shape on an image without noise: pixels that differ from those of the background's slope.
Box painted(const ShapeOptions& options, uint64_t index) {
  const Image image = draw_shapes(options, 1, index).image;
  // The background is linear, so second differences vanish on it, but for rounding.
  Box box{1e9, 1e9, -1, -1};
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 1; x + 1 < image.width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const uint8_t* p = image.row(y) + 3 * x + c;
        if (std::abs(p[-3] - 2 * p[0] + p[3]) <= 8) continue;
        const auto px = static_cast<double>(x), py = static_cast<double>(y);
        box = enclosing(box, {px, py, px + 1, py + 1});
      }
    }
  }
  return box;
}

TEST(Scenes, boxes_lie_around_what_is_painted) {
  ShapeOptions options{.most_objects = 1, .least_size = 0.2, .noise = 0};
  for (const bool smooth : {true, false}) {
    options.anti_aliased = smooth;
    for (uint64_t index = 0; index < 60; ++index) {
      const DrawnScene scene = draw_shapes(options, 1, index);
      ASSERT_EQ(scene.boxes.size(), 1U);
      const Box &want = scene.boxes[0].box, got = painted(options, index);
      // A difference is seen one pixel beside an edge too; a corner covers little of its pixels.
      EXPECT_NEAR(got.x0, want.x0, 3) << index;
      EXPECT_NEAR(got.y0, want.y0, 3) << index;
      EXPECT_NEAR(got.x1, want.x1, 3) << index;
      EXPECT_NEAR(got.y1, want.y1, 3) << index;
    }
  }
}

TEST(Scenes, shapes_lie_inside_and_hardly_overlap) {
  std::array<int, 6> classes = {};
  std::set<size_t> counts;
  for (uint64_t index = 0; index < 200; ++index) {
    const DrawnScene scene = draw_shapes({.size = {64, 96}}, 1, index);
    ASSERT_FALSE(scene.boxes.empty());
    counts.insert(scene.boxes.size());
    for (const LabelledBox& one : scene.boxes) {
      ++classes.at(static_cast<size_t>(one.label));
      EXPECT_EQ(one.box, clipped(one.box, {64, 96}));
      for (const LabelledBox& other : scene.boxes) {
        if (&other == &one) continue;
        EXPECT_LE(intersection(one.box, other.box).area(),
                  0.1 * std::min(one.box.area(), other.box.area()) + 1e-9);
      }
    }
  }
  EXPECT_EQ(counts, (std::set<size_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  for (const int count : classes) EXPECT_GT(count, 80);
}

TEST(Scenes, one_shape_is_of_the_class_of_its_index) {
  const ShapeOptions options{.size = {32, 32}};
  for (uint64_t index = 0; index < 12; ++index) {
    const DrawnShape shape = draw_shape(options, 1, index);
    EXPECT_EQ(shape.label, static_cast<int32_t>(index % 6));
    EXPECT_EQ(shape.image.size(), (ImageSize{32, 32}));
  }
}

TEST(Scenes, cells_are_about_as_many_and_as_large_as_in_bccd) {
  std::array<double, 3> counts = {}, widths = {};
  for (uint64_t index = 0; index < 150; ++index) {
    for (const LabelledBox& one : draw_cells({240, 320}, 1, index).boxes) {
      EXPECT_GT(one.box.area(), 0);
      ++counts.at(static_cast<size_t>(one.label));
      widths.at(static_cast<size_t>(one.label)) += one.box.width();
    }
  }
  // BCCD at this size: 11.4, 1.0 and 1.0 an image, 52, 97 and 21 pixels wide.
  EXPECT_NEAR(counts[0] / 150, 11.4, 2.5);
  EXPECT_NEAR(counts[1] / 150, 1, 0.25);
  EXPECT_NEAR(counts[2] / 150, 1, 0.4);
  EXPECT_NEAR(widths[0] / counts[0], 52, 6);
  EXPECT_NEAR(widths[1] / counts[1], 97, 10);
  EXPECT_NEAR(widths[2] / counts[2], 21, 3);
}

TEST(Scenes, an_edge_is_where_the_outline_is) {
  const drawing::Polygon square{{{1, 1}, {5, 1}, {5, 5}, {1, 5}}};
  EXPECT_DOUBLE_EQ(square.inside(3, 3), 2);
  EXPECT_DOUBLE_EQ(square.inside(6, 3), -1);
  EXPECT_DOUBLE_EQ(square.inside(8, 9), -5);
  const drawing::Blob disc{.middle = {3, 4}, .radius = 2};
  EXPECT_DOUBLE_EQ(disc.inside(3, 5), 1);
  EXPECT_EQ(disc.bounds().width(), 4);
  const drawing::Ellipse wide{.middle = {1, 2}, .xx = 4, .yy = 2};
  EXPECT_EQ(wide.bounds(), (Box{-3, 0, 5, 4}));
  EXPECT_DOUBLE_EQ(wide.inside(5, 2), 0);
  EXPECT_DOUBLE_EQ(wide.inside(4.5, 2), 0.5);
  EXPECT_DOUBLE_EQ(wide.inside(1, 4.25), -0.25);
  EXPECT_DOUBLE_EQ(wide.inside(1, 3.5, 0.5), -0.5);
}

TEST(Scenes, sizes_that_are_none_are_refused) {
  const auto refused = [](const ShapeOptions& options, const char* words) {
    expect_error(ErrorKind::usage, {"shapes", words}, [&] { draw_shapes(options, 1, 0); });
  };
  refused({.size = {8, 128}}, "128 x 8 pixels");
  refused({.most_objects = 0}, "1 to 0 objects");
  refused({.least_size = 0.5, .most_size = 0.2}, "from 0.5 to 0.2");
  expect_error(ErrorKind::usage, {"cells", "32 x 32 pixels"}, [] { draw_cells({32, 32}, 1, 0); });
}

}  // namespace
}  // namespace heddle
