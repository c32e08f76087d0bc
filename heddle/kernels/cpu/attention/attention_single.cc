// Softmax attention of single queries in bf16, as decoding asks for it token by token, and of few.
//
// A tile of AMX would be empty but for one row, and keys and values would be packed for that row
// alone. Vectors do without: 0.17 us instead of 0.25 us for a query of 64 elements over 10 keys,
// 0.11 instead of 0.19 us for one of 32 (one thread of a Xeon of 2023, 2026-11). Since a token that
// is decoded must get the bits that it has in its whole sequence, this adds up as the matrix unit
// does: AMX along 32 inner elements the products of even and of odd ones apart, then both, then
// that to the sum (Intel's manual, TDPBF16PS; denormal numbers count as 0); vectors pair by pair.
// Blocks of keys and the order of all other sums are those of attention_tiles.cc.
#include <algorithm>
#include <limits>

#include "heddle/kernels/cpu/attention/attention_plan.h"
#include "heddle/kernels/cpu/attention/attention_tiles.h"
#include "heddle/kernels/cpu/matrix_unit.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace heddle::cpu {
namespace {

// Multiplications of a group: about 10 us, a few times what a call to another thread costs. One
// token of GPT-2 after 64 others is 1.1 million, which one thread took 36 us for (EPYC, Zen 4).
constexpr double kSingleGroupWork = 3e5;

// Where vectors add up, so many queries that see all keys, as a beam's see a source, go so
// many together: keys are turned and values joined in registers once for all of them.
constexpr int64_t kFewQueries = 8, kTogether = 4;

/// Denormal numbers count as zero while it lives, as in a tile.
class NoDenormals {
 public:
  NoDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushResults | kFlushInputs); }
  ~NoDenormals() { _mm_setcsr(before_); }
  NoDenormals(const NoDenormals&) = delete;
  NoDenormals& operator=(const NoDenormals&) = delete;

 private:
  static constexpr unsigned kFlushResults = 0x8000, kFlushInputs = 0x40;
  unsigned before_;
};

inline __m512i join(__m512 even, __m512 odd) {  // and round
  const __m512i halves = to_bf16(even, odd);
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, halves);
}

inline __m512 widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/// In each lane: all lanes combined, in the order of combine_lanes().
template <class F>
inline __m512 combined(__m512 x) {
  x = F::of(x, _mm512_permute_ps(x, 0x4e));
  x = F::of(x, _mm512_permute_ps(x, 0xb1));
  x = F::of(x, _mm512_shuffle_f32x4(x, x, 0x4e));
  return F::of(x, _mm512_shuffle_f32x4(x, x, 0xb1));
}

// The keys of a segment in k or v: columns of a head.
TileRows<uint16_t> rows_of(const AttentionArgs& args, const Rows& x, const SegmentSizes& sizes,
                           int64_t column) {
  const int32_t* index = args.key_rows ? args.key_rows + sizes.k_first : nullptr;
  return {{x, column, args.head_dim, sizes.k_first, sizes.keys, index}, 0, sizes.keys};
}

/// Sums as AMX makes them. Elements lie in chunks of 32, the even ones before the odd ones, as f32.
struct AmxOrder {
  using Element = float;
  static constexpr int64_t kChunk = 32;  ///< of Element, for 32 elements

  static void store(__m512i x, float* to) {
    _mm512_store_ps(to, even(x));
    _mm512_store_ps(to + 16, odd(x));
  }
  /// The weights of keys in order, the even ones first by 32.
  static void store_weights(__m512i x, float* to) {
    _mm512_store_ps(to, widened(_mm512_castsi512_si256(x)));
    _mm512_store_ps(to + 16, widened(_mm512_extracti64x4_epi64(x, 1)));
  }
  static __m512i means(__m512 first, __m512 second) { return join(first, second); }

