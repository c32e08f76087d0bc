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
  const auto height = static_cast<size_t>(size_.height), width = static_cast<size_t>(size_.width);
  // Along the rows, then along the columns; at the border the pixel stands for those outside.
  const auto mean = [](const Color& a, const Color& b, const Color& c) {
    return Color{(a[0] + b[0] + c[0]) / 3, (a[1] + b[1] + c[1]) / 3, (a[2] + b[2] + c[2]) / 3};
  };
  std::vector<Color> rows(pixels_.size());
  for (size_t y = 0; y < height; ++y) {
    const Color* row = pixels_.data() + y * width;
    for (size_t x = 0; x < width; ++x) {
      rows[y * width + x] = mean(row[x > 0 ? x - 1 : 0], row[x], row[std::min(x + 1, width - 1)]);
    }
  }
  for (size_t y = 0; y < height; ++y) {
    const Color *above = rows.data() + (y > 0 ? y - 1 : 0) * width, *here = rows.data() + y * width,
                *below = rows.data() + std::min(y + 1, height - 1) * width;
    for (size_t x = 0; x < width; ++x) {
      const Color soft = mean(above[x], here[x], below[x]);
      Color& pixel = pixels_[y * width + x];
      for (size_t c = 0; c < 3; ++c) pixel[c] += strength * (soft[c] - pixel[c]);
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

Box Ellipse::bounds() const {
  const double width = std::hypot(xx, xy), height = std::hypot(yx, yy);
  return {middle.x - width, middle.y - height, middle.x + width, middle.y + height};
}

double Ellipse::inside(double x, double y, double share) const {
  const double px = x - middle.x, py = y - middle.y, area = xx * yy - xy * yx;
  // The point on the circle's plane, and how fast its distance there changes here.
  const double qx = (yy * px - xy * py) / area, qy = (xx * py - yx * px) / area,
               distance = std::sqrt(qx * qx + qy * qy);
  if (distance < 1e-9) return share * std::sqrt(std::abs(area));
  const double dx = (yy * qx - yx * qy) / (area * distance),
               dy = (xx * qy - xy * qx) / (area * distance);
  return (share - distance) / std::sqrt(dx * dx + dy * dy);
}

double Blob::radius_at(double cosine, double sine) const {
  double factor = 1, c = cosine, s = sine;
  for (size_t i = 0; i < cosines.size(); ++i) {
    const double next = c * cosine - s * sine;
    s = s * cosine + c * sine;
    c = next;
    factor += cosines[i] * c + sines[i] * s;
  }
  return radius * factor;
}

Box Blob::bounds() const {
  constexpr int kSteps = 180;
  Box box{middle.x, middle.y, middle.x, middle.y};
  for (int i = 0; i < kSteps; ++i) {
    const double angle = 2 * std::numbers::pi * i / kSteps, cosine = std::cos(angle),
                 sine = std::sin(angle), r = radius_at(cosine, sine), x = middle.x + r * cosine,
                 y = middle.y + r * sine;
    box = enclosing(box, {x, y, x, y});
  }
  return box;
}

double Blob::inside(double x, double y) const {
  const double dx = x - middle.x, dy = y - middle.y, distance = std::sqrt(dx * dx + dy * dy);
  if (distance < 1e-9) return radius;
  return radius_at(dx / distance, dy / distance) - distance;
}

}  // namespace heddle::drawing
