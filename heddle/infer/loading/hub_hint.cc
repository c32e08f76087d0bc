// Names of models on huggingface.co: NAME or OWNER/NAME.
#include "heddle/infer/loading/hub_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "heddle/base/files/files.h"

namespace heddle {

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
