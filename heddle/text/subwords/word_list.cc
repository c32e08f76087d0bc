// A SentencePiece model of type WORD, written field by field (sentencepiece_model.proto).
#include "heddle/text/subwords/word_list.h"

#include <bit>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"

namespace heddle {
namespace {

constexpr std::string_view kSpecial[] = {"<pad>", "<unk>", "<s>", "</s>"};

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

Tokenizer word_list_tokenizer(std::span<const std::string> words) {
  check(!words.empty(), ErrorKind::data, "word list: it is empty; at least one word is needed");
  std::unordered_set<std::string_view> known(std::begin(kSpecial), std::end(kSpecial));
  ProtoWriter model;
  for (const std::string_view name : kSpecial) {
    add_token(model, name, name == "<unk>" ? kUnknown : kControl);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    check_word(words[i], i + 1, known);
    add_token(model, std::string(kSpaceSign) + words[i], kNormal);
  }
  ProtoWriter trainer;
  trainer.add(3, uint64_t{3});  // model_type: WORD
  trainer.add(4, uint64_t{std::size(kSpecial) + words.size()});
  trainer.add(40, uint64_t{1});  // unk_id, bos_id, eos_id, pad_id
  trainer.add(41, uint64_t{2});
  trainer.add(42, uint64_t{3});
  trainer.add(43, uint64_t{0});
  trainer.add(48, kSpecial[0]);  // names of pad, unk, bos, eos
  trainer.add(45, kSpecial[1]);
  trainer.add(46, kSpecial[2]);
  trainer.add(47, kSpecial[3]);
  model.add(2, trainer.bytes());
  ProtoWriter normalizer;
  normalizer.add(1, std::string_view("identity"));
  for (const uint32_t flag : {3, 4, 5}) normalizer.add(flag, uint64_t{1});  // spaces
  model.add(3, normalizer.bytes());
  return Tokenizer::from_bytes(model.bytes(), "word list");
}

}  // namespace heddle
