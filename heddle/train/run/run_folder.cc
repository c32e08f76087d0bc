// Reading, checking, writing, clearing and replacing the folder of a run; its log.
#include "heddle/train/run/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"

namespace heddle::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettingsName = kRunNames.back();

std::string settings_path(const std::string& run) { return join_path(run, kSettingsName); }

std::string replaced_path(const std::string& run) { return join_path(run, "replaced"); }

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found && !error;
}

// True if it was there.
bool move_entry(const std::string& from, const std::string& to, const std::string& name) {
  const std::string source = join_path(from, name), target = join_path(to, name);
  if (!is_there(source)) return false;
  if (std::rename(source.c_str(), target.c_str()) != 0) {
    fail_errno(fmt::format("cannot move {} to it", source), target, errno);
  }
  return true;
}

// All that a run writes but the lock, and nothing else; train.json last, which says that it is all
// there.
bool move_run(const std::string& from, const std::string& to) {
  const std::string from_state = join_path(from, "state"), to_state = join_path(to, "state");
  bool has_moved = false;
  if (is_directory(from_state)) {
    make_directories(to_state);
    for (const std::string& name : list_directory(from_state)) {
      if (name == kLockName || !StateFolder::owns(name)) continue;
      has_moved = move_entry(from_state, to_state, name) || has_moved;
    }
    sync_directory(to_state);
  }
  for (const char* name : kRunNames) has_moved = move_entry(from, to, name) || has_moved;
  sync_directory(to);
  sync_directory(from);
  return has_moved;
}

// The bytes up to the end of the last whole line of the first `bytes`.
int64_t whole_lines(const std::string& path, int64_t bytes) {
  std::string text = read_file(path);
  text.resize(std::min(text.size(), static_cast<size_t>(bytes)));
  const size_t end = text.rfind('\n');
  return end == text.npos ? 0 : static_cast<int64_t>(end) + 1;
}

// How far a log goes.
struct Logged {
  int64_t first_validation = 0, last = 0;  // updates; 0: none
};

Logged read_log(const std::string& run) {
  const std::string path = join_path(run, "log.jsonl");
  if (!path_exists(path)) return {};
  Logged logged;
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    try {
      const Json json = Json::parse(line);
      const int64_t update = json.get_int("update", path);
      if (json.contains("validation") && logged.first_validation == 0) {
        logged.first_validation = update;
      }
      logged.last = std::max(logged.last, update);
    } catch (const Error&) {  // a kill leaves half a line
      continue;
    }
  }
  return logged;
}

}  // namespace

RunPaths made_absolute(RunPaths paths) {
  for (const Field& field : FieldList(paths)) {
    std::string& path = *std::get<std::string*>(field.member);
    if (!path.empty()) path = fs::absolute(path).string();
  }
  return paths;
}

bool is_run(const std::string& run) { return path_exists(settings_path(run)); }

RunSettings load_settings(const std::string& run) {
  const std::string path = settings_path(run);
  Json json = Json::load(path);
  RunSettings settings;
  static_cast<void>(from_json(settings.paths, json, path));  // the other keys are the config's
  for (const Field& field : FieldList(settings.paths)) json.erase(field.key);
  settings.config = parse_config(json, path);
  return settings;
}

TrainConfig stored_config(const std::string& run) { return load_settings(run).config; }

void save_settings(const std::string& run, const RunSettings& settings) {
  Json json = to_json(settings.paths);
  const Json fields = to_json(settings.config);
  for (const auto& [key, value] : fields.as_object()) json[key] = value;
  const std::string text = json.dump(2) + "\n";
  if (is_run(run) && read_file(settings_path(run)) == text) return;
  write_file_atomic(settings_path(run), text);
}

void check_same_config(const TrainConfig& stored, const TrainConfig& wanted,
                       const std::string& run) {
  for (const FieldDifference& d : diff_fields(stored, wanted)) {
    check(is_limit(d.key), ErrorKind::usage,
          "{} was begun with {} {}, not {}; use the same, or start anew with `overwrite`", run,
          field_name(d.key), d.first, d.second);
  }
}

void check_has_state(const std::string& run, const TrainConfig& config) {
  const std::string state = join_path(run, "state"), manifest = join_path(state, kManifestName);
  if (path_exists(manifest) || !path_exists(join_path(run, "best"))) return;
  // The folder is there before train.json, and a validation is saved before anything follows it.
  // Killed in between, the run ends in the same bits again, if it goes as far.
  const Logged logged = read_log(run);
  const bool was_saved = !path_exists(state) || logged.last > logged.first_validation ||
                         (config.max_updates > 0 && config.max_updates < logged.last);
  check(!was_saved, ErrorKind::usage,
        "{} is missing, so {} cannot go on from update {}, and beginning again would replace its "
        "model; put it back, or start anew with `overwrite`",
        path_exists(state) ? manifest : state, run, logged.last);
}

