// Learning a subword vocabulary from text: BPE or unigram, through SentencePiece.
#include "heddle/text/training/tokenizer_trainer.h"

#include <sentencepiece_trainer.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/profile.h"
#include "heddle/base/rng.h"
#include "heddle/base/utf8.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

namespace heddle {
namespace {

/// Longest sentence handed to SentencePiece, in bytes. Its BPE trainer ends the process at a word
/// of more than 65,535 characters.
constexpr size_t kMaxSentenceBytes = 4096;
constexpr int64_t kSpecials = 4, kBytes = 256;

struct CorpusLine {
  int64_t index;
  std::string text;
};

/// Every line with the same chance (Vitter 1985, algorithm R), back in the corpus's order.
class Sample {
 public:
  Sample(int64_t limit, uint64_t seed)
      : limit_(limit), rng_(make_key(seed, 0, hash_name("tokenizer sample"))) {}

  void add(std::string&& text) {
    const int64_t index = seen_++;
    if (index < limit_) {
      lines_.push_back({index, std::move(text)});
      return;
    }
    const auto place = static_cast<int64_t>(rng_.below(static_cast<uint64_t>(seen_)));
    if (place < limit_) lines_[place] = {index, std::move(text)};
  }

  int64_t seen() const { return seen_; }

  std::vector<CorpusLine> take() {
    std::ranges::sort(lines_, {}, &CorpusLine::index);
    return std::move(lines_);
  }