  /// sum plus the products of 32 elements of q with those of 16 keys, word by word.
  static __m512 scores(__m512 sum, const float* q, const __m512i word[16]) {
    __m512 a = _mm512_setzero_ps(), b = a;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      a = _mm512_fmadd_ps(even(word[i]), _mm512_set1_ps(q[i]), a);
      b = _mm512_fmadd_ps(odd(word[i]), _mm512_set1_ps(q[16 + i]), b);
    }
    return _mm512_add_ps(sum, _mm512_add_ps(a, b));
  }

  /// sums += weights times `count` values, up to 32; row(key, chunk) gives 32 columns of a value.
  template <int queries, int chunks, class Row>
  static void add_values(const float* weights, int64_t count, const Row& row, float* sums,
                         int64_t /*stride*/) {
    static_assert(queries == 1);
    __m512 sum[2][chunks][2];  // of even and of odd keys; even and odd columns
#pragma GCC unroll 2
    for (int i = 0; i < chunks; ++i) {
      sum[0][i][0] = sum[0][i][1] = sum[1][i][0] = sum[1][i][1] = _mm512_setzero_ps();
    }
    const auto add = [&](int64_t at, __m512(&to)[chunks][2]) {
      const __m512 w = _mm512_set1_ps(weights[at]);
#pragma GCC unroll 2
      for (int i = 0; i < chunks; ++i) {
        const __m512i x = row(at, i);
        to[i][0] = _mm512_fmadd_ps(w, even(x), to[i][0]);
        to[i][1] = _mm512_fmadd_ps(w, odd(x), to[i][1]);
      }
    };
    int64_t at = 0;
    for (; at + 1 < count; at += 2) add(at, sum[0]), add(at + 1, sum[1]);
    if (at < count) add(at, sum[0]);
#pragma GCC unroll 2
    for (int i = 0; i < chunks; ++i) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        float* to = sums + i * kTileInner + half * 16;
        const __m512 both = _mm512_add_ps(sum[0][i][half], sum[1][i][half]);
        _mm512_store_ps(to, _mm512_add_ps(_mm512_load_ps(to), both));
      }
    }
  }
};

// sum plus the products of a pair of bf16 with 16 of them.
struct PairsByDots {
  static __m512 add(__m512 sum, int word, __m512i words) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(_mm512_set1_epi32(word)),
                            reinterpret_cast<__m512bh>(words));
  }
};
struct PairsByFma {
  static __m512 add(__m512 sum, int word, __m512i words) {
    const __m512i both = _mm512_set1_epi32(word);
    return _mm512_fmadd_ps(odd(both), odd(words), _mm512_fmadd_ps(even(both), even(words), sum));
  }
};

/// Sums as vectors make them, of pairs of bf16 in one word, one pair after the other.
template <class Pairs>
struct PairOrder {
  using Element = int;
  static constexpr int64_t kChunk = 16;

  static void store(__m512i x, int* to) { _mm512_store_si512(to, x); }
  static void store_weights(__m512i x, int* to) { store(x, to); }
  static __m512i means(__m512 first, __m512 second) { return to_bf16(first, second); }

  static __m512 scores(__m512 sum, const int* q, const __m512i word[16]) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sum = Pairs::add(sum, q[i], word[i]);
    return sum;
  }
  /// For each query: its weights lie kTileKeyBlock apart, its sums `stride`.
  template <int queries, int chunks, class Row>
  static void add_values(const int* weights, int64_t count, const Row& row, float* sums,
                         int64_t stride) {
    __m512 sum[queries][chunks][2];
    const auto each = [&](const auto& f) {
#pragma GCC unroll 4
      for (int q = 0; q < queries; ++q) {
#pragma GCC unroll 2
        for (int i = 0; i < chunks; ++i) f(sum[q][i], sums + q * stride + i * kTileInner, q, i);
      }
    };
    each([](__m512(&of)[2], const float* from, int, int) {
      of[0] = _mm512_load_ps(from), of[1] = _mm512_load_ps(from + 16);
    });
    for (int64_t at = 0; at < count; at += 2) {
      __m512i low[chunks], high[chunks];
#pragma GCC unroll 2
      for (int i = 0; i < chunks; ++i) {
        interleave(row(at, i), at + 1 < count ? row(at + 1, i) : _mm512_setzero_si512(), &low[i],
                   &high[i]);
      }
      each([&](__m512(&of)[2], float*, int q, int i) {
        const int weight = weights[q * kTileKeyBlock + at / 2];
        of[0] = Pairs::add(of[0], weight, low[i]), of[1] = Pairs::add(of[1], weight, high[i]);
      });
    }
    each([](__m512(&of)[2], float* to, int, int) {
      _mm512_store_ps(to, of[0]), _mm512_store_ps(to + 16, of[1]);
    });
  }
};

