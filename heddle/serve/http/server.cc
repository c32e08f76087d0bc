// The listener, and the thread that all connections share.
#include "heddle/serve/http/server.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "heddle/base/error.h"
#include "heddle/serve/http/event_loop.h"
#include "heddle/serve/http/server_parts.h"

namespace heddle::serve {

// --- the server ----------------------------------------------------------------------------------

void HttpServer::Implementation::accept() {
  acceptor_.async_accept([self = shared_from_this()](ErrorCode error, tcp::socket socket) {
    if (!error) self->take(std::move(socket));  // though the listener may have been closed since
    if (!self->acceptor_.is_open()) return;
    if (!error) return self->accept();
    // No file descriptors are left, say: some may be soon.
    self->pause_.expires_after(std::chrono::milliseconds(100));
    self->pause_.async_wait([self](ErrorCode) {
      if (self->acceptor_.is_open()) self->accept();
    });
  });
}

void HttpServer::Implementation::take(tcp::socket socket) {
  if (is_stopped_) return;
  if (open_ >= limits_.connections) return void(refused(503));
  std::make_shared<Session>(shared_from_this(), std::move(socket))->start();
}

// Many replies that come together wake the thread once: each waking is a system call.
void HttpServer::Implementation::post(std::function<void()> task) {
  {
    const std::lock_guard lock(posted_mutex_);
    if (is_shut_) return;
    posted_.push_back(std::move(task));
    if (posted_.size() > 1) return;
  }
  // A reply may come when nothing runs any more: what it leaves must not hold what holds it.
  asio::post(context_, [weak = weak_from_this()] {
    const std::shared_ptr<Implementation> self = weak.lock();
    if (!self) return;
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(self->posted_mutex_);
      tasks.swap(self->posted_);
    }
    for (const auto& one : tasks) one();
    for (const auto& session : std::exchange(self->written_, {})) session->pump_written();
  });
}

// Where many requests come and many wait for responses, what comes close together is taken
// together.
void HttpServer::Implementation::run(const std::function<void()>& on_tick) {
  constexpr auto kLook = std::chrono::milliseconds(250);  // at who is late
  const auto work = asio::make_work_guard(context_);
  for (Moment look = {}; !is_stopped_;) {
    const bool is_crowded = std::exchange(came_, 0) >= kCrowd;
    const Moment until = Moment::clock::now() + std::chrono::milliseconds(50);
    run_together(context_, until, [&] { return is_crowded && owed_ >= kCrowd; });
    if (until > look) end_late(), look = until + kLook;
    if (on_tick) on_tick();
    if (is_draining_ && !acceptor_.is_open() && open_ == 0) return;
  }
}

void HttpServer::Implementation::end_late() {
  const Moment now = Moment::clock::now();
  std::vector<std::shared_ptr<Session>> late;
  for (Session* session : sessions_) {
    const bool is_over = session->has_left() || (session->is_late(now) && !session->is_taking());
    if (is_over) late.push_back(session->shared_from_this());
  }
  for (const auto& session : late) session->expire();
}

namespace {

// Has the system pass over what asks for a connection. Where it cannot, connections go on to be
// made until the listener closes.
void ignore_new_connections(int listener) {
  constexpr uint32_t kFlags = 13, kSyn = 2;  // byte of the TCP header; its bit
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags),
                        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0xffffffff)};
  const sock_fprog program{.len = std::size(code), .filter = code};
  (void)::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

}  // namespace

// A listener that closes resets the connections that the system has made for it: those that are
// being made are waited for first, and no others begin.
void HttpServer::Implementation::drain() {
  asio::post(context_, [self = shared_from_this()] {
    if (std::exchange(self->is_draining_, true)) return;
    ignore_new_connections(self->acceptor_.native_handle());
    self->handshakes_.expires_after(std::chrono::milliseconds(500));
    self->handshakes_.async_wait([self](ErrorCode) { self->end_accepting(); });
    for (Session* session : self->sessions_) session->hurry();
  });
}

void HttpServer::Implementation::end_accepting() {
  ErrorCode error, ignored;
  acceptor_.non_blocking(true, error);
  while (!error) {
    tcp::socket socket(context_);
    acceptor_.accept(socket, error);
    if (!error) take(std::move(socket));
  }
  acceptor_.close(ignored);
}

// What waits holds what it waits for: all of it ends, so that nothing is left.
void HttpServer::Implementation::shut() {
  is_draining_ = is_stopped_ = true;
  ErrorCode ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  handshakes_.cancel();
  const std::set<Session*> sessions = sessions_;
  for (Session* session : sessions) session->close();
  context_.restart();
  context_.poll();
  std::vector<std::function<void()>> tasks;  // which may hold this
  const std::lock_guard lock(posted_mutex_);
  is_shut_ = true;
  tasks.swap(posted_);
}

// --- what others see -----------------------------------------------------------------------------

HttpServer::HttpServer(const std::string& host, int port, const HttpLimits& limits,
                       HttpHandler handler, RefusalHandler on_refusal)
    : implementation_(
          std::make_shared<Implementation>(limits, std::move(handler), std::move(on_refusal))) {
  ErrorCode error;
  const auto address = asio::ip::make_address(host, error);
  check(!error, ErrorKind::usage,
        "`host` is '{}'; it must be an address, such as 127.0.0.1 or ::", host);
  check(port >= 0 && port <= 65535, ErrorKind::usage, "`port` is {}; it must be from 0 to 65535",
        port);
  const tcp::endpoint endpoint(address, static_cast<uint16_t>(port));
  tcp::acceptor& acceptor = implementation_->acceptor_;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  check(!error, ErrorKind::system,
        "{} port {}: {}; stop what listens there, or choose another "
        "with `port`",
        host, port, error.message());
  implementation_->accept();
}

HttpServer::~HttpServer() { implementation_->shut(); }
int HttpServer::port() const { return implementation_->acceptor_.local_endpoint().port(); }
void HttpServer::run(const std::function<void()>& on_tick) { implementation_->run(on_tick); }
void HttpServer::drain() { implementation_->drain(); }
void HttpServer::stop() { implementation_->is_stopped_ = true; }
int64_t HttpServer::connections() const { return implementation_->open_; }

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found =
      std::ranges::find(headers, name, [](const auto& h) -> const std::string& { return h.first; });
  return found == headers.end() ? nullptr : &found->second;
}

}  // namespace heddle::serve
