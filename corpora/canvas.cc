// Outlines, and pixels in floating point.
#include "corpora/canvas.h"

#include <limits>
#include <numbers>

namespace heddle::drawing {

void Canvas::fill(const Color& from, const Color& to, double angle) {
  const double dx = std::cos(angle), dy = std::sin(angle),
               reach = std::abs(dx) * static_cast<double>(size_.width) +
                       std::abs(dy) * static_cast<double>(size_.height);
  for (int64_t y = 0; y < size_.height; ++y) {
    for (int64_t x = 0; x < size_.width; ++x) {
      const double along = dx * (static_cast<double>(x) - static_cast<double>(size_.width) / 2) +
                           dy * (static_cast<double>(y) - static_cast<double>(size_.height) / 2);
      const auto share = static_cast<float>(0.5 + along / reach);
      Color& pixel = pixels_[static_cast<size_t>(y * size_.width + x)];
      for (size_t c = 0; c < 3; ++c) pixel[c] = from[c] + share * (to[c] - from[c]);
    }
  }
}

void Canvas::soften(float strength) {
  const std::vector<Color> before = pixels_;
  for (int64_t y = 0; y < size_.height; ++y) {
    for (int64_t x = 0; x < size_.width; ++x) {
      Color sum = {};
      for (int64_t i = std::max<int64_t>(0, y - 1); i < std::min(size_.height, y + 2); ++i) {
        for (int64_t j = std::max<int64_t>(0, x - 1); j < std::min(size_.width, x + 2); ++j) {
          for (size_t c = 0; c < 3; ++c) {
            sum[c] += before[static_cast<size_t>(i * size_.width + j)][c];
          }
        }
      }
      const int64_t rows = std::min(size_.height, y + 2) - std::max<int64_t>(0, y - 1),
                    columns = std::min(size_.width, x + 2) - std::max<int64_t>(0, x - 1);
      Color& pixel = pixels_[static_cast<size_t>(y * size_.width + x)];
      for (size_t c = 0; c < 3; ++c) {
        pixel[c] += strength * (sum[c] / static_cast<float>(rows * columns) - pixel[c]);
      }
    }
  }
}

Image Canvas::finish(double noise, Chance& chance) const {
  Image image(size_.height, size_.width);
  for (size_t i = 0; i < pixels_.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const float level = pixels_[i][c] + static_cast<float>(noise) * chance.noise();
      image.pixels[3 * i + c] = static_cast<uint8_t>(std::clamp(level + 0.5f, 0.0f, 255.0f));
    }
  }
  return image;
}

Box Polygon::bounds() const {
  Box box{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const Point& p : corners) box = enclosing(box, {p.x, p.y, p.x, p.y});
  return box;
}

double Polygon::inside(double x, double y) const {
  double nearest = std::numeric_limits<double>::infinity();
  bool is_inside = false;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Point &a = corners[i], &b = corners[(i + 1) % corners.size()];
    const double dx = b.x - a.x, dy = b.y - a.y, px = x - a.x, py = y - a.y;
    const double along = std::clamp((px * dx + py * dy) / (dx * dx + dy * dy), 0.0, 1.0);
    const double ox = px - along * dx, oy = py - along * dy;
    nearest = std::min(nearest, ox * ox + oy * oy);
    // Edges that a ray to the right crosses.
    if ((a.y > y) != (b.y > y) && x < a.x + dx * (y - a.y) / dy) is_inside = !is_inside;
  }
  return is_inside ? std::sqrt(nearest) : -std::sqrt(nearest);
}

double Blob::radius_at(double angle) const {
  double factor = 1;
  for (size_t i = 0; i < bumps.size(); ++i) {
    factor += bumps[i] * std::cos(static_cast<double>(i + 2) * angle + turns[i]);
  }
  return radius * factor;
}

Box Blob::bounds() const {
  constexpr int kSteps = 180;
  Box box{middle.x, middle.y, middle.x, middle.y};
  for (int i = 0; i < kSteps; ++i) {
    const double angle = 2 * std::numbers::pi * i / kSteps, r = radius_at(angle),
                 x = middle.x + r * std::cos(angle), y = middle.y + r * std::sin(angle);
    box = enclosing(box, {x, y, x, y});
  }
  return box;
}

double Blob::inside(double x, double y) const {
  const double dx = x - middle.x, dy = y - middle.y;
  return radius_at(std::atan2(dy, dx)) - std::sqrt(dx * dx + dy * dy);
}

}  // namespace heddle::drawing
