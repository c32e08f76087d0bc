// Rank 0 waits for the others, compares what they say, and tells each where all are.
#include "heddle/dist/rendezvous.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/names.h"
#include "heddle/base/signals.h"
#include "heddle/dist/secret.h"

namespace heddle::dist {

namespace {

// --- where rank 0 is, and the secret of the job --------------------------------------------------

constexpr const char* kKind = "heddle_rendezvous";  // the key by which such a file is known

Json place_json(int port, const std::string& secret) {
  return Json::object({{kKind, true},
                       {"host", host_name()},
                       {"addresses", own_addresses()},
                       {"port", port},
                       {"secret", secret}});
}

// Where rank 0 may be found, the likeliest first; `secret` becomes that of the job.
std::vector<Endpoint> endpoints_of(const Json& json, const std::string& source,
                                   std::string& secret) {
  std::vector<Endpoint> endpoints;
  const auto port = static_cast<int>(json.get_int("port", source));
  secret = json.get_string("secret", source);
  const std::string& host = json.get_string("host", source);
  if (host == host_name()) endpoints.push_back({"127.0.0.1", port});
  for (const std::string& address : json.at("addresses", source).as_strings()) {
    endpoints.push_back({address, port});
  }
  return endpoints;
}

constexpr int64_t kMostPlace = 1 << 16;  // bytes

// No more than tells that a file is too long. Errors: where it cannot be read.
std::string read_start(const std::string& path) {
  return file_size(path) > kMostPlace ? std::string(kMostPlace + 1, ' ') : read_file(path);
}

// Errors: usage for a file of something else.
Json parse_place(const std::string& path, const std::string& text) {
  try {
    check(std::ssize(text) <= kMostPlace, ErrorKind::data, "it is too long");
    Json json = Json::parse(text, path);
    json.get_bool(kKind);
    return json;
  } catch (const Error& error) {
    fail(ErrorKind::usage,
         "{} is there and is no rendezvous of heddle ({}); name a file that is not there", path,
         error.what());
  }
}

// Only its owner can read the file: it holds the secret. It may replace one of a job that was
// killed.
void write_place(const std::string& path, const std::string& text) {
  if (path_exists(path)) parse_place(path, read_start(path));
  const std::string temporary = temporary_name(path);
  {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.fd < 0) fail_errno("cannot write", temporary, errno);
    const bool is_written =
        ::write(file.fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        fsync(file.fd) == 0;
    const int error = errno;
    if (!is_written) {
      ::unlink(temporary.c_str());
      fail_errno("cannot write", temporary, error);
    }
  }
  rename_path(temporary, path);
}

// The file, as long as rank 0 waits: it is gone afterwards, whether all have come, rank 0 gives up
// or a signal ends it; but one by which another job has replaced it stays.
class PlaceFile {
 public:
  PlaceFile(std::string path, const Json& place)
      : path_(std::move(path)), text_(place.dump() + "\n") {
    write_place(path_, text_);
  }
  ~PlaceFile() {
    try {
      if (read_start(path_) == text_) ::unlink(path_.c_str());
    } catch (const Error&) {  // it is gone already
    }
  }
  PlaceFile(const PlaceFile&) = delete;
  PlaceFile& operator=(const PlaceFile&) = delete;

