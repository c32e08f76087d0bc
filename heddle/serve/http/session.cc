// A connection over Boost.Beast: reads a request, hands it on, writes the response, and again.
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "heddle/base/json/json.h"
#include "heddle/serve/http/server_parts.h"

namespace heddle::serve {

// --- requests ------------------------------------------------------------------------------------

HttpServer::Session::Session(std::shared_ptr<Implementation> server, tcp::socket socket)
    : server_(std::move(server)), socket_(std::move(socket)), reader_(server_->limits_) {
  ErrorCode ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  server_->sessions_.insert(this);
  ++server_->open_;
}

HttpServer::Session::~Session() {
  server_->sessions_.erase(this);
  --server_->open_;
}

void HttpServer::Session::wait_for_request() {
  state_ = State::idle;
  awaited_ = RequestReader::State::idle;
  expire_after(idle_seconds());
  look();
}

// A client that has just connected, or been answered, is about to ask.
int64_t HttpServer::Session::idle_seconds() const {
  constexpr int64_t kWhileDraining = 2;
  const int64_t seconds = limits().idle_seconds;
  return server_->is_draining_ ? std::min(seconds, kWhileDraining) : seconds;
}

void HttpServer::Session::hurry() {
  if (state_ == State::idle)
    deadline_ -= std::chrono::seconds(limits().idle_seconds - idle_seconds());
}

bool HttpServer::Session::has_unread_request() const {
  ErrorCode ignored;
  return state_ == State::idle && socket_.available(ignored) > 0;
}

void HttpServer::Session::read() {
  // Ten thousand that wait hold little memory, and a body is read in large parts.
  const size_t size = reader_.state() == RequestReader::State::body ? 1 << 16 : 1 << 11;
  if (input_.size() != size) input_ = std::vector<char>(size);
  socket_.async_read_some(asio::buffer(input_),
                          [self = shared_from_this()](ErrorCode error, size_t n) {
                            if (!self->is_awaiting()) return;
                            if (error) return self->close();
                            self->reader_.put({self->input_.data(), n});
                            self->look();
                          });
}

// Goes on as what was read says.
void HttpServer::Session::look() {
  const RequestReader::State state = reader_.state();
  if (state == RequestReader::State::whole) return hand_on();
  if (state == RequestReader::State::refused) return refuse(reader_.status(), reader_.message());
  if (state != RequestReader::State::idle) state_ = State::reading;
  if (state != awaited_) {
    const bool is_header = state == RequestReader::State::header;
    expire_after(is_header ? limits().header_seconds : limits().body_seconds);
    awaited_ = state;
  }
  if (!reader_.wants_continue()) return read();
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_, asio::buffer(kContinue.data(), kContinue.size()),
                    [self = shared_from_this()](ErrorCode error, size_t) {
                      if (!self->is_awaiting()) return;
                      error ? self->close() : self->read();
                    });
}

void HttpServer::Session::hand_on() {
  HttpRequest request = reader_.take();
  is_kept_ = reader_.is_kept(), is_old_ = reader_.is_old();
  // HEAD is answered as GET is, without the body.
  is_head_ = request.method == "HEAD";
  if (is_head_) request.method = "GET";
  state_ = State::answering;
  input_ = std::vector<char>();
  deadline_ = Moment::max();
  is_ahead_ = false;
  ++number_;
  owes_ = shared_from_this();
  ++server_->owed_;
  ++server_->came_;
  watch();
  server_->handler_(std::move(request),
                    std::make_shared<SessionReply>(weak_from_this(), server_, number_));
}

// Sees the client leave while it waits. Once it has sent more in the meantime, which is not read
// yet and would end each wait at once, has_left() is asked now and then.
void HttpServer::Session::watch() {
  socket_.async_wait(
      tcp::socket::wait_read, [self = shared_from_this(), number = number_](ErrorCode error) {
        if (error || number != self->number_ || self->state_ != State::answering) return;
        char byte = 0;
        const auto n = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n > 0) return void(self->is_ahead_ = true);
        n < 0 && (errno == EAGAIN || errno == EINTR) ? self->watch() : self->leave();
      });
}

bool HttpServer::Session::has_left() {
  if (state_ != State::answering || !is_ahead_) return false;
  pollfd at{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&at, 1, 0) > 0;
}

