// Checks the structure of a SentencePiece .model file before the library sees it.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/subwords/subword_model.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

namespace {

constexpr int64_t kMaxPieces = 4'000'000;
constexpr float kMaxScore = 1e10f;        // sums over a line stay finite
constexpr size_t kMaxNestedSymbols = 64;  // PrefixMatcher's result array

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct ProtoField {
  uint32_t number = 0;
  uint32_t type = 0;
  uint64_t value = 0;      // varint or fixed
  std::string_view bytes;  // length-delimited
  size_t at = 0;           // offset of the tag in the file
};

/// One message of the file: reads its fields one after the other.
class ProtoReader {
 public:
  ProtoReader(std::string_view file, std::string_view message, const std::string& path)
      : file_(file), rest_(message), path_(path) {}

  size_t offset() const { return static_cast<size_t>(rest_.data() - file_.data()); }

  template <class... Args>
  [[noreturn]] void refuse(size_t at, fmt::format_string<Args...> format,
                           const Args&... args) const {
    fail(ErrorKind::data, "{}: byte {}: {}; the file is damaged or no SentencePiece model", path_,
         at, fmt::vformat(format, fmt::make_format_args(args...)));
  }

  bool next(ProtoField& field) {
    if (rest_.empty()) return false;
    field = {};
    field.at = offset();
    const uint64_t tag = varint();
    field.number = static_cast<uint32_t>(tag >> 3);
    field.type = static_cast<uint32_t>(tag & 7);
    if (tag >> 32 != 0 || field.number == 0) refuse(field.at, "no field number");
    switch (field.type) {
      case kVarint: field.value = varint(); break;
      case kFixed64: field.value = fixed(8); break;
      case kFixed32: field.value = fixed(4); break;
      case kLength: {
        const uint64_t length = varint();
        if (length > rest_.size()) {
          refuse(field.at, "field {} claims {} bytes but {} are left", field.number, length,
                 rest_.size());
        }
        field.bytes = take(static_cast<size_t>(length));
        break;
      }
      default: refuse(field.at, "field {} has wire type {}", field.number, field.type);
    }
    return true;
  }

  void expect(const ProtoField& field, uint32_t type) const {
    if (field.type != type) {
      refuse(field.at, "field {} has wire type {}, not {}", field.number, field.type, type);
    }
  }

  ProtoReader inside(const ProtoField& field) const {
    expect(field, kLength);
    return {file_, field.bytes, path_};
  }

 private:
  std::string_view take(size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  uint64_t varint() {
    const size_t at = offset();
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) refuse(at, "a number is cut short");
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      if (shift == 63 && byte > 1) break;
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse(at, "a number has more than 64 bits");
  }

  uint64_t fixed(size_t n) {
    if (rest_.size() < n) refuse(offset(), "a number is cut short");
    uint64_t value = 0;
    std::memcpy(&value, take(n).data(), n);
    return value;
  }