 private:
  const DeferredSignals signals_;
  const std::string path_, text_;
};

// What rank 0 wrote. Nothing yet: none, with the reason in `why`. A file that rank 0 replaces or
// removes while it is read is nothing yet (over NFS a name may be there and its file not).
std::vector<Endpoint> read_place(RankPlace& place, std::string& why) {
  std::string text;
  try {
    text = read_start(place.file);
  } catch (const Error& error) {
    why = error.what();
    return {};
  }
  return endpoints_of(parse_place(place.file, text), place.file, place.secret);
}

// --- rank 0 --------------------------------------------------------------------------------------

bool has_ended(const Socket& socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// The ranks that have come, at rank 0.
class Gathering {
 public:
  Gathering(const RankPlace& place, Meeting& meeting) : place_(place), meeting_(meeting) {
    meeting_.members.resize(static_cast<size_t>(place.ranks));
    meeting_.lines.resize(static_cast<size_t>(place.ranks));
    meeting_.members[0] = {host_name(), {"", meeting.door.port()}};
  }

  // Errors: those of meet(), which the ranks that are there are told.
  void wait_for_all() {
    try {
      while (count_ < place_.ranks) {
        if (std::optional<Guest> guest = meeting_.door.next(0.1)) take(*guest);
        check_arrived();
        check(pending_signal() == 0, ErrorKind::ranks,
              "rank 0 ({}) was ended by signal {} before all ranks were there", host_name(),
              pending_signal());
        check(now_seconds() < meeting_.until, ErrorKind::ranks, "{} did not start within {:g} s{}",
              missing(), place_.start_seconds, strangers());
      }
      Json members = Json::array();
      for (const Member& m : meeting_.members) {
        members.push_back(Json::object(
            {{"host", m.host}, {"address", m.endpoint.host}, {"port", m.endpoint.port}}));
      }
      tell_all(Json::object({{"members", members}}));
    } catch (const Error& error) {
      tell_all(
          Json::object({{"failed", error.what()}, {"is_usage", error.kind() == ErrorKind::usage}}));
      throw;
    }
  }

 private:
  void tell_all(const Json& news) {
    for (const Socket& line : meeting_.lines) {
      if (line.is_open()) send_all(line, framed(news.dump()), now_seconds() + 1);
    }
  }

  void take(Guest& guest) {
    Json hello;
    int64_t rank = 0, ranks = 0;
    try {
      hello = Json::parse(guest.hello, guest.address);
      rank = hello.get_int("rank", guest.address), ranks = hello.get_int("ranks", guest.address);
    } catch (const Error& error) {
      return guest.refuse(place_.secret, error.what());
    }
    const std::string& version_there = hello.get_string("version", guest.address);
    const std::string who =
        fmt::format("rank {} ({})", rank, hello.get_string("host", guest.address));
    const auto differ = [&](const std::string& text) {
      guest.refuse(place_.secret, text);
      throw Error(ErrorKind::usage, text);  // nor can the others go on
    };
    if (version_there != version()) {
      differ(fmt::format("{} is heddle {}, rank 0 ({}) is {}; all need the same version", who,
                         version_there, host_name(), version()));
    }
    if (ranks != place_.ranks) {
      differ(fmt::format("{} was told that there are {} ranks, rank 0 ({}) that there are {}", who,
                         ranks, host_name(), place_.ranks));
    }
    if (rank < 1 || rank >= ranks || meeting_.lines[static_cast<size_t>(rank)].is_open()) {
      const std::string there =
          rank >= 0 && rank < ranks ? meeting_.host(rank) : std::string("nowhere");
      return guest.refuse(place_.secret,
                          fmt::format("{} is there twice: the first is on {}; give each process a "
                                      "--rank of its own",
                                      who, there));
    }
    if (!guest.welcome(place_.secret)) return;
    const auto at = static_cast<size_t>(rank);
    meeting_.members[at] = {hello.get_string("host", guest.address),
                            {guest.address, static_cast<int>(hello.get_int("port", "hello"))}};
    meeting_.lines[at] = std::move(guest.socket);
    ++count_;
  }

  void check_arrived() const {
    for (size_t rank = 1; rank < meeting_.lines.size(); ++rank) {
      const Socket& line = meeting_.lines[rank];
      check(!line.is_open() || !has_ended(line), ErrorKind::ranks,
            "rank {} ({}) has ended before all ranks were there", rank,
            meeting_.members[rank].host);
    }
  }

  std::string missing() const {
    std::vector<size_t> ranks;
    for (size_t rank = 1; rank < meeting_.lines.size(); ++rank) {
      if (!meeting_.lines[rank].is_open()) ranks.push_back(rank);
    }
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
  }
  std::string strangers() const {
    const std::string& who = meeting_.door.turned_away();
    return who.empty() ? "" : fmt::format(" ({})", who);
  }

  const RankPlace& place_;
  Meeting& meeting_;
  int64_t count_ = 1;  // with rank 0
};

// What a rank listens to: the port that is given, the loopback alone if that is where all meet.
Endpoint listening_place(const RankPlace& place, int port) {
  const bool is_local = place.file.empty() && place.endpoint.is_loopback();
  return {is_local ? place.endpoint.host : "", port};
}

Meeting meet_as_first(RankPlace& place) {
  Socket listener = place.listener >= 0 ? inherited_listener(place.listener)
                                        : listen_at(listening_place(place, place.endpoint.port));
  if (!place.file.empty() || place.broadcast) place.secret = hex_of(random_bytes(32));
  const int port = port_of(listener);
  Meeting meeting{.rank = 0,
                  .secret = place.secret,
                  .members = {},
                  .lines = {},
                  .door = Door(std::move(listener), place.secret),
                  .until = now_seconds() + place.start_seconds};
  std::optional<PlaceFile> file;
  if (!place.file.empty()) file.emplace(place.file, place_json(port, place.secret));
  if (place.broadcast) place.broadcast(place_json(port, place.secret).dump());
  Gathering(place, meeting).wait_for_all();
  return meeting;
}

// --- the others ----------------------------------------------------------------------------------

// The connection to rank 0, once it is let in. Errors: ranks when the time is over.
Socket reach_first(RankPlace& place, std::string_view hello, double until) {
  constexpr double kAgain = 0.1, kLongest = 5;  // seconds
  std::string why, where = place.file;
  std::vector<Endpoint> endpoints = {place.endpoint};
  if (place.broadcast)
    endpoints = endpoints_of(Json::parse(place.broadcast(""), "rank 0"), "rank 0", place.secret);
  while (now_seconds() < until) {
    if (!place.file.empty()) endpoints = read_place(place, why);
    for (const Endpoint& endpoint : endpoints) {
      where = endpoint.text();
      const double left = std::min(kLongest, until - now_seconds());
      std::optional<Socket> socket = connect_to(endpoint, left, why);
      if (!socket) continue;
      const Reception reception =
          knock(*socket, place.secret, hello, endpoint, now_seconds() + left, why);
      if (reception == Reception::in) return std::move(*socket);
      // A file may be that of a job that was killed, until rank 0 replaces it; and an address that
      // rank 0 has may be another machine's here.
      check(reception == Reception::gone || !place.file.empty() || place.broadcast,
            ErrorKind::usage, "{}", why);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kAgain));
  }
  fail(ErrorKind::ranks, "rank {} could not reach rank 0 at {} within {:g} s: {}", place.rank,
       where, place.start_seconds, why);
}

// Where all are, as rank 0 says. An address that only means rank 0's own machine becomes the one
// by which that was reached.
std::vector<Member> members_of(const Json& table, const Socket& line) {
  const std::string first = peer_address(line);
  std::vector<Member> members;
  for (const Json& m : table.at("members").as_array()) {
    Endpoint endpoint{m.get_string("address"), static_cast<int>(m.get_int("port"))};
    if (endpoint.host.empty() || endpoint.is_loopback()) endpoint.host = first;
    members.push_back({m.get_string("host"), endpoint});
  }
  return members;
}

Meeting meet_as_other(RankPlace& place) {
  const double until = now_seconds() + place.start_seconds;
  Socket listener = listen_at(listening_place(place, 0));
  const Json hello = Json::object({{"rank", place.rank},
                                   {"ranks", place.ranks},
                                   {"host", host_name()},
                                   {"version", version()},
                                   {"port", port_of(listener)}});
  Socket line = reach_first(place, hello.dump(), until);
  std::string text;
  // Rank 0 began its wait earlier or later than this one; it decides when that is over.
  const double patience = until + place.start_seconds + 5;
  check(receive_frame(line, text, patience), ErrorKind::ranks,
        "rank 0 has ended before all ranks were there");
  const Json table = Json::parse(text, "rank 0");
  if (const Json* failed = table.find("failed")) {
    fail(table.get_bool("is_usage") ? ErrorKind::usage : ErrorKind::ranks, "{}",
         failed->as_string());
  }
  Meeting meeting{.rank = place.rank,
                  .secret = place.secret,
                  .members = members_of(table, line),
                  .lines = {},
                  .door = Door(std::move(listener), place.secret),
                  .until = now_seconds() + place.start_seconds};
  check(std::ssize(meeting.members) == place.ranks, ErrorKind::data,
        "rank 0 told of {} ranks, not {}", meeting.members.size(), place.ranks);
  meeting.lines.push_back(std::move(line));
  return meeting;
}

}  // namespace

Meeting meet(RankPlace place) {
  return place.rank == 0 ? meet_as_first(place) : meet_as_other(place);
}

}  // namespace heddle::dist
