// Matrix products: one driver for every dtype, transposition and kind of arithmetic.
//
// b is packed into panels of a few columns (once, if it is constant); then blocks of rows times
// ranges of panels are spread over the threads. Since an element's bits do not depend on its block
// (GemmCode), the blocks may follow the sizes and the number of threads. Where one block has all
// rows, a panel is packed just before it is used, into memory that stays in cache; the packed form
// of a constant is made at its second use, so that a model's first token writes no second model.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/gemm/gemm_check.h"
#include "heddle/kernels/cpu/gemm/gemm_grid.h"
#include "heddle/kernels/cpu/gemm/gemm_parts.h"
#include "heddle/kernels/cpu/gemm/gemm_windows.h"
#include "heddle/kernels/cpu/gemm/groups.h"
#include "heddle/kernels/cpu/gemm/quantize.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/elementwise.h"
#include "heddle/kernels/gemm.h"

namespace heddle {
namespace {

using cpu::GemmBlock;
using cpu::GemmCode;
using cpu::GemmGrid;
using cpu::is_quantized;
using cpu::parts_of;
using cpu::round_up;

constexpr int64_t kLine = 64, kWays = 8;  // of the first cache: bytes of a line, lines of a set

const GemmCode& code_for_int8() {
#if defined(__x86_64__)
  if (matrix_unit() == MatrixUnit::amx) return cpu::gemm_int8_amx();
  if (matrix_unit() >= MatrixUnit::avx512_vnni) return cpu::gemm_int8_vnni();
#endif
  return cpu::gemm_int8();
}

const GemmCode& code_for(const QuantizedRows& b) {
#if defined(__x86_64__)
  if (matrix_unit() == MatrixUnit::amx) return cpu::gemm_groups_amx(b.bits, b.group);
  if (matrix_unit() != MatrixUnit::vectors) return cpu::gemm_groups_vnni(b.bits, b.group);
#endif
  return cpu::gemm_groups(b.bits, b.group);
}

const GemmCode& code_for(DType dtype) {
#if defined(__x86_64__)
  if (dtype == DType::bf16 && matrix_unit() != MatrixUnit::vectors) {
    return matrix_unit() == MatrixUnit::amx           ? cpu::gemm_amx()
           : matrix_unit() == MatrixUnit::avx512_bf16 ? cpu::gemm_avx512_bf16()
                                                      : cpu::gemm_avx512_fma();
  }
#endif
  return dtype == DType::bf16 ? cpu::gemm_f32_rounding() : cpu::gemm_f32();
}

// Whether rows begin where lines of the caches do.
bool is_at_lines(const Rows& x) {
  return reinterpret_cast<uintptr_t>(x.data) % kLine == 0 &&
         x.stride * size_of(x.dtype) % kLine == 0;
}

const GemmCode& code_for(const GemmArgs& g) {
  return is_quantized(g) ? code_for(g.quantized_b) : g.int8 ? code_for_int8() : code_for(g.a.dtype);
}

// The sizes of a product and of the panels of its b.
struct Plan {
  const GemmCode& code;
  int64_t m, n, k;
  int64_t filled_k;     // k filled up to the step
  int64_t panels;       // of columns
  int64_t first_panel;  // of b, where c begins
  int64_t panel_bytes;  // of one panel
  bool packs_both;      // whether blocks pack their part of b, too
  std::optional<cpu::WindowRows> windows;

