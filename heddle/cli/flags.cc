// Flags that several commands have, checked before any work.
#include "heddle/cli/flags.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <tuple>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/shared_command.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/strings/strings.h"
#include "heddle/vision/orientation.h"

namespace heddle::cli {

Option add_model_argument(Subcommand& command, std::string& model) {
  return command.add_option("model", model, "a model directory, or a training run (then RUN/best)")
      .required();
}

void add_threads_flag(Subcommand& command, int& threads, const char* more) {
  command.add_setting("-t,--threads", threads, fmt::format("threads; 0: one a core{}", more));
}

void apply_threads(int threads) {
  check(threads >= 0, ErrorKind::usage, "--threads is {}; it must be at least 1, or 0", threads);
  if (threads > 0) set_num_threads(threads);
}

void add_compute_flags(Subcommand& command, ComputeFlags& flags) {
  command.add_setting("--precision", flags.precision,
                      "f32, bf16, int8, or auto: bf16 where the CPU has it");
  add_threads_flag(command, flags.threads);
}

Precision apply_compute_flags(const ComputeFlags& flags) {
  apply_threads(flags.threads);
  return resolve_precision(flags.precision);
}

std::string flag_of(std::string_view key) {
  if (key == "num_beams") return "--beam";
  if (key == "no_repeat_ngram_size") return "--no-repeat-ngram";
  if (key == "prompt_lookup_num_tokens") return "--speculate";
  return flag_name(key);
}

std::vector<Option> add_search_flags(Subcommand& command, SearchConfig& search,
                                     std::initializer_list<const char*> keys) {
  const std::vector<Field> fields = FieldList(search);
  std::vector<Option> options;
  for (const std::string key : keys) {
    const auto field = std::ranges::find(fields, key, &Field::key);
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

Option add_page_flag(Subcommand& command, std::string& path, const char* help, const char* names) {
  return command.add_option(names, path, help).type_name("FILE.html").writes_file();
}

bool is_page_name(const std::string& path) {
  return path.ends_with(".html") || path.ends_with(".htm");
}

bool wants_page(const std::string& path) {
  if (path.empty()) return false;
  std::error_code none_there;
  const auto status = std::filesystem::status(path, none_there);
  const bool is_no_file = exists(status) && !is_regular_file(status);
  check(is_page_name(path) || is_no_file, ErrorKind::usage,
        "--page is '{}', and a page is called FILE.html; results go to the standard output: "
        "add '> {}'",
        path, path);
  inspect::check_output(path, "the page");
  return true;
}

void write_page(const char* command, const std::string& what, const std::string& path,
                const inspect::Page& page) {
  inspect::write_page(path, page);
  fmt::print(stderr, "{}: {} in {}; open it in a browser\n", command, what, path);
}

namespace {

constexpr BlockSize kBlock = {.lines = 64, .bytes = 64 << 10};

}  // namespace

void add_text_flags(Subcommand& command, TextFlags& flags, AnswersOf answers) {
  add_model_argument(command, flags.model);
  add_compute_flags(command, flags.compute);
  command.add_flag("--json", flags.json, "one line of JSON a text");
  command
      .add_option("--text", flags.texts,
                  "a text, instead of lines of the standard input; may come often")
      .may_be_empty()
      .allow_extra_args(false);
  add_page_flag(command, flags.page, "also write a page of the results");
  add_skip_flag(command, flags.lines, true, answers);
}

void check_reads_texts(const std::string& model) {
  check(!reads_images(model), ErrorKind::usage,
        "{} reads images; give one behind the model, as in {} image.png, in place of a text", model,
        model);
}

void for_texts(
    const char* command, const TextFlags& flags, int64_t limit, dist::Group& group,
    const std::function<void(std::span<const std::string>, int64_t& cut, Results out)>& f) {
  int64_t cut = 0, count = 0;
  const auto work = [&](std::span<const std::string> texts, Results out) {
    int64_t cut_here = 0;
    f(texts, cut_here, out);
    cut += cut_here;
    count += std::ssize(texts);
  };
  const LineAnswers answers = {
      .answer =
          [&](std::span<const std::string> lines, int64_t first, Results out) {
            for (const std::string& line : lines) {
              check_text(line, fmt::format("line {}", first + (&line - lines.data())));
            }
            work(lines, out);
          },
      .skip =
          [&](const std::string& message, Results out) {
            out.print(flags.json ? Json::object({{"error", message}}).dump() : "");
          }};
  if (flags.texts.empty()) {
    const int64_t lines = answer_lines(group, command, flags.lines, kBlock, answers);
    check(lines > 0, ErrorKind::usage, "the standard input is empty; give texts, one a line");
  } else {
    std::vector<std::string> texts;
    for (const std::string& text : flags.texts) {
      check_text(text, "the text");
      warn_of_file_name(command, text);
      texts.emplace_back(without_byte_order_mark(text));
    }
    do_on_rank_0(group, [&] { work(texts, {}); });
  }
  const int64_t all_cut = sum_of_ranks(group, cut);
  const int64_t all_texts = sum_of_ranks(group, count);
  warn_of_cut(command, all_cut, all_texts, limit);
}

void warn_of_cut(const char* command, int64_t cut, int64_t texts, int64_t limit) {
  if (cut == 0) return;
  log_warning("{}: {} of {} longer than {} and cut", command, format_count(cut),
              counted(texts, "text was", "texts were"), counted(limit, "token"));
}

void add_language_flags(Subcommand& app, std::string& source, std::string& target) {
  app.add_option("--source-language", source,
                 "language of the texts, of a model that is told, as its tokenizer has it: en_XX, "
                 "eng_Latn, en");
  app.add_option("--target-language", target,
                 "language of the translations; a name that is none lists those that there are");
}

void add_translate_flags(Subcommand& app, TranslateFlags& flags) {
  flags.command = app;
  add_model_argument(app, flags.model);
  add_language_flags(app, flags.source_language, flags.target_language);
  add_target_flags(app, flags, "translation",
                   "; 0: twice the source's + 10 [as the model says, or 0]");
  app.add_setting("--batch-tokens", flags.batch_tokens, "source tokens of a batch, times the beam");
  app.add_option("--shortlist", flags.shortlist,
                 "a file of `heddle shortlist`: only tokens that it knows as translations of the "
                 "line's may come; faster with large vocabularies")
      .type_name("FILE");
  add_compute_flags(app, flags.compute);
  app.add_flag("--truncate", flags.truncate, "cut lines that are longer than the model takes");
}

void add_target_flags(Subcommand& app, TranslateFlags& flags, const char* what, const char* most) {
  add_search_flags(app, flags.search,
                   {"num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty"});
  app.add_option("--min-length", flags.min_length,
                 fmt::format("tokens of a {} at least, the end not counted [as the model says, or "
                             "0]",
                             what));
  app.add_option("--max-length", flags.max_length,
                 fmt::format("tokens of a {} at most, the end not counted{}", what, most));
}

void add_sampling_flags(Subcommand& command, SearchConfig& search, bool& sample) {
  const Option drawn =
      command.add_flag("--sample", sample, "draw each token at random, by its probability");
  for (const Option& option :
       add_search_flags(command, search, {"temperature", "top_k", "top_p", "min_p", "seed"})) {
    option.needs(drawn);
  }
}

void take_sampling(SearchConfig& search, const SearchConfig& flags, bool sample) {
  search.samples = sample;
  if (!sample) {
    search.beam = std::max(search.beam.value_or(1), search.n_best);
    return;
  }
  search.beam = flags.beam;
  std::tie(search.temperature, search.top_k, search.top_p, search.min_p, search.seed) =
      std::tie(flags.temperature, flags.top_k, flags.top_p, flags.min_p, flags.seed);
}

void check_translate_flags(const TranslateFlags& flags) {
  flags.search.check_ranges();
  const int64_t least = flags.min_length.value_or(0), most = flags.max_length.value_or(0);
  check(flags.batch_tokens >= 1, ErrorKind::usage, "--batch-tokens is {}; it must be at least 1",
        flags.batch_tokens);
  check(least >= 0, ErrorKind::usage, "--min-length is {}; it must be at least 0", least);
  check(most >= 0 && most <= 1'000'000, ErrorKind::usage,
        "--max-length is {}; it must be from 1 to 1000000, or 0 for one that follows the source's",
        most);
}

Precision apply_translate_flags(const TranslateFlags& flags) {
  check_translate_flags(flags);
  return apply_compute_flags(flags.compute);
}

TranslateOptions translate_options(const TranslateFlags& flags, LoadedModel& model,
                                   Precision precision) {
  TranslateOptions o = default_options(model, flags.search);
  if (flags.min_length) o.search.min_new_tokens = flags.min_length;
  o.longest_without_end = flags.max_length.value_or(o.longest_without_end);
  o.search.n_best = flags.n_best;
  o.batch_tokens = flags.batch_tokens;
  o.truncate = flags.truncate;
  o.precision = precision;
  set_languages(model, flags.source_language, flags.target_language, o);
  if (!flags.shortlist.empty()) {
    const auto shortlist = std::make_shared<Shortlist>(flags.shortlist);
    shortlist->check_fits(*model.tokenizer, model.target(),
                          model.translator().facts().target_vocab_size, model.path);
    o.shortlist = shortlist;
  }
  return o;
}

void check_caption_flags(const TranslateFlags& flags) {
  check(!flags.max_length || (*flags.max_length >= 2 && *flags.max_length <= 1'000'000),
        ErrorKind::usage, "--max-length is {}; of captions it must be from 2 to 1000000",
        flags.max_length.value_or(0));
}

TranslateOptions caption_options(const TranslateFlags& flags, const LoadedModel& model,
                                 Precision precision) {
  TranslateOptions o = caption_options(model, flags.search);
  if (flags.min_length) o.search.min_new_tokens = flags.min_length;
  o.longest_without_end = flags.max_length.value_or(o.longest_without_end);
  o.search.n_best = flags.n_best;
  o.precision = precision;
  return o;
}

void add_inspect_flags(Subcommand& app, InspectFlags& flags, bool is_model_required) {
  add_model_argument(app, flags.model).required(is_model_required);
  app.add_option("image", flags.image, "a JPEG or PNG file, of a model that reads images");
  flags.has_source = app.add_option("--text", flags.source, "the text to look at").may_be_empty();
  flags.has_target =
      app.add_option("--target", flags.target,
                     "its translation; without it a translator's own, with the folder's beam or 5")
          .may_be_empty();
  add_language_flags(app, flags.source_language, flags.target_language);
  app.add_option("--ids", flags.ids, "token ids in place of --text, for models without tokenizer")
      .delimiter(',');
  app.add_flag("--truncate", flags.truncate, "cut text that is longer than the model takes");
  add_compute_flags(app, flags.compute);
}

inspect::Subject open_subject(const InspectFlags& flags) {
  inspect::SubjectOptions options{.source = flags.source,
                                  .target = {},
                                  .ids = {},
                                  .source_language = flags.source_language,
                                  .target_language = flags.target_language,
                                  .truncate = flags.truncate,
                                  .precision = apply_compute_flags(flags.compute)};
  check(flags.has_source.count() == 0 || flags.ids.empty(), ErrorKind::usage,
        "--text and --ids exclude each other");
  check_reads_texts(flags.model);
  check(flags.has_source.count() > 0 || !flags.ids.empty(), ErrorKind::usage,
        "--text is missing; give a sentence, as in --text \"a man rides a horse\" (or --ids for a "
        "model without tokenizer)");
  if (flags.has_target.count() > 0) options.target = flags.target;
  for (const int64_t id : flags.ids) {
    check(id >= 0 && id <= std::numeric_limits<int32_t>::max(), ErrorKind::usage,
          "--ids: {} is no token id; they begin at 0", id);
    options.ids.push_back(static_cast<int32_t>(id));
  }
  return inspect::Subject::open(flags.model, options);
}

inspect::ImageSubject open_image(const InspectFlags& flags) {
  const bool has_text = flags.has_source.count() + flags.has_target.count() > 0;
  const bool has_languages = !flags.source_language.empty() || !flags.target_language.empty();
  check(!has_text && !has_languages && flags.ids.empty() && !flags.truncate, ErrorKind::usage,
        "{} is an image, and {} is for texts; leave one of them out", flags.image,
        has_text         ? "--text (or --target)"
        : has_languages  ? "--source-language (or --target-language)"
        : flags.truncate ? "--truncate"
                         : "--ids");
  const Precision precision = apply_compute_flags(flags.compute);
  return inspect::ImageSubject(flags.model, read_upright_image(flags.image), flags.image,
                               precision);
}

}  // namespace heddle::cli
