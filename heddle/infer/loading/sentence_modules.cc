// modules.json is read, and taken along with what it names.
#include "heddle/infer/loading/sentence_modules.h"

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"

namespace heddle {

std::vector<SentenceModule> read_sentence_modules(const std::string& folder) {
  const std::string path = join_path(folder, kModulesName);
  const Json json = Json::load(path);
  std::vector<SentenceModule> modules;
  for (const Json& one : json.as_array(path)) {
    const std::string& type = one.get_string("type", path);
    const std::string& given = one.get_string("path", path);
    const std::string place = given.ends_with('/') ? given.substr(0, given.size() - 1) : given;
    const bool is_name = place.find('/') == std::string::npos && place != "." && place != "..";
    check(is_name, ErrorKind::data,
          "{}: the path '{}' is not the name of a folder beside it, nor empty", path, given);
    modules.push_back({type.substr(type.rfind('.') + 1),  // npos + 1 is 0
                       place, place.empty() ? folder : join_path(folder, place)});
  }
  check(!modules.empty() && modules[0].type == "Transformer", ErrorKind::data,
        "{}: its first module is {}; a Transformer is needed", path,
        modules.empty() ? "absent" : "a " + modules[0].type);
  return modules;
}

std::vector<std::string> sentence_entries(const std::string& folder) {
  std::vector<std::string> entries;
  if (!path_exists(join_path(folder, kModulesName))) return entries;
  for (const char* name : {kModulesName, kSentenceLimitsName, kSentencePromptsName}) {
    if (path_exists(join_path(folder, name))) entries.emplace_back(name);
  }
  for (const SentenceModule& module : read_sentence_modules(folder)) {
    if (!module.place.empty() && is_directory(module.folder)) entries.push_back(module.place);
  }
  return entries;
}

void copy_sentence_entries(const std::string& from, const std::string& to) {
  for (const std::string& entry : sentence_entries(from)) {
    const std::string source = join_path(from, entry), target = join_path(to, entry);
    if (!is_directory(source)) {
      write_file_atomic(target, read_file(source));
      continue;
    }
    make_directories(target);
    for (const std::string& name : list_directory(source)) {
      const std::string path = join_path(source, name);
      if (!is_directory(path)) write_file_atomic(join_path(target, name), read_file(path));
    }
  }
}

}  // namespace heddle