// One head of some queries, with sums in the order of a matrix unit.
template <class Order, int queries>
class Single : HeadItem {
 public:
  Single(const AttentionArgs& args, const AttentionItem& item_of_head)
      : HeadItem(args, item_of_head),
        width_(args.head_dim),
        floats_(inner_tiles_of(width_) * kTileInner),
        keys_(rows_of(args, args.k, sizes, shared)),
        values_(rows_of(args, args.v, sizes, shared)),
        factor_(_mm512_set1_ps(args.scale * kLog2E)) {
    TileScratch memory(0, 2 * queries * floats_);
    query_ = memory.numbers<Element>(queries * floats_);
    sums_ = memory.numbers<float>(queries * floats_);
    for (int q = 0; q < queries; ++q) {
      most_[q] = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
      total_[q] = _mm512_setzero_ps();
    }
  }
  void run(const Rows& q, const Rows& o) {
    const int64_t row = sizes.q_first + item.q_begin;
    for (int i = 0; i < queries; ++i) {
      const uint16_t* from = q.row<uint16_t>(row + i) + column;
      for (int64_t c = 0; c < width_; c += kTileInner) {
        const __m512i x = _mm512_maskz_loadu_epi16(first_16bit(width_ - c), from + c);
        Order::store(x, query_ + i * floats_ + c / kTileInner * Order::kChunk);
        _mm512_store_ps(sums_ + i * floats_ + c, _mm512_setzero_ps());
        _mm512_store_ps(sums_ + i * floats_ + c + 16, _mm512_setzero_ps());
      }
    }
    for (int64_t block = item.k_begin; block < item.k_end; block += kTileKeyBlock) step(block);
    for (int i = 0; i < queries; ++i) finish(i, o.row<uint16_t>(row + i) + column);
  }

 private:
  using Element = Order::Element;

  // Those of up to 16 keys that the queries see, where they do not see all.
  __mmask16 in_range(int64_t key, int64_t count) const {
    if (!sizes.has_ranges()) return 0xffff;
    alignas(64) int32_t orders[kTileRows];
    sizes.copy_orders(key, count, kTileRows, orders);
    const __m512i order = _mm512_load_si512(orders);
    const __mmask16 begun =
        _mm512_cmpge_epi32_mask(order, _mm512_set1_epi32(sizes.first(item.q_begin)));
    return _mm512_mask_cmplt_epi32_mask(begun, order, _mm512_set1_epi32(sizes.limit(item.q_begin)));
  }

  // Asks for a row's columns of this head's and of the next one's: rows of keys and values lie far
  // apart, and all weights have passed through the cache since they were read last.
  void fetch(const uint16_t* row, int64_t first) const {
    for (int64_t c = 0; c < width_; c += kTileInner) __builtin_prefetch(row + first + c);
  }

  // Scores of up to 16 keys.
  void score(int64_t key, int64_t count, __m512 sum[queries]) const {
    const uint16_t* row[kTileRows];
    for (int64_t i = 0; i < kTileRows; ++i) row[i] = keys_.row(key + (i < count ? i : 0));
    for (int64_t i = 0; i < count; ++i) {
      fetch(row[i], width_);
      fetch(values_.row(key + i), 0);
    }
    for (int q = 0; q < queries; ++q) sum[q] = _mm512_setzero_ps();
    for (int64_t c = 0; c < width_; c += kTileInner) {
      const __mmask32 columns = first_16bit(width_ - c);
      __m512i word[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) word[i] = _mm512_maskz_loadu_epi16(columns, row[i] + c);
      transpose_16x16(word);
#pragma GCC unroll 4
      for (int q = 0; q < queries; ++q) {
        sum[q] = Order::scores(sum[q], query_ + q * floats_ + c / kTileInner * Order::kChunk, word);
      }
    }
  }

  // Up to kTileKeyBlock keys from `block` on.
  void step(int64_t block) {
    const int64_t keys = std::min(kTileKeyBlock, item.k_end - block);
    __m512 scores[kTileKeyBlock / kTileRows][queries];
    __mmask16 seen[kTileKeyBlock / kTileRows] = {};
    for (int64_t t = 0; t < tiles_of(keys); ++t) {
      const int64_t count = std::min(kTileRows, keys - t * kTileRows);
      score(block + t * kTileRows, count, scores[t]);
      seen[t] = static_cast<__mmask16>((1u << count) - 1) & in_range(block + t * kTileRows, count);
    }
    alignas(64) Element weights[queries][kTileKeyBlock];
    for (int q = 0; q < queries; ++q) {
      __m512 most = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
      for (int64_t t = 0; t < tiles_of(keys); ++t) {
        most = _mm512_mask_max_ps(most, seen[t], most, scores[t][q]);
      }
      const __m512 before = most_[q];
      most_[q] = _mm512_max_ps(before, _mm512_mul_ps(combined<Maximum>(most), factor_));
      const auto weight_of = [&](int64_t t) {
        const __m512 power = _mm512_fmsub_ps(scores[t][q], factor_, most_[q]);
        return _mm512_maskz_mov_ps(seen[t], exp2_weight(power));
      };
      __m512 part = _mm512_setzero_ps();
      for (int64_t t = 0; t < tiles_of(keys); t += 2) {
        const __m512 a = weight_of(t);
        const __m512 b = t + 1 < tiles_of(keys) ? weight_of(t + 1) : _mm512_setzero_ps();
        part = _mm512_add_ps(_mm512_add_ps(part, a), b);
        Order::store_weights(to_bf16(a, b), weights[q] + t / 2 * Order::kChunk);
      }
      const bool changes = _mm512_cmp_ps_mask(before, most_[q], _CMP_NEQ_UQ) != 0;
      const __m512 less =
          changes ? exp2_weight(_mm512_sub_ps(before, most_[q])) : _mm512_set1_ps(1);
      total_[q] = _mm512_fmadd_ps(total_[q], less, combined<Sum>(part));
      float* const sums = sums_ + q * floats_;
      for (int64_t c = 0; c < floats_ && changes && block > item.k_begin; c += 16) {
        _mm512_store_ps(sums + c, _mm512_mul_ps(_mm512_load_ps(sums + c), less));
      }
    }
    for (int64_t key = 0; key < keys; key += kTileInner) {
      const int64_t count = std::min(kTileInner, keys - key);
      const Element* const of_keys = weights[0] + key / kTileInner * Order::kChunk;
      int64_t c = 0;
      for (; c + kTileInner < width_; c += 2 * kTileInner) {
        add_values<2>(of_keys, block + key, count, c);
      }
      if (c < width_) add_values<1>(of_keys, block + key, count, c);
    }
  }