 private:
  int64_t limit_;
  int64_t seen_ = 0;
  RngStream rng_;
  std::vector<CorpusLine> lines_;
};

/// Appends the line in parts of at most kMaxSentenceBytes, cut at spaces where there are any.
void append_parts(std::string_view line, std::vector<std::string>& parts) {
  while (line.size() > kMaxSentenceBytes) {
    const size_t space = line.rfind(' ', kMaxSentenceBytes);
    size_t cut = space == line.npos || space == 0 ? kMaxSentenceBytes : space;
    while (is_continuation(line[cut])) --cut;
    parts.emplace_back(line.substr(0, cut));
    line.remove_prefix(cut == space ? cut + 1 : cut);  // a part begins with a space of its own
  }
  if (!line.empty()) parts.emplace_back(line);
}

/// U+2581 and U+2585 mean a space and an unknown character to SentencePiece, which would learn from
/// the one and skip lines with the other: both become tabs, where no token passes.
void mask_reserved(std::string& line) {
  for (const std::string_view reserved : {"\xE2\x96\x81", "\xE2\x96\x85"}) {
    for (size_t at = 0; (at = line.find(reserved, at)) != line.npos;) line.replace(at, 3, "\t");
  }
}

/// Whether the line has a character that every normalisation keeps.
bool has_text(std::string_view line) {
  constexpr uint32_t kKept = U_GC_L_MASK | U_GC_N_MASK | U_GC_P_MASK | U_GC_S_MASK;
  for (size_t i = 0; i < line.size();) {
    const auto c = static_cast<UChar32>(next_code_point(line, i));
    if ((U_GET_GC_MASK(c) & kKept) && !u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT)) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> read_corpus(const SentenceSource& source, const TokenizerTraining& options,
                                     const TrainingLog& log) {
  Sample sample(options.max_sentences, options.seed);
  int64_t number = 0;
  for (std::string line; source(line);) {
    ++number;
    check_utf8(line, fmt::format("tokenizer train: line {}", number));
    if (line.empty()) continue;
    sample.add(std::move(line));
    line.clear();
  }
  std::vector<CorpusLine> lines = sample.take();
  if (log && sample.seen() > options.max_sentences) {
    log(fmt::format("sampled {} of {} lines (seed {})", lines.size(), sample.seen(), options.seed));
  }
  std::vector<std::string> parts;
  parts.reserve(lines.size());
  int64_t cut = 0;
  bool has_any_text = false;
  for (CorpusLine& line : lines) {
    mask_reserved(line.text);
    has_any_text = has_any_text || has_text(line.text);
    cut += line.text.size() > kMaxSentenceBytes ? 1 : 0;
    append_parts(line.text, parts);
    line.text = {};
  }
  if (log && cut > 0)
    log(fmt::format("cut {} lines of more than {} bytes", cut, kMaxSentenceBytes));
  check(has_any_text, ErrorKind::data,
        "tokenizer train: the corpus is empty: {} lines, none with a letter, digit or sign",
        number);
  return parts;
}

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string>& all) : all_(all) {}
  bool done() const override { return at_ == all_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return all_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& all_;
  size_t at_ = 0;
};

void check_options(const TokenizerTraining& o) {
  const int64_t least = kSpecials + (o.byte_fallback ? kBytes : 0) + 1;
  check(o.vocab_size >= least && o.vocab_size <= 1'000'000, ErrorKind::usage,
        "tokenizer train: a vocabulary of {} tokens; it must have {} to 1000000 ({} are reserved)",
        o.vocab_size, least, least - 1);
  check(o.character_coverage >= 0.98 && o.character_coverage <= 1.0, ErrorKind::usage,
        "tokenizer train: a character coverage of {}; it must be 0.98 to 1", o.character_coverage);
  check(o.max_sentences >= 1, ErrorKind::usage,
        "tokenizer train: at most {} sentences; it must be at least 1", o.max_sentences);
}

std::string normalization_name(const TokenizerTraining& o) {
  static const std::vector<std::string> kNames = {"identity", "nfkc", "nmt_nfkc", "nfkc_cf",
                                                  "nmt_nfkc_cf"};
  check(std::ranges::count(kNames, o.normalization) == 1, ErrorKind::usage,
        "tokenizer train: unknown normalization '{}'; there are {}", o.normalization,
        fmt::join(kNames, ", "));
  if (!o.lower_case || o.normalization.ends_with("_cf")) return o.normalization;
  return o.normalization == "identity" ? "nfkc_cf" : o.normalization + "_cf";
}

std::unordered_map<std::string, std::string> trainer_flags(const TokenizerTraining& o) {
  const std::string normalization = normalization_name(o);
  return {{"model_type", o.type == TokenizerType::bpe ? "bpe" : "unigram"},
          {"vocab_size", fmt::format("{}", o.vocab_size)},
          {"character_coverage", fmt::format("{}", o.character_coverage)},
          {"byte_fallback", o.byte_fallback ? "true" : "false"},
          {"normalization_rule_name", normalization},
          {"remove_extra_whitespaces", normalization == "identity" ? "false" : "true"},
          {"max_sentence_length", "1048576"},
          {"num_threads", "1"},
          {"pad_id", "0"},
          {"unk_id", "1"},
          {"bos_id", "2"},
          {"eos_id", "3"},
          {"minloglevel", "3"}};
}

/// The number that follows `mark` in SentencePiece's message, empty if there is none.
std::string number_after(const std::string& message, std::string_view mark) {
  const size_t found = message.find(mark);
  if (found == message.npos) return "";
  const size_t begin = found + mark.size();
  return message.substr(begin, message.find_first_not_of("0123456789", begin) - begin);
}

/// SentencePiece's refusals in words that say what to do.
[[noreturn]] void fail_training(const std::string& status, const TokenizerTraining& o) {
  const std::string most = number_after(status, "Please set it to a value <= ");
  check(most.empty(), ErrorKind::data,
        "tokenizer train: the corpus is too small for a vocabulary of {} tokens: it gives {}; "
        "use `vocab_size` {} or less, or more text",
        o.vocab_size, most, most);
  const std::string least = number_after(
      status, fmt::format("Vocabulary size is smaller than required_chars. {} vs ", o.vocab_size));
  check(least.empty(), ErrorKind::data,
        "tokenizer train: a vocabulary of {} tokens is too small: special tokens, bytes and the "
        "characters of the corpus take {}; use `vocab_size` {} or more, or a lower `coverage`",
        o.vocab_size, least, least);
  fail(ErrorKind::data, "tokenizer train: SentencePiece cannot train on this corpus: {}", status);
}

}  // namespace

TokenizerType tokenizer_type(const std::string& name) {
  if (name == "bpe") return TokenizerType::bpe;
  if (name == "unigram") return TokenizerType::unigram;
  fail(ErrorKind::usage, "unknown tokenizer type '{}'; there are bpe and unigram", name);
}

Tokenizer train_tokenizer(const SentenceSource& source, const TokenizerTraining& options,
                          const TrainingLog& log) {
  const ProfilePhase phase("train tokenizer");
  check_options(options);
  const auto flags = trainer_flags(options);
  const std::vector<std::string> corpus = read_corpus(source, options, log);
  silence_sentencepiece();
  Sentences sentences(corpus);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(flags, &sentences, &model);
  if (!status.ok()) fail_training(status.ToString(), options);
  return Tokenizer::from_bytes(std::move(model), "the trained tokenizer");
}

Tokenizer train_tokenizer(std::span<const std::string> sentences, const TokenizerTraining& options,
                          const TrainingLog& log) {
  size_t at = 0;
  const SentenceSource source = [&](std::string& line) {
    if (at == sentences.size()) return false;
    line = sentences[at++];
    return true;
  };
  return train_tokenizer(source, options, log);
}

}  // namespace heddle
