// heddle tokenizer train | words | encode | decode | info: vocabularies at the command line.
#include <charconv>
#include <functional>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/lines.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/text/strings/sentences.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/training/tokenizer_trainer.h"

namespace heddle::cli {

namespace {

constexpr const char* kModelHelp =
    "a training run, or a folder with tokenizer files (tokenizer.json, vocab.json and merges.txt, "
    "vocab.txt, "
    "spiece.model ..), or one of these files";

struct TrainFlags {
  std::vector<std::string> inputs;
  std::string type = "bpe", out;
  bool no_byte_fallback = false;
  TokenizerTraining training;
};

struct StreamFlags {
  std::string model;
  bool tokens = false, special = false, clean_up = false, no_clean_up = false, json = false;
  LineFlags lines;
};

constexpr BlockSize kBlock = {.lines = 1 << 12, .bytes = 64 << 10};

/// The lines of several files, one after the other; refuses what is not UTF-8 by file and line.
class Corpus {
 public:
  explicit Corpus(const std::vector<std::string>& paths) : paths_(paths) {
    for (const std::string& path : paths) LineReader probe(path);  // a missing file is said at once
  }

  bool next(std::string& line) {
    for (;; reader_.reset(), ++at_) {
      if (at_ == paths_.size()) return false;
      if (!reader_) reader_.emplace(paths_[at_]);
      if (reader_->next(line)) break;
    }
    check_utf8(line, fmt::format("{}: line {}", paths_[at_], reader_->line_number()));
    return true;
  }

