// One request and its response, as routes see them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/serve/api/body.h"
#include "heddle/serve/service.h"

namespace heddle::serve {

/// Whose clients a route is for: how an error is written, and where a key is shown.
enum class Dialect : uint8_t {
  openai,  ///< heddle's own too: {"error": {"message", "type", "param", "code"}}; Bearer KEY
  libre,   ///< LibreTranslate: {"error": "TEXT"}; api_key in the body
  deepl    ///< {"message": "TEXT"}; DeepL-Auth-Key KEY
};

/// Refusal::code of what waited too long.
inline constexpr const char* kTimeout = "timeout";
/// Of what has waited longer than ServiceOptions::queue_seconds.
Refusal waited_too_long(const Service& service);

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Service& service, HttpRequest request, std::shared_ptr<Reply> reply, uint64_t number);

  Service& service;
  HttpRequest request;
  const std::string id;  ///< x-request-id: the client's, or one of ours
  std::string route = "other";
  std::string id_in_path = {};  ///< what stands for "{id}" of the route
  Dialect dialect = Dialect::openai;
  const Moment received = Clock::now();

  /// The body. Errors: Refusal if it is no JSON object of at most ServiceOptions::most_levels.
  Json json() const;

  // From any thread; the first of them that is called counts.
  void send(const Json& json, int status = 200);
  void send_text(std::string text, const std::string& content_type);
  void fail(const Refusal& refusal);
  /// The same of an Error that was caught, or of anything else.
  void fail(const std::exception_ptr& error);

  /// Server-sent events: begin, any number of events, end. A failure in between is an event too.
  void begin_events();
  void event(const std::string& data);
  void end_events(int status = 200);

  /// Counts a phase once, however often it is reached. From any thread.
  void reach(RequestPhase phase) const;
  /// Its work waits no longer: of several calls the first counts. From any thread.
  void start();

  /// Called once if the client leaves first; see Reply::on_gone().
  void on_gone(std::function<void()> f);
  /// Goes on with the request on the server's thread, where a route's handler runs, unless the
  /// client has left by then. What f throws fails the exchange. From any thread.
  void go_on(std::function<void()> f);

 private:
  void answered(int status);
  void answered(int status, RequestPhase end);
  std::vector<std::pair<std::string, std::string>> headers() const;

  std::shared_ptr<Reply> reply_;
  std::atomic<bool> is_answered_ = false, has_begun_ = false;
  mutable std::atomic<uint32_t> reached_ = 0;  ///< a bit for each phase
  std::atomic<int64_t> waited_us_ = -1;        ///< until start(); -1: it was not called
};

/// Answers a request by its route.
void answer_request(Service& service, HttpRequest request, const std::shared_ptr<Reply>& reply,
                    uint64_t number);

using SharedExchange = std::shared_ptr<Exchange>;
using RouteHandler = void (*)(const SharedExchange&);

struct Route {
  const char* method;
  const char* path;  ///< "{id}" at its end stands for anything
  Dialect dialect;
  RouteHandler handler;
  bool needs_key = true;
};
/// All routes.
std::span<const Route> routes();

// --- routes, by the file that has them -----------------------------------------------------------

void front_page(const SharedExchange& e);
void openapi(const SharedExchange& e);
void health_live(const SharedExchange& e);
void health_ready(const SharedExchange& e);
void metrics(const SharedExchange& e);
void models(const SharedExchange& e);
void one_model(const SharedExchange& e);
void translations(const SharedExchange& e);
void libre_translate(const SharedExchange& e);
void libre_detect(const SharedExchange& e);
void libre_languages(const SharedExchange& e);
void deepl_translate(const SharedExchange& e);
void deepl_languages(const SharedExchange& e);
void deepl_usage(const SharedExchange& e);
void completions(const SharedExchange& e);
void chat_completions(const SharedExchange& e);
void embeddings(const SharedExchange& e);
void classify(const SharedExchange& e);
void attention(const SharedExchange& e);
void images_classify(const SharedExchange& e);
void images_detect(const SharedExchange& e);
void images_caption(const SharedExchange& e);

// --- room and models -----------------------------------------------------------------------------

/// Sequences of a request: what its texts are cut into, each with its beam.
inline int64_t most_sequences(const Service& service) { return 2 * service.options().most_texts; }

/// Weights of attention in an answer: a few MB of JSON, written between the steps of others.
constexpr int64_t kMostWeights = 1 << 18;

/// What a request is refused with where the queue is full, before anything of it is looked at.
std::optional<Refusal> refusal_for_now(const Service& service);
/// Takes so many tokens of the budget for a request. Errors: Refusal 429 where the queue is full,
/// 400 for more than there ever are.
void take_room(const Exchange& e, int64_t tokens);
/// Errors: Refusal 404 if there is none of this name.
SharedModel model_called(const Service& service, const std::string& name);
/// The model that a body names with "model", or, without, the first of this use.
/// Errors: Refusal 404 for one that there is not, or of another use.
SharedModel model_of(const Service& service, const Json& body, ModelUse use);

}  // namespace heddle::serve