  std::string_view file_, rest_;
  const std::string& path_;
};

class ModelCheck {
 public:
  ModelCheck(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  ModelFacts run() {
    ProtoReader model(bytes_, bytes_, path_);
    std::set<uint32_t> seen;
    ProtoField field;
    while (model.next(field)) {
      if (field.number == 1) {
        piece(model.inside(field), field.at);
        continue;
      }
      if (field.number <= 5 && !seen.insert(field.number).second) {
        model.refuse(field.at, "field {} comes twice", field.number);
      }
      switch (field.number) {
        case 2: trainer_spec(model.inside(field)); break;
        case 3: normalizer_spec(model.inside(field), facts_); break;
        case 4: self_test(model.inside(field)); break;
        case 5: {
          ModelFacts of_decoding;
          normalizer_spec(model.inside(field), of_decoding);
          facts_.has_denormalizer = !of_decoding.character_map.empty();
          break;
        }
        default: break;  // extensions
      }
    }
    if (facts_.pieces == 0) model.refuse(bytes_.size(), "no pieces");
    facts_.is_lossless = seen.contains(3) && facts_.character_map.empty() &&
                         !facts_.removes_spaces && facts_.escapes_spaces;
    facts_.has_user_symbols = !user_symbols_.empty();
    check_nested_symbols(model);
    std::ranges::sort(facts_.private_code_points);
    return std::move(facts_);
  }

 private:
  void piece(ProtoReader message, size_t at) {
    std::optional<std::string_view> text;
    std::set<uint32_t> seen;
    uint64_t type = 1;
    ProtoField field;
    while (message.next(field)) {
      if (field.number <= 3 && !seen.insert(field.number).second) {
        message.refuse(field.at, "field {} of a piece comes twice", field.number);
      }
      if (field.number == 1) {
        message.expect(field, kLength);
        text = field.bytes;
      } else if (field.number == 2) {
        message.expect(field, kFixed32);
        const float score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
        if (!(std::fabs(score) <= kMaxScore)) message.refuse(field.at, "a score of {}", score);
      } else if (field.number == 3) {
        message.expect(field, kVarint);
        type = field.value;
        if (type < 1 || type > 6) message.refuse(field.at, "piece type {}", type);
      }
    }
    piece_text(message, at, text.value_or(""), type);
  }

  void piece_text(const ProtoReader& message, size_t at, std::string_view text, uint64_t type) {
    if (++facts_.pieces > kMaxPieces) message.refuse(at, "more than {} pieces", kMaxPieces);
    if (text.empty()) message.refuse(at, "an empty piece");
    if (text.size() > kMaxTokenBytes) message.refuse(at, "a piece of {} bytes", text.size());
    if (first_invalid_utf8(text)) message.refuse(at, "a piece that is not UTF-8");
    if (text.find('\0') != text.npos) message.refuse(at, "a piece with a zero byte");
    if (!texts_.insert(text).second) message.refuse(at, "the piece '{}' comes twice", text);
    if (type == 4) user_symbols_.insert(text);
    if (text.find(kSpaceSign, 1) != text.npos) facts_.has_inner_spaces = true;
    for (size_t i = 0; i < text.size();) {
      const char32_t c = next_code_point(text, i);
      if (c >= 0x100000) facts_.private_code_points.push_back(c);
    }
  }

  void trainer_spec(ProtoReader message) {
    static const std::map<uint32_t, uint32_t> kTypes = [] {
      std::map<uint32_t, uint32_t> types;
      for (uint32_t n : {1, 2, 5, 7, 30, 31, 36, 44, 45, 46, 47, 48}) types[n] = kLength;
      for (uint32_t n : {3,  4,  6,  11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23,
                         24, 25, 26, 32, 33, 34, 35, 40, 41, 42, 43, 49, 50, 52}) {
        types[n] = kVarint;
      }
      for (uint32_t n : {10, 15, 51}) types[n] = kFixed32;
      return types;
    }();
    ProtoField field;
    while (message.next(field)) {
      const auto type = kTypes.find(field.number);
      if (type != kTypes.end()) message.expect(field, type->second);
      if (field.number == 3 && (field.value < 1 || field.value > 4)) {
        message.refuse(field.at, "model type {}", field.value);
      }
      if (field.number == 3) facts_.type = static_cast<ModelFacts::Type>(field.value);
      if (field.number == 24 && field.value != 0) facts_.has_inner_spaces = true;  // they are last
      if (field.number == 35) facts_.has_byte_fallback = field.value != 0;
      if (field.number == 44) facts_.unk_surface = field.bytes;
      if (field.number >= 44 && field.number <= 48 && first_invalid_utf8(field.bytes)) {
        message.refuse(field.at, "the name of a special piece is not UTF-8");
      }
    }
  }

  void normalizer_spec(ProtoReader message, ModelFacts& facts) {
    ProtoField field;
    while (message.next(field)) {
      const bool is_flag = field.number >= 3 && field.number <= 5;
      if (is_flag) message.expect(field, kVarint);
      if (field.number == 1 || field.number == 2 || field.number == 6) {
        message.expect(field, kLength);
      }
      if (field.number == 2 && !field.bytes.empty()) {
        facts.character_map = field.bytes;
        const std::string fault = charsmap_fault(field.bytes);
        if (!fault.empty()) message.refuse(field.at, "the character map: {}", fault);
      }
      if (field.number == 3) facts.adds_space = field.value != 0;
      if (field.number == 4) facts.removes_spaces = field.value != 0;
      if (field.number == 5) facts.escapes_spaces = field.value != 0;
    }
  }

  void self_test(ProtoReader message) {
    ProtoField field;
    while (message.next(field)) {
      if (field.number != 1) continue;
      ProtoReader sample = message.inside(field);
      ProtoField text;
      while (sample.next(text)) {
        if (text.number <= 2) sample.expect(text, kLength);
      }
    }
  }

  /// No more user-defined symbols may be prefixes of one another than SentencePiece has room for.
  void check_nested_symbols(const ProtoReader& message) const {
    std::vector<std::string_view> open;
    for (const std::string_view symbol : user_symbols_) {  // sorted: prefixes come first
      while (!open.empty() && !symbol.starts_with(open.back())) open.pop_back();
      open.push_back(symbol);
      if (open.size() > kMaxNestedSymbols) {
        message.refuse(bytes_.size(), "more than {} nested symbols", kMaxNestedSymbols);
      }
    }
  }

  std::string_view bytes_;
  const std::string& path_;
  ModelFacts facts_;
  std::unordered_set<std::string_view> texts_;
  std::set<std::string_view> user_symbols_;
};

}  // namespace

ModelFacts check_sentencepiece_model(std::string_view bytes, const std::string& path) {
  check(!bytes.empty(), ErrorKind::data,
        "{}: the file is empty; a SentencePiece model is needed (heddle tokenizer train makes one)",
        path);
  return ModelCheck(bytes, path).run();
}

}  // namespace heddle
