// Windows over the pixels of images: runs of pixels copied, their gradients gathered, the largest
// of each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/patches.cc"
#include <algorithm>
#include <cstring>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/patches.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

using U8 = hn::Rebind<uint8_t, F32>;

// Where an image begins.
struct Begin {
  int64_t line = 0;   // of those that are counted, see for_lines()
  int64_t pixel = 0;  // row of x
  int64_t window = 0;
};

// A line of pixels or of windows of an image.
struct Line {
  ImageSize pixels, windows;
  int64_t index = 0;
  int64_t pixel = 0, window = 0;  // where its image begins
};

// Calls f(line) for each line of the windows, or of the pixels, on all threads; `bytes` of all
// lines tell how many are worth a block.
template <class F>
void for_lines(const WindowArgs& a, bool of_windows, const F& f) {
  Begin* const begin = scratch<Begin>(a.images + 1);
  begin[0] = {};
  const auto windows = [&](int64_t i) -> ImageSize {
    return {a.options.windows(a.sizes[i].height), a.options.windows(a.sizes[i].width)};
  };
  for (int64_t i = 0; i < a.images; ++i) {
    const ImageSize w = windows(i), p = a.sizes[i];
    begin[i + 1] = {begin[i].line + (of_windows ? w.height : p.height),
                    begin[i].pixel + p.height * p.width, begin[i].window + w.height * w.width};
  }
  const int64_t lines = begin[a.images].line;
  const int64_t bytes = work_of(a).bytes / std::max<int64_t>(1, lines);
  parallel_blocks(lines, rows_per_block(bytes), [&](int64_t from, int64_t to) {
    const auto* at = std::upper_bound(begin, begin + a.images + 1, from,
                                      [](int64_t line, const Begin& b) { return line < b.line; });
    int64_t image = at - begin - 1;
    for (int64_t line = from; line < to; ++line) {
      while (line >= begin[image + 1].line) ++image;
      f(Line{a.sizes[image], windows(image), line - begin[image].line, begin[image].pixel,
             begin[image].window});
    }
  });
}

// The part of a window that lies inside the image, along one axis.
struct Inside {
  int64_t first;       // pixel of the window's place 0, may be negative
  int64_t begin, end;  // places inside
  Inside(int64_t window, int64_t pixels, const WindowOptions& o)
      : first(window * o.stride - o.padding),
        begin(std::clamp<int64_t>(-first, 0, o.kernel)),
        end(std::clamp<int64_t>(pixels - first, begin, o.kernel)) {}
};

// ---- patches

// Runs are short: the call of memcpy takes longer than copying a run of them. What does not fill a
// vector is copied again from the end.
template <class T>
HWY_INLINE void copy_run(const T* from, int64_t n, T* to) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  const hn::CappedTag<Bits, 64 / sizeof(T)> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto* p = reinterpret_cast<const Bits*>(from);
  auto* q = reinterpret_cast<Bits*>(to);
  if (n < step) {
    for (int64_t i = 0; i < n; ++i) q[i] = p[i];
    return;
  }
  for (int64_t i = 0; i + step <= n; i += step) hn::StoreU(hn::LoadU(d, p + i), d, q + i);
  if (n % step != 0) hn::StoreU(hn::LoadU(d, p + n - step), d, q + n - step);
}

template <class T>
void copy_line(const WindowArgs& a, const Line& line) {
  const WindowOptions& o = a.options;
  const int64_t channels = a.x.width, row = o.kernel * channels;
  const Inside down(line.index, line.pixels.height, o);
  for (int64_t window = 0; window < line.windows.width; ++window) {
    const Inside across(window, line.pixels.width, o);
    T* const to = a.y.row<T>(line.window + line.index * line.windows.width + window);
    const int64_t run = (across.end - across.begin) * channels, left = across.begin * channels;
    if (run < row || down.end - down.begin < o.kernel) {
      std::memset(static_cast<void*>(to), 0, static_cast<size_t>(o.kernel * row) * sizeof(T));
    }
    for (int64_t place = down.begin; place < down.end; ++place) {
      const int64_t pixel = line.pixel + (down.first + place) * line.pixels.width + across.first;
      copy_run(a.x.row<T>(pixel + across.begin), run, to + place * row + left);
    }
  }
}

