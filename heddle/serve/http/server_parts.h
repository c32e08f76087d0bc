// What a server is made of, for server.cc and session.cc alone: the library's types stay out of
// server.h.
#pragma once

#include <utility>  // Boost 1.74 needs it and does not say so

#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "heddle/serve/http/request_reader.h"

namespace heddle::serve {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Moment = std::chrono::steady_clock::time_point;

/// The listener and what its connections share. All but the atomics is of the thread that runs it.
class HttpServer::Implementation : public std::enable_shared_from_this<Implementation> {
 public:
  Implementation(const HttpLimits& limits, HttpHandler handler, RefusalHandler on_refusal)
      : limits_(limits), handler_(std::move(handler)), on_refusal_(std::move(on_refusal)) {}

  void accept();
  void take(tcp::socket socket);
  void run(const std::function<void()>& on_tick);
  void drain();
  void end_accepting();
  void shut();
  /// Ends sessions whose time is over, or whose client left.
  void end_late();
  /// Says that a request, or a connection, is refused. returns: its id; "" where nobody gives one
  std::string refused(int status) { return on_refusal_ ? on_refusal_(status) : ""; }
  /// From any thread; once it is shut the task is let go.
  void post(std::function<void()> task);

  const HttpLimits limits_;
  const HttpHandler handler_;
  const RefusalHandler on_refusal_;
  std::atomic<int64_t> open_ = 0;
  std::atomic<bool> is_stopped_ = false;
  bool is_draining_ = false;
  int64_t owed_ = 0;  // responses
  int64_t came_ = 0;  // requests, since it last looked
  std::set<Session*> sessions_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_}, handshakes_{context_};
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
  bool is_shut_ = false;                           // nothing is posted any more
  std::vector<std::shared_ptr<Session>> written_;  // by the tasks at hand
};

class HttpServer::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Implementation> server, tcp::socket socket);
  ~Session();

  void start() { wait_for_request(); }
  void close();
  void leave();
  /// Its time is over.
  void expire();
  /// No more requests are waited for than those that are as good as there.
  void hurry();
  /// Sends what the tasks at hand wrote.
  void pump_written();
  bool is_late(Moment now) const { return deadline_ < now && !has_unread_request(); }
  /// Whether the client, which sent more than the request that is being answered, has left.
  bool has_left();
  /// Whether the client has taken something of what the system could not take at once, since it was
  /// last asked: then it has as long again.
  bool is_taking();

 private:
  friend class SessionReply;
  enum class State : uint8_t { idle, reading, answering, sending, lingering, closed };

  const HttpLimits& limits() const { return server_->limits_; }
  void wait_for_request();
  /// That it may be without a request.
  int64_t idle_seconds() const;
  bool has_unread_request() const;
  bool is_awaiting() const { return state_ == State::idle || state_ == State::reading; }
  void read();
  void look();
  void hand_on();
  void watch();
  void expire_after(int64_t seconds) {
    deadline_ = Moment::clock::now() + std::chrono::seconds(seconds);
  }
  void put(std::string bytes, std::function<void(ErrorCode)> then);
  int untaken();  ///< bytes that wait for the client in the system
  std::shared_ptr<Session> settle();
  std::string_view connection() const;  ///< what the field of this name says; "" for nothing
  void send(HttpResponse response);
  void begin(const HttpResponse& head);
  void write(std::string part);
  void end();
  void cut();
  void pump();
  void pump_soon();
  void written(ErrorCode error);
  void finish();
  void linger();
  void discard(int parts);
  void refuse(int status, const std::string& message);

  std::shared_ptr<Implementation> server_;
  tcp::socket socket_;
  Moment deadline_ = Moment::max();  ///< of what it waits for; looked at some times a second
  std::vector<char> input_;
  RequestReader reader_;
  RequestReader::State awaited_ = RequestReader::State::idle;  ///< that the time limit is of
  State state_ = State::idle;
  uint64_t number_ = 0;  // of the request; replies to others are dropped
  bool is_kept_ = false, is_old_ = false, is_head_ = false;
  bool is_ahead_ = false;  ///< more than the request that is being answered has come
  std::function<void()> on_gone_;
  std::shared_ptr<Session> owes_;  ///< itself, while a response is owed
  int untaken_ = 0;  ///< what waited when the system last took some; 0: nothing is left to give it
  // Of a response in parts.
  std::string head_, output_;  // that is not sent yet
  bool is_pumped_soon_ = false;
  bool is_writing_ = false, is_ended_ = false, is_cut_ = false;
  Moment write_began_ = {};
};

class HttpServer::SessionReply final : public Reply {
 public:
  SessionReply(std::weak_ptr<Session> session, std::shared_ptr<Implementation> server,
               uint64_t number)
      : session_(std::move(session)), server_(std::move(server)), number_(number) {}
  SessionReply(const SessionReply&) = delete;
  SessionReply& operator=(const SessionReply&) = delete;
  ~SessionReply() override;

  void send(HttpResponse response) override;
  void begin(HttpResponse head) override;
  void write(std::string part) override;
  void end() override;
  void on_gone(std::function<void()> f) override;
  void call(std::function<void()> f) override;

 private:
  template <class F>
  void post(F f);

  std::weak_ptr<Session> session_;
  std::shared_ptr<Implementation> server_;
  uint64_t number_;
  std::atomic<bool> is_over_ = false;  ///< send() or end() was called
};

}  // namespace heddle::serve
