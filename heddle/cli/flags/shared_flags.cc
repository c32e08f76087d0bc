// Flags that several commands have, checked before any work.
#include "heddle/cli/flags/shared_flags.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/loading/precision.h"

namespace heddle::cli {

void add_compute_flags(Subcommand& command, ComputeFlags& flags) {
  command.add_setting("--precision", flags.precision,
                      "f32, bf16, int8, or auto: bf16 where the CPU has it");
  command.add_setting("-t,--threads", flags.threads, "threads; 0: one a core");
}

Precision apply_compute_flags(const ComputeFlags& flags) {
  check(flags.threads >= 0, ErrorKind::usage, "--threads is {}; it must be at least 1, or 0",
        flags.threads);
  if (flags.threads > 0) set_num_threads(flags.threads);
  return resolve_precision(flags.precision);
}

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

void add_alignment_flags(Subcommand& command, AlignmentOptions& options, Option needed) {
  const auto add = [&](const char* name, std::vector<int64_t>& numbers, const char* help) {
    Option option = command.add_option(name, numbers, help).delimiter(',');
    if (needed) option.needs(needed);
  };
  add("--align-layers", options.layers,
      "decoder layers whose cross attention aligns, from 0: 2 or 1,2 (averaged); by itself the "
      "last, of more than four layers the last but one");
  add("--align-heads", options.heads, "heads, from 0, averaged; by itself all");
  Option shift = command.add_flag(
      "--align-shift", options.shifted,
      "take a word's attention from the step that reads it, not from the one that predicts it");
  if (needed) shift.needs(needed);
}

Option add_page_flag(Subcommand& command, std::string& path, const char* help) {
  return command.add_option("--page", path, help).type_name("FILE.html");
}

bool wants_page(const std::string& path) {
  if (!path.empty()) inspect::check_output(path, "the page");
  return !path.empty();
}

void write_page(const char* command, const std::string& what, const std::string& path,
                const inspect::Page& page) {
  inspect::write_page(path, page);
  fmt::print(stderr, "{}: {} in {}; open it in a browser\n", command, what, path);
}

}  // namespace heddle::cli
