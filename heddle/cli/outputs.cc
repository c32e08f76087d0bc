// Files are the same by device and inode; of a folder the files count that its readers know.
#include "heddle/cli/outputs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/profile.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/model_folder.h"
#include "heddle/train/run/run_folder.h"

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

// What a flag was given.
struct Given {
  std::string flag, path;
};

struct Files {
  std::vector<Given> read, written;
};

void collect(const Subcommand& command, Files& files) {
  for (const Option& option : command.get_options()) {
    if (option.count() == 0) continue;
    std::vector<Given>& list = option.is_output() ? files.written : files.read;
    if (!option.is_output() && !option.is_text()) continue;
    for (const std::string& value : option.values()) {
      list.push_back({option.name(), value});
      const size_t named = value.find('=');  // NAME=FOLDER, of serve
      if (!option.is_output() && named != value.npos) {
        list.push_back({option.name(), value.substr(named + 1)});
      }
    }
  }
  for (const Subcommand& given : command.given_subcommands()) collect(given, files);
}

bool are_same(const std::string& a, const std::string& b) {
  std::error_code none_there;
  if (fs::equivalent(a, b, none_there)) return true;
  std::error_code error;
  const fs::path real_a = fs::weakly_canonical(a, error);
  return !error && real_a == fs::weakly_canonical(b, error) && !error;
}

// Devices and pipes take whatever comes.
bool is_replaced(const std::string& path) {
  std::error_code error;
  return !fs::exists(path, error) || fs::is_regular_file(path, error);
}

bool is_weights_of_torch(const std::string& name) {
  return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
}

// Of a file in a folder that is read.
bool is_read_there(const std::string& file, const std::string& folder) {
  std::error_code error;
  if (!fs::is_regular_file(file, error) || is_page_name(file)) return false;
  const fs::path real = fs::weakly_canonical(file, error);
  const std::string name = real.filename(), parent = real.parent_path();
  if (train::is_run(folder)) {
    const std::string first = *real.lexically_relative(fs::weakly_canonical(folder, error)).begin();
    if (first == "state" || first == "replaced") return true;
    if (std::ranges::count(train::kRunNames, first) > 0) return true;
  }
  const bool is_model = path_exists(join_path(parent, kConfigName)) ||
                        path_exists(join_path(parent, kAdapterConfigName));
  if (is_model) return is_model_file(name) || is_weights_of_torch(name);
  return !train::is_run(folder) && name != kDefaultTrace;
}

void check_output(const Given& output, const Given& input) {
  check(!are_same(output.path, input.path), ErrorKind::usage,
        "{} is read ({}), and would be overwritten by {}; name another file", output.path,
        input.flag, output.flag);
  const bool is_hit = is_directory(input.path) && lies_inside(output.path, input.path) &&
                      is_read_there(output.path, input.path);
  check(!is_hit, ErrorKind::usage,
        "{} is a file of {}, which is read ({}), and would be overwritten by {}; name another file",
        output.path, input.path, input.flag, output.flag);
}

}  // namespace

void check_outputs(const Subcommand& program) {
  Files files;
  collect(program, files);
  files.read.push_back({"standard input", "/dev/stdin"});
  for (size_t i = 0; i < files.written.size(); ++i) {
    const Given& output = files.written[i];
    if (!is_replaced(output.path)) continue;
    for (const Given& input : files.read) {
      if (path_exists(input.path)) check_output(output, input);
    }
    for (size_t j = 0; j < i; ++j) {
      const Given& other = files.written[j];  // --profile may stand before and behind the command
      check(other.flag == output.flag || !are_same(output.path, other.path), ErrorKind::usage,
            "{} and {} would both write {}; name two files", other.flag, output.flag, output.path);
    }
  }
}

}  // namespace heddle::cli
