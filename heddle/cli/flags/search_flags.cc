// A field's key gives its flag.
#include "heddle/cli/flags/search_flags.h"

#include <algorithm>

#include "heddle/base/error.h"

namespace heddle::cli {

std::string flag_of(std::string_view key) {
  if (key == "num_beams") return "--beam";
  if (key == "no_repeat_ngram_size") return "--no-repeat-ngram";
  return flag_name(key);
}

std::vector<Option> add_search_flags(Subcommand& command, SearchConfig& search,
                                     std::initializer_list<const char*> keys) {
  const std::vector<Field> fields = FieldList(search);
  std::vector<Option> options;
  for (const std::string key : keys) {
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
    check(field != fields.end(), ErrorKind::internal, "SearchConfig has no field {}", key);
    const std::string name = (key == "max_new_tokens" ? "-n," : "") + flag_of(key);
    if (auto* const* number = std::get_if<std::optional<int64_t>*>(&field->member)) {
      options.push_back(command.add_option(name, **number, field->help));
    } else {
      auto* const real = std::get<std::optional<double>*>(field->member);
      options.push_back(command.add_option(name, *real, field->help));
    }
  }
  return options;
}

}  // namespace heddle::cli