  explicit Plan(const GemmArgs& g) : code(code_for(g)) {
    m = g.c.rows, n = g.c.width, first_panel = g.first / code.columns;
    k = g.transpose_a ? g.a.rows : g.a.width;
    if (g.windows != nullptr) m = windows.emplace(*g.windows).rows(), k = g.b.width;
    filled_k = round_up(k, code.inner_step);
    panels = parts_of(n, code.columns);
    panel_bytes = is_quantized(g) ? g.quantized_b.panel_bytes()
                                  : filled_k * code.columns * size_of(code.packed) + code.tail;
    packs_both = g.transpose_a && code.of_both.inner > 0 && filled_k > code.inner_chunk &&
                 m * n <= code.of_both.most;
  }
};

// Packs panel p of the whole b, or `inner` of its inner elements from l on.
void pack_panel(const Plan& plan, const GemmArgs& g, int64_t p, char* to, int64_t l,
                int64_t inner) {
  const int64_t first = p * plan.code.columns;
  const Rows b = g.transpose_b ? g.b.slice(first, g.b.rows - first).columns(l, inner)
                               : g.b.slice(l, inner).columns(first, g.b.width - first);
  plan.code.pack(b, g.transpose_b, to);
}
void pack_panel(const Plan& plan, const GemmArgs& g, int64_t p, char* to) {
  pack_panel(plan, g, p, to, 0, plan.k);
}

// The packed forms of constant factors; null where the constant was used once.
struct PackedKey {
  uint64_t constant;
  bool transposed;
  bool int8;
  auto operator<=>(const PackedKey&) const = default;
};
std::mutex packed_mutex;
std::map<PackedKey, std::shared_ptr<cpu::Buffer>>& packed_constants() {
  static auto* const all = new std::map<PackedKey, std::shared_ptr<cpu::Buffer>>;
  return *all;
}

// Null where b is to be packed for this call alone: it is no constant, or one that is met for the
// first time and `may_wait`.
std::shared_ptr<cpu::Buffer> packed_constant(const Plan& plan, const GemmArgs& g, bool may_wait) {
  if (g.constant_b == 0) return nullptr;
  std::lock_guard lock(packed_mutex);
  const auto [it, is_new] = packed_constants().try_emplace({g.constant_b, g.transpose_b, g.int8});
  // The parts of a product that comes in parts are one use.
  if (may_wait && (is_new || (it->second == nullptr && g.first > 0))) return nullptr;
  if (it->second == nullptr) {
    auto packed = std::make_shared<cpu::Buffer>();
    const int64_t columns = g.transpose_b ? g.b.rows : g.b.width;
    const int64_t panels = parts_of(columns, plan.code.columns);
    char* to = packed->reserve(panels * plan.panel_bytes);
    parallel_for(panels, [&](int64_t p) { pack_panel(plan, g, p, to + p * plan.panel_bytes); });
    it->second = packed;
  }
  return it->second;
}

// Products of fewer multiplications than this are not worth waking another thread, unless they read
// so many bytes of b, as those of few rows do: 5 us of one thread.
constexpr int64_t kWorthAThread = 1 << 19, kBytesWorthAThread = 128 << 10;

bool is_worth_threads(const Plan& plan) {
  return plan.m * plan.n * plan.k >= kWorthAThread ||
         (plan.m <= 8 && plan.panels * plan.panel_bytes >= kBytesWorthAThread);
}

// Whether rows of a lie so far apart that the first-level cache holds few of them.
bool is_crowded(const GemmCode& code, const Rows& a) {
  return code.crowded != 0 && a.rows > kWays && a.stride * size_of(a.dtype) % code.crowded == 0;
}

// Rows of a that blocks can take: as it lies, or in scratch, filled up, widened or rounded to int8,
// and not crowded if panels are taken singly. (A transposed a is packed by each block.)
class LeftFactor {
 public:
  LeftFactor(const Plan& plan, const GemmArgs& g, bool panel_by_panel) : from_(g.a), a_(g.a) {
    if (g.transpose_a || plan.windows) return;
    if (is_quantized(g)) {
      take_groups(plan, g.quantized_b);
      return;
    }
    const DType packed = plan.code.packed;
    const bool fits = from_.dtype == packed && plan.k == plan.filled_k;
    if (fits && !(panel_by_panel && is_crowded(plan.code, from_))) return;
    thread_local cpu::Buffer scratch;
    const int64_t width = plan.filled_k;
    a_ = {nullptr, plan.m, width, width, packed};
    if (is_crowded(plan.code, a_)) a_.stride += kLine / size_of(packed);
    a_.data = scratch.reserve(plan.m * a_.stride * size_of(packed));
    if (packed == DType::i8) scale_ = cpu::scratch<float, 8>(plan.m);
    zero_point_ = plan.code.zero_point;
    parts_ = parts_of(plan.m, kPart);
  }
  const Rows& rows() const { return a_; }
  int64_t bytes() const { return a_.rows * a_.stride * size_of(a_.dtype); }
  /// What a unit of int8 row r stands for.
  const float* scale(int64_t r) const { return scale_ == nullptr ? nullptr : scale_ + r; }
  /// How many parts there are to prepare; 0 if blocks take a as it lies.
  int64_t parts() const { return parts_; }
  void prepare(int64_t part) const {
    const int64_t first = part * kPart, count = std::min(kPart, a_.rows - first);
    if (group_ > 0) {
      cpu::round_groups(from_.slice(first, count), group_, group_zero_, a_.slice(first, count));
      return;
    }
    if (scale_ != nullptr) {
      cpu::quantize_rows(from_.slice(first, count), zero_point_, a_.slice(first, count),
                         scale_ + first);
      return;
    }
    const Rows to = a_.slice(first, count);
    ElementwiseKernels::of_cpu().convert(from_.slice(first, count), to.columns(0, from_.width));
    const int64_t bytes = size_of(to.dtype);
    for (int64_t r = 0; r < count && from_.width < to.width; ++r) {
      std::memset(to.slice(r, 1).columns(from_.width, 1).data, 0, (to.width - from_.width) * bytes);
    }
  }

