// Errors in the words of each dialect, and room in the queue.
#include "heddle/serve/api/exchange.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/log.h"
#include "heddle/base/names.h"

namespace heddle::serve {
namespace {

// An id of the client's own, if it is short and plain; it goes into headers and logs.
std::string id_of(const HttpRequest& request, const Service& service, uint64_t number) {
  const std::string* given = request.header("x-request-id");
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  if (given != nullptr && !given->empty() && given->size() <= 64 &&
      std::ranges::all_of(*given, is_plain)) {
    return *given;
  }
  return service.request_id(number);
}

constexpr int kClientLeft = 499;

RequestPhase end_of(int status) {
  if (status == kClientLeft) return RequestPhase::cancelled;
  if (status < 400) return RequestPhase::done;
  // 503: models load, or the server drains.
  return status < 500 || status == 503 ? RequestPhase::refused : RequestPhase::failed;
}

std::string error_body(Dialect dialect, const Refusal& refusal) {
  if (dialect == Dialect::libre) return Json::object({{"error", refusal.message}}).dump();
  if (dialect == Dialect::deepl) return Json::object({{"message", refusal.message}}).dump();
  Json error = Json::object({{"message", refusal.message}, {"type", refusal.type}});
  error["param"] = Json();
  error["code"] = refusal.code.empty() ? Json() : Json(refusal.code);
  return Json::object({{"error", error}}).dump();
}

}  // namespace

Exchange::Exchange(Service& the_service, HttpRequest asked, std::shared_ptr<Reply> reply,
                   uint64_t number)
    : service(the_service),
      request(std::move(asked)),
      id(id_of(request, service, number)),
      reply_(std::move(reply)) {
  reach(RequestPhase::received);
}

Json Exchange::json() const {
  Json body = json_of_body(request.body, service.options().most_levels);
  reach(RequestPhase::parsed);
  return body;
}

std::vector<std::pair<std::string, std::string>> Exchange::headers() const {
  const double total = std::chrono::duration<double, std::milli>(Clock::now() - received).count();
  std::string timing = fmt::format("total;dur={:.1f}", total);
  if (const int64_t waited = waited_us_; waited >= 0) {
    const double queue = 1e-3 * static_cast<double>(waited);
    timing += fmt::format(", queue;dur={:.1f}, work;dur={:.1f}", queue, total - queue);
  }
  return {{"x-request-id", id},
          {"x-content-type-options", "nosniff"},
          {"server-timing", std::move(timing)}};
}

Refusal waited_too_long(const Service& service) {
  return {.status = 503,
          .message = fmt::format("waited {} s for its turn", service.options().queue_seconds),
          .type = "server_error",
          .code = kTimeout,
          .retry_after = 1};
}

void Exchange::reach(RequestPhase phase) const {
  const uint32_t bit = uint32_t{1} << static_cast<uint32_t>(phase);
  if ((reached_.fetch_or(bit) & bit) == 0) service.metrics().reached(phase);
}

void Exchange::start() {
  reach(RequestPhase::encoding);
  using std::chrono::microseconds;
  int64_t none = -1;
  waited_us_.compare_exchange_strong(
      none, std::chrono::duration_cast<microseconds>(Clock::now() - received).count());
}

void Exchange::answered(int status) { answered(status, end_of(status)); }

void Exchange::answered(int status, RequestPhase end) {
  const double seconds = std::chrono::duration<double>(Clock::now() - received).count();
  service.metrics().answered(route, status, seconds);
  if (end != RequestPhase::cancelled) reach(RequestPhase::writing);
  reach(end);
}

void Exchange::send(const Json& json, int status) {
  std::string body = json.dump();  // what cannot be written is an error, which is answered
  if (is_answered_.exchange(true)) return;
  answered(status);
  reply_->send({.status = status, .body = std::move(body), .headers = headers()});
}

void Exchange::send_text(std::string text, const std::string& content_type) {
  if (is_answered_.exchange(true)) return;
  answered(200);
  reply_->send({.content_type = content_type, .body = std::move(text), .headers = headers()});
}

void Exchange::fail(const Refusal& refusal) {
  if (is_answered_.exchange(true)) return;
  answered(refusal.status,
           refusal.code == kTimeout ? RequestPhase::timed_out : end_of(refusal.status));
  if (has_begun_) {
    event(error_body(dialect, refusal));
    return reply_->end();
  }
  HttpResponse response{
      .status = refusal.status, .body = error_body(dialect, refusal), .headers = headers()};
  if (refusal.retry_after > 0) {
    response.headers.emplace_back(
        "retry-after", fmt::format("{}", static_cast<int>(std::ceil(refusal.retry_after))));
    response.headers.emplace_back("retry-after-ms",
                                  fmt::format("{}", static_cast<int>(1000 * refusal.retry_after)));
  }
  if (!refusal.allow.empty()) response.headers.emplace_back("allow", refusal.allow);
  if (refusal.status == 401) response.headers.emplace_back("www-authenticate", "Bearer");
  reply_->send(std::move(response));
}

void Exchange::fail(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Refusal& refusal) {
    fail(refusal);
  } catch (const Error& e) {
    // What a client sent is at fault where the program would call its data or usage so.
    const bool is_clients = e.kind() == ErrorKind::data || e.kind() == ErrorKind::usage;
    if (!is_clients) log_error("serve: {}: {}", id, e.what());
    fail({.status = is_clients ? 400 : http_status(e.kind()),
          .message = is_clients ? e.what() : "the server failed; its log says why",
          .type = is_clients ? "invalid_request_error" : "server_error"});
  } catch (const std::exception& e) {
    log_error("serve: {}: {}", id, e.what());
    fail({.status = 500, .message = "the server failed; its log says why", .type = "server_error"});
  }
}

