// heddle translate: a line in, a line out.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "heddle/base/parallel.h"
#include "heddle/base/work_notes.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/shared_command.h"
#include "heddle/cli/use/remote.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/decoding_steps.h"
#include "heddle/train/metrics/least_risk.h"

namespace heddle::cli {
namespace {

struct Flags : TranslateFlags {
  bool json = false, sample = false, alignment = false, is_mbr = false;
  AlignmentOptions alignment_options;
  std::string prefix, prefix_file, page;
  LineFlags lines;
  ServerFlags server;
  dist::GroupOptions ranks;

  bool shows_several() const { return n_best > 1 && !is_mbr; }
};

// Enough lines at a time that batches of like lengths fill up.
constexpr BlockSize kBlock = {.lines = 1 << 18, .bytes = 1 << 18};

// A translation of a line, and its alignment.
struct Result {
  const Translation* translation;
  size_t line;                                // number among those translated together
  std::optional<std::string> alignment = {};  // if it was asked for
};

Json as_json(const Result& r, const Tokenizer& tokenizer) {
  const Translation& t = *r.translation;
  Json json = Json::object({{"text", t.text}, {"score", t.score}, {"tokens", Json::array()}});
  for (const int32_t id : t.ids) json["tokens"].push_back(tokenizer.token(id));
  if (r.alignment) json["alignment"] = *r.alignment;
  return json;
}

// The object of the best, with all of them under "n_best" if several were asked for.
void print_json(std::span<const Result> results, const Flags& flags, const Tokenizer& tokenizer,
                Results out) {
  Json json = as_json(results[0], tokenizer);
  if (flags.shows_several()) {
    json["n_best"] = Json::array();
    for (const Result& r : results) json["n_best"].push_back(as_json(r, tokenizer));
  }
  out.print(json.dump());
}

// TEXT, or TEXT ||| ALIGNMENT. Several translations of a line are lines NUMBER ||| TEXT ||| SCORE,
// the form of Moses, where lines count from 0.
void print_text(std::span<const Result> results, const Flags& flags, int64_t number, Results out) {
  for (const Result& r : results) {
    std::string line = r.translation->text;
    if (flags.shows_several()) {
      line = fmt::format("{} ||| {} ||| {:.6f}", number, line, r.translation->score);
    }
    if (r.alignment) line += " ||| " + *r.alignment;
    out.print(line);
  }
}

// The beginnings of translations: one for all lines, or a line of a file for each.
class Prefixes {
 public:
  Prefixes(const Flags& flags, const LoadedModel& model)
      : model_(model), path_(flags.prefix_file), lines_(flags.prefix_file) {
    if (!flags.prefix.empty()) for_all_.push_back(prefix_ids(model, flags.prefix, "--prefix"));
  }

  // Those of so many lines, of which the first has this number.
  std::vector<std::vector<int32_t>> of(int64_t first, size_t lines) const {
    if (!lines_.are_given()) return for_all_;
    std::vector<std::vector<int32_t>> prefixes;
    for (const std::string& line : lines_.of(first, lines)) {
      prefixes.push_back(prefix_ids(model_, line, fmt::format("{}: line {}", path_, first++)));
    }
    return prefixes;
  }
  void check_all_used(int64_t lines) const { lines_.check_all_used(lines); }

 private:
  const LoadedModel& model_;
  std::string path_;
  PrefixLines lines_;
  std::vector<std::vector<int32_t>> for_all_;
};

// What is wrong before the model is read.
void check_flags(const Flags& flags) {
  check(flags.n_best >= 1 && flags.n_best <= 1024, ErrorKind::usage,
        "--n-best is {}; it must be from 1 to 1024", flags.n_best);
  check(flags.prefix.empty() || flags.prefix_file.empty(), ErrorKind::usage,
        "--prefix and --prefix-file exclude each other");
  check(flags.prefix_file != "-" || flags.lines.path != "-", ErrorKind::usage,
        "--prefix-file and the lines to translate cannot both be the standard input; name a file");
  check(!flags.is_mbr || flags.n_best > 2, ErrorKind::usage,
        "--mbr chooses among --n-best translations of a line, 3 at least, best --sample and 16 or "
        "more");
  flags.search.check_draws();
}

TranslateOptions options_of(const Flags& flags, LoadedModel& model, Precision precision) {
  TranslateOptions o = translate_options(flags, model, precision);
  take_sampling(o.search, flags.search, flags.sample);
  o.scores = flags.json || o.search.n_best > 1;
  return o;
}

// The page of the one line of the input; its translation goes to standard output as ever.
void run_steps(const Flags& flags, const TranslateOptions& options, const LoadedModel& model) {
  LineBlocks input("translate", flags.lines.path, {.lines = 2, .bytes = kBlock.bytes});
  std::vector<std::string> lines = input.next();
  check(!lines.empty(), ErrorKind::usage,
        "--page: there is no sentence; give one on standard input");
  check(lines.size() == 1 && input.next().empty(), ErrorKind::usage,
        "--page shows how one sentence is translated, but the input has more lines; give one");
  const inspect::DecodingRecord record = inspect::record_decoding(model, lines[0], options);
  write_page("translate", "the steps are", flags.page,
             inspect::decoding_page(record, model.target()));
  print_result(record.text);
}

// A model that is ready to translate.
struct Translator {
  LoadedModel model;
  TranslateOptions options;
  Prefixes prefixes;

