// What drawn images are made on.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "heddle/base/rng.h"
#include "heddle/vision/boxes.h"
#include "heddle/vision/image.h"

namespace heddle::drawing {

/// Red, green, blue: 0 to 255.
using Color = std::array<float, 3>;

struct Point {
  double x = 0, y = 0;
};

/// Random numbers of one image.
class Chance {
 public:
  Chance(uint64_t seed, std::string_view kind, uint64_t index)
      : stream_(make_key(seed, 0, hash_name(kind), index)) {}
  double between(double low, double high) { return stream_.between(low, high); }
  /// low, .., high.
  int64_t count(int64_t low, int64_t high) { return low + stream_.index(high - low + 1); }
  /// One of so many: its number, from 0.
  size_t one_of(size_t count) {
    return static_cast<size_t>(this->count(0, static_cast<int64_t>(count) - 1));
  }
  bool happens(double probability) { return stream_.happens(probability); }
  /// About normal, of deviation 1: the sum of a number's four bytes, the same on every platform.
  float noise() {
    const uint32_t n = stream_.next();
    const uint32_t sum = (n & 255) + (n >> 8 & 255) + (n >> 16 & 255) + (n >> 24);
    return (static_cast<float>(sum) - 510) * (1 / 147.8f);
  }
  /// Each channel moved by up to so many levels.
  Color near(const Color& color, double levels) {
    Color result = color;
    for (float& v : result) v += static_cast<float>(between(-levels, levels));
    return result;
  }

 private:
  RngStream stream_;
};

/// How much of a pixel a shape covers whose edge lies so many pixels behind its middle.
inline double coverage(double inside, bool anti_aliased) {
  return anti_aliased ? std::clamp(inside + 0.5, 0.0, 1.0) : inside > 0 ? 1.0 : 0.0;
}

/// An image in floating point.
class Canvas {
 public:
  explicit Canvas(ImageSize size)
      : size_(size), pixels_(static_cast<size_t>(size.height * size.width)) {}

  ImageSize size() const { return size_; }
  /// Levels from one colour to another along a direction.
  void fill(const Color& from, const Color& to, double angle);
  /// share(x, y, color) gives how much of the pixel around the point a colour covers, which it may
  /// change; asked for those in the box and a pixel around it.
  template <class F>
  void paint(const Box& box, const Color& color, const F& share);
  /// Each pixel becomes the mean of itself and its neighbours, so far as `strength` (0 to 1).
  void soften(float strength);
  /// To 8 bits, with noise of so many levels.
  Image finish(double noise, Chance& chance) const;

 private:
  ImageSize size_;
  std::vector<Color> pixels_;
};

template <class F>
void Canvas::paint(const Box& box, const Color& color, const F& share) {
  const auto begin = [](double v) {
    return std::max<int64_t>(0, static_cast<int64_t>(std::floor(v)) - 1);
  };
  const auto end = [](double v, int64_t most) {
    return std::min(most, static_cast<int64_t>(std::ceil(v)) + 1);
  };
  for (int64_t y = begin(box.y0); y < end(box.y1, size_.height); ++y) {
    for (int64_t x = begin(box.x0); x < end(box.x1, size_.width); ++x) {
      Color used = color;
      const auto a = static_cast<float>(
          share(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5, used));
      if (a <= 0) continue;
      Color& pixel = pixels_[static_cast<size_t>(y * size_.width + x)];
      for (size_t c = 0; c < 3; ++c) pixel[c] += a * (used[c] - pixel[c]);
    }
  }
}

/// An outline with corners, in order.
struct Polygon {
  std::vector<Point> corners;

  Box bounds() const;
  /// How far a point lies inside the edge, in pixels; below 0 outside.
  double inside(double x, double y) const;
};

/// A circle of radius 1 about (0, 0), moved by a matrix: x' = xx x + xy y, y' = yx x + yy y; then
/// to its middle.
struct Ellipse {
  Point middle = {};
  double xx = 1, xy = 0, yx = 0, yy = 1;

  Box bounds() const;
  /// About how far a point lies inside the edge of the same with `share` of the radius: exact at
  /// the edge.
  double inside(double x, double y, double share = 1) const;
};

/// A round outline with bumps: the radius at an angle is radius (1 + sum over n = 2, 3, 4 of
/// cosines cos(n angle) + sines sin(n angle)).
struct Blob {
  Point middle = {};
  double radius = 1;
  std::array<double, 3> cosines = {}, sines = {};

  /// At the angle whose cosine and sine these are.
  double radius_at(double cosine, double sine) const;
  Box bounds() const;
  /// About how far a point lies inside the edge.
  double inside(double x, double y) const;
};

}  // namespace heddle::drawing
