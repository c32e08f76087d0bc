// Setting a run aside, putting it back, removing it; what a kill on the way leaves.
#include "heddle/train/run/replaced_run.h"

#include <cstdio>
#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/train/run/run_folder.h"

namespace heddle::train {
namespace {

namespace fs = std::filesystem;

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

// All that a run writes but the lock; train.json last, which says that it is all there.
bool move_run(const std::string& from, const std::string& to) {
  const std::string from_state = join_path(from, "state"), to_state = join_path(to, "state");
  bool has_moved = false;
  if (is_directory(from_state)) {
    make_directories(to_state);
    for (const std::string& name : list_directory(from_state)) {
      if (name != kLockName) has_moved = move_entry(from_state, to_state, name) || has_moved;
    }
    sync_directory(to_state);
  }
  for (const char* name : kRunNames) has_moved = move_entry(from, to, name) || has_moved;
  sync_directory(to);
  sync_directory(from);
  return has_moved;
}

}  // namespace

bool keeps_replaced(const std::string& run) { return is_run(replaced_path(run)); }

void check_can_replace(const std::string& run, const TrainConfig& config, const RunPaths& paths) {
  std::vector<std::pair<std::string, std::string>> inputs = {
      {"data", paths.data}, {"val_data", paths.val_data}, {"from", paths.from}};
  const Json settings = to_json(config);
  for (const char* key : {"tokenizer", "target_tokenizer"}) {
    if (settings.contains(key)) inputs.emplace_back(key, settings.get_string(key));
  }
  for (const auto& [key, path] : inputs) {
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

void settle_replaced(const std::string& run) {
  const std::string replaced = replaced_path(run);
  if (!is_directory(replaced)) return;
  const std::string folder = join_path(run, "state");
  StateFolder state(folder);
  if (is_run(replaced) && is_run(run) && state.holds_state()) {
    const auto place = StateFolder::place(folder);
    if (place && place->has_model) drop_replaced(run);
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

}  // namespace heddle::train
