// What may be written next, where an output must have a form.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace heddle {

/// A set of ids.
class TokenSet {
 public:
  explicit TokenSet(int64_t vocab = 0) : bits_(static_cast<size_t>((vocab + 63) / 64)) {}
  void add(int32_t id) { bits_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  void remove(int32_t id) { bits_[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << (id % 64)); }
  bool contains(int32_t id) const {
    const auto part = static_cast<size_t>(id) / 64;
    return part < bits_.size() && (bits_[part] >> (id % 64) & 1) != 0;
  }

 private:
  std::vector<uint64_t> bits_;
};

/// Rules of which tokens may follow an output so far. From any thread.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  /// The ids that may come behind `tokens`, which it allowed, where `left` tokens may still come,
  /// the next one with them: never none, so that the output can be completed within them.
  virtual TokenSet allowed(std::span<const int32_t> tokens, int64_t left) = 0;
  /// Whether the output is whole, and nothing can be added to it.
  virtual bool is_over(std::span<const int32_t> tokens) = 0;
  /// Tokens that suffice for an output. With fewer there may be none.
  virtual int64_t least_tokens() const = 0;
  /// Bytes of memory that it takes, with what others share.
  virtual int64_t size() const = 0;
};

}  // namespace heddle