 private:
  static constexpr int64_t kPart = 16;  // rows: the least that is worth a call

  void take_groups(const Plan& plan, const QuantizedRows& b) {
    thread_local cpu::Buffer scratch;
    const int64_t bytes = cpu::rounded_row_bytes(plan.filled_k, b.group);
    a_ = {scratch.reserve(plan.m * bytes), plan.m, plan.filled_k, bytes, DType::i8};
    group_ = b.group, group_zero_ = b.zero_point();
    parts_ = parts_of(plan.m, kPart);
  }

  Rows from_, a_;
  float* scale_ = nullptr;
  int8_t zero_point_ = 0;
  int64_t group_ = 0;  // not 0: rounded in groups
  int group_zero_ = 0;
  int64_t parts_ = 0;
};

// Packs rows [row, row + rows) of a transposed a, of the inner dimension from l on what the block
// has, into memory that stays in the core's second-level cache.
void pack_rows(const Plan& plan, const GemmArgs& g, int64_t l, int64_t row, int64_t rows,
               GemmBlock& block) {
  const GemmCode& code = plan.code;
  thread_local cpu::Buffer scratch;
  block.group_bytes = code.group_rows * block.inner * size_of(code.packed) + code.behind_group;
  char* const a = scratch.reserve(parts_of(rows, code.group_rows) * block.group_bytes);
  const int64_t inner = std::min(block.inner, plan.k - l);
  code.pack_transposed(g.a.slice(l, inner).columns(row, rows), block.group_bytes, a);
  block.a = a;
}

// Packs what the block reads of panels [first, first + panels), a few of their rows at a time, so
// that they are read one behind the other.
void pack_panels(const Plan& plan, const GemmArgs& g, int64_t l, int64_t first, int64_t panels,
                 GemmBlock& block) {
  const int64_t inner = std::min(block.inner, plan.k - l), step = plan.code.inner_step;
  thread_local cpu::Buffer scratch;
  const int64_t line = plan.code.columns * size_of(plan.code.packed);
  block.panel_bytes = block.inner * line;
  char* const to = scratch.reserve(panels * block.panel_bytes);
  for (int64_t i = 0; i < inner; i += step) {
    for (int64_t p = 0; p < panels; ++p) {
      pack_panel(plan, g, first + p, to + p * block.panel_bytes + i * line, l + i,
                 std::min(step, inner - i));
    }
  }
  block.b = to;
}

// Takes a block's rows of a, one behind the other where they are crowded.
void take_rows(const GemmCode& code, const Rows& a, GemmBlock& block) {
  block.a = a.data, block.a_stride = a.stride;
  if (!is_crowded(code, a)) return;
  const int64_t bytes = size_of(a.dtype), width = a.width * bytes;
  thread_local cpu::Buffer scratch;
  const int64_t stride = width + kLine;
  char* const to = scratch.reserve(a.rows * stride);
  for (int64_t r = 0; r < a.rows; ++r) std::memcpy(to + r * stride, a.slice(r, 1).data, width);
  block.a = to, block.a_stride = stride / bytes;
}

// Rows in memory of this thread.
Rows copied(const Rows& x) {
  const Rows to = {cpu::scratch<char, 8>(x.rows * row_bytes(x)), x.rows, x.width, x.width, x.dtype};
  ElementwiseKernels::of_cpu().convert(x, to);
  return to;
}

// Bytes of a: less lies in a second-level cache.
constexpr int64_t kWorthFetching = 2 << 20;

// One block: rows [row, row + rows) of c, columns from panel `first` on, which begins at `packed`,
// in chunks of the inner dimension; where a is transposed the block packs its chunks of it, and
// perhaps of b. Sums over several chunks that c cannot hold are kept in scratch.
void run_block(const Plan& plan, const GemmArgs& g, const LeftFactor& a, const char* packed,
               int64_t row, int64_t rows, int64_t first, int64_t panels, bool goes_on) {
  const GemmCode& code = plan.code;
  const int64_t column = first * code.columns;
  const int64_t width = std::min(panels * code.columns, plan.n - column);
  // All of x, but for its number of rows, where windows place them.
  const auto of_block = [&](Rows x) {
    if (!plan.windows) return x.slice(row, rows).columns(column, width);
    x.rows = rows;
    return x.columns(column, width);
  };
  const Rows result = of_block(g.c);
  const Rows c = g.pre_activation.data == nullptr ? result : of_block(g.pre_activation);
  GemmBlock block{.goes_on = goes_on};
  const int64_t chunk = plan.packs_both ? code.of_both.inner : code.chunk_of(plan.filled_k);
  const bool has_chunks = plan.filled_k > chunk;
  const bool is_long = has_chunks && !code.keeps_sums && c.dtype != DType::f32;
  const bool may_have_gelu = code.has_gelu && !is_long && c.dtype == DType::bf16;
  block.gelu = may_have_gelu ? cpu::gelu_tail(g.activation) : nullptr;
  if (block.gelu != nullptr && c.data != result.data) block.kept = c;
  block.c = block.gelu != nullptr ? result : c;
  if (is_long) block.c = {cpu::scratch<float, 7>(rows * width), rows, width, width, DType::f32};
  if (code.keeps_sums) {
    const int64_t columns = (has_chunks ? panels : 1) * code.columns;
    block.sums = cpu::scratch<float, 7>(round_up(rows, code.group_rows) * columns);
  }
  const bool has_tail = code.has_tail && block.c.data == result.data;
  const bool has_relu = has_tail && g.activation == Activation::relu;
  Rows added = g.added.data == nullptr ? Rows() : of_block(g.added);
  // What is added in place lies where sums of chunks, or a product without a tail, would go first.
  const bool sums_in_c = has_chunks && !code.keeps_sums;
  if (added.data != nullptr && added.data == c.data && (!has_tail || sums_in_c)) {
    added = copied(added);
  }
  block.scale = a.scale(row);
  const int64_t limit = g.constant_b != 0 ? code.past_caches_of_constant : code.past_caches;
  // Not where it is read again below.
  block.past_caches = limit > 0 && block.c.data == result.data &&
                      (g.activation == Activation::none || has_relu || block.gelu != nullptr) &&
                      plan.m * plan.n * size_of(c.dtype) >= limit && added.data != c.data &&
                      is_at_lines(c) && is_at_lines(result);
  if (plan.windows) plan.windows->take(g.a, row, rows, block);
  for (int64_t l = 0; l < plan.filled_k; l += chunk) {
    block.inner = std::min(chunk, plan.filled_k - l);
    const bool is_last = l + block.inner == plan.filled_k;
    block.begins = l == 0, block.ends = is_last;
    block.accumulate = g.accumulate || (l > 0 && !code.keeps_sums);
    block.bias = g.bias != nullptr && is_last ? g.bias + column : nullptr;
    block.relu = has_relu && is_last;
    block.added = has_tail && is_last ? added : Rows();
    if (!plan.packs_both) block.b = packed + l * code.columns * size_of(code.packed);
    block.panel_bytes = plan.panel_bytes;
    if (is_quantized(g)) {
      block.b_scales =
          g.quantized_b.scales + (plan.first_panel + first) * g.quantized_b.groups() * 32;
    }
    if (g.transpose_a) {
      pack_rows(plan, g, l, row, rows, block);
      if (plan.packs_both) pack_panels(plan, g, l, first, panels, block);
      if (plan.packs_both && code.fetches && !g.transpose_b) {
        const int64_t next = std::min(l + chunk, plan.k), more = std::min(chunk, plan.k - next);
        block.next[0] = g.a.slice(next, more).columns(row, rows);
        block.next[1] = g.b.slice(next, more).columns(column, width);
      }
    } else if (plan.windows) {
      block.inner_begin = l;
    } else {
      take_rows(code, a.rows().slice(row, rows).columns(l, block.inner), block);
      if (code.fetches && plan.filled_k <= chunk && a.bytes() >= kWorthFetching) {
        const int64_t next = row + rows;
        block.next[0] = a.rows().slice(next, std::min(rows, plan.m - next));
      }
    }
    code.block(block);
  }
  if (is_long) ElementwiseKernels::of_cpu().convert(block.c, c);
  // While the block lies in the cache; of the rounded sums, as if they had been stored first.
  if (g.added.data != nullptr && !has_tail) ElementwiseKernels::of_cpu().add(c, added, c);
  if (g.activation != Activation::none && !has_relu && block.gelu == nullptr) {
    ActivationKernels::of_cpu().activation(g.activation, c, {}, result);
  }
}

// All rows of c, packing one panel after the other.
void run_packing(const Plan& plan, const GemmArgs& g, const LeftFactor& a, int64_t first,
                 int64_t panels) {
  thread_local cpu::Buffer scratch;
  char* const panel = scratch.reserve(plan.panel_bytes);
  for (int64_t p = first; p < first + panels; ++p) {
    pack_panel(plan, g, plan.first_panel + p, panel);
    run_block(plan, g, a, panel, 0, plan.m, p, 1, false);
  }
}

// Panels of b that one call packs, or parts of them where the inner dimension is long: its rows are
// then read one behind the other, panel after panel.
class RightFactor {
 public:
  RightFactor(const Plan& plan, const GemmArgs& g, char* to) : plan_(plan), g_(g), to_(to) {
    if (!g.transpose_b) inner_ = kPart;
    parts_ = parts_of(plan.k, inner_) * plan.panels;
  }
  int64_t parts() const { return to_ == nullptr ? 0 : parts_; }
  void pack(int64_t part) const {
    const int64_t p = part % plan_.panels, l = part / plan_.panels * inner_;
    char* const to =
        to_ + p * plan_.panel_bytes + l * plan_.code.columns * size_of(plan_.code.packed);
    pack_panel(plan_, g_, plan_.first_panel + p, to, l, std::min(inner_, plan_.k - l));
  }