  // sums += weights times values, `chunks` chunks from column c on. weights: zero where no key is.
  template <int chunks>
  void add_values(const Element* weights, int64_t key, int64_t count, int64_t c) {
    const auto row = [&](int64_t at, int i) {
      const int64_t first = c + i * kTileInner;
      return _mm512_maskz_loadu_epi16(first_16bit(width_ - first), values_.row(key + at) + first);
    };
    Order::template add_values<queries, chunks>(weights, count, row, sums_ + c, floats_);
  }

  // Weighted sums of a query become means.
  void finish(int q, uint16_t* to) const {
    const __mmask16 sees = _mm512_cmp_ps_mask(
        most_[q], _mm512_set1_ps(-std::numeric_limits<float>::infinity()), _CMP_NEQ_UQ);
    const __m512 scale = _mm512_maskz_div_ps(sees, _mm512_set1_ps(1), total_[q]);
    // As in store_rows().
    const auto mean = [&](const float* sum) {
      return _mm512_fmadd_ps(_mm512_load_ps(sum), scale, _mm512_setzero_ps());
    };
    for (int64_t c = 0; c < width_; c += kTileInner) {
      const float* const sums = sums_ + q * floats_ + c;
      _mm512_mask_storeu_epi16(to + c, first_16bit(width_ - c),
                               Order::means(mean(sums), mean(sums + 16)));
    }
  }

  const int64_t width_, floats_;
  const TileRows<uint16_t> keys_, values_;
  const __m512 factor_;  // of the scores
  __m512 most_[queries], total_[queries];
  Element* query_;
  float* sums_;  // weighted values
};

template <class Pairs>
void run_pairs(const AttentionArgs& args, const AttentionItem& item) {
  using Order = PairOrder<Pairs>;
  switch (item.q_end - item.q_begin) {
    case 1: return Single<Order, 1>(args, item).run(args.q, args.o);
    case 2: return Single<Order, 2>(args, item).run(args.q, args.o);
    case 3: return Single<Order, 3>(args, item).run(args.q, args.o);
    default: return Single<Order, kTogether>(args, item).run(args.q, args.o);
  }
}

}  // namespace

bool is_single(const AttentionArgs& args) {
  if (args.dropout.p > 0 || args.lse != nullptr || args.bias.values != nullptr) return false;
  const bool sees_all = !args.causal && args.ranges.limit == nullptr;
  const int64_t most = sees_all && matrix_unit() != MatrixUnit::amx ? kFewQueries : 1;
  for (int64_t i = 0; i < args.segments; ++i) {
    if (args.q_offsets[i + 1] - args.q_offsets[i] > most) return false;
  }
  return true;
}

void attention_single(const AttentionArgs& args) {
  AttentionPlan& plan = attention_plan(kSingleGroupWork);
  plan_forward(plan, args, kTogether, {.queries = 8, .keys = 16});
  const bool is_amx = matrix_unit() == MatrixUnit::amx;
  const auto& run =
      matrix_unit() == MatrixUnit::avx512_bf16 ? run_pairs<PairsByDots> : run_pairs<PairsByFma>;
  plan.run([&](const ItemGroup& group) {
    if (!is_amx) {
      for (const AttentionItem& item : group) run(args, item);
      return;
    }
    const NoDenormals off;
    for (const AttentionItem& item : group) Single<AmxOrder, 1>(args, item).run(args.q, args.o);
  });
}

}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
