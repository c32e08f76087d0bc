// How bytes go between a rank and its partners: the ranks whose numbers differ from its own in bit
// 0, 1, 2, ..: the partners of steps 0, 1, 2, ..
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::dist {

class Wire {
 public:
  Wire() = default;
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Bytes sent to the partner of a step, or received from it, by one call: > 0; 0 where it would
  /// block; -1 where the connection has ended or failed (errno 0: ended). What would block must be
  /// asked again for the same bytes, or room, before anything else. Both ends cut what they
  /// exchange at the same places: a receiver that expects n bytes more asks for n at least, or for
  /// kPart.
  virtual int64_t send_some(size_t step, std::span<const std::byte> bytes) = 0;
  virtual int64_t receive_some(size_t step, std::span<std::byte> room) = 0;
  /// Waits until bytes can be received (or sent), or `verdict` can be read, a second at most.
  /// returns: `verdict` can be read
  virtual bool wait(size_t step, bool receives, bool sends, int verdict) = 0;
  /// The group ends, and no error is under way: the others come here too.
  virtual void close() {}

  static constexpr size_t kPart = 1 << 18;  ///< bytes
};

}  // namespace heddle::dist
