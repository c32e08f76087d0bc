// PCG64 as NumPy seeds and draws it.
#include "heddle/train/metrics/pcg64.h"

#include <array>
#include <bit>

namespace heddle::train {
namespace {

// What NumPy makes of a seed: four words stirred until each depends on all, then as many as are
// asked for.
class SeedSequence {
 public:
  explicit SeedSequence(uint32_t seed) {
    uint32_t factor = 0x43b0d7e5;
    const auto hashed = [&](uint32_t value) {
      value ^= factor;
      factor *= 0x931e8875;
      value *= factor;
      return value ^ (value >> 16);
    };
    for (size_t i = 0; i < pool_.size(); ++i) pool_[i] = hashed(i == 0 ? seed : 0);
    for (size_t from = 0; from < pool_.size(); ++from) {
      for (size_t to = 0; to < pool_.size(); ++to) {
        if (from == to) continue;
        const uint32_t mixed = 0xca01f9dd * pool_[to] - 0x4973f715 * hashed(pool_[from]);
        pool_[to] = mixed ^ (mixed >> 16);
      }
    }
  }

  std::array<uint64_t, 4> words() const {
    std::array<uint64_t, 4> words = {};
    uint32_t factor = 0x8b51f9dd;
    for (size_t i = 0; i < 2 * words.size(); ++i) {
      uint32_t value = pool_[i % pool_.size()] ^ factor;
      factor *= 0x58f38ded;
      value *= factor;
      value ^= value >> 16;
      words[i / 2] |= uint64_t{value} << (i % 2 == 0 ? 0 : 32);
    }
    return words;
  }

 private:
  std::array<uint32_t, 4> pool_ = {};
};

}  // namespace

Pcg64::Pcg64(uint32_t seed) {
  const auto words = SeedSequence(seed).words();
  increment_ = (((Wide{words[2]} << 64) | words[3]) << 1) | 1;
  next64();
  state_ += (Wide{words[0]} << 64) | words[1];
  next64();
}

uint64_t Pcg64::next64() {
  constexpr Wide kFactor = (Wide{0x2360ed051fc65da4} << 64) | 0x4385df649fccf645;
  state_ = state_ * kFactor + increment_;
  const auto high = static_cast<uint64_t>(state_ >> 64), low = static_cast<uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(state_ >> 122));
}

uint32_t Pcg64::next32() {
  if (has_kept_) {
    has_kept_ = false;
    return static_cast<uint32_t>(kept_);
  }
  const uint64_t word = next64();
  kept_ = word >> 32;
  has_kept_ = true;
  return static_cast<uint32_t>(word);
}

uint32_t Pcg64::below(uint32_t n) {
  if (n == 1) return 0;  // nothing is drawn
  uint64_t product = uint64_t{next32()} * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t threshold = (UINT32_MAX - (n - 1)) % n;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace heddle::train
