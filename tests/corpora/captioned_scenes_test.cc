// Drawn and composed images with captions: where things lie, what is held out.
#include "corpora/captions/captioned_scenes.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/base/temporary.h"

namespace heddle {
namespace {

// The photo of class c, number n is of the colour (20 c, 255, n) all over, `edge` pixels wide and
// 4 less high.
PhotoPool plain_photos(int64_t edge = 32) {
  PhotoPool pool{.classes = caption_classes()};
  for (size_t label = 0; label < 10; ++label) {
    pool.by_class.emplace_back();
    for (size_t n = 0; n < 7; ++n) pool.by_class.back().push_back(7 * label + n);
  }
  pool.photo = [edge](size_t i) {
    Image photo(edge - 4, edge);
    for (size_t p = 0; p < photo.pixels.size(); p += 3) {
      photo.pixels[p] = static_cast<uint8_t>(20 * (i / 7));
      photo.pixels[p + 1] = 255;
      photo.pixels[p + 2] = static_cast<uint8_t>(i % 7);
    }
    return photo;
  };
  pool.name = [](size_t i) { return std::to_string(i); };
  return pool;
}

CaptionedScene drawn(bool is_collage, bool is_unseen, uint64_t index, uint64_t seed = 1) {
  CaptionedSceneOptions options = is_collage ? kCollages : kCaptionedShapes;
  options.captions.is_unseen = is_unseen;
  return is_collage ? draw_collage(options, plain_photos(), seed, index)
                    : draw_captioned_shapes(options, seed, index);
}

TEST(CaptionedScenes, are_a_function_of_seed_and_index) {
  for (const bool is_collage : {false, true}) {
    const CaptionedScene a = drawn(is_collage, false, 7), b = drawn(is_collage, false, 7);
    EXPECT_EQ(a.image, b.image);
    EXPECT_EQ(a.scene, b.scene);
    EXPECT_EQ(a.captions, b.captions);
    EXPECT_NE(drawn(is_collage, false, 8).image, a.image);
    EXPECT_NE(drawn(is_collage, false, 7, 2).image, a.image);
  }
}

TEST(CaptionedScenes, nothing_held_out_is_in_training_and_all_unseen_captions_mention_it) {
  std::set<Sort> seen, unseen;
  std::set<std::pair<Sort, Sort>> pairs;
  for (uint64_t index = 0; index < 3000; ++index) {
    const CaptionedScene one = drawn(false, false, index);
    for (const SceneObject& object : one.scene.objects) {
      EXPECT_FALSE(is_held_out(object.sort));
      seen.insert(object.sort);
    }
    for (const bool is_collage : {false, true}) {
      for (const std::string& text : drawn(is_collage, false, index).captions) {
        EXPECT_FALSE(mentions_held_out(*parse_caption(text))) << text;
      }
      if (index >= 300) continue;
      const CaptionedScene other = drawn(is_collage, true, index);
      EXPECT_FALSE(other.captions.empty());
      for (const std::string& text : other.captions) {
        const Caption caption = *parse_caption(text);
        EXPECT_TRUE(mentions_held_out(caption)) << text;
        if (is_collage) pairs.emplace(caption.subject, caption.object);
      }
      for (const SceneObject& object : other.scene.objects) {
        if (is_held_out(object.sort)) unseen.insert(object.sort);
      }
    }
  }
  EXPECT_EQ(seen.size(), 24U);
  EXPECT_EQ(unseen.size(), 4U);
  EXPECT_EQ(pairs.size(), 10U);  // five, both ways
}

TEST(CaptionedScenes, counts_sizes_and_kinds_are_those_asked_for) {
  for (const bool is_collage : {false, true}) {
    std::set<size_t> counts;
    std::array<int, kCaptionKinds> kinds = {};
    for (uint64_t index = 0; index < 500; ++index) {
      const CaptionedScene one = drawn(is_collage, false, index);
      EXPECT_EQ(one.image.size(), one.scene.size);
      EXPECT_EQ(one.image.size(), is_collage ? (ImageSize{96, 96}) : (ImageSize{64, 64}));
      counts.insert(one.scene.objects.size());
      EXPECT_LE(one.captions.size(), 5U);
      EXPECT_GE(one.captions.size(), 2U);  // two sorts, each alone or counted
      EXPECT_EQ(std::set(one.captions.begin(), one.captions.end()).size(), one.captions.size());
      for (const std::string& text : one.captions) {
        ++kinds[static_cast<size_t>(parse_caption(text)->kind)];
      }
    }
    EXPECT_EQ(counts,
              is_collage ? (std::set<size_t>{4, 5, 6, 7, 8, 9}) : (std::set<size_t>{3, 4, 5, 6}));
    for (size_t kind = 0; kind < kCaptionKinds; ++kind) {
      const bool is_place = kind == static_cast<size_t>(CaptionKind::place);
      if (is_place && !is_collage) {
        EXPECT_EQ(kinds[kind], 0);
      } else {
        EXPECT_GT(kinds[kind], 250) << kind;
      }
    }
  }
  CaptionedSceneOptions options = kCaptionedShapes;
  options.captions.count = 100;
  const std::vector<std::string> all = draw_captioned_shapes(options, 1, 3).captions;
  EXPECT_GT(all.size(), 5U);
  EXPECT_LT(all.size(), 100U);
}

// The mean around the middle of a box, which all four shapes cover.
std::array<double, 3> middle_color(const Image& image, const Box& box) {
  std::array<double, 3> color = {};
  const auto x0 = static_cast<int64_t>(box.center_x()), y0 = static_cast<int64_t>(box.center_y());
  for (int64_t y = y0 - 1; y <= y0 + 1; ++y) {
    for (size_t i = 0; i < 9; ++i) color[i % 3] += image.row(y)[3 * (x0 - 1) + i] / 9.0;
  }
  return color;
}

// Pixels as near to a shape's colour as half of the least contrast are taken for painted.
bool is_painted(const uint8_t* pixel, const std::array<double, 3>& color) {
  double distance = 0;
  for (size_t c = 0; c < 3; ++c) distance += std::abs(pixel[c] - color[c]);
  return distance < 75;
}

void expect_painted_within(const CaptionedScene& one, const SceneObject& object) {
  const std::array<double, 3> color = middle_color(one.image, object.box);
  const Box& box = object.box;
  Box painted{1e9, 1e9, -1, -1};
  int64_t outside = 0;
  for (int64_t y = 0; y < one.image.height; ++y) {
    for (int64_t x = 0; x < one.image.width; ++x) {
      if (!is_painted(one.image.row(y) + 3 * x, color)) continue;
      const Box pixel = Box::of_corner(static_cast<double>(x), static_cast<double>(y), 1, 1);
      if (intersection(pixel, box).area() > 0) {
        painted = enclosing(painted, pixel);
      } else if (std::ranges::none_of(one.scene.objects, [&](const SceneObject& other) {
                   return intersection(pixel, other.box).area() > 0;
                 })) {
        ++outside;
      }
    }
  }
  EXPECT_EQ(outside, 0) << object.sort.color << " " << object.sort.noun;
  // A corner covers little of its pixels: one or two of them may be pale.
  EXPECT_NEAR(painted.x0, box.x0, 2.5) << object.sort.color << " " << object.sort.noun;
  EXPECT_NEAR(painted.y0, box.y0, 2.5) << object.sort.color << " " << object.sort.noun;
  EXPECT_NEAR(painted.x1, box.x1, 2.5) << object.sort.color << " " << object.sort.noun;
  EXPECT_NEAR(painted.y1, box.y1, 2.5) << object.sort.color << " " << object.sort.noun;
}

TEST(CaptionedScenes, boxes_of_shapes_hold_what_is_painted_and_do_not_overlap) {
  for (uint64_t index = 0; index < 300; ++index) {
    SCOPED_TRACE(index);
    const CaptionedScene one = drawn(false, index % 2 == 0, index);
    const std::vector<SceneObject>& objects = one.scene.objects;
    for (size_t i = 0; i < objects.size(); ++i) {
      const Box& box = objects[i].box;
      const double length = std::max(box.width(), box.height());
      EXPECT_GE(length, 9 - 2 * kBoxStep);
      EXPECT_LE(length, 20 + 2 * kBoxStep);
      EXPECT_EQ(clipped(box, {64, 64}), box);
      EXPECT_EQ(box.x0, std::round(16 * box.x0) / 16);
      expect_painted_within(one, objects[i]);
      for (size_t j = 0; j < i; ++j) {
        const Box both = intersection(box, objects[j].box);
        EXPECT_LE(std::min(both.width(), both.height()), kBoxStep);  // by rounding
      }
    }
  }
}

TEST(CaptionedScenes, boxes_of_photos_are_the_pixels_of_the_photo) {
  for (uint64_t index = 0; index < 60; ++index) {
    const CaptionedScene one = drawn(true, index % 2 == 0, index);
    int64_t pixels = 0, shown = 0;
    for (size_t p = 0; p < one.image.pixels.size(); p += 3) {
      pixels += one.image.pixels[p + 1] == 255 && one.image.pixels[p + 2] < 7 ? 1 : 0;
    }
    for (const SceneObject& object : one.scene.objects) {
      const auto photo = static_cast<size_t>(std::stoi(object.photo));
      EXPECT_EQ(object.sort, (Sort{"", caption_classes()[photo / 7]}));
      EXPECT_EQ(object.box.width(), object.box.height());
      EXPECT_GE(object.box.width(), 24);
      EXPECT_LE(object.box.width(), 32);
      shown += static_cast<int64_t>(object.box.area());
      for (auto y = static_cast<int64_t>(object.box.y0); y < static_cast<int64_t>(object.box.y1);
           ++y) {
        const uint8_t* p = one.image.row(y) + 3 * static_cast<int64_t>(object.box.x0);
        EXPECT_EQ((Rgb{p[0], p[1], p[2]}), (Rgb{static_cast<uint8_t>(20 * (photo / 7)), 255,
                                                static_cast<uint8_t>(photo % 7)}));
      }
    }
    EXPECT_EQ(pixels, shown);  // so nothing overlaps, and nothing lies outside
  }
}

TEST(CaptionedScenes, options_that_do_not_fit_are_refused) {
  const auto shapes = [](const CaptionedSceneOptions& o, const char* words) {
    expect_error(ErrorKind::usage, {"captioned shapes", words},
                 [&] { draw_captioned_shapes(o, 1, 0); });
  };
  shapes({.size = {64, 31}, .most_objects = 6}, "31 x 64 pixels");
  shapes({.size = {64, 64}, .most_objects = 2}, "2 objects at most");
  shapes({.size = {64, 64}, .most_objects = 9}, "9 objects at most");
  const auto collage = [](const CaptionedSceneOptions& o, const char* words) {
    PhotoPool pool = plain_photos();
    pool.classes.resize(3);  // airplane, automobile, bird: no pair of them is held out
    expect_error(ErrorKind::usage, {"collages", words}, [&] { draw_collage(o, pool, 1, 0); });
  };
  collage({.size = {40, 96}, .most_objects = 9}, "96 x 40 pixels");
  collage({.size = {96, 96}, .most_objects = 10}, "10 photos at most");
  collage({.size = {96, 96}, .most_objects = 9, .captions = {.is_unseen = true}}, "held out");
  PhotoPool pool = plain_photos();
  check_photos(pool, "photos");
  pool.by_class[2].clear();
  expect_error(ErrorKind::data, {"photos", "'bird'"}, [&] { check_photos(pool, "photos"); });
  pool.classes[4] = "oak";
  expect_error(ErrorKind::data, {"photos", "'oak'", "truck"},
               [&] { check_photos(pool, "photos"); });
  pool.classes = {"cat"};
  expect_error(ErrorKind::data, {"photos", "1 classes"}, [&] { check_photos(pool, "photos"); });
}

}  // namespace
}  // namespace heddle
