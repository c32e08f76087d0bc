// Rows gathered in an order and back: either is the gradient of the other.
#include "heddle/ops/images/windows.h"

#include <algorithm>
#include <numeric>

#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

int64_t rows_of(std::span<const ImageSize> grids) {
  return std::accumulate(grids.begin(), grids.end(), int64_t{0},
                         [](int64_t sum, const ImageSize& g) { return sum + g.height * g.width; });
}

int64_t rounded_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

Tensor gathered(const Tensor& x, const std::vector<int32_t>& index) {
  const Tensor y = Tensor::empty({std::ssize(index), x.size(1)}, x.dtype());
  kernels().gather_rows(x.rows(), index.data(), y.rows());
  return y;
}

void check_rows(const char* name, const Tensor& x, size_t rows) {
  check(x.rank() == 2 && x.size(0) == static_cast<int64_t>(rows), ErrorKind::shape,
        "{}: x is {}; the order is of {} rows", name, x.shape(), rows);
}

// How windows lie along one side of a grid.
struct Axis {
  int64_t size, window, shift;
  bool is_clamped;  // what lies beyond the grid is not seen

  Axis(int64_t length, const WindowRule& rule, bool shifts)
      : size(length),
        window(rule.side),
        shift(shifts ? rule.shift : 0),
        is_clamped(rule.clamps && length < rule.side) {}
  int64_t padded() const { return rounded_up(size, window); }
  // The line of the padded grid that stands at a place of the shifted one.
  int64_t at(int64_t place) const { return (place + shift) % padded(); }
  // Of a place: 0 in windows that a shift leaves whole, else 1, or 2 for what came round.
  int32_t region(int64_t place) const {
    if (shift == 0) return 0;
    return static_cast<int32_t>(place >= padded() - window) +
           static_cast<int32_t>(place >= padded() - shift);
  }
};

// The windows of one grid, whose rows begin at `first`.
void add_windows(const Axis& down, const Axis& across, int64_t first, std::vector<int32_t>& from,
                 GridWindows& to) {
  const int64_t side = down.window;
  for (int64_t top = 0; top < down.padded(); top += side) {
    for (int64_t left = 0; left < across.padded(); left += side) {
      for (int64_t i = 0; i < side * side; ++i) {
        const int64_t y = down.at(top + i / side), x = across.at(left + i % side);
        const bool is_inside = y < down.size && x < across.size;
        from.push_back(is_inside ? static_cast<int32_t>(first + y * across.size + x) : -1);
        const bool is_hidden =
            (down.is_clamped && y >= down.size) || (across.is_clamped && x >= across.size);
        to.regions.push_back(is_hidden ? Visibility::kUnseen
                                       : down.region(top + i / side) * 3 +
                                             across.region(left + i % side));
      }
    }
  }
  to.counts.push_back(static_cast<int32_t>(down.padded() / side * across.padded() / side));
}

// Whether a token sees less than its window: regions differ within one.
bool has_borders(const std::vector<int32_t>& regions, int64_t window) {
  for (size_t i = 0; i < regions.size(); ++i) {
    const size_t first = i - i % static_cast<size_t>(window);
    if (regions[i] != regions[first]) return true;
  }
  return false;
}

std::shared_ptr<const Visibility> visibility_of(const std::vector<int32_t>& regions) {
  Visibility v{.first = regions, .limit = {}, .order = regions};
  for (const int32_t region : regions) {
    v.limit.push_back(region == Visibility::kUnseen ? region : region + 1);
  }
  return std::make_shared<const Visibility>(std::move(v));
}

}  // namespace

std::shared_ptr<const RowOrder> RowOrder::of(std::vector<int32_t> from, int64_t rows) {
  check(rows >= 0, ErrorKind::shape, "an order cannot be of {} rows", rows);
  RowOrder order{std::move(from), std::vector<int32_t>(static_cast<size_t>(rows), -1)};
  for (size_t i = 0; i < order.from.size(); ++i) {
    check(order.from[i] < rows, ErrorKind::shape, "row {} in an order of {} rows", order.from[i],
          rows);
    if (order.from[i] >= 0) order.to[static_cast<size_t>(order.from[i])] = static_cast<int32_t>(i);
  }
  return std::make_shared<const RowOrder>(std::move(order));
}