  Translator(const Flags& flags, Precision precision)
      : model(load_translation_model(flags.model)),
        options(options_of(flags, model, precision)),
        prefixes(flags, model) {
    check_alignment(model.translator().facts(), flags.alignment_options);
  }
};

void align(std::span<Result> results, std::span<const std::string> lines, const Flags& flags,
           const Translator& translator) {
  const LoadedModel& model = translator.model;
  const auto ids = line_ids(model, source_ids, lines, {.truncate = true});
  std::vector<std::vector<int32_t>> sources, targets;
  for (const Result& r : results) {
    sources.push_back(ids[r.line]);
    targets.push_back(r.translation->ids);
  }
  AlignmentOptions options = flags.alignment_options;
  options.marks = translation_marks(model, translator.options);
  options.precision = resolve_precision(flags.compute.precision);
  const auto alignments = align_pairs(model, sources, targets, options);
  for (size_t i = 0; i < results.size(); ++i) results[i].alignment = to_pharaoh(alignments[i]);
}

// Puts that which agrees most with all of its line in place of all.
void choose_by_risk(std::vector<Translation>& translations) {
  parallel_blocks(std::ssize(translations), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      Translation& first = translations[i];
      std::vector<std::string> texts = {first.text};
      for (const Translation& other : first.others) texts.push_back(other.text);
      const size_t chosen = train::least_risk(texts);
      std::vector<Translation> others = std::exchange(first.others, {});
      if (chosen > 0) first = std::move(others[chosen - 1]);
      note_work();
    }
  });
}

void print_all(std::span<const Translation> translations, std::span<const std::string> lines,
               int64_t first_line, const Flags& flags, const Translator& translator, Results out) {
  const LoadedModel& model = translator.model;
  std::vector<Result> results;
  for (size_t i = 0; i < lines.size(); ++i) {
    results.push_back({&translations[i], i});
    for (const Translation& other : translations[i].others) results.push_back({&other, i});
  }
  if (flags.alignment) align(results, lines, flags, translator);
  size_t at = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto of_line = std::span(results).subspan(at, 1 + translations[i].others.size());
    if (flags.json) {
      print_json(of_line, flags, model.target(), out);
    } else {
      print_text(of_line, flags, first_line - 1 + static_cast<int64_t>(i), out);
    }
    at += of_line.size();
  }
}

void print_bad(const std::string& message, const Flags& flags, Results out) {
  Json json = Json::object({{"text", ""}, {"error", message}});
  out.print(flags.json ? json.dump() : "");
}

// Asks the model of a server, --server.
void run_remotely(const Flags& flags) {
  check(!flags.alignment || !flags.shows_several(), ErrorKind::usage,
        "--alignment: a server aligns the best translation alone; leave out --n-best");
  check_translate_flags(flags);
  Json body = Json::object({{"scores", flags.json}});
  const auto add = [&](const char* key, const auto& value) {
    if (value) body[key] = *value;
  };
  const auto add_text = [&](const char* key, const std::string& text) {
    if (!text.empty()) body[key] = text;
  };
  add_text("model", flags.model);
  add_text("source_lang", flags.source_language);
  add_text("target_lang", flags.target_language);
  add("beam", flags.search.beam);
  add("length_penalty", flags.search.length_penalty);
  if (flags.n_best > 1) body["n_best"] = flags.n_best;
  check(
      flags.max_length.value_or(1) > 0, ErrorKind::usage,
      "--max-length 0, which goes by the source, is not known to servers; leave it out, or give a "
      "number of tokens");
  add("max_tokens", flags.max_length);
  if (flags.alignment) body["alignment"] = "hard";
  const AlignmentOptions& alignment = flags.alignment_options;
  if (!alignment.layers.empty()) body["layers"] = alignment.layers;
  if (!alignment.heads.empty()) body["heads"] = alignment.heads;
  if (flags.truncate) body["truncate"] = true;
  const RemoteTranslation asked{.server = flags.server,
                                .body = std::move(body),
                                .json = flags.json,
                                .shows_several = flags.shows_several(),
                                .prefix = flags.prefix,
                                .prefix_file = flags.prefix_file,
                                .lines = flags.lines};
  translate_remotely(asked);
}

