// A connection of TCP to each partner, proved as the rendezvous was.
#pragma once

#include <vector>

#include "heddle/dist/rendezvous.h"
#include "heddle/dist/watch.h"
#include "heddle/dist/wire.h"

namespace heddle::dist {

class TcpWire final : public Wire {
 public:
  /// Connects the ranks that have met. lost_seconds: without an answer the other end is gone
  /// Errors: ranks where one of them does not come.
  TcpWire(Meeting& meeting, Watch& watch, double lost_seconds);

  int64_t send_some(size_t step, std::span<const std::byte> bytes) override;
  int64_t receive_some(size_t step, std::span<std::byte> room) override;
  bool wait(size_t step, bool receives, bool sends, int verdict) override;

 private:
  void connect_partners(Meeting& meeting, Watch& watch);
  std::vector<Socket> partners_;  // by step
};

}  // namespace heddle::dist
