// The flags that several commands have: how they compute, search, align and translate, the texts
// that they take, and the page that they write.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/cli/command_line.h"
#include "heddle/cli/lines.h"
#include "heddle/dist/group.h"
#include "heddle/infer/decoding/caption.h"
#include "heddle/infer/search/search_config.h"
#include "heddle/infer/words.h"
#include "heddle/inspect/images/image_subject.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/inspect/subject.h"

namespace heddle::cli {

/// Adds the argument `model`, which must be given unless the caller says otherwise.
Option add_model_argument(Subcommand& command, std::string& model);

struct ComputeFlags {
  std::string precision = "auto";
  int threads = 0;  ///< 0: as many as there are cores
};

/// Adds -t, --threads. `more`: what else is to be said of them, "; the result ..".
void add_threads_flag(Subcommand& command, int& threads, const char* more = "");
/// Sets the threads; 0: as many as there are cores. Errors: usage below 0.
void apply_threads(int threads);

/// Adds --precision and --threads.
void add_compute_flags(Subcommand& command, ComputeFlags& flags);

/// Sets the threads. Errors: usage, naming the flag, for a wrong value.
Precision apply_compute_flags(const ComputeFlags& flags);

/// The flags that set these fields, by key.
std::vector<Option> add_search_flags(Subcommand& command, SearchConfig& search,
                                     std::initializer_list<const char*> keys);

/// The flag that sets a field: its key with dashes, but for three of searches.
std::string flag_of(std::string_view key);

/// Adds --align-layers, --align-heads and --align-shift; they may be given only with `needed`, if
/// not null.
void add_alignment_flags(Subcommand& command, AlignmentOptions& options, Option needed);

/// Adds --page FILE.html, or `names`. `help`: what the page shows, "write a page of ..".
Option add_page_flag(Subcommand& command, std::string& path, const char* help,
                     const char* names = "--page");
/// Whether it is a name that pages have: FILE.html, or .htm.
bool is_page_name(const std::string& path);
/// Whether a page is asked for (`path` is not empty). Errors: usage for another name than pages
/// have, unless it is that of a device or a pipe: results were meant, which are printed; those of
/// inspect::check_output().
bool wants_page(const std::string& path);
/// Writes the page, and says so: "eval: a page in FILE.html; open it in a browser".
void write_page(const char* command, const std::string& what, const std::string& path,
                const inspect::Page& page);

struct TextFlags {
  std::string model;
  std::vector<std::string> texts;  ///< of the command line; none: lines of the standard input
  ComputeFlags compute{.precision = "f32"};
  bool json = false;
  std::string page;  ///< the page to write, "" for none
  LineFlags lines;
};

/// Adds model, --text, --precision, --threads, --json, --page and --skip-bad.
void add_text_flags(Subcommand& command, TextFlags& flags, AnswersOf answers = AnswersOf::lines);

/// Errors: usage if the model reads images, of which one is to be given; those of reads_images().
void check_reads_texts(const std::string& model);

/// Calls f with the texts, some at a time, which adds to `cut` how many it cut to `limit` tokens:
/// one warning counts them. Of lines see answer_lines(): f throws before it writes. Errors: data,
/// with the line, if one is not UTF-8 or f refuses it; usage if there is none.
/// All ranks of the group call it, and share the lines.
void for_texts(
    const char* command, const TextFlags& flags, int64_t limit, dist::Group& group,
    const std::function<void(std::span<const std::string>, int64_t& cut, Results out)>& f);

/// One warning if texts were cut, of so many; `limit`: tokens that are left of one.
void warn_of_cut(const char* command, int64_t cut, int64_t texts, int64_t limit);

struct TranslateFlags {
  std::string model;
  SearchConfig search;
  std::string source_language, target_language, shortlist;
  std::optional<int64_t> min_length, max_length;
  int64_t n_best = 1, batch_tokens = TranslateOptions().batch_tokens;
  bool truncate = false;
  Subcommand command;  ///< that has the flags
  ComputeFlags compute;
};

/// Adds --source-language and --target-language.
void add_language_flags(Subcommand& app, std::string& source, std::string& target);
void add_translate_flags(Subcommand& app, TranslateFlags& flags);
/// Of these the ones that say how targets are searched, and how long they may be: "tokens of a
/// caption at most ..".
void add_target_flags(Subcommand& app, TranslateFlags& flags, const char* what, const char* most);
/// Adds --sample, and the flags of draws, which may be given only with it.
void add_sampling_flags(Subcommand& command, SearchConfig& search, bool& sample);
/// Makes a search wide enough for its n_best; with `sample` it draws as the flags say, whatever the
/// model does.
void take_sampling(SearchConfig& search, const SearchConfig& flags, bool sample);

/// Errors: usage, naming the flag, for values that make no sense.
void check_translate_flags(const TranslateFlags& flags);
/// Checks them, and sets the number of threads. Errors: the same.
Precision apply_translate_flags(const TranslateFlags& flags);

/// What the flags ask for, laid over what the model's folder says, see default_options(), and the
/// languages. Errors: those of set_languages() and of the shortlist.
TranslateOptions translate_options(const TranslateFlags& flags, LoadedModel& model,
                                   Precision precision);

/// Errors: usage for lengths that captions have not: none follows an image's.
void check_caption_flags(const TranslateFlags& flags);
/// What the flags ask for, laid over caption_options().
TranslateOptions caption_options(const TranslateFlags& flags, const LoadedModel& model,
                                 Precision precision);

struct InspectFlags {
  std::string model, image, source, target, source_language, target_language;
  ComputeFlags compute{.precision = "f32"};
  std::vector<int64_t> ids;
  bool truncate = false;
  Option has_source;
  Option has_target;
};

/// Adds model, image, --text, --target, their languages, --ids, --truncate, --precision, --threads.
void add_inspect_flags(Subcommand& app, InspectFlags& flags, bool is_model_required = true);

/// The subject that the flags name; sets the number of threads.
/// Errors: usage, naming the flag, where nothing is given to look at; those of Subject::open().
inspect::Subject open_subject(const InspectFlags& flags);
/// The same of the image that the flags name. Errors: usage for what is of texts beside it; those
/// of read_image() and of ImageSubject.
inspect::ImageSubject open_image(const InspectFlags& flags);

}  // namespace heddle::cli
