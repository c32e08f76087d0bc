// Models, keys and budgets; routes are api/'s.
#include "heddle/serve/service.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

bool TokenBudget::take(int64_t tokens) {
  int64_t before = taken_;
  do {
    if (before + tokens > most_) return false;
  } while (!taken_.compare_exchange_weak(before, before + tokens));
  return true;
}

namespace {

// When a file changed last, in ns; -1 where there is none.
int64_t change_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return -1;
  return static_cast<int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// Whether two texts are equal, in a time that tells nothing of where they differ.
bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    differs = static_cast<unsigned char>(differs | (a[i] ^ b[i]));
  }
  return differs == 0;
}

}  // namespace

Keys::Keys(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  changed_ = change_of(path_);
  keys_ = read();
}

std::vector<std::string> Keys::read() const {
  struct stat status = {};
  check(::stat(path_.c_str(), &status) != 0 || (status.st_mode & 077) == 0, ErrorKind::usage,
        "{}: others than its owner may read the keys; chmod 600 it", path_);
  std::vector<std::string> keys;
  const std::string text = read_file(path_);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line[0] != '#') keys.push_back(std::move(line));
    at = end + 1;
  }
  check(!keys.empty(), ErrorKind::data, "{}: there is no key; give one a line", path_);
  return keys;
}

bool Keys::holds(std::string_view key) const {
  bool is_held = false;
  for (const std::string& known : keys_) is_held = are_equal(known, key) || is_held;
  return is_held;
}

void Keys::refresh() {
  if (path_.empty()) return;
  const int64_t changed = change_of(path_);
  if (changed == changed_) return;
  changed_ = changed;
  try {
    keys_ = read();
    log_info("serve: {} keys of {}", keys_.size(), path_);
  } catch (const Error& error) {
    log_warning("serve: the keys stay as they were: {}", error.what());
  }
}

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      keys_(options_.keys_path),
      budget_(options_.queue_tokens),
      started_at_(static_cast<int64_t>(std::time(nullptr))) {
  std::vector<Scheduler*> schedulers;
  for (const std::string& argument : options_.models) {
    models_.push_back(load_served_model(
        argument, {.precision = options_.precision, .cache_rows = options_.cache_rows}));
    const ServedModel& model = *models_.back();
    const auto same = std::ranges::count_if(
        models_, [&](const auto& other) { return other->name == model.name; });
    check(same == 1, ErrorKind::usage, "two models are called '{}'; name one with NAME=FOLDER",
          model.name);
    metrics_.model(model.name, model.loaded().type);
    if (model.scheduler) schedulers.push_back(model.scheduler.get());
  }
  engine_ = std::make_unique<EngineThread>(std::move(schedulers));
}

ServerMetrics::Now Service::now() const {
  ServerMetrics::Now now{.connections = server_ != nullptr ? server_->connections() : 0,
                         .admitted_tokens = budget_.taken()};
  for (const auto& model : models_) {
    if (!model->scheduler) continue;
    now.running += model->scheduler->running();
    now.waiting += model->scheduler->waiting();
    now.cache_rows += model->scheduler->rows();
  }
  return now;
}

double Service::seconds_for(int64_t tokens) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const double speed = static_cast<double>(worked_) / std::max(seconds, 1.0);
  return std::clamp(static_cast<double>(tokens) / std::max(speed, 100.0), 0.1, 60.0);
}

void Service::worked_off(int64_t tokens) {
  worked_ += tokens;
  budget_.give_back(tokens);
}

void Service::answer(HttpRequest request, const std::shared_ptr<Reply>& reply) {
  answer_request(*this, std::move(request), reply, ++requests_);
}

}  // namespace heddle::serve
