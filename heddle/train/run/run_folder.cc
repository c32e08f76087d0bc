// Reading, checking, writing and clearing the folder of a run.
#include "heddle/train/run/run_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/base/names.h"

namespace heddle::train {
namespace {

constexpr const char* kSettingsName = kRunNames.back();
constexpr const char* kStateName = "state";

struct NamedPath {
  const char* key;
  std::string RunPaths::*member;
};
constexpr std::array kPaths = {NamedPath{"data", &RunPaths::data},
                               NamedPath{"val_data", &RunPaths::val_data},
                               NamedPath{"from", &RunPaths::from}};

std::string settings_path(const std::string& run) { return join_path(run, kSettingsName); }

}  // namespace

RunPaths or_else(RunPaths paths, const RunPaths& stored) {
  for (const auto& [key, member] : kPaths) {
    if ((paths.*member).empty()) paths.*member = stored.*member;
  }
  return paths;
}

RunPaths made_absolute(RunPaths paths) {
  for (const auto& [key, member] : kPaths) {
    std::string& path = paths.*member;
    if (!path.empty()) path = std::filesystem::absolute(path).string();
  }
  return paths;
}

bool is_run(const std::string& run) { return path_exists(settings_path(run)); }

RunSettings load_settings(const std::string& run) {
  const std::string path = settings_path(run);
  Json json = Json::load(path);
  RunSettings settings;
  for (const auto& [key, member] : kPaths) {
    if (const Json* found = json.find(key)) {
      settings.paths.*member = found->as_string(fmt::format("{}: key '{}'", path, key));
      json.erase(key);
    }
  }
  settings.config = parse_config(json, path);
  return settings;
}

TrainConfig stored_config(const std::string& run) { return load_settings(run).config; }

void save_settings(const std::string& run, const RunSettings& settings) {
  Json json = Json::object();
  for (const auto& [key, member] : kPaths) json[key] = settings.paths.*member;
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

void check_empty(const std::string& run) {
  if (!path_exists(run)) return;
  for (const std::string& name : list_directory(run)) {
    if (is_temporary_name(name)) continue;
    // A start that was killed before it wrote train.json leaves state/lock alone.
    const std::string path = join_path(run, name);
    const bool is_ours =
        name == kStateName && is_directory(path) && !path_exists(join_path(path, kManifestName));
    check(is_ours, ErrorKind::usage,
          "{} is not empty and holds no run of heddle (it has '{}'); choose another `out`", run,
          name);
  }
}

void clear_run(const std::string& run, StateFolder& state) {
  state.clear();
  for (const char* name : kRunNames) remove_path(join_path(run, name));
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

}  // namespace heddle::train
