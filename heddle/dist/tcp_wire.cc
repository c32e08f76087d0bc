// Connections of TCP to the partners of a rank.
#include "heddle/dist/tcp_wire.h"

#include <poll.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"

namespace heddle::dist {

TcpWire::TcpWire(Meeting& meeting, Watch& watch, double lost_seconds) {
  connect_partners(meeting, watch);
  for (const Socket& partner : partners_) watch_connection(partner, lost_seconds);
}

// The higher rank connects to the lower one. Rank 0 only lets in, so that nobody waits in a circle.
void TcpWire::connect_partners(Meeting& meeting, Watch& watch) {
  const int64_t rank = meeting.rank, ranks = std::ssize(meeting.members);
  std::string why;
  for (int64_t bit = 1; bit < ranks; bit *= 2) partners_.emplace_back();
  for (size_t step = 0; step < partners_.size(); ++step) {
    const int64_t partner = rank ^ (int64_t{1} << step);
    if (partner > rank) continue;
    const Endpoint& endpoint = meeting.members[static_cast<size_t>(partner)].endpoint;
    const std::string hello = Json::object({{"link", rank}}).dump();
    while (!partners_[step].is_open()) {
      watch.check_alive();
      check(now_seconds() < meeting.until, ErrorKind::ranks, "{} cannot be reached at {}: {}",
            watch.name(partner), endpoint.text(), why);
      std::optional<Socket> socket = connect_to(endpoint, 2, why);
      // It may itself be connecting to others, and then lets nobody in.
      if (socket &&
          knock(*socket, meeting.secret, hello, endpoint, meeting.until, why) == Reception::in) {
        partners_[step] = std::move(*socket);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
  }
  const auto missing = [&] {
    std::vector<std::string> names;
    for (size_t step = 0; step < partners_.size(); ++step) {
      if (!partners_[step].is_open()) names.push_back(watch.name(rank ^ (int64_t{1} << step)));
    }
    return names;
  };
  while (!missing().empty()) {
    watch.check_alive();
    check(now_seconds() < meeting.until, ErrorKind::ranks,
          "{} did not connect to port {} of {} within the time; is it closed by a firewall?",
          fmt::join(missing(), ", "), meeting.door.port(), meeting.host(rank));
    std::optional<Guest> guest = meeting.door.next(0.1);
    if (!guest) continue;
    const Json hello = Json::parse(guest->hello, guest->address);
    const Json* const link = hello.find("link");
    const uint64_t distance = link == nullptr ? 0 : static_cast<uint64_t>(link->as_int() ^ rank);
    const auto step = static_cast<size_t>(std::countr_zero(distance));
    if (!std::has_single_bit(distance) || step >= partners_.size() || partners_[step].is_open()) {
      guest->refuse(meeting.secret,
                    fmt::format("all {} ranks of this job are there already", ranks));
      continue;
    }
    if (guest->welcome(meeting.secret)) partners_[step] = std::move(guest->socket);
  }
}

// --- bytes ---------------------------------------------------------------------------------------

int64_t TcpWire::send_some(size_t step, std::span<const std::byte> bytes) {
  return dist::send_some(partners_[step], bytes);
}

int64_t TcpWire::receive_some(size_t step, std::span<std::byte> room) {
  return dist::receive_some(partners_[step], room);
}

bool TcpWire::wait(size_t step, bool receives, bool sends, int verdict) {
  const int events = (receives ? POLLIN : 0) | (sends ? POLLOUT : 0);
  pollfd all[2] = {{partners_[step].fd(), static_cast<short>(events), 0}, {verdict, POLLIN, 0}};
  ::poll(all, 2, 1000);
  return all[1].revents != 0;
}

}  // namespace heddle::dist