 private:
  static constexpr int64_t kPart = 512;  // inner elements

  const Plan& plan_;
  const GemmArgs& g_;
  char* to_;
  int64_t inner_ = std::numeric_limits<int64_t>::max(), parts_;
};

void multiply(const GemmArgs& g) {
  const Plan plan(g);
  const bool alone = !is_worth_threads(plan) || in_parallel();
  const auto spread = [&](int64_t tasks, const auto& f) {
    if (alone) {
      for (int64_t i = 0; i < tasks; ++i) f(i);
    } else {
      parallel_for(tasks, f);
    }
  };
  const GemmGrid grid(plan.code, {plan.m, plan.panels, plan.filled_k},
                      {g.transpose_a, plan.packs_both}, alone ? 1 : num_threads());
  const bool is_one_block = grid.row_blocks == 1 && !g.transpose_a && !plan.windows;
  const std::shared_ptr<cpu::Buffer> constant =
      g.transpose_a || is_quantized(g) ? nullptr : packed_constant(plan, g, is_one_block);
  const bool packs_as_used = constant == nullptr && is_one_block && !is_quantized(g);
  const LeftFactor a(plan, g, packs_as_used);
  thread_local cpu::Buffer scratch;
  const char* packed = nullptr;
  char* own = nullptr;
  if (is_quantized(g)) {
    packed =
        reinterpret_cast<const char*>(g.quantized_b.values) + plan.first_panel * plan.panel_bytes;
  } else if (constant != nullptr) {
    packed = constant->data() + plan.first_panel * plan.panel_bytes;
  } else if (!packs_as_used && !plan.packs_both) {
    packed = own = scratch.reserve(plan.panels * plan.panel_bytes);
  }
  const RightFactor b(plan, g, own);
  if (b.parts() + a.parts() > 0) {
    spread(b.parts() + a.parts(),
           [&](int64_t i) { i < b.parts() ? b.pack(i) : a.prepare(i - b.parts()); });
  }
  spread(grid.row_blocks * grid.ranges, [&](int64_t i) {
    const int64_t row = i / grid.ranges * grid.rows, first = i % grid.ranges * grid.range;
    const int64_t rows = std::min(grid.rows, plan.m - row);
    const int64_t panels = std::min(grid.range, plan.panels - first);
    if (packs_as_used) {
      run_packing(plan, g, a, first, panels);
    } else {
      const char* const from = packed == nullptr ? nullptr : packed + first * plan.panel_bytes;
      const bool goes_on = from != nullptr && first + panels < plan.panels;
      run_block(plan, g, a, from, row, rows, first, panels, goes_on);
    }
  });
}

// A product without an inner dimension: zeros, or the bias.
void without_inner(const GemmArgs& g) {
  if (g.accumulate && g.bias == nullptr) return;
  const std::vector<float> zeros(g.c.width);
  for (int64_t r = 0; r < g.c.rows; ++r) {
    const Rows c = (g.pre_activation.data == nullptr ? g.c : g.pre_activation).slice(r, 1);
    const Rows start{const_cast<float*>(zeros.data()), 1, c.width, c.width, DType::f32};
    if (g.bias == nullptr) {
      ElementwiseKernels::of_cpu().convert(start, c);
    } else {
      ElementwiseKernels::of_cpu().add_row(g.accumulate ? c : start, g.bias, c);
    }
    if (g.added.data != nullptr) ElementwiseKernels::of_cpu().add(c, g.added.slice(r, 1), c);
    if (g.activation != Activation::none)
      ActivationKernels::of_cpu().activation(g.activation, c, {}, g.c.slice(r, 1));
  }
}

}  // namespace

uint64_t new_constant() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bool takes_windows(DType dtype) { return code_for(dtype).has_windows; }

void forget_packed(uint64_t constant_b) {
  std::lock_guard lock(packed_mutex);
  for (const bool int8 : {false, true}) {
    packed_constants().erase({constant_b, false, int8});
    packed_constants().erase({constant_b, true, int8});
  }
}

GemmKernels GemmKernels::of_cpu() {
  return {.gemm = [](const GemmArgs& args) {
    cpu::check_gemm(args);
    if (args.c.rows == 0 || args.c.width == 0) return;
    if (args.a.rows == 0 || args.a.width == 0) return without_inner(args);
    const int64_t parts = cpu::inner_parts(code_for(args), args);
    parts > 1 ? cpu::multiply_in_parts(args, parts, multiply) : multiply(args);
  }};
}

}  // namespace heddle
