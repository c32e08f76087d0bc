// How a rank lets others in: a connection counts once both ends have proved that they know the
// job's secret. What else comes to the port is let go, and costs a bounded place for a few seconds.
//
//   client: magic, nonce        server: magic, nonce
//   client: HMAC(secret, "client", nonces, hello), hello
//   server: HMAC(secret, "server", nonces, answer), answer
//
// The bytes that follow are neither signed nor hidden: as with MPI, the network between the
// machines must be one's own.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/dist/socket.h"

namespace heddle::dist {

/// A connection whose other end has proved the secret and waits for an answer.
struct Guest {
  Socket socket;
  std::string hello;    ///< what it said of itself
  std::string address;  ///< where it comes from
  std::string nonces;

  /// Lets it in; false where it has gone.
  bool welcome(std::string_view secret);
  /// Sends it away with the reason.
  void refuse(std::string_view secret, const std::string& reason);
};

/// A listener and those who have come to it and not proved themselves yet.
class Door {
 public:
  Door(Socket listener, std::string secret)
      : listener_(std::move(listener)), secret_(std::move(secret)) {}

  /// The next guest, waiting at most so long.
  std::optional<Guest> next(double seconds);
  int port() const { return port_of(listener_); }
  /// Who was let go, for a message: "a wrong secret came from 10.0.0.2"; "" for nobody.
  const std::string& turned_away() const { return turned_away_; }

 private:
  struct Caller {
    Socket socket;
    std::string address;
    std::string received, nonces;
    double until = 0;
  };
  void accept_callers();
  bool read_from(Caller& caller);
  std::optional<Guest> guest_of(Caller& caller, bool& is_over);

  Socket listener_;
  std::string secret_;
  std::list<Caller> callers_;
  std::string turned_away_;
};

/// What comes of a knock: let in; the connection ended or the time is over, so that it may be tried
/// again; or the other end is no rank of this job.
enum class Reception { in, gone, stranger };
/// Proves oneself at the other end of a new connection with what one says of oneself. `why` says
/// what is wrong with a stranger. Errors: usage where the other end refuses, with its reason.
Reception knock(const Socket& socket, std::string_view secret, std::string_view hello,
                const Endpoint& endpoint, double until, std::string& why);

}  // namespace heddle::dist
