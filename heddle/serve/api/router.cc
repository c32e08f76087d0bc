// Which route a request is for, and whether its client may ask.
#include <algorithm>
#include <array>
#include <optional>

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
    {"GET", "/v1/models/{id}", Dialect::openai, one_model},
    {"POST", "/v1/translations", Dialect::openai, translations},
    {"POST", "/v1/completions", Dialect::openai, completions},
    {"POST", "/v1/chat/completions", Dialect::openai, chat_completions},
    {"POST", "/v1/embeddings", Dialect::openai, embeddings},
    {"POST", "/v1/classify", Dialect::openai, classify},
    {"POST", "/v1/attention", Dialect::openai, attention},
    {"POST", "/v1/images/classify", Dialect::openai, images_classify},
    {"POST", "/v1/images/detect", Dialect::openai, images_detect},
    {"POST", "/v1/images/caption", Dialect::openai, images_caption},
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

// Whether no page of another server sent it, by what browsers say: where they trust the connection
// by Sec-Fetch-Site, else, of all that is more than to look, by Origin ("http://192.0.2.1:8080").
bool is_of_own_page(const HttpRequest& request) {
  const std::string* site = request.header("sec-fetch-site");
  if (site != nullptr) return *site == "same-origin" || *site == "none";
  const std::string *origin = request.header("origin"), *host = request.header("host");
  if (origin == nullptr) return true;
  const size_t scheme = origin->find("://");
  return scheme != origin->npos && host != nullptr &&
         lower_case(origin->substr(scheme + 3)) == lower_case(*host);
}

// Another server's page may send a request, though it may not read the answer; a link there that
// somebody follows shows this server's page by itself.
void check_origin(const HttpRequest& request) {
  if (is_of_own_page(request)) return;
  const std::string* mode = request.header("sec-fetch-mode");
  if (request.method == "GET" && mode != nullptr && *mode == "navigate") return;
  throw Refusal{.status = 403, .message = "a page of another server sent this; CORS is off"};
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

// What stands in the place of "{id}" of a route's path, if the request is for it; "" of others.
std::optional<std::string> id_in_path(const Route& route, std::string_view path) {
  constexpr std::string_view kId = "{id}";
  std::string_view begin = route.path;
  if (!begin.ends_with(kId)) {
    if (path != begin) return {};
    return "";
  }
  begin.remove_suffix(kId.size());
  if (!path.starts_with(begin) || path.size() == begin.size()) return {};
  return percent_decoded(path.substr(begin.size()));
}

const Route& route_of(const HttpRequest& request) {
  const Route* other = nullptr;
  for (const Route& route : kRoutes) {
    if (!id_in_path(route, request.path)) continue;
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
    e->id_in_path = *id_in_path(route, e->request.path);
    e->dialect = route.dialect;
    if (route.needs_key) check_key(*e);
    const bool is_watched =
        e->request.path.starts_with("/health/") || e->request.path == "/metrics";
    if (service.is_draining() && !is_watched) refuse_for_now("ending", "draining");
    if (service.is_loading() && !is_watched) refuse_for_now("loading its models", "loading");
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

Json model_json(const Service& service, const ServedModel& model) {
  Json json = Json::object({{"id", model.name},
                            {"object", "model"},
                            {"created", service.started_at()},
                            {"owned_by", "heddle"},
                            {"type", model.loaded().type},
                            {"use", model.purpose()}});
  if (model.use == ModelUse::generate) json["chat"] = model.chat.has_value();
  if (!model.source_language.empty()) {
    json["source_language"] = model.source_language;
    json["target_language"] = model.target_language;
  }
  if (!model.source_languages.empty()) json["source_languages"] = model.source_languages;
  if (!model.target_languages.empty()) json["target_languages"] = model.target_languages;
  const LoadedModel& loaded = model.loaded();
  json["parameters"] = loaded.parameters.elements();
  const bool is_bounded = loaded.max_length > 0 && loaded.max_length < kAnyLength;
  if (is_bounded && !model.reads_images()) json["max_length"] = loaded.max_length;
  if (model.use == ModelUse::translate) {
    json["alignment"] = loaded.translator().facts().cross_attention_layers > 0;
  }
  if (model.use == ModelUse::caption) json["maps"] = has_maps(model.captioner().model());
  const bool has_classes =
      model.use == ModelUse::classify || (model.reads_images() && model.use != ModelUse::caption);
  if (has_classes) json["num_labels"] = loaded.model->labels().size();
  return json;
}

Json list_of_models(const Service& service) {
  Json list = Json::array();
  for (const SharedModel& model : service.models()) list.push_back(model_json(service, *model));
  return list;
}

}  // namespace

void models(const SharedExchange& e) {
  e->send(Json::object({{"object", "list"}, {"data", list_of_models(e->service)}}));
}

void one_model(const SharedExchange& e) {
  e->send(model_json(e->service, *model_called(e->service, e->id_in_path)));
}

// Where keys are needed it says nothing of the models: it asks for them with the reader's key.
void front_page(const SharedExchange& e) {
  const bool needs_key = e->service.keys().are_needed();
  Json data = Json::object({{"needs_key", needs_key}});
  if (!needs_key) data["models"] = list_of_models(e->service);
  const inspect::Page page{
      .title = "heddle",
      .data = std::move(data),
      .scripts = {"texts.js", "boxes.js", "image_canvas.js", "captioned.js", "serve_images.js",
                  "serve_attention.js", "serve_text.js", "serve.js"},
      .asks_server = true};
  e->send_text(inspect::page_html(page), "text/html; charset=utf-8");
}

}  // namespace heddle::serve