// ---- sums over the windows that hold a pixel

// The windows that hold a pixel, along one axis, by the place that it has in them, the first place
// first: place, place + stride, .. of window, window - 1, ..
struct Holders {
  int64_t place, window, count;
  Holders(int64_t pixel, int64_t windows, const WindowOptions& o) {
    const int64_t at = pixel + o.padding;
    window = std::min(at / o.stride, windows - 1);
    place = at - window * o.stride;
    const int64_t more = place < o.kernel ? (o.kernel - 1 - place) / o.stride + 1 : 0;
    count = windows <= 0 ? 0 : std::min(more, window + 1);
  }
};

// Where a window has a pixel: its row, and the place of the pixel in it.
struct Holder {
  int64_t window, place;
};

// Calls f(pixel, holders, how many) for each pixel of a line.
template <class F>
HWY_INLINE void for_holders(const WindowArgs& a, const Line& line, const F& f) {
  const WindowOptions& o = a.options;
  Holder* const all = scratch<Holder>(o.kernel * o.kernel);
  const Holders down(line.index, line.windows.height, o);
  for (int64_t x = 0; x < line.pixels.width; ++x) {
    const Holders across(x, line.windows.width, o);
    int64_t n = 0;
    for (int64_t i = 0; i < down.count; ++i) {
      const int64_t first = line.window + (down.window - i) * line.windows.width + across.window;
      const int64_t place = (down.place + i * o.stride) * o.kernel + across.place;
      for (int64_t j = 0; j < across.count; ++j) all[n++] = {first - j, place + j * o.stride};
    }
    f(line.pixel + line.index * line.pixels.width + x, all, n);
  }
}

// The sum of what the holders have of `kVectors` vectors of channels from c on: sums side by side
// do not wait for each other.
template <class T, int kVectors>
HWY_INLINE void sum_holders(const WindowArgs& a, const Holder* holders, int64_t n, int64_t c,
                            T* to) {
  Vec sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = zero();
  for (int64_t i = 0; i < n; ++i) {
    const T* const from = a.y.row<T>(holders[i].window) + holders[i].place * a.x.width + c;
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Add(sum[v], load(from + v * lanes(), Full{}));
    }
  }
  for (int v = 0; v < kVectors; ++v) store(sum[v], to + c + v * lanes(), Full{});
}

template <class T>
void gather_line(const WindowArgs& a, const Line& line) {
  const int64_t channels = a.x.width, tile = 4 * lanes();
  for_holders(a, line, [&](int64_t pixel, const Holder* holders, int64_t n) HWY_ATTR {
    T* const to = a.x.row<T>(pixel);
    int64_t c = 0;
    for (; c + tile <= channels; c += tile) sum_holders<T, 4>(a, holders, n, c, to);
    for (; c + lanes() <= channels; c += lanes()) sum_holders<T, 1>(a, holders, n, c, to);
    if (c == channels) return;
    const Tail tail{channels - c};
    Vec sum = zero();
    for (int64_t i = 0; i < n; ++i) {
      const T* const from = a.y.row<T>(holders[i].window) + holders[i].place * channels + c;
      sum = hn::Add(sum, load(from, tail));
    }
    store(sum, to + c, tail);
  });
}

// ---- the largest of a window

HWY_INLINE void store_places(hn::Vec<I32> places, uint8_t* p, Full) {
  hn::StoreU(hn::DemoteTo(U8(), places), U8(), p);
}
HWY_INLINE void store_places(hn::Vec<I32> places, uint8_t* p, Tail t) {
  store_tail(hn::DemoteTo(U8(), places), U8(), p, t.count);
}
HWY_INLINE hn::Vec<I32> load_places(const uint8_t* p, Full) {
  return hn::PromoteTo(I32(), hn::LoadU(U8(), p));
}
HWY_INLINE hn::Vec<I32> load_places(const uint8_t* p, Tail t) {
  return hn::PromoteTo(I32(), load_tail(U8(), p, t.count));
}