Tensor reorder(const Tensor& x, const std::shared_ptr<const RowOrder>& order) {
  check_rows("reorder", x, order->to.size());
  return record("reorder", {x}, gathered(x, order->from),
                [order](const Tensor& dy) -> Grads { return {gathered(dy, order->to)}; });
}

Tensor restore(const Tensor& x, const std::shared_ptr<const RowOrder>& order) {
  check_rows("restore", x, order->from.size());
  return record("restore", {x}, gathered(x, order->to),
                [order](const Tensor& dy) -> Grads { return {gathered(dy, order->from)}; });
}

GridWindows windows_of(std::span<const ImageSize> grids, const WindowRule& rule) {
  check(rule.side >= 1 && rule.shift >= 0, ErrorKind::shape,
        "windows of {} x {}, shifted by {}: there are none such", rule.side, rule.side, rule.shift);
  GridWindows windows;
  std::vector<int32_t> from;
  int64_t first = 0;
  for (const ImageSize& g : grids) {
    const bool shifts = !rule.clamps || std::min(g.height, g.width) > rule.side;
    add_windows({g.height, rule, shifts}, {g.width, rule, shifts}, first, from, windows);
    first += g.height * g.width;
  }
  const int64_t window = rule.side * rule.side;
  windows.segments = Segments::uniform(std::ssize(from) / window, window);
  if (has_borders(windows.regions, window)) windows.visibility = visibility_of(windows.regions);
  windows.order = RowOrder::of(std::move(from), first);
  return windows;
}

std::vector<ImageSize> merged_sizes(std::span<const ImageSize> grids) {
  std::vector<ImageSize> merged;
  for (const ImageSize& g : grids) merged.push_back({(g.height + 1) / 2, (g.width + 1) / 2});
  return merged;
}

std::shared_ptr<const RowOrder> neighbours_of(std::span<const ImageSize> grids) {
  std::vector<int32_t> from;
  int64_t first = 0;
  for (const ImageSize& g : grids) {
    for (int64_t top = 0; top < g.height; top += 2) {
      for (int64_t left = 0; left < g.width; left += 2) {
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t y = top + i % 2, x = left + i / 2;
          const bool is_inside = y < g.height && x < g.width;
          from.push_back(is_inside ? static_cast<int32_t>(first + y * g.width + x) : -1);
        }
      }
    }
    first += g.height * g.width;
  }
  return RowOrder::of(std::move(from), first);
}

PaddedGrids padded_to(std::span<const ImageSize> grids, int64_t multiple) {
  check(multiple >= 1, ErrorKind::shape, "there are no multiples of {} to pad to", multiple);
  PaddedGrids padded{.sizes = {grids.begin(), grids.end()}, .order = nullptr};
  for (ImageSize& g : padded.sizes) {
    g = {rounded_up(g.height, multiple), rounded_up(g.width, multiple)};
  }
  if (std::ranges::equal(padded.sizes, grids)) return padded;
  std::vector<int32_t> from;
  int64_t first = 0;
  for (size_t i = 0; i < grids.size(); ++i) {
    const ImageSize &g = grids[i], &all = padded.sizes[i];
    for (int64_t p = 0; p < all.height * all.width; ++p) {
      const int64_t y = p / all.width, x = p % all.width;
      const bool is_inside = y < g.height && x < g.width;
      from.push_back(is_inside ? static_cast<int32_t>(first + y * g.width + x) : -1);
    }
    first += g.height * g.width;
  }
  padded.order = RowOrder::of(std::move(from), rows_of(grids));
  return padded;
}

}  // namespace heddle
