// A teacher translates the training text, once.
#include "heddle/train/batches/taught_pairs.h"

#include <algorithm>
#include <fstream>
#include <span>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"

namespace heddle::train {
namespace {

struct PairTexts {
  std::vector<std::string> source, target;
};

PairTexts read_all(const ParallelFiles& files) {
  PairTexts pairs;
  ParallelReader reader(files);
  std::string source, target;
  while (reader.next(source, target)) {
    if (is_blank(source) || is_blank(target)) continue;
    pairs.source.push_back(source);
    pairs.target.push_back(target);
  }
  return pairs;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// How the teacher translates.
struct Teaching {
  TranslateOptions options;
  LanguageNames languages;
};

Teaching teaching_of(LoadedModel& teacher, const TaughtOptions& o) {
  Teaching t{.options = default_options(teacher), .languages = {}};
  t.options.search.beam = o.beam;
  t.options.precision = o.precision;
  t.options.truncate = true;
  t.languages = set_languages(teacher, o.languages, t.options);
  return t;
}

std::string key_of(const LoadedModel& teacher, const PairTexts& texts,
                   const LanguageNames& languages, const TaughtOptions& o) {
  std::string search;
  if (teacher.generation) search = to_json(*teacher.generation).dump();
  if (!languages.target.empty()) search += " " + languages.source + " to " + languages.target;
  return checksum(fmt::format("{} {} {}", o.beam, o.keeps, precision_name(o.precision)) +
                  checksum(text_of(texts.source)) + checksum(text_of(texts.target)) +
                  teacher.parameters.checksum() + teacher.model->config().json().dump() + search +
                  teacher.tokenizer->fingerprint() + teacher.target().fingerprint());
}

// The whole lines of a file that a stop may have cut short.
std::vector<std::string> whole_lines(const std::string& path) {
  std::vector<std::string> lines;
  if (!path_exists(path)) return lines;
  const std::string text = read_file(path);
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

// The teacher's translations, each block of which is kept as soon as it is there.
std::vector<std::string> translated(const LoadedModel& teacher, const PairTexts& texts,
                                    const std::string& path, const TranslateOptions& options) {
  constexpr size_t kBlock = 1024;
  std::vector<std::string> targets = whole_lines(path);
  const size_t count = texts.source.size();
  check(targets.size() <= count, ErrorKind::data,
        "{}: it has more lines than there are sources; remove it", path);
  write_file_atomic(path, text_of(targets));
  std::ofstream file(path, std::ios::binary | std::ios::app);
  int64_t cut = 0;
  Progress progress("teacher", static_cast<double>(targets.size()) / static_cast<double>(count));
  while (targets.size() < count) {
    const size_t begin = targets.size(), end = std::min(begin + kBlock, count);
    for (Translation& t :
         translate_lines(teacher, std::span(texts.source).subspan(begin, end - begin), options,
                         static_cast<int64_t>(begin) + 1, &cut)) {
      file << t.text << '\n';
      targets.push_back(std::move(t.text));
    }
    file.flush();
    check(file.good(), ErrorKind::system, "{}: cannot be written; is the disk full?", path);
    progress.update(static_cast<double>(end) / static_cast<double>(count),
                    fmt::format("{} of {} sentences", format_count(static_cast<int64_t>(end)),
                                format_count(static_cast<int64_t>(count))));
  }
  if (cut > 0) {
    log_warning("{} cut to what the teacher reads", counted(cut, "source"));
  }
  return targets;
}

}  // namespace

ParallelFiles taught_pairs(const ParallelFiles& pairs, const std::string& folder,
                           const TaughtOptions& o) {
  LoadedModel teacher = load_translation_model(o.teacher);
  const auto [options, languages] = teaching_of(teacher, o);
  const PairTexts texts = read_all(pairs);
  const std::string stem = join_path(folder, "taught-" + key_of(teacher, texts, languages, o));
  const ParallelFiles to = {stem + ".source", stem + ".target"};
  if (path_exists(to.source) && path_exists(to.target)) return to;
  const std::string part = stem + ".part";
  const std::vector<std::string> targets = translated(teacher, texts, part, options);
  write_file_atomic(to.source, text_of(texts.source) + (o.keeps ? text_of(texts.source) : ""));
  write_file_atomic(to.target, text_of(targets) + (o.keeps ? text_of(texts.target) : ""));
  remove_path(part);
  log_info("the teacher translated {}", counted(std::ssize(targets), "sentence"));
  return to;
}

}  // namespace heddle::train