template <class T>
void pool_line(const WindowArgs& a, const Line& line) {
  const WindowOptions& o = a.options;
  const Inside down(line.index, line.pixels.height, o);
  for (int64_t window = 0; window < line.windows.width; ++window) {
    const Inside across(window, line.pixels.width, o);
    const int64_t to = line.window + line.index * line.windows.width + window;
    const int64_t corner = line.pixel + down.first * line.pixels.width + across.first;
    for_columns(a.x.width, [&](int64_t c, auto part) HWY_ATTR {
      const I32 di;
      Vec best = zero(), sum = zero();
      auto place = hn::Zero(di);
      const auto search = [&](const auto& is_better) HWY_ATTR {
        best = load(a.x.row<T>(corner + down.begin * line.pixels.width + across.begin) + c, part);
        place = hn::Set(di, static_cast<int32_t>(down.begin * o.kernel + across.begin));
        for (int64_t i = down.begin; i < down.end; ++i) {
          const T* from = a.x.row<T>(corner + i * line.pixels.width + across.begin) + c;
          for (int64_t j = across.begin; j < across.end; ++j, from += a.x.stride) {
            const Vec v = load(from, part);
            const auto better = is_better(v);
            best = hn::IfThenElse(better, v, best);
            place = hn::IfThenElse(hn::RebindMask(di, better),
                                   hn::Set(di, static_cast<int32_t>(i * o.kernel + j)), place);
            sum = hn::Add(sum, v);
          }
        }
      };
      search([&](Vec v) HWY_ATTR { return hn::Gt(v, best); });
      if (HWY_UNLIKELY(!hn::AllFalse(F32(), hn::IsNaN(sum)))) {  // NaN wins
        search([&](Vec v) HWY_ATTR {
          return hn::Or(hn::Gt(v, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(v)));
        });
      }
      store(best, a.y.row<T>(to) + c, part);
      store_places(place, a.chosen + to * a.y.width + c, part);
    });
  }
}

template <class T>
void unpool_line(const WindowArgs& a, const Line& line) {
  for_holders(a, line, [&](int64_t pixel, const Holder* holders, int64_t n) HWY_ATTR {
    T* const to = a.x.row<T>(pixel);
    for_columns(a.x.width, [&](int64_t c, auto part) HWY_ATTR {
      const I32 di;
      Vec sum = zero();
      for (int64_t i = 0; i < n; ++i) {
        const auto [window, place] = holders[i];
        const auto is_chosen = hn::Eq(load_places(a.chosen + window * a.y.width + c, part),
                                      hn::Set(di, static_cast<int32_t>(place)));
        const Vec d = load(a.y.row<T>(window) + c, part);
        sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(F32(), is_chosen), d));
      }
      store(sum, to + c, part);
    });
  });
}

}  // namespace

void patch_rows_impl(const WindowArgs& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    for_lines(a, true, [&](const Line& line) { copy_line<T>(a, line); });
  });
}

void patch_rows_backward_impl(const WindowArgs& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    for_lines(a, false, [&](const Line& line) { gather_line<T>(a, line); });
  });
}

void max_pool_impl(const WindowArgs& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    for_lines(a, true, [&](const Line& line) { pool_line<T>(a, line); });
  });
}

void max_pool_backward_impl(const WindowArgs& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    for_lines(a, false, [&](const Line& line) { unpool_line<T>(a, line); });
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(patch_rows_impl);
HWY_EXPORT(patch_rows_backward_impl);
HWY_EXPORT(max_pool_impl);
HWY_EXPORT(max_pool_backward_impl);
}  // namespace heddle::cpu

namespace heddle {

PatchKernels PatchKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(patch_rows), HEDDLE_CPU_KERNEL(patch_rows_backward),
          HEDDLE_CPU_KERNEL(max_pool), HEDDLE_CPU_KERNEL(max_pool_backward)};
}

}  // namespace heddle
#endif
