// A service with its server, in the process of the test.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "heddle/serve/service.h"
#include "heddle/text/strings/strings.h"
#include "tests/cli/language_model.h"
#include "tests/cli/page_data.h"
#include "tests/cli/vision_model.h"
#include "tests/infer/small_captioner.h"
#include "tests/support/wait.h"

namespace heddle::serve {

// The models of all tests: a translator called en-de, and a GPT-2; models of images.
inline const std::string& model_folder() {
  static const testing::TempDir folder;
  static const std::string path = [] {
    testing::write_small_model((folder / "en-de").string());
    testing::write_language_model((folder / "gpt").string());
    testing::write_file((folder / "gpt/chat_template.jinja").string(),
                        "{% for m in messages %}<s>{{ m.role[0] }}:{{ m.content | trim }}</s>"
                        "{% endfor %}{% if add_generation_prompt %}<s>a:{% endif %}");
    testing::write_vision_model((folder / "vit").string());
    testing::write_vision_model((folder / "detr").string(), "detr");
    testing::write_captioner((folder / "captioner").string());
    return folder.path().string();
  }();
  return path;
}

inline ServiceOptions default_service() {
  ServiceOptions options;
  options.models = {model_folder() + "/en-de", "small=" + model_folder() + "/gpt"};
  return options;
}

/// A classifier of texts whose classes are languages.
inline std::string language_folder() {
  static const testing::TempDir folder;
  static const std::string path = [] {
    const std::string from = testing::text_model("classify"), to = (folder / "languages").string();
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
    Json config = Json::load(to + "/config.json");
    const char* codes[] = {"en", "de", "fr", "es", "it"};
    Json labels = Json::object(), ids = Json::object();
    for (size_t i = 0; i < config.at("id2label").size(); ++i) {
      labels[std::to_string(i)] = codes[i];
      ids[codes[i]] = i;
    }
    config["id2label"] = labels, config["label2id"] = ids;
    testing::write_file(to + "/config.json", config.dump());
    return to;
  }();
  return path;
}

inline ServiceOptions image_service() {
  ServiceOptions options;
  for (const char* name : {"/vit", "/detr", "/captioner"}) {
    options.models.push_back(model_folder() + name);
  }
  return options;
}

/// The file of an image in base64.
inline std::string base64_of(const std::string& image) {
  return base64_text(testing::read_file(testing::fixture_image(image)));
}

class Running {
 public:
  /// is_loaded: false: without models, until reload()
  explicit Running(const ServiceOptions& options = default_service(), bool is_loaded = true)
      : service_(options),
        server_(
            "127.0.0.1", 0, options.http,
            [this](HttpRequest request, std::shared_ptr<Reply> reply) {
              service_.answer(std::move(request), reply);
            },
            [this](int status) { return service_.refused(status); }) {
    if (is_loaded) service_.load();
    service_.set_server(&server_);
    thread_ = std::thread([this] {
      server_.run([this] {
        if (is_to_reload_.exchange(false)) service_.reload();
        swaps_ += service_.take_reloaded() ? 1 : 0;
        is_reloading_ = is_to_reload_ || service_.is_reloading();
      });
    });
  }
  ~Running() {
    server_.stop();
    thread_.join();
  }
  int port() const { return server_.port(); }
  Service& service() { return service_; }
  HttpServer& server() { return server_; }
  /// As SIGHUP does, on the server's thread.
  void reload() {
    is_to_reload_ = true;
    is_reloading_ = true;
  }
  bool is_reloading() const { return is_reloading_; }
  int swaps() const { return swaps_; }
  /// Tokens of the budget that are still taken when what was asked is answered: a response may be
  /// there a moment before its tokens are given back.
  int64_t taken_at_rest() const {
    testing::comes_true([this] { return service_.budget().taken() <= 0; });
    return service_.budget().taken();
  }
  const ServedModel& model(size_t i) const { return *service_.models()[i]; }

 private:
  Service service_;
  HttpServer server_;
  std::atomic<int> swaps_ = 0;
  std::atomic<bool> is_to_reload_ = false, is_reloading_ = false;
  std::thread thread_;
};

/// How many requests came so far to each phase, by what /metrics says.
inline std::map<std::string, int> phases_of(const std::string& metrics) {
  constexpr std::string_view kName = "heddle_request_phases_total{phase=\"";
  std::map<std::string, int> phases;
  for (size_t at = 0; (at = metrics.find(kName, at)) != std::string::npos;) {
    at += kName.size();
    const size_t end = metrics.find('"', at);
    phases[metrics.substr(at, end - at)] = std::stoi(metrics.substr(metrics.find(' ', end)));
  }
  return phases;
}

}  // namespace heddle::serve