 private:
  const std::vector<std::string>& paths_;
  size_t at_ = 0;
  std::optional<LineReader> reader_;
};

void run_train(TrainFlags& flags) {
  flags.training.type = tokenizer_type(flags.type);
  flags.training.byte_fallback = !flags.no_byte_fallback;
  inspect::check_output(flags.out, "the vocabulary");
  Corpus corpus(flags.inputs);
  const Tokenizer tokenizer =
      train_tokenizer([&](std::string& line) { return corpus.next(line); }, flags.training,
                      [](const std::string& m) { fmt::print(stderr, "tokenizer train: {}\n", m); });
  tokenizer.save(flags.out);
  fmt::print(stderr, "tokenizer train: {}, fingerprint {}, in {}\n",
             counted(tokenizer.vocab_size(), "token"), tokenizer.fingerprint(), flags.out);
}

void run_words(const TrainFlags& flags) {
  inspect::check_output(flags.out, "the vocabulary");
  std::vector<std::string> words;
  for (const std::string& path : flags.inputs) {
    LineReader reader(path);
    for (std::string line; reader.next(line);) words.push_back(std::move(line));
  }
  const Tokenizer tokenizer = word_list_tokenizer(words);
  tokenizer.save(flags.out);
  fmt::print(stderr, "tokenizer words: {}, fingerprint {}, in {}\n",
             counted(tokenizer.vocab_size(), "token"), tokenizer.fingerprint(), flags.out);
}

// Of a run the tokenizer of its best model.
Tokenizer load_tokenizer(const std::string& path) {
  check(path_exists(path), ErrorKind::data,
        "{}: there is no such file or folder; a tokenizer, a model directory or a training run is "
        "needed{}",
        path, hub_hint(path));
  const std::string best = join_path(path, "best");
  const bool is_run = is_directory(path) && !path_exists(join_path(path, kConfigName)) &&
                      path_exists(join_path(best, kConfigName));
  return Tokenizer::load(is_run ? best : path);
}

// One line of output for each line of input.
void answer_each(const char* command, const StreamFlags& flags,
                 const std::function<std::string(const std::string& line, int64_t number)>& f) {
  const LineAnswers answers = {
      .answer =
          [&](std::span<const std::string> lines, int64_t first, Results out) {
            std::vector<std::string> results;
            for (const std::string& line : lines) {
              results.push_back(f(line, first + static_cast<int64_t>(results.size())));
            }
            for (const std::string& result : results) out.print(result);
          },
      .skip = [](const std::string&, Results out) { out.print(""); }};
  answer_lines(command, flags.lines, kBlock, answers);
}

void run_encode(const StreamFlags& flags) {
  const Tokenizer tokenizer = load_tokenizer(flags.model);
  DroppedCharacters dropped(tokenizer);
  answer_each("tokenizer encode", flags, [&](const std::string& line, int64_t number) {
    check_text(line, fmt::format("line {}", number));
    dropped.without(line);
    std::string out;
    std::vector<int32_t> ids = tokenizer.encode(line);
    if (flags.special) ids = tokenizer.with_special(ids).ids;
    for (const int32_t id : ids) {
      if (!out.empty()) out += ' ';
      out += flags.tokens ? tokenizer.token(id) : std::to_string(id);
    }
    return out;
  });
  warn_of_dropped_input("tokenizer encode", dropped);
}

std::vector<int32_t> parse_ids(const std::string& line, int64_t number, int64_t vocab_size) {
  std::vector<int32_t> ids;
  const char* p = line.data();
  const char* const end = p + line.size();
  for (;;) {
    while (p != end && (*p == ' ' || *p == '\t')) ++p;
    if (p == end) return ids;
    const char* const begin = p;
    while (p != end && *p != ' ' && *p != '\t') ++p;
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(begin, p, id);
    check(error == std::errc() && stop == p, ErrorKind::data,
          "line {}: '{}' is no token id; ids are whole numbers separated by blanks", number,
          std::string(begin, p));
    check(id >= 0 && id < vocab_size, ErrorKind::data,
          "line {}: id {} is not in the vocabulary, whose ids are 0 to {}", number, id,
          vocab_size - 1);
    ids.push_back(id);
  }
}

void run_decode(const StreamFlags& flags) {
  const Tokenizer tokenizer = load_tokenizer(flags.model);
  DecodeOptions options{.skip_special = !flags.special};
  if (flags.clean_up || flags.no_clean_up) options.clean_up = flags.clean_up;
  answer_each("tokenizer decode", flags, [&](const std::string& line, int64_t number) {
    return without_lines(
        tokenizer.decode(parse_ids(line, number, tokenizer.vocab_size()), options));
  });
}

/// "<s> TEXT </s>".
std::string around(const Tokenizer& tokenizer, bool is_pair) {
  constexpr int32_t kFirst = -1, kSecond = -2;
  const std::vector<int32_t> first = {kFirst}, second = {kSecond};
  const Encoding encoding =
      is_pair ? tokenizer.with_special(first, second) : tokenizer.with_special(first);
  std::string text;
  for (const int32_t id : encoding.ids) {
    if (!text.empty()) text += ' ';
    text += id == kFirst ? "TEXT" : id == kSecond ? "SECOND" : tokenizer.token(id);
  }
  return text;
}

void run_info(const StreamFlags& flags) {
  const Tokenizer t = load_tokenizer(flags.model);
  Json json = Json::object({{"kind", t.kind()}, {"vocab_size", t.vocab_size()}});
  const std::pair<const char*, int32_t> special[] = {
      {"pad", t.pad_id()}, {"unk", t.unk_id()}, {"bos", t.bos_id()},  {"eos", t.eos_id()},
      {"cls", t.cls_id()}, {"sep", t.sep_id()}, {"mask", t.mask_id()}};
  json["special"] = Json::object();
  for (const auto& [name, id] : special) {
    if (id < 0) continue;
    json["special"][name]["id"] = id;
    json["special"][name]["token"] = t.token(id);
  }
  json["text"] = around(t, false);
  json["pair"] = around(t, true);
  json["files"] = Json::array();
  for (const TokenizerFile& file : t.files()) json["files"].push_back(file.name);
  json["fingerprint"] = t.fingerprint();
  if (flags.json) return print_result(json.dump());
  print_result(fmt::format("{}, {}, fingerprint {}", t.kind(), counted(t.vocab_size(), "token"),
                           t.fingerprint()));
  for (const auto& [name, id] : special) {
    if (id >= 0) print_result(fmt::format("{:<5} {:>7}  {}", name, id, t.token(id)));
  }
  print_result("a text is " + around(t, false));
  print_result("a pair is " + around(t, true));
}

void add_train_command(Subcommand& parent) {
  auto [app, flags] = parent.add_command<TrainFlags>(
      "train", "learn a vocabulary from text, one line a sentence", run_train);
  TokenizerTraining& t = flags.training;
  app.add_option("--input", flags.inputs,
                 "a text file, plain or .gz; several make a joint vocabulary")
      .required();
  app.add_option("-o,--output", flags.out, "the SentencePiece .model file to write")
      .required()
      .writes_file();
  app.add_setting("--vocab-size", t.vocab_size, "tokens, 4 special and 256 bytes included");
  app.add_setting("--type", flags.type, "bpe or unigram");
  app.add_setting("--seed", t.seed, "chooses the sample of a large corpus");
  app.add_setting("--coverage", t.character_coverage, "share of characters that are tokens");
  app.add_setting("--max-sentences", t.max_sentences, "lines beyond this are sampled");
  app.add_setting("--normalization", t.normalization,
                  "identity, nfkc, nmt_nfkc, nfkc_cf or nmt_nfkc_cf");
  app.add_flag("--lowercase", t.lower_case, "fold case (implies nfkc_cf)");
  app.add_flag("--no-byte-fallback", flags.no_byte_fallback,
               "unknown characters become <unk>, not bytes");
}

void add_words_command(Subcommand& parent) {
  auto [app, flags] = parent.add_command<TrainFlags>(
      "words",
      "make a vocabulary of plain words from a list, one a line; ids 0 to 3 are <pad>, "
      "<unk>, <s>, </s>",
      run_words);
  app.add_option("--input", flags.inputs, "the list; several make one vocabulary").required();
  app.add_option("-o,--output", flags.out, "the SentencePiece .model file to write")
      .required()
      .writes_file();
}

void add_stream_commands(Subcommand& parent) {
  auto [encode, encoded] = parent.add_command<StreamFlags>(
      "encode", "standard input to ids, a line in, a line out", run_encode);
  encode.add_option("model", encoded.model, kModelHelp).required();
  Option tokens = encode.add_flag("--tokens", encoded.tokens, "print tokens");
  encode.add_flag("--ids", "print ids (the default)").excludes(tokens);
  encode.add_flag("--special", encoded.special,
                  "with the special ids that the files put around a text");
  add_skip_flag(encode, encoded.lines, false);
  auto [decode, decoded] =
      parent.add_command<StreamFlags>("decode", "ids separated by blanks to text", run_decode);
  decode.add_option("model", decoded.model, kModelHelp).required();
  decode.add_flag("--special", decoded.special, "write special tokens too");
  Option clean = decode.add_flag("--clean-up", decoded.clean_up,
                                 "take spaces before punctuation away (else as the files "
                                 "say)");
  decode.add_flag("--no-clean-up", decoded.no_clean_up, "leave them").excludes(clean);
  add_skip_flag(decode, decoded.lines, false);
  auto [info, shown] =
      parent.add_command<StreamFlags>("info", "kind, size and special tokens", run_info);
  info.add_option("model", shown.model, kModelHelp).required();
  info.add_flag("--json", shown.json, "one line of JSON");
}

}  // namespace

void add_tokenizer(Subcommand& app) {
  Subcommand command = app.add_subcommand("tokenizer", "train and apply subword vocabularies");
  command.require_subcommand();
  add_train_command(command);
  add_words_command(command);
  add_stream_commands(command);
}

}  // namespace heddle::cli
