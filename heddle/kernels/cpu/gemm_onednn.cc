// Matrix products: one driver for every dtype over oneDNN primitives that run on one thread each.
//
// oneDNN's own threading splits the inner dimension as it sees fit, so its results depend on the
// number of threads. Here a fixed grid of tiles (functions of the sizes only) is spread over the
// threads, and each tile is computed by one primitive created for one thread.
#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/cpu.h"

namespace heddle {
namespace {

using dnnl::memory;

constexpr int64_t kTileRows = 256;
constexpr int64_t kTileColumns = 512;
constexpr int64_t kInnerChunk = 1024;  // of a transposed a: the rows of a batch
constexpr int64_t kInnerStep = 64;     // the smallest chunk; less is filled up with zeros

// What a primitive is created for. Strides are part of it: oneDNN specialises on them.
struct Key {
  int64_t m, n, k, lda, ldb, ldc;
  DType in, out;
  bool transpose_a, transpose_b, accumulate, bias, packed;
  auto tie() const {
    return std::tie(m, n, k, lda, ldb, ldc, in, out, transpose_a, transpose_b, accumulate, bias,
                    packed);
  }
  bool operator<(const Key& o) const { return tie() < o.tie(); }
};

dnnl::engine& engine() {
  static dnnl::engine the_engine(dnnl::engine::kind::cpu, 0);
  return the_engine;
}

memory::data_type data_type(DType dtype) {
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc matrix(int64_t rows, int64_t columns, int64_t stride, bool transposed, DType dtype) {
  return {{rows, columns},
          data_type(dtype),
          transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
}

// oneDNN bakes the number of threads into a primitive when it is created.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// The packed layout of a [k, n] constant: the one oneDNN likes for 64 rows, used for all heights.
// It depends on the dtype of the product too: with another one, or with strided rows, oneDNN falls
// back to its reference code, a thousand times slower. Undefined (no layout) where some height has
// no fast code.
memory::desc packed_layout(int64_t n, int64_t k, DType in, DType out) {
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, int64_t, DType, DType>, memory::desc> known;
  std::lock_guard lock(mutex);
  auto it = known.find({n, k, in, out});
  if (it != known.end()) return it->second;
  OneThread one;
  const auto describe = [&](int64_t m, const memory::desc& b) {
    const dnnl::matmul::desc desc(matrix(m, k, k, false, in), b, matrix(m, n, n, false, out));
    return dnnl::matmul::primitive_desc(desc, engine());
  };
  const memory::desc any({k, n}, data_type(in), memory::format_tag::any);
  memory::desc layout = describe(64, any).weights_desc();
  for (const int64_t m : {4, 16, 64, 256}) {
    if (std::string_view(describe(m, layout).impl_info_str()).find("ref") == 0) layout = {};
    if (layout.is_zero()) break;
  }
  return known.emplace(std::make_tuple(n, k, in, out), layout).first->second;
}

// A primitive with memories of its own, used by one thread only.
class Product {
 public:
  explicit Product(const Key& key) : stream_(engine()) {
    OneThread one;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (key.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const auto a = matrix(key.m, key.k, key.lda, key.transpose_a, key.in);
    const auto b = key.packed ? packed_layout(key.n, key.k, key.in, key.out)
                              : matrix(key.k, key.n, key.ldb, key.transpose_b, key.in);
    const auto c = matrix(key.m, key.n, key.ldc, false, key.out);
    const memory::desc bias({1, key.n}, memory::data_type::f32, memory::dims{key.n, 1});
    const auto desc = key.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc pd(desc, attributes, engine());
    primitive_ = dnnl::matmul(pd);
    scratch_.resize(pd.scratchpad_desc().get_size() + 64);
    arguments_ = {{DNNL_ARG_SRC, memory(a, engine(), nullptr)},
                  {DNNL_ARG_WEIGHTS, memory(b, engine(), nullptr)},
                  {DNNL_ARG_DST, memory(c, engine(), nullptr)},
                  {DNNL_ARG_SCRATCHPAD, memory(pd.scratchpad_desc(), engine(), aligned_scratch())}};
    if (key.bias) arguments_.emplace(DNNL_ARG_BIAS, memory(bias, engine(), nullptr));
  }

  void run(const void* a, const void* b, void* c, const float* bias) {
    arguments_.at(DNNL_ARG_SRC).set_data_handle(const_cast<void*>(a));
    arguments_.at(DNNL_ARG_WEIGHTS).set_data_handle(const_cast<void*>(b));
    arguments_.at(DNNL_ARG_DST).set_data_handle(c);
    if (bias != nullptr) arguments_.at(DNNL_ARG_BIAS).set_data_handle(const_cast<float*>(bias));
    OneThread one;  // some primitives ask again when they run
    primitive_.execute(stream_, arguments_);
  }

 private:
  void* aligned_scratch() {
    const auto address = reinterpret_cast<uintptr_t>(scratch_.data());
    return reinterpret_cast<void*>((address + 63) / 64 * 64);
  }

  dnnl::stream stream_;
  dnnl::matmul primitive_;
  std::vector<char> scratch_;
  std::unordered_map<int, memory> arguments_;
};

// Creating a primitive takes 0.1 ms (f32) to 1 ms (bf16), so each thread keeps its own; the limit
// only guards against an endless variety of shapes.
Product& product(const Key& key) {
  constexpr size_t kMost = 4096;
  thread_local std::map<Key, std::unique_ptr<Product>> products;
  auto it = products.find(key);
  if (it == products.end()) {
    if (products.size() >= kMost) products.clear();
    try {
      it = products.emplace(key, std::make_unique<Product>(key)).first;
    } catch (const dnnl::error& e) {
      fail(ErrorKind::internal, "oneDNN has no matrix product of {}x{}x{} in {}: {}", key.m, key.n,
           key.k, dtype_name(key.in), e.what());
    }
  }
  return *it->second;
}

// Grows and stays: a thread's scratch memory for edge tiles.
char* thread_scratch(int slot, int64_t bytes) {
  thread_local std::vector<char> scratch[3];
  if (static_cast<int64_t>(scratch[slot].size()) < bytes + 64) scratch[slot].resize(bytes + 64);
  const auto address = reinterpret_cast<uintptr_t>(scratch[slot].data());
  return reinterpret_cast<char*>((address + 63) / 64 * 64);
}

// Copies `count` rows of `width` elements to contiguous scratch of `height` rows, the rest zero.
Rows padded_copy(int slot, const Rows& from, int64_t height) {
  const int64_t row_bytes = from.width * size_of(from.dtype);
  char* to = thread_scratch(slot, height * row_bytes);
  for (int64_t r = 0; r < from.rows; ++r) {
    std::memcpy(to + r * row_bytes,
                static_cast<char*>(from.data) + r * from.stride * size_of(from.dtype), row_bytes);
  }
  std::memset(to + from.rows * row_bytes, 0, (height - from.rows) * row_bytes);
  return {to, height, from.width, from.width, from.dtype};
}

// Scratch for a product of `height` rows, `stride` apart; holds `from` only if sums start from it.
Rows scratch_rows(int slot, const Rows& from, int64_t height, int64_t stride, bool holds) {
  const int64_t bytes = size_of(from.dtype);
  const Rows to{thread_scratch(slot, height * stride * bytes), height, from.width, stride,
                from.dtype};
  for (int64_t r = 0; r < height && holds; ++r) {
    if (r < from.rows) {
      std::memcpy(to.slice(r, 1).data, from.slice(r, 1).data, from.width * bytes);
    } else {
      std::memset(to.slice(r, 1).data, 0, from.width * bytes);
    }
  }
  return to;
}

bool has_isa(dnnl::cpu_isa wanted) {
  static const auto have = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto bits =
      static_cast<unsigned>(wanted);  // sets of bits, not an order: AVX2-VNNI > AVX512
  return (have & bits) == bits;
}

// The heights that a tile may have, so that a row has the same bits in all of them and anywhere in
// a tile; found by probing oneDNN 2.6.3, and tested. AVX2: its 6-row kernel sums in another order
// when 1 to 3 rows are left over, as happens inside tiles above 64 rows too. AVX-512: one row, and
// where the columns are a block of a wider c also 4, 8 or 256 rows, may take another path, and from
// inner sizes of about 1,000 any two heights may differ unless the weights are packed. AMX
// (bf16): below 64 rows oneDNN leaves AMX, and from inner sizes of about 1,000 its split of the sum
// depends on the height.
std::span<const int64_t> tile_heights(DType in, int64_t k, bool packed) {
  static constexpr std::array<int64_t, 5> avx2 = {4, 10, 16, 34, 64};
  static constexpr std::array<int64_t, 7> avx512 = {4, 8, 16, 32, 64, 128, 256};
  static constexpr std::array<int64_t, 3> amx = {64, 128, 256};
  if (!has_isa(dnnl::cpu_isa::avx512_core)) return avx2;
  if (in == DType::bf16 && has_isa(dnnl::cpu_isa::avx512_core_amx)) {
    return std::span(amx).first(k > 512 ? 1 : amx.size());
  }
  if (packed) return avx512;
  return std::span(avx512).subspan(k > 512 ? 4 : 2, k > 512 ? 1 : 4);
}

// The packed forms of constant weights, one buffer a block of columns.
struct PackedBlocks {
  std::vector<std::unique_ptr<memory>> blocks;
};
std::mutex packed_mutex;
using PackedKey = std::pair<uint64_t, DType>;  // the constant, and the dtype of its products
std::map<PackedKey, std::shared_ptr<PackedBlocks>>& packed_constants() {
  static auto* const all = new std::map<PackedKey, std::shared_ptr<PackedBlocks>>;
  return *all;
}

Rows b_columns(const GemmArgs& g, int64_t begin, int64_t count) {
  return g.transpose_b ? g.b.slice(begin, count) : g.b.columns(begin, count);
}

std::shared_ptr<PackedBlocks> packed(const GemmArgs& g, int64_t n, int64_t k) {
  std::lock_guard lock(packed_mutex);
  auto& entry = packed_constants()[{g.constant_b, g.c.dtype}];
  if (entry) return entry->blocks.empty() ? nullptr : entry;
  entry = std::make_shared<PackedBlocks>();
  dnnl::stream stream(engine());
  for (int64_t begin = 0; begin < n; begin += kTileColumns) {
    const int64_t count = std::min(kTileColumns, n - begin);
    const Rows b = b_columns(g, begin, count);
    memory plain(matrix(k, count, b.stride, g.transpose_b, b.dtype), engine(), b.data);
    const memory::desc layout = packed_layout(count, k, b.dtype, g.c.dtype);
    if (layout.is_zero()) {
      entry->blocks.clear();
      return nullptr;
    }
    auto block = std::make_unique<memory>(layout, engine());
    dnnl::reorder(plain, *block).execute(stream, plain, *block);
    stream.wait();
    entry->blocks.push_back(std::move(block));
  }
  return entry;
}

// c = a op(b): rows of a in tiles of up to 256, columns in blocks of 512. The last tile is filled
// up with zero rows to one of a few heights, so that packed batches of any size need few
// primitives.
void rows_by_tiles(const GemmArgs& g) {
  const int64_t m = g.c.rows, n = g.c.width, k = g.a.width;
  const auto constant = g.constant_b != 0 ? packed(g, n, k) : nullptr;
  const std::span<const int64_t> heights = tile_heights(g.a.dtype, k, constant != nullptr);
  const int64_t tile_rows = heights.back();
  const int64_t row_tiles = (m + tile_rows - 1) / tile_rows;
  const int64_t blocks = (n + kTileColumns - 1) / kTileColumns;
  parallel_for(row_tiles * blocks, [&](int64_t tile) {
    const int64_t row = tile / blocks * tile_rows, column = tile % blocks * kTileColumns;
    const int64_t rows = std::min(tile_rows, m - row), columns = std::min(kTileColumns, n - column);
    const int64_t height = *std::lower_bound(heights.begin(), heights.end(), rows);
    Rows a = g.a.slice(row, rows);
    Rows c = g.c.slice(row, rows).columns(column, columns);
    const Rows c_out = c;
    // oneDNN's choice of code depends on strides, so they must not depend on the batch; the view of
    // one row has another stride than that of two. Packed weights need contiguous rows.
    const int64_t c_stride = constant ? columns : n;
    const bool fits = height == rows, is_copied = !fits || c.stride != c_stride;
    if (!fits || a.stride != k) a = padded_copy(0, a, height);
    if (is_copied) c = scratch_rows(1, c, height, c_stride, g.accumulate);
    const Rows b = b_columns(g, column, columns);
    const Key key{height,
                  columns,
                  k,
                  a.stride,
                  constant ? 0 : b.stride,
                  c.stride,
                  a.dtype,
                  c.dtype,
                  false,
                  !constant && g.transpose_b,
                  g.accumulate,
                  g.bias != nullptr,
                  constant != nullptr};
    product(key).run(a.data, constant ? constant->blocks[tile % blocks]->get_data_handle() : b.data,
                     c.data, g.bias == nullptr ? nullptr : g.bias + column);
    if (is_copied) {
      const int64_t bytes = columns * size_of(c.dtype);
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(c_out.slice(r, 1).data, c.slice(r, 1).data, bytes);
      }
    }
  });
}

// c = transpose(a) b, as in a weight gradient: the inner dimension is the rows of a batch, summed
// in chunks of 1024, 512, .. 64 rows in that order, the last filled up with zeros.
void inner_by_chunks(const GemmArgs& g) {
  const int64_t m = g.c.rows, n = g.c.width, inner = g.a.rows;
  const int64_t tile_rows = std::min<int64_t>(kTileRows, std::max<int64_t>(64, m / 2));
  const int64_t row_tiles = (m + tile_rows - 1) / tile_rows;
  const int64_t blocks = (n + kTileColumns - 1) / kTileColumns;
  parallel_for(row_tiles * blocks, [&](int64_t tile) {
    const int64_t row = tile / blocks * tile_rows, column = tile % blocks * kTileColumns;
    const int64_t rows = std::min(tile_rows, m - row), columns = std::min(kTileColumns, n - column);
    const Rows c = g.c.slice(row, rows).columns(column, columns);
    bool accumulate = g.accumulate;
    int64_t done = 0, chunk = kInnerChunk;
    while (done < inner) {
      while (chunk > kInnerStep && chunk > inner - done) chunk /= 2;
      const int64_t count = std::min(chunk, inner - done);
      Rows a = g.a.slice(done, count).columns(row, rows);
      Rows b = g.b.slice(done, count).columns(column, columns);
      if (count < chunk) {
        a = padded_copy(0, a, chunk);
        b = padded_copy(1, b, chunk);
      }
      const Key key{rows,    columns, chunk, a.stride,   b.stride, c.stride, a.dtype,
                    c.dtype, true,    false, accumulate, false,    false};
      product(key).run(a.data, b.data, c.data, nullptr);
      accumulate = true;
      done += count;
    }
  });
}

void check_sizes(const GemmArgs& g) {
  const int64_t m = g.transpose_a ? g.a.width : g.a.rows;
  const int64_t k = g.transpose_a ? g.a.rows : g.a.width;
  const int64_t n = g.transpose_b ? g.b.rows : g.b.width;
  const int64_t inner = g.transpose_b ? g.b.width : g.b.rows;
  check(g.c.rows == m && g.c.width == n && inner == k && g.a.dtype == g.b.dtype,
        ErrorKind::internal, "gemm: [{}, {}] {} times [{}, {}] {} into [{}, {}]", m, k,
        dtype_name(g.a.dtype), inner, n, dtype_name(g.b.dtype), g.c.rows, g.c.width);
  check(!g.accumulate || g.c.dtype == DType::f32, ErrorKind::internal,
        "gemm: sums are kept in f32, not {}", dtype_name(g.c.dtype));
  check(!(g.transpose_a && g.transpose_b), ErrorKind::internal,
        "gemm: both factors transposed; transpose the product instead");
}

// An [m, n] matrix with memory of its own, for the rare paths below.
struct Buffer {
  std::vector<float> data;
  Rows rows;
  Buffer(int64_t m, int64_t n) : data(m * n), rows{data.data(), m, n, n, DType::f32} {}
};

// Without bf16 instructions the factors are widened to f32, which changes no value.
void widened(const GemmArgs& g) {
  Buffer a(g.a.rows, g.a.width), b(g.b.rows, g.b.width), c(g.c.rows, g.c.width);
  cpu::convert(g.a, a.rows);
  cpu::convert(g.b, b.rows);
  GemmArgs wide = g;
  wide.a = a.rows;
  wide.b = b.rows;
  wide.constant_b = 0;
  if (g.c.dtype == DType::bf16) wide.c = c.rows;
  cpu::gemm(wide);
  if (g.c.dtype == DType::bf16) cpu::convert(c.rows, g.c);
}

// Chunks of a sum must not be rounded to bf16 in between.
void inner_by_chunks_in_f32(const GemmArgs& g) {
  Buffer c(g.c.rows, g.c.width);
  GemmArgs exact = g;
  exact.c = c.rows;
  inner_by_chunks(exact);
  cpu::convert(c.rows, g.c);
}

// A product without an inner dimension: zeros, or the bias.
void without_inner(const GemmArgs& g) {
  if (g.accumulate && g.bias == nullptr) return;
  Buffer zeros(1, g.c.width);
  for (int64_t r = 0; r < g.c.rows; ++r) {
    const Rows c = g.c.slice(r, 1), start = g.accumulate ? c : zeros.rows;
    if (g.bias == nullptr) {
      cpu::convert(start, c);
    } else {
      cpu::add_row(start, g.bias, c);
    }
  }
}

}  // namespace

void forget_packed(uint64_t constant_b) {
  std::lock_guard lock(packed_mutex);
  packed_constants().erase({constant_b, DType::f32});
  packed_constants().erase({constant_b, DType::bf16});
}

namespace cpu {

void gemm(const GemmArgs& args) {
  check_sizes(args);
  const GemmArgs& g = args;
  if (g.c.rows == 0 || g.c.width == 0) return;
  if (g.a.rows == 0 || g.a.width == 0) return without_inner(g);
  if (g.a.dtype == DType::bf16 && !has_isa(dnnl::cpu_isa::avx512_core)) return widened(g);
  if (g.transpose_a && g.c.dtype == DType::bf16) {
    inner_by_chunks_in_f32(g);
  } else if (g.transpose_a) {
    inner_by_chunks(g);
  } else {
    rows_by_tiles(g);
  }
}

}  // namespace cpu
}  // namespace heddle
