// Which route a request is for, and whether its client may ask.
#include <algorithm>
#include <array>

#include "heddle/base/names.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/serve/api/exchange.h"
#include "heddle/serve/api/forms.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

constexpr auto kRoutes = std::to_array<Route>({
    {"GET", "/", Dialect::openai, front_page, false},
    {"GET", "/openapi.json", Dialect::openai, openapi, false},
    {"GET", "/health/live", Dialect::openai, health_live, false},
    {"GET", "/health/ready", Dialect::openai, health_ready, false},
    {"GET", "/metrics", Dialect::openai, metrics},
    {"GET", "/v1/models", Dialect::openai, models},
    {"POST", "/v1/translations", Dialect::openai, translations},
    {"POST", "/v1/completions", Dialect::openai, completions},
    {"POST", "/v1/chat/completions", Dialect::openai, chat_completions},
    {"POST", "/v1/embeddings", Dialect::openai, embeddings},
    {"POST", "/v1/classify", Dialect::openai, classify},
    {"POST", "/v1/attention", Dialect::openai, attention},
    {"POST", "/v1/images/classify", Dialect::openai, images_classify},
    {"POST", "/v1/images/detect", Dialect::openai, images_detect},
    {"POST", "/translate", Dialect::libre, libre_translate},
    {"POST", "/detect", Dialect::libre, libre_detect},
    {"GET", "/languages", Dialect::libre, libre_languages},
    {"POST", "/v2/translate", Dialect::deepl, deepl_translate},
    {"GET", "/v2/languages", Dialect::deepl, deepl_languages},
    {"GET", "/v2/usage", Dialect::deepl, deepl_usage},
});

