// The description of the interface beside the interface: its routes are those of the router, its
// examples are asked of a server, and what comes back is as described.
#include <set>

#include "heddle/serve/api/exchange.h"
#include "heddle/text/strings/strings.h"
#include "tests/cli/page_data.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"
#include "tests/serve/schema.h"

namespace heddle::serve {
namespace {

using testing::SchemaCheck;

std::string lower_method(std::string method) {
  for (char& c : method) c = static_cast<char>(std::tolower(c));
  return method;
}

class OpenApi : public ::testing::Test {
 protected:
  // A model of each use.
  static ServiceOptions service() {
    ServiceOptions options = default_service();
    options.models.push_back("reader=" + testing::text_model("classify"));
    options.models.push_back(language_folder());
    for (const std::string& model : image_service().models) options.models.push_back(model);
    return options;
  }
  Running running_{service()};
  const Json document_ = get(running_.port(), "/openapi.json").json();
  const SchemaCheck check_{document_};

  // The operation of a route.
  const Json& operation(const Route& route) const {
    return document_.at("paths").at(route.path).at(lower_method(route.method));
  }
  const Json& resolved(const Json& response) const {
    const Json* reference = response.find("$ref");
    return reference == nullptr ? response : check_.target(reference->as_string());
  }
  // What is wrong with an answer.
  std::string fault_of(const Json& operation, const Answer& answer) const {
    const Json& all = operation.at("responses");
    const std::string status = std::to_string(answer.status);
    const Json& content = resolved(all.at(all.contains(status) ? status : "default")).at("content");
    const size_t at = answer.head.find("Content-Type: ");
    if (at == std::string::npos) return "no content type";
    const std::string type =
        answer.head.substr(at + 14, answer.head.find_first_of(";\r", at) - at - 14);
    const Json* described = content.find(type);
    if (described == nullptr) return "the type " + type + " is not described";
    if (type == "text/event-stream")
      return fault_of_events(described->at("x-event-schema"), answer);
    return check_.fault(described->at("schema"),
                        type == "application/json" ? answer.json() : Json(answer.body));
  }
  // Each event lies in a chunk of its own or several do, so lines are looked for.
  std::string fault_of_events(const Json& schema, const Answer& answer) const {
    int events = 0;
    for (size_t at = 0; (at = answer.body.find("data: {", at)) != std::string::npos; ++events) {
      const size_t end = answer.body.find("\n\n", at);
      const std::string fault =
          check_.fault(schema, Json::parse(answer.body.substr(at + 6, end - at - 6)));
      if (!fault.empty()) return fault;
      at = end;
    }
    if (answer.body.find("data: [DONE]\n\n") == std::string::npos) return "no [DONE]";
    return events > 0 ? "" : "no event";
  }
};

TEST_F(OpenApi, every_route_is_described_and_nothing_else_is) {
  std::set<std::pair<std::string, std::string>> known, described;
  for (const Route& route : routes()) known.emplace(lower_method(route.method), route.path);
  for (const auto& [path, methods] : document_.at("paths").as_object()) {
    for (const auto& [method, operation] : methods.as_object()) described.emplace(method, path);
  }
  EXPECT_EQ(known, described);
  std::set<std::string> ids;
  for (const Route& route : routes()) {
    EXPECT_TRUE(ids.insert(operation(route).get_string("operationId")).second) << route.path;
    EXPECT_EQ(operation(route).contains("security"), route.needs_key) << route.path;
    const Json* error = operation(route).at("responses").find("default");
    ASSERT_EQ(error != nullptr, route.needs_key) << route.path;
    if (error == nullptr) continue;
    const char* names[] = {"Error", "LibreError", "DeeplError"};
    EXPECT_EQ(error->get_string("$ref"),
              std::string("#/components/responses/") + names[static_cast<size_t>(route.dialect)]);
  }
}

TEST_F(OpenApi, examples_are_answered_as_described) {
  int examples = 0;
  for (const Route& route : routes()) {
    const Json& asked = operation(route);
    if (std::string(route.method) == "GET") {
      std::string path = route.path;
      if (path.ends_with("{id}")) {
        const Json& id = asked.at("parameters").as_array()[0];
        path = replace_all(path, "{id}", id.get_string("example"));
      }
      const Answer answer = get(running_.port(), path);
      EXPECT_EQ(answer.status, 200) << route.path;
      EXPECT_EQ(fault_of(asked, answer), "") << route.path << answer.body;
      continue;
    }
    const Json& body = asked.at("requestBody").at("content").at("application/json");
    for (const auto& [name, example] : body.at("examples").as_object()) {
      const Json& value = example.at("value");
      EXPECT_EQ(check_.fault(body.at("schema"), value), "") << route.path << " " << name;
      const Answer answer = post(running_.port(), route.path, value.dump());
      EXPECT_EQ(answer.status, 200) << route.path << " " << name << answer.body;
      EXPECT_EQ(fault_of(asked, answer), "") << route.path << " " << name << answer.body;
      ++examples;
    }
    const Answer wrong = post(running_.port(), route.path, "{}");
    EXPECT_EQ(wrong.status, 400) << route.path;
    EXPECT_EQ(fault_of(asked, wrong), "") << route.path << wrong.body;
  }
  EXPECT_GT(examples, 10);
}

TEST_F(OpenApi, every_schema_and_response_is_used) {
  const std::string text = document_.dump();
  for (const char* kind : {"schemas", "responses"}) {
    for (const auto& [name, ignored] : document_.at("components").at(kind).as_object()) {
      const std::string reference = "\"#/components/" + std::string(kind) + "/" + name + "\"";
      EXPECT_NE(text.find(reference), std::string::npos) << reference;
    }
  }
}

TEST_F(OpenApi, values_that_are_not_as_described_are_found) {
  const Json& schemas = document_.at("components").at("schemas");
  const auto fault = [&](const char* name, const char* value) {
    return check_.fault(schemas.at(name), Json::parse(value));
  };
  EXPECT_EQ(fault("Health", R"({"status": "live"})"), "");
  EXPECT_NE(fault("Health", R"({"status": "dead"})"), "");
  EXPECT_NE(fault("Health", R"({"status": "live", "more": 1})"), "");
  EXPECT_NE(fault("Health", "{}"), "");
  EXPECT_NE(fault("TranslationRequest", R"({"text": []})"), "");
  EXPECT_NE(fault("TranslationRequest", R"({"text": "a", "beam": 0})"), "");
  EXPECT_NE(fault("CompletionChoice", R"({"text": "a", "index": 0, "logprobs": null,
                                          "finish_reason": ""})"),
            "");
}

}  // namespace
}  // namespace heddle::serve
