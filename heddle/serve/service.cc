// Models, keys and budgets; routes are api/'s.
#include "heddle/serve/service.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

bool TokenBudget::take(int64_t tokens) {
  int64_t before = taken_;
  do {
    if (before + tokens > most_) return false;
  } while (!taken_.compare_exchange_weak(before, before + tokens));
  if (before == 0) busy_since_ = Clock::now();
  return true;
}

namespace {

// Which file it is, and when it or its rights changed last, in ns; nothing where there is none.
std::pair<uint64_t, int64_t> change_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino,
          static_cast<int64_t>(status.st_ctim.tv_sec) * 1'000'000'000 + status.st_ctim.tv_nsec};
}

// Of a mode, what a file with keys must not have. systemd lets a unit's own user read its
// credentials by a list of rights, the mask of which stands where a group's rights do.
mode_t forbidden_rights(const std::string& path) {
  const char* const credentials = std::getenv("CREDENTIALS_DIRECTORY");
  const bool is_credential = credentials != nullptr && *credentials != '\0' &&
                             path.starts_with(std::string(credentials) + "/");
  return is_credential ? 037 : 077;
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
  const bool is_there = ::stat(path_.c_str(), &status) == 0;
  check(!is_there || (status.st_mode & forbidden_rights(path_)) == 0, ErrorKind::usage,
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
  const auto changed = change_of(path_);
  if (changed == changed_) return;
  changed_ = changed;
  try {
    keys_ = read();
    log_info("serve: {} keys of {}", keys_.size(), path_);
  } catch (const Error& error) {
    log_warning("serve: the keys stay as they were: {}", error.what());
  }
}

namespace {

std::vector<SharedModel> load_models(const ServiceOptions& options) {
  std::vector<SharedModel> models;
  for (const std::string& argument : options.models) {
    models.push_back(load_served_model(
        argument, {.precision = options.precision, .cache_rows = options.cache_rows}));
    const ServedModel& model = *models.back();
    const auto same =
        std::ranges::count_if(models, [&](const auto& other) { return other->name == model.name; });
    check(same == 1, ErrorKind::usage, "two models are called '{}'; name one with NAME=FOLDER",
          model.name);
  }
  return models;
}

// Those of the models that write tokens; each holds its model.
EngineThreads::Schedulers schedulers_of(const std::vector<SharedModel>& models) {
  EngineThreads::Schedulers schedulers;
  for (const SharedModel& model : models) {
    if (model->scheduler) schedulers.emplace_back(model, model->scheduler.get());
  }
  return schedulers;
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      keys_(options_.keys_path),
      budget_(options_.queue_tokens),
      started_at_(static_cast<int64_t>(std::time(nullptr))) {
  engines_ = std::make_unique<EngineThreads>(EngineThreads::Schedulers());
}

void Service::load() { take(load_models(options_)); }

void Service::take(std::vector<SharedModel> models) {
  engines_->replace(schedulers_of(models));
  models_ = std::move(models);
  std::vector<std::pair<std::string, std::string>> types;
  for (const SharedModel& model : models_) types.emplace_back(model->name, model->loaded().type);
  metrics_.models(types);
}

void Service::reload() {
  is_asked_again_ = reloaded_.valid();
  if (is_asked_again_) return;
  reloaded_ = std::async(std::launch::async, [this] { return load_models(options_); });
}

bool Service::take_reloaded() {
  using std::chrono_literals::operator""s;
  if (!reloaded_.valid() || reloaded_.wait_for(0s) != std::future_status::ready) return false;
  bool is_taken = false;
  const bool is_first = is_loading();
  try {
    take(reloaded_.get());
    if (!is_first) {
      log_info("serve: {} loaded anew", counted(std::ssize(models_), "model was", "models were"));
    }
    is_taken = true;
  } catch (const std::exception& error) {
    if (is_first) throw;
    log_error("serve: the models stay as they were: {}", error.what());
  }
  if (is_asked_again_) reload();
  return is_taken;
}

ServerMetrics::Now Service::now() const {
  ServerMetrics::Now now{.connections = server_ != nullptr ? server_->connections() : 0,
                         .admitted_tokens = budget_.taken()};
  for (const SharedModel& model : models_) {
    if (!model->scheduler) continue;
    now.running += model->scheduler->running();
    now.waiting += model->scheduler->waiting();
    now.cache_rows += model->scheduler->rows();
  }
  return now;
}

// By how long work has been under way, not by how long the server stands there.
double Service::seconds_for(int64_t tokens) const {
  const std::lock_guard lock(speed_mutex_);
  const double busy = 1e-6 * static_cast<double>(busy_us_);
  const double speed = static_cast<double>(worked_) / std::max(busy, 0.1);
  return std::clamp(static_cast<double>(tokens) / std::max(speed, 100.0), 0.1, 60.0);
}

void Service::worked_off(int64_t tokens) {
  const Moment now = Clock::now(), busy_since = budget_.busy_since();
  budget_.give_back(tokens);
  const std::lock_guard lock(speed_mutex_);
  // What was worked off long ago counts less and less.
  const auto busy = now - std::min(now, std::max(last_worked_, busy_since));
  last_worked_ = std::max(last_worked_, now);
  busy_us_ += std::chrono::duration_cast<std::chrono::microseconds>(busy).count();
  worked_ += tokens;
  if (busy_us_ > 60'000'000) worked_ /= 2, busy_us_ /= 2;
}

void Service::answer(HttpRequest request, const std::shared_ptr<Reply>& reply) {
  answer_request(*this, std::move(request), reply, ++requests_);
}

std::string Service::refused(int status) {
  metrics_.refused(status);
  return request_id(++requests_);
}

std::string Service::request_id(uint64_t number) const {
  return fmt::format("{:x}-{:x}", started_at_, number);
}

}  // namespace heddle::serve