void run_here(const Flags& flags, dist::Group& group) {
  const Precision precision = apply_translate_flags(flags);
  wants_page(flags.page);
  check_same_files(group, flags.ranks, flags.model, precision);
  std::optional<Translator> ready;
  dist::do_alike(group, [&] { ready.emplace(flags, precision); });
  const LoadedModel& model = ready->model;
  TranslateOptions& options = ready->options;
  const Prefixes& prefixes = ready->prefixes;
  if (!flags.page.empty()) {
    options.prefixes = prefixes.of(1, 1);
    return run_steps(flags, options, model);
  }
  int64_t cut = 0;
  UnknownWords unknown("translate", model);
  const LineAnswers answers = {
      .answer =
          [&](std::span<const std::string> lines, int64_t first, Results out) {
            options.prefixes = prefixes.of(first, lines.size());
            int64_t cut_here = 0;
            auto translations = translate_lines(model, lines, options, first, &cut_here);
            if (flags.is_mbr) choose_by_risk(translations);
            print_all(translations, lines, first, flags, *ready, out);
            cut += cut_here;
            out.flush();
            unknown.look_at(lines);
          },
      .skip = [&](const std::string& message, Results out) { print_bad(message, flags, out); }};
  const int64_t lines = answer_lines(group, "translate", flags.lines, kBlock, answers);
  warn_of_cut("translate", sum_of_ranks(group, cut), lines,
              model.translator().facts().longest_source);
  for (const auto& words : all_of_ranks(group, unknown.words())) unknown.add(words);
  unknown.report();
  prefixes.check_all_used(lines);
}

void run(const Flags& flags) {
  check_flags(flags);
  const auto work = [&](dist::Group& group) {
    const bool is_remote =
        asks_server(flags.command, flags.server,
                    {"input", "--skip-bad", "--json", "--n-best", "--beam", "--length-penalty",
                     "--max-length", "--source-language", "--target-language", "--alignment",
                     "--align-layers", "--align-heads", "--truncate", "--prefix", "--prefix-file"});
    check(!is_remote || group.is_alone(), ErrorKind::usage,
          "--server: {} ranks would ask it for the same; ask it by one process", group.ranks());
    is_remote ? run_remotely(flags) : run_here(flags, group);
  };
  run_shared(flags.command, flags.ranks, work, flags.page.empty());
}

}  // namespace

void add_translate(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "translate", "Translate lines of a file or of standard input, a line in, a line out", run);
  add_translate_flags(command, flags);
  add_server_flags(command, flags.server);
  command.add_setting("input", flags.lines.path,
                      "a file with a text a line, plain or gzip; - is standard input");
  add_skip_flag(command, flags.lines);
  command.add_flag("--json", flags.json,
                   "a JSON object a line, with text, score (log p over the length penalty) and "
                   "tokens");
  command.add_setting(
      "--n-best", flags.n_best,
      "translations of each line, best first, as lines LINE ||| TEXT ||| SCORE (LINE "
      "counts from 0); widens the beam to as many; with --sample, so many draws");
  add_sampling_flags(command, flags.search, flags.sample);
  command.add_flag("--mbr", flags.is_mbr,
                   "of the --n-best translations of a line the one that agrees most with the "
                   "others, by chrF: minimum Bayes risk, where they are drawn (--sample)");
  add_alignment_flags(
      command, flags.alignment_options,
      command.add_flag("--alignment", flags.alignment,
                       "add which source word each word came from, by attention: TEXT ||| 0-0 1-2, "
                       "SOURCE-TARGET, words between spaces, from 0"));
  command.add_option("--prefix", flags.prefix, "text that every translation begins with")
      .may_be_empty();
  command.add_option("--prefix-file", flags.prefix_file,
                     "a file whose line i is the prefix of line i");
  const Option page =
      add_page_flag(command, flags.page,
                    "write a page of how one line is translated: likely next tokens, the beam as a "
                    "tree, attention");
  for (const char* name : {"--json", "--n-best", "--mbr", "--alignment", "--shortlist"}) {
    command.get_option(name).excludes(page);
  }
  add_group_flags(command, flags.ranks);
}

}  // namespace heddle::cli