void HttpServer::Session::expire() {
  if (state_ != State::reading) return leave();
  refuse(408, "the request did not come whole in time");
}

void HttpServer::Session::leave() {
  const std::function<void()> on_gone = std::exchange(on_gone_, {});
  close();
  if (on_gone) on_gone();
}

void HttpServer::Session::close() {
  const std::shared_ptr<Session> self = settle();
  state_ = State::closed;
  ++number_;
  deadline_ = Moment::max();
  ErrorCode ignored;
  socket_.close(ignored);
}

std::shared_ptr<HttpServer::Session> HttpServer::Session::settle() {
  if (owes_) --server_->owed_;
  return std::exchange(owes_, {});
}

// --- responses -----------------------------------------------------------------------------------

namespace {

// connection: what the field of this name says; length: the field that says where the body ends,
// with its line's end; "": with the connection
std::string head_of(const HttpResponse& response, std::string_view connection,
                    std::string_view length) {
  const auto status = http::int_to_status(static_cast<unsigned>(response.status));
  const auto reason = http::obsolete_reason(status);
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                                 std::string_view(reason.data(), reason.size()));
  const auto add = [&](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  if (!response.content_type.empty()) add("Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) add(name, value);
  if (!connection.empty()) add("Connection", connection);
  return head.append(length).append("\r\n");
}

}  // namespace

// The system takes most of them at once.
void HttpServer::Session::put(std::string bytes, std::function<void(ErrorCode)> then) {
  expire_after(limits().write_seconds);
  ErrorCode error;
  const size_t n = bytes.empty() ? 0 : socket_.write_some(asio::buffer(bytes), error);
  if (error && error != asio::error::would_block) return then(error);
  if (n == bytes.size()) return then({});
  const auto all = std::make_shared<const std::string>(std::move(bytes));
  // Whenever the system takes some, the client has as long for the next.
  const auto more = [self = shared_from_this()](ErrorCode failure, size_t) -> size_t {
    self->expire_after(self->limits().write_seconds);
    self->untaken_ = self->untaken();
    return failure ? 0 : size_t{1} << 16;
  };
  asio::async_write(
      socket_, asio::buffer(*all) + n, more,
      [all, self = shared_from_this(), then = std::move(then)](ErrorCode failure, size_t) {
        self->untaken_ = 0;
        then(failure);
      });
}

int HttpServer::Session::untaken() {
  int bytes = 0;
  return ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

bool HttpServer::Session::is_taking() {
  const int before = untaken_;
  if (before == 0) return false;
  untaken_ = untaken();
  if (untaken_ >= before) return false;
  expire_after(limits().write_seconds);
  return true;
}

// A client of HTTP/1.0 believes that the connection ends if it is not told otherwise.
std::string_view HttpServer::Session::connection() const {
  return !is_kept_ ? "close" : is_old_ ? "keep-alive" : "";
}

void HttpServer::Session::send(HttpResponse response) {
  on_gone_ = {};
  state_ = State::sending;
  is_kept_ = is_kept_ && !server_->is_draining_;
  std::string bytes =
      head_of(response, connection(), fmt::format("Content-Length: {}\r\n", response.body.size()));
  if (!is_head_) bytes += response.body;
  put(std::move(bytes),
      [self = shared_from_this()](ErrorCode error) { error ? self->close() : self->finish(); });
}

void HttpServer::Session::begin(const HttpResponse& head) {
  is_kept_ = is_kept_ && !server_->is_draining_ && !is_old_;
  head_ = head_of(head, connection(), is_old_ ? "" : "Transfer-Encoding: chunked\r\n");
  pump_soon();
}

void HttpServer::Session::write(std::string part) {
  constexpr int64_t kLarge = 1 << 16;
  if (part.empty() || is_ended_) return;
  output_ += part;
  // A burst is no slow reader: one that took nothing for a second is.
  const int64_t most = limits().output_bytes, waiting = std::ssize(output_);
  const bool is_stuck =
      is_writing_ && Moment::clock::now() - write_began_ > std::chrono::seconds(1);
  if (waiting > 64 * most || (waiting > most && is_stuck)) return leave();
  waiting < kLarge ? pump_soon() : pump();
}

void HttpServer::Session::end() {
  is_ended_ = true;
  on_gone_ = {};
  pump_soon();
}

// What was written is sent before the connection ends.
void HttpServer::Session::cut() {
  is_cut_ = true;
  pump_soon();
}

// Parts that come together are sent together: behind the tasks at hand.
void HttpServer::Session::pump_soon() {
  if (!std::exchange(is_pumped_soon_, true)) server_->written_.push_back(shared_from_this());
}

void HttpServer::Session::pump_written() {
  is_pumped_soon_ = false;
  if (state_ == State::answering) pump();
}

void HttpServer::Session::pump() {
  if (is_writing_ || (head_.empty() && output_.empty() && !is_ended_ && !is_cut_)) return;
  if (head_.empty() && output_.empty() && is_cut_) return leave();
  is_writing_ = true;
  write_began_ = Moment::clock::now();
  std::string part = std::exchange(head_, {});
  const std::string body = std::exchange(output_, {});
  const bool is_last = is_ended_;
  if (is_old_) {
    part += body;
  } else {
    if (!body.empty())
      part.append(fmt::format("{:x}\r\n", body.size())).append(body).append("\r\n");
    if (is_last) part += "0\r\n\r\n";
  }
  put(std::move(part), [self = shared_from_this(), is_last](ErrorCode error) {
    if (error || !is_last) return self->written(error);
    self->is_writing_ = self->is_ended_ = false;
    self->finish();
  });
}

void HttpServer::Session::written(ErrorCode error) {
  is_writing_ = false;
  if (error) return leave();
  if (output_.empty() && !is_ended_) deadline_ = Moment::max();
  pump();
}

void HttpServer::Session::finish() {
  ++number_;
  const std::shared_ptr<Session> self = settle();
  if (is_kept_) return wait_for_request();
  linger();
}

// Lets the client read what was sent before the connection ends, though it may still be sending.
void HttpServer::Session::linger() {
  state_ = State::lingering;
  ErrorCode ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  expire_after(2);
  discard(1024);
}

void HttpServer::Session::discard(int parts) {
  if (input_.empty()) input_.resize(1 << 11);
  socket_.async_read_some(asio::buffer(input_),
                          [self = shared_from_this(), parts](ErrorCode error, size_t) {
                            if (error || parts == 0) return self->close();
                            self->discard(parts - 1);
                          });
}

// Answers a request that is none.
void HttpServer::Session::refuse(int status, const std::string& message) {
  is_kept_ = is_head_ = false;
  Json error = Json::object({{"message", message}, {"type", "invalid_request_error"}});
  error["param"] = Json();
  error["code"] = Json();
  HttpResponse response{.status = status, .body = Json::object({{"error", error}}).dump()};
  const std::string id = server_->refused(status);
  if (!id.empty()) response.headers.emplace_back("x-request-id", id);
  send(std::move(response));
}

// --- the way back --------------------------------------------------------------------------------

template <class F>
void HttpServer::SessionReply::post(F f) {
  server_->post([session = session_, number = number_, f = std::move(f)]() mutable {
    const std::shared_ptr<Session> at = session.lock();
    if (at && at->number_ == number && at->state_ == Session::State::answering) f(*at);
  });
}

HttpServer::SessionReply::~SessionReply() {
  if (!is_over_) post([](Session& s) { s.cut(); });
}
void HttpServer::SessionReply::send(HttpResponse response) {
  is_over_ = true;
  post([response = std::move(response)](Session& s) mutable { s.send(std::move(response)); });
}
void HttpServer::SessionReply::begin(HttpResponse head) {
  post([head = std::move(head)](Session& s) { s.begin(head); });
}
void HttpServer::SessionReply::write(std::string part) {
  post([part = std::move(part)](Session& s) mutable { s.write(std::move(part)); });
}
void HttpServer::SessionReply::end() {
  is_over_ = true;
  post([](Session& s) { s.end(); });
}
void HttpServer::SessionReply::on_gone(std::function<void()> f) {
  const std::shared_ptr<Session> at = session_.lock();
  if (!at || at->number_ != number_) return;
  if (!at->on_gone_) return void(at->on_gone_ = std::move(f));
  at->on_gone_ = [first = std::move(at->on_gone_), then = std::move(f)] {
    first();
    then();
  };
}
void HttpServer::SessionReply::call(std::function<void()> f) {
  post([f = std::move(f)](Session&) { f(); });
}

}  // namespace heddle::serve
