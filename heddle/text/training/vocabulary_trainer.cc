// Characters into a tokenizer.json; words, counted and merged, into a vocab.txt; the words of a
// list into a SentencePiece model of type WORD, field by field (sentencepiece_model.proto).
#include "heddle/text/training/tokenizer_trainer.h"

#include <bit>
#include <map>
#include <queue>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/utf8.h"

namespace heddle {
namespace {

// Each character that stands there, by its code point.
std::map<char32_t, std::string> characters_of(std::span<const std::string> texts) {
  std::map<char32_t, std::string> found;
  for (const std::string& text : texts) {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const char32_t c = next_code_point(text, at);
      if (!found.contains(c)) found[c] = text.substr(begin, at - begin);
    }
  }
  return found;
}

const std::vector<std::string> kSpecials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

std::string vocab_txt(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token + "\n";
  return text;
}

using Word = std::vector<int32_t>;  // tokens
using Pair = std::pair<int32_t, int32_t>;

// Words as WordPiece splits them, by characters, each with its count.
struct WordCounts {
  std::vector<std::string> tokens;  // by number
  std::unordered_map<std::string, int32_t> numbers;
  std::vector<Word> words;
  std::vector<int64_t> counts;

  // The number of a token, which may be there already.
  int32_t add(const std::string& token) {
    const auto [at, is_new] = numbers.try_emplace(token, static_cast<int32_t>(tokens.size()));
    if (is_new) tokens.push_back(token);
    return at->second;
  }
};

bool is_inner(const std::string& token) { return token.size() > 2 && token.starts_with("##"); }

// A tokenizer of single characters splits and normalises as the one to come will.
WordCounts count_words(std::span<const std::string> texts) {
  std::set<std::string> characters;
  for (const auto& [c, text] : characters_of(texts)) {
    // A vocab.txt has a word a line; what separates words is in none.
    const bool is_space = c <= ' ' || (c >= 0x7F && c <= 0xA0) || (c >= 0x2000 && c <= 0x200F) ||
                          c == 0x2028 || c == 0x2029 || c == 0x3000 || c == 0xFEFF;
    if (!is_space) characters.insert(text);
  }
  for (char c = 'a'; c <= 'z'; ++c) characters.insert(std::string(1, c));
  std::vector<std::string> tokens = kSpecials;
  for (const std::string& c : characters) {
    tokens.push_back(c);
    tokens.push_back("##" + c);
  }
  const Tokenizer letters = tokenizer_of_file({"vocab.txt", vocab_txt(tokens)});
  std::map<Word, int64_t> counts;
  Word word;
  const auto end_word = [&] {
    if (!word.empty()) ++counts[word];
    word.clear();
  };
  for (const std::string& text : texts) {
    for (const int32_t id : letters.encode(text)) {
      if (!is_inner(tokens[static_cast<size_t>(id)])) end_word();
      if (id >= static_cast<int32_t>(kSpecials.size())) word.push_back(id);
    }
    end_word();
  }
  WordCounts out;
  std::map<int32_t, int32_t> number;  // of the characters that are used, in order of their tokens
  for (const auto& [w, count] : counts) {
    for (const int32_t id : w) number[id] = 0;
  }
  for (const std::string& special : kSpecials) out.add(special);
  for (auto& [id, n] : number) n = out.add(tokens[static_cast<size_t>(id)]);
  for (const auto& [w, count] : counts) {
    Word& renamed = out.words.emplace_back();
    for (const int32_t id : w) renamed.push_back(number[id]);
    out.counts.push_back(count);
  }
  return out;
}

// How often pairs of neighbours stand in the words, and in which. Of each pair the queue holds a
// count that is no less than its own: counts that have fallen since are put right at the front.
class PairCounts {
 public:
  explicit PairCounts(const WordCounts& words) {
    for (size_t i = 0; i < words.words.size(); ++i) add(words, i, 1);
  }
  void add(const WordCounts& words, size_t i, int64_t sign) {
    const Word& w = words.words[i];
    for (size_t k = 0; k + 1 < w.size(); ++k) {
      const Pair pair{w[k], w[k + 1]};
      sign > 0 ? raise(pair, words.counts[i], i) : lower(pair, words.counts[i]);
    }
  }
  // The pair that comes most often; of equals the first by number.
  std::pair<Pair, int64_t> best() {
    for (const Pair& pair : raised_) enqueue(pair);
    raised_.clear();
    while (!queue_.empty()) {
      const auto [count, pair] = queue_.top();
      const auto at = counts_.find(pair);
      if (at != counts_.end() && at->second.count == count) return {pair, count};
      queue_.pop();
      if (at == counts_.end() || at->second.queued != count) continue;
      at->second.queued = 0;
      enqueue(pair);
    }
    return {{}, 0};
  }
  std::set<size_t> take(const Pair& pair) {
    const auto taken = counts_.extract(pair);
    return taken.empty() ? std::set<size_t>{} : std::move(taken.mapped().words);
  }

