// Where ranks find each other: at a port of rank 0, or by a file that says where that is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/dist/door.h"
#include "heddle/dist/socket.h"

namespace heddle::dist {

/// What a rank knows of its group before it meets the others.
struct RankPlace {
  int64_t rank = 0, ranks = 1;
  Endpoint endpoint;  ///< of rank 0; none with a file
  std::string file;   ///< where rank 0 says where it is; "" for none
  /// Or the way by which it says it: gives the text of rank 0 to all.
  std::function<std::string(std::string)> broadcast = {};
  std::string secret;  ///< of the job; with `file` or `broadcast` rank 0 makes one
  int listener = -1;   ///< a listener that the launcher gave to rank 0
  double start_seconds = 60;
};

/// One of the ranks, as the others find it.
struct Member {
  std::string host;
  Endpoint endpoint;
};

/// A group that has met: all are there.
struct Meeting {
  int64_t rank = 0;
  std::string secret;
  std::vector<Member> members;  ///< by rank
  /// By rank, what control messages go over: rank 0 has one to each other, they have that to rank
  /// 0.
  std::vector<Socket> lines;
  Door door;         ///< where higher ranks connect to this one
  double until = 0;  ///< by when they must
  const std::string& host(int64_t of_rank) const {
    return members[static_cast<size_t>(of_rank)].host;
  }
};

/// Waits until all ranks are there. Errors: as make_group().
Meeting meet(RankPlace place);

}  // namespace heddle::dist