// A name without its port: "localhost:8080", "[::1]:8080".
std::string host_name(const std::string& host) {
  if (host.starts_with("[")) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

void check_host(const Service& service, const HttpRequest& request) {
  const std::vector<std::string>& allowed = service.options().hosts;
  if (allowed.empty()) return;
  const std::string* host = request.header("host");
  const auto is_named = [&](const std::string& one) {
    return lower_case(one) == lower_case(host_name(*host));
  };
  if (host != nullptr && std::ranges::any_of(allowed, is_named)) return;
  throw Refusal{.status = 403,
                .message = fmt::format("the Host field names another server; this one is {}",
                                       fmt::join(allowed, ", "))};
}

// A page of another site may send a request, though it may not read the answer; a link there that
// somebody follows shows this server's page by itself.
void check_origin(const HttpRequest& request) {
  const std::string* site = request.header("sec-fetch-site");
  if (site == nullptr || *site != "cross-site") return;
  const std::string* mode = request.header("sec-fetch-mode");
  if (request.method == "GET" && mode != nullptr && *mode == "navigate") return;
  throw Refusal{.status = 403, .message = "a page of another site sent this; CORS is off"};
}

std::string key_of(const Exchange& e) {
  const auto after = [&](std::string_view scheme) -> std::string {
    const std::string* field = e.request.header("authorization");
    const bool is_it = field != nullptr && lower_case(field->substr(0, scheme.size())) ==
                                               lower_case(std::string(scheme));
    return is_it ? field->substr(scheme.size()) : "";
  };
  if (e.dialect == Dialect::deepl) return after("DeepL-Auth-Key ");
  std::string key = after("Bearer ");
  // LibreTranslate's clients show it in the body.
  if (key.empty() && e.dialect == Dialect::libre && !e.request.body.empty()) {
    key = text_of(body_of(e), "api_key");
  }
  return key;
}

void check_key(const Exchange& e) {
  const Keys& keys = e.service.keys();
  if (!keys.are_needed() || keys.holds(key_of(e))) return;
  throw Refusal{.status = e.dialect == Dialect::openai ? 401 : 403,
                .message = "the key is missing or wrong",
                .type = "authentication_error",
                .code = "invalid_api_key"};
}

[[noreturn]] void refuse_for_now(const char* what, const char* code) {
  throw Refusal{.status = 503,
                .message = fmt::format("the server is {}", what),
                .type = "server_error",
                .code = code,
                .retry_after = 5};
}

const Route& route_of(const HttpRequest& request) {
  const Route* other = nullptr;
  for (const Route& route : kRoutes) {
    if (request.path != route.path) continue;
    if (request.method == route.method) return route;
    other = &route;
  }
  if (other != nullptr) {
    throw Refusal{
        .status = 405,
        .message = fmt::format("{} takes {}, not {}", other->path, other->method, request.method),
        .allow = other->method};
  }
  throw Refusal{.status = 404, .message = "there is no such path"};
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

void answer_request(Service& service, HttpRequest request, const std::shared_ptr<Reply>& reply,
                    uint64_t number) {
  const auto e = std::make_shared<Exchange>(service, std::move(request), reply, number);
  const FieldsByKey by_key;
  try {
    check_host(service, e->request);
    check_origin(e->request);
    const Route& route = route_of(e->request);
    e->route = route.path;
    e->dialect = route.dialect;
    if (route.needs_key) check_key(*e);
    if (service.is_draining() && route.needs_key) refuse_for_now("ending", "draining");
    const bool is_of_health = e->request.path.starts_with("/health/");
    if (service.is_loading() && !is_of_health) refuse_for_now("loading its models", "loading");
    if (std::string_view(route.method) == "POST") {
      if (const auto refusal = refusal_for_now(service)) return e->fail(*refusal);
    }
    route.handler(e);
  } catch (...) {
    e->fail(std::current_exception());
  }
}

// --- what the server says of itself --------------------------------------------------------------

namespace {

constexpr inspect::Asset kDescriptions[] = {
#include "openapi.inc"  // written by CMakeLists.txt
};

}  // namespace

void openapi(const SharedExchange& e) {
  e->send_text(std::string(kDescriptions[0].text), "application/json");
}

void health_live(const SharedExchange& e) { e->send(Json::object({{"status", "live"}})); }

void health_ready(const SharedExchange& e) {
  const bool is_draining = e->service.is_draining(), is_loading = e->service.is_loading();
  const char* status = is_draining ? "draining" : is_loading ? "loading" : "ready";
  e->send(Json::object({{"status", status}}), is_draining || is_loading ? 503 : 200);
}

void metrics(const SharedExchange& e) {
  e->send_text(e->service.metrics().text(e->service.now()), "text/plain; version=0.0.4");
}

namespace {

Json list_of_models(const Service& service) {
  Json list = Json::array();
  for (const auto& model : service.models()) {
    Json one = Json::object({{"id", model->name},
                             {"object", "model"},
                             {"created", service.started_at()},
                             {"owned_by", "heddle"},
                             {"type", model->loaded().type},
                             {"use", model->purpose()}});
    if (model->use == ModelUse::generate) one["chat"] = model->chat.has_value();
    if (!model->source_language.empty()) {
      one["source_language"] = model->source_language;
      one["target_language"] = model->target_language;
    }
    const LoadedModel& loaded = model->loaded();
    one["parameters"] = loaded.parameters.elements();
    if (loaded.max_length > 0) one["max_length"] = loaded.max_length;
    if (has_labels(loaded.model->head())) one["num_labels"] = loaded.model->labels().size();
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

void models(const SharedExchange& e) {
  e->send(Json::object({{"object", "list"}, {"data", list_of_models(e->service)}}));
}

void front_page(const SharedExchange& e) {
  const inspect::Page page{.title = "heddle",
                           .data = Json::object({{"models", list_of_models(e->service)},
                                                 {"needs_key", e->service.keys().are_needed()}}),
                           .scripts = {"texts.js", "boxes.js", "serve_images.js",
                                       "serve_attention.js", "serve_text.js", "serve.js"},
                           .asks_server = true};
  e->send_text(inspect::page_html(page), "text/html; charset=utf-8");
}

}  // namespace heddle::serve