 private:
  struct Count {
    int64_t count = 0, queued = 0;  // queued: the last count in the queue
    std::set<size_t> words = {};
    bool is_raised = false;
  };
  struct Entry {
    int64_t count;
    Pair pair;
    bool operator<(const Entry& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void raise(const Pair& pair, int64_t times, size_t word) {
    Count& known = counts_[pair];
    known.count += times;
    known.words.insert(word);
    if (!std::exchange(known.is_raised, true)) raised_.push_back(pair);
  }
  void lower(const Pair& pair, int64_t times) {
    const auto at = counts_.find(pair);
    if (at == counts_.end()) return;  // it was taken
    at->second.count -= times;
    if (at->second.count == 0) counts_.erase(at);
  }
  void enqueue(const Pair& pair) {
    const auto at = counts_.find(pair);
    if (at == counts_.end()) return;
    at->second.is_raised = false;
    if (at->second.count <= at->second.queued) return;
    at->second.queued = at->second.count;
    queue_.push({at->second.count, pair});
  }

  std::map<Pair, Count> counts_;
  std::vector<Pair> raised_;  // whose counts may be more than the queue knows
  std::priority_queue<Entry> queue_;
};

void join(Word& word, const Pair& pair, int32_t joined) {
  size_t out = 0;
  for (size_t k = 0; k < word.size(); ++k) {
    const bool is_pair = k + 1 < word.size() && word[k] == pair.first && word[k + 1] == pair.second;
    word[out++] = is_pair ? joined : word[k];
    if (is_pair) ++k;
  }
  word.resize(out);
}

constexpr std::string_view kWordListSpecials[] = {"<pad>", "<unk>", "<s>", "</s>"};

// Types of tokens.
constexpr uint64_t kNormal = 1, kUnknown = 2, kControl = 3;

// A protocol buffer, in the order in which its fields are added.
class ProtoWriter {
 public:
  void add(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void add(uint32_t field, std::string_view text) {
    varint(field << 3 | 2);
    varint(text.size());
    bytes_ += text;
  }
  void add_float(uint32_t field, float value) {
    varint(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte) & 0xFF);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

void add_token(ProtoWriter& model, std::string_view text, uint64_t type) {
  ProtoWriter token;
  token.add(1, text);
  token.add_float(2, 0);
  token.add(3, type);
  model.add(1, token.bytes());
}

void check_word(const std::string& word, size_t number,
                std::unordered_set<std::string_view>& known) {
  check(!word.empty() && word.find_first_of(" \t\r\n") == std::string::npos &&
            word.find(kSpaceSign) == std::string::npos,
        ErrorKind::data, "word list: word {}: '{}' is empty or holds a space; one word a line",
        number, word);
  check(!first_invalid_utf8(word), ErrorKind::data, "word list: word {} is not UTF-8", number);
  check(known.insert(word).second, ErrorKind::data,
        "word list: word {}: '{}' comes twice, or is a special token", number, word);
}

}  // namespace

Tokenizer character_tokenizer(std::span<const std::string> texts) {
  const auto characters = characters_of(texts);
  check(!characters.empty(), ErrorKind::data, "there is no character to make a vocabulary of");
  Json json = Json::parse(R"({"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
      "decoder": {"type": "Fuse"},
      "model": {"type": "BPE", "dropout": null, "unk_token": null,
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
                "byte_fallback": false, "ignore_merges": false, "vocab": {}, "merges": []}})");
  Json& vocab = json["model"]["vocab"];
  int64_t id = 0;
  for (const auto& [c, text] : characters) vocab[text] = id++;
  return tokenizer_of_file({"tokenizer.json", json.dump(2) + "\n"});
}

Tokenizer train_word_pieces(std::span<const std::string> texts, int64_t vocab_size) {
  WordCounts words = count_words(texts);
  check(static_cast<int64_t>(words.tokens.size()) <= vocab_size, ErrorKind::data,
        "a vocabulary of {} tokens is asked for, but the characters alone are {}; raise "
        "`vocab_size`",
        vocab_size, words.tokens.size());
  PairCounts pairs(words);
  while (static_cast<int64_t>(words.tokens.size()) < vocab_size) {
    const auto [pair, count] = pairs.best();
    if (count < 2) break;
    const std::string& second = words.tokens[static_cast<size_t>(pair.second)];
    const int32_t joined = words.add(words.tokens[static_cast<size_t>(pair.first)] +
                                     (is_inner(second) ? second.substr(2) : second));
    for (const size_t i : pairs.take(pair)) {
      pairs.add(words, i, -1);
      join(words.words[i], pair, joined);
      pairs.add(words, i, 1);
    }
  }
  return tokenizer_of_file({"vocab.txt", vocab_txt(words.tokens)});
}

Tokenizer word_list_tokenizer(std::span<const std::string> words) {
  check(!words.empty(), ErrorKind::data, "word list: it is empty; at least one word is needed");
  std::unordered_set<std::string_view> known(std::begin(kWordListSpecials),
                                             std::end(kWordListSpecials));
  ProtoWriter model;
  for (const std::string_view name : kWordListSpecials) {
    add_token(model, name, name == "<unk>" ? kUnknown : kControl);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    check_word(words[i], i + 1, known);
    add_token(model, std::string(kSpaceSign) + words[i], kNormal);
  }
  ProtoWriter trainer;
  trainer.add(3, uint64_t{3});  // model_type: WORD
  trainer.add(4, uint64_t{std::size(kWordListSpecials) + words.size()});
  trainer.add(40, uint64_t{1});  // unk_id, bos_id, eos_id, pad_id
  trainer.add(41, uint64_t{2});
  trainer.add(42, uint64_t{3});
  trainer.add(43, uint64_t{0});
  trainer.add(48, kWordListSpecials[0]);  // names of pad, unk, bos, eos
  trainer.add(45, kWordListSpecials[1]);
  trainer.add(46, kWordListSpecials[2]);
  trainer.add(47, kWordListSpecials[3]);
  model.add(2, trainer.bytes());
  ProtoWriter normalizer;
  normalizer.add(1, std::string_view("identity"));
  for (const uint32_t flag : {3, 4, 5}) normalizer.add(flag, uint64_t{1});  // spaces
  model.add(3, normalizer.bytes());
  return Tokenizer::from_bytes(model.bytes(), "word list");
}

}  // namespace heddle
