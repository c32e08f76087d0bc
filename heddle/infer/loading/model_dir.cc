// Finding a model's folder, and saying what else a path names.
#include "heddle/infer/loading/model_dir.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/names.h"
#include "heddle/io/snapshot.h"

namespace heddle {
namespace {

// What to do about a training run that has no model; names the one that it was to replace.
std::string hint_of_run(const std::string& run) {
  const bool has_saved = path_exists(join_path(join_path(run, "state"), kManifestName));
  const std::string replaced = join_path(run, "replaced");
  if (!is_directory(join_path(replaced, "best"))) {
    return fmt::format(
        "this training run has not been validated yet, so it has no model; go on with heddle train "
        "{} {}",
        field_name("out"), run);
  }
  if (has_saved) {
    return fmt::format(
        "the run begun here with {} has not been validated yet, so it has no model; go on "
        "with heddle train {} {}, or name {}, which keeps the earlier run until then",
        field_name("overwrite"), field_name("out"), run, replaced);
  }
  return fmt::format(
      "a start with {} was stopped here; heddle train {} {} puts back the run that it "
      "was to replace, which lies in {}",
      field_name("overwrite"), field_name("out"), run, replaced);
}

}  // namespace

std::string find_model_dir(const std::string& path) {
  check(path_exists(path), ErrorKind::data,
        "{}: there is no such folder; a model directory or a training run is needed{}", path,
        hub_hint(path));
  check(is_directory(path), ErrorKind::data,
        "{}: it is a file; the folder of a model or of a training run is needed", path);
  if (path_exists(join_path(path, kConfigName))) return path;
  const std::string best = join_path(path, "best");
  if (path_exists(join_path(best, kConfigName))) return best;
  const bool is_run =
      path_exists(join_path(path, "train.json")) || is_directory(join_path(path, "replaced/best"));
  check(!is_run, ErrorKind::data, "{}: {}", path, hint_of_run(path));
  fail(ErrorKind::data,
       "{}: it holds neither {} nor best/{}; a model directory or a training run is needed", path,
       kConfigName, kConfigName);
}

std::string hub_hint(const std::string& path) {
  constexpr std::string_view kOthers = "-_./";
  const auto may_stand = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kOthers.find(static_cast<char>(c)) != kOthers.npos;
  };
  const size_t slash = path.find('/');
  const bool is_name = !path.empty() && path[0] != '/' && path[0] != '.' && path.back() != '/' &&
                       std::count(path.begin(), path.end(), '/') <= 1 &&
                       std::all_of(path.begin(), path.end(), may_stand);
  // "runs/other", where runs is there, is a path that was mistyped.
  const bool is_path = slash != path.npos && path_exists(path.substr(0, slash));
  if (!is_name || is_path || path_exists(path)) return "";
  const std::string folder = path.substr(slash == path.npos ? 0 : slash + 1);
  return fmt::format(
      ". heddle downloads nothing: a model of huggingface.co becomes a folder by "
      "`huggingface-cli download {} --local-dir {}` (docs/getting-a-model.md)",
      path, folder);
}

}  // namespace heddle