void check_empty(const std::string& run) {
  if (!path_exists(run)) return;
  for (const std::string& name : list_directory(run)) {
    if (is_temporary_name(name)) continue;
    // A start that was killed before it wrote train.json leaves state/lock alone.
    const std::string path = join_path(run, name);
    const bool is_ours = name == "state" && is_directory(path) &&
                         !path_exists(join_path(path, kManifestName)) &&
                         StateFolder::holds_only_states(path);
    check(is_ours, ErrorKind::usage,
          "{} is not empty and holds no run of heddle (it has '{}'); choose another `out`", run,
          name);
  }
}

void clear_run(const std::string& run, StateFolder& state) {
  state.clear();
  for (const char* name : kRunNames) remove_path(join_path(run, name));
}

void clear_tokenizers(const std::string& run) {
  for (const char* name : {"tokenizer.model", "target_tokenizer.model", "tokenizer"}) {
    remove_path(join_path(run, name));
  }
}

void remove_temporaries(const std::string& run) {
  for (const char* folder : {"", "last", "best", "cache", "data"}) {
    const std::string path = *folder == '\0' ? run : join_path(run, folder);
    if (!is_directory(path)) continue;
    for (const std::string& name : list_directory(path)) {
      if (is_temporary_name(name)) remove_path(join_path(path, name));
    }
  }
}

bool keeps_replaced(const std::string& run) { return is_run(replaced_path(run)); }

void check_can_replace(const std::string& run, const TrainConfig& config, const RunPaths& paths) {
  Json inputs = to_json(paths);
  const Json settings = to_json(config);
  for (const char* key : {"tokenizer", "target_tokenizer", "backbone"}) {
    if (settings.contains(key)) inputs[key] = settings.at(key);
  }
  for (const auto& [key, value] : inputs.as_object()) {
    const std::string& path = value.as_string();
    check(path.empty() || !lies_inside(path, run), ErrorKind::usage,
          "train: {} {} lies in {}, which `overwrite` replaces; choose another `out`, or copy it "
          "elsewhere first",
          field_name(key), path, run);
  }
  check(!is_there(replaced_path(run)) || keeps_replaced(run), ErrorKind::usage,
        "train: {} is in the way: a run that is replaced is kept there; move it elsewhere",
        replaced_path(run));
}

void set_aside(const std::string& run, StateFolder& state) {
  if (keeps_replaced(run)) return clear_run(run, state);
  const std::string replaced = replaced_path(run);
  make_directories(replaced);
  move_run(run, replaced);
}

bool put_back(const std::string& run, StateFolder& state) {
  const std::string replaced = replaced_path(run);
  if (is_run(replaced) && is_run(run)) clear_run(run, state);
  const bool has_moved = is_directory(replaced) && move_run(replaced, run);
  std::error_code ignored;  // what is not empty is not ours
  fs::remove(join_path(replaced, "state"), ignored);
  fs::remove(replaced, ignored);
  remove_temporaries(run);
  return has_moved;
}

void drop_replaced(const std::string& run) {
  // By another name first: half of it must not look like a run that is to be put back.
  const std::string old = temporary_name(replaced_path(run));
  rename_path(replaced_path(run), old);
  remove_path(old);
}

namespace {

// Whether the folders hold a run that is there, or on its way from one to the other: move_run()
// moves train.json last, and what has been moved is not where it was. All else is not ours.
bool is_half_moved(const std::string& run, const std::string& replaced) {
  if (is_run(replaced)) return true;
  return is_run(run) && std::ranges::none_of(kRunNames, [&](const char* name) {
           return is_there(join_path(run, name)) && is_there(join_path(replaced, name));
         });
}

}  // namespace

void settle_replaced(const std::string& run) {
  const std::string replaced = replaced_path(run);
  if (!is_directory(replaced) || !is_half_moved(run, replaced)) return;
  const std::string folder = join_path(run, "state");
  StateFolder state(folder);
  if (is_run(replaced) && is_run(run) && state.holds_state()) {
    const auto place = StateFolder::place(folder);
    if (place && !place->best_kind.empty()) drop_replaced(run);
    return;
  }
  if (put_back(run, state)) {
    log_warning(
        "{}: a start with {} was stopped before its first save; the run that it was to replace "
        "stands "
        "there again",
        run, field_name("overwrite"));
  }
}

RunLog::RunLog(const std::string& path, int64_t bytes)
    : path_(path),
      fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
      bytes_(bytes) {
  if (fd_ < 0) fail_errno("cannot write", path, errno);
  try {
    bytes_ = whole_lines(path, bytes);  // to be longer it would be filled up with zeros
    if (ftruncate(fd_, bytes_) != 0) fail_errno("cannot cut", path, errno);
  } catch (...) {
    close(fd_);
    throw;
  }
}

RunLog::~RunLog() { close(fd_); }

void RunLog::write(const Json& line) {
  const std::string text = line.dump() + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot write", path_, errno);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  bytes_ += static_cast<int64_t>(text.size());
}

void RunLog::sync() const {
  if (fsync(fd_) != 0) fail_errno("cannot write", path_, errno);
}

}  // namespace heddle::train
