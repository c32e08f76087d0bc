// What answers requests: models, the threads that they compute on, limits, keys, counters.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/serve/engine_threads.h"
#include "heddle/serve/http/server.h"
#include "heddle/serve/metrics.h"
#include "heddle/serve/served_model.h"

namespace heddle::serve {

struct ServiceOptions {
  std::vector<std::string> models;      ///< folders, or NAME=FOLDER
  std::string keys_path = {};           ///< a file with a key a line; "": no keys are asked for
  std::vector<std::string> hosts = {};  ///< names that the Host field may have; none: any
  Precision precision = {};
  int64_t cache_rows = 65536;     ///< of the KV cache of each model
  int64_t queue_tokens = 262144;  ///< that all jobs that wait or run may come to together
  int64_t queue_seconds = 30;     ///< that a job may wait
  int64_t most_texts = 512;       ///< of a request
  int64_t most_beams = 16, most_results = 16;
  int64_t most_pixels = 25'000'000;  ///< of an image
  int64_t most_levels = 32;          ///< of a body's JSON, up to 200
  HttpLimits http = {};
};

/// Tokens that jobs may come to together: what is beyond is refused at once.
class TokenBudget {
 public:
  explicit TokenBudget(int64_t most) : most_(most) {}
  /// Takes so many, if they are there. One that is larger than all is never taken.
  bool take(int64_t tokens);
  void give_back(int64_t tokens) { taken_ -= tokens; }
  int64_t taken() const { return taken_; }
  /// Since when some are taken, without a moment between; of none, the last such time.
  Moment busy_since() const { return busy_since_; }
  int64_t most() const { return most_; }

 private:
  const int64_t most_;
  std::atomic<int64_t> taken_ = 0;
  std::atomic<Moment> busy_since_ = Moment();
};

/// Keys that clients may have, one of which each must show. The file is read again once it has
/// changed.
class Keys {
 public:
  /// Errors: usage if others than its owner may read the file; data if it has no key.
  explicit Keys(std::string path);
  bool are_needed() const { return !path_.empty(); }
  /// Takes as long for any key of a length, right or wrong.
  bool holds(std::string_view key) const;
  /// Reads the file again if it is another one than before. A file that cannot be used is said, and
  /// the keys stay.
  void refresh();

 private:
  std::vector<std::string> read() const;
  std::string path_;
  std::vector<std::string> keys_;
  std::pair<uint64_t, int64_t> changed_ = {};  // which file it was, when it changed last, in ns
};

class Service {
 public:
  /// Without models: until load(), or reload() and take_reloaded(), all but /health is answered
  /// with 503. Errors: those of Keys.
  explicit Service(ServiceOptions options);
  /// Loads the models, which are answered with from then on.
  /// Errors: those of loading; usage for two of one name; system if there are no threads for them.
  void load();
  bool is_loading() const { return models_.empty(); }

  const ServiceOptions& options() const { return options_; }
  /// Those that requests are answered with now. From the server's thread, as all but counters.
  const std::vector<SharedModel>& models() const { return models_; }
  EngineThreads& engines() { return *engines_; }
  TokenBudget& budget() { return budget_; }
  const TokenBudget& budget() const { return budget_; }
  ServerMetrics& metrics() { return metrics_; }
  const Keys& keys() const { return keys_; }
  void refresh_keys() { keys_.refresh(); }
  int64_t started_at() const { return started_at_; }  ///< seconds since 1970

  /// Answers one request, see HttpHandler. From the server's thread alone.
  void answer(HttpRequest request, const std::shared_ptr<Reply>& reply);
  /// Counts a refusal, see RefusalHandler. From the server's thread alone.
  std::string refused(int status);
  /// What x-request-id says of a request whose client gave it no name.
  std::string request_id(uint64_t number) const;
  /// Loads the models anew beside those that answer, on a thread of its own; take_reloaded() puts
  /// them in their place. While it loads another call changes nothing.
  void reload();
  /// Whether models that were loaded anew answer from now on; requests that came before end with
  /// those before. Folders that cannot be loaded are said, and the models stay; where there are
  /// none yet, errors are those of load().
  bool take_reloaded();
  bool is_reloading() const { return reloaded_.valid(); }
  /// What /health/ready says from now on is that it is not.
  void drain() { is_draining_ = true; }
  bool is_draining() const { return is_draining_; }
  /// That /metrics tells connections of.
  void set_server(const HttpServer* server) { server_ = server; }
  ServerMetrics::Now now() const;
  /// Seconds in which so many tokens are likely to be worked off, by the speed so far.
  double seconds_for(int64_t tokens) const;
  /// Tokens that a job had taken of the budget are worked off. From any thread.
  void worked_off(int64_t tokens);

 private:
  void take(std::vector<SharedModel> models);

  const ServiceOptions options_;
  Keys keys_;
  std::vector<SharedModel> models_;
  std::future<std::vector<SharedModel>> reloaded_;
  bool is_asked_again_ = false;  ///< while they are loaded: the files may have changed since
  TokenBudget budget_;
  ServerMetrics metrics_;
  const HttpServer* server_ = nullptr;
  std::atomic<bool> is_draining_ = false;
  mutable std::mutex speed_mutex_;  // of the three that follow
  int64_t worked_ = 0, busy_us_ = 0;
  Moment last_worked_ = Clock::now();
  const int64_t started_at_;
  std::atomic<uint64_t> requests_ = 0;
  std::unique_ptr<EngineThreads> engines_;  // last: they end first
};

}  // namespace heddle::serve