void Exchange::begin_events() {
  has_begun_ = true;
  HttpResponse head{.content_type = "text/event-stream", .headers = headers()};
  head.headers.emplace_back("cache-control", "no-cache");
  reply_->begin(std::move(head));
}
void Exchange::event(const std::string& data) {
  if (waited_us_ >= 0) reach(RequestPhase::writing);  // before: the head of a stream that waits
  reply_->write("data: " + data + "\n\n");
}
void Exchange::end_events(int status) {
  if (is_answered_.exchange(true)) return;
  answered(status);
  reply_->end();
}

void Exchange::on_gone(std::function<void()> f) {
  reply_->on_gone([self = shared_from_this(), f = std::move(f)] {
    if (!self->is_answered_.exchange(true)) self->answered(kClientLeft);
    f();
  });
}

void Exchange::go_on(std::function<void()> f) {
  reply_->call([self = shared_from_this(), f = std::move(f)] {
    const FieldsByKey by_key;
    try {
      f();
    } catch (...) {
      self->fail(std::current_exception());
    }
  });
}

// --- bodies --------------------------------------------------------------------------------------

namespace {

Refusal queue_is_full(const Service& service) {
  const int64_t taken = service.budget().taken();
  const double seconds = service.seconds_for(taken);
  return {.status = 429,
          .message = fmt::format("the queue holds {} of {} tokens; try in {:.1f} s", taken,
                                 service.budget().most(), seconds),
          .type = "overloaded",
          .code = "queue_full",
          .retry_after = seconds};
}

}  // namespace

// A budget that is all but full has no room for most requests: to tokenize them first would cost
// more than all else of a refusal, just when there is no time for it; so would an exception.
std::optional<Refusal> refusal_for_now(const Service& service) {
  const int64_t most = service.budget().most();
  if (service.budget().taken() < most - most / 64) return {};
  return queue_is_full(service);
}

void take_room(const Exchange& e, int64_t tokens) {
  Service& service = e.service;
  if (tokens > service.budget().most()) {
    refuse("the request may come to {} tokens; at most {} may wait and run here at once", tokens,
           service.budget().most());
  }
  if (!service.budget().take(tokens)) throw queue_is_full(service);
  e.reach(RequestPhase::admitted);
}

SharedModel model_called(const Service& service, const std::string& name) {
  for (const SharedModel& model : service.models()) {
    if (model->name == name) return model;
  }
  throw Refusal{.status = 404,
                .message = fmt::format("there is no model '{}'; /v1/models has all", name),
                .code = "model_not_found"};
}

SharedModel model_of(const Service& service, const Json& body, ModelUse use) {
  const std::string name = text_of(body, "model");
  if (!name.empty()) {
    const SharedModel model = model_called(service, name);
    if (model->use == use) return model;
    throw Refusal{.status = 404,
                  .message = fmt::format("the model '{}' is for {}, not {}", name, model->purpose(),
                                         model_use_name(use)),
                  .code = "model_not_found"};
  }
  for (const SharedModel& model : service.models()) {
    if (model->use == use) return model;
  }
  throw Refusal{.status = 404,
                .message = fmt::format("no model here is for {}", model_use_name(use)),
                .code = "model_not_found"};
}

}  // namespace heddle::serve
