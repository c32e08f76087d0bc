// Counter-based randomness: Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy
// as 1, 2, 3").
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

using PhiloxCounter = std::array<uint32_t, 4>;

/// A 64-bit key of the generator.
struct RngKey {
  uint32_t low = 0;
  uint32_t high = 0;
  friend bool operator==(const RngKey&, const RngKey&) = default;
};

/// Four words, a pure function of counter and key.
constexpr PhiloxCounter philox(PhiloxCounter c, RngKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key.low, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key.high, static_cast<uint32_t>(p0)};
    key.low += 0x9E3779B9u;
    key.high += 0xBB67AE85u;
  }
  return c;
}

/// FNV-1a of a name, the site part of a key.
constexpr uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (char ch : name) h = (h ^ static_cast<uint8_t>(ch)) * 0x100000001b3u;
  return h;
}

/// The key of one use of randomness: seed, update, site (a layer's or parameter's name) and the
/// number of the call at that site.
constexpr RngKey make_key(uint64_t seed, uint64_t update, uint64_t site, uint64_t call = 0) {
  const auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  const auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  const PhiloxCounter a =
      philox({low(seed), high(seed), low(update), high(update)}, {low(site), high(site)});
  const PhiloxCounter b = philox({a[0], a[1], a[2], a[3]}, {low(call), high(call)});
  return {b[0], b[1]};
}

/// A stream of numbers from one key: for shuffling and sampling, where order is sequential.
class RngStream {
 public:
  explicit RngStream(RngKey key) : key_(key) {}
  uint32_t next() {
    if (used_ == 4) {
      block_ =
          philox({static_cast<uint32_t>(count_), static_cast<uint32_t>(count_ >> 32), 0, 0}, key_);
      ++count_;
      used_ = 0;
    }
    return block_[used_++];
  }
  /// Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }
  /// Uniform in [low, high).
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(uniform());
  }
  /// Whether what has this probability happens.
  bool happens(double probability) { return static_cast<double>(uniform()) < probability; }
  /// Uniform integer in [0, n), n >= 1, without bias (Lemire 2019).
  uint64_t below(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    for (;;) {
      const uint64_t x = (uint64_t{next()} << 32) | next();
      const auto m = static_cast<Wide>(x) * n;
      if (static_cast<uint64_t>(m) >= (0 - n) % n) return static_cast<uint64_t>(m >> 64);
    }
  }
  /// The same of signed integers.
  int64_t index(int64_t n) { return static_cast<int64_t>(below(static_cast<uint64_t>(n))); }

 private:
  RngKey key_;
  uint64_t count_ = 0;
  PhiloxCounter block_{};
  int used_ = 4;
};

/// Random order (Fisher-Yates), the same with every standard library, unlike std::shuffle.
template <class T>
void shuffle_values(std::vector<T>& values, RngStream& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace heddle
