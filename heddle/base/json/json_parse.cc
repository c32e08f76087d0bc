// Parsing JSON: nlohmann's event parser (which does not recurse) feeding our own values.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"

namespace heddle {

namespace {

constexpr size_t kDeepest = 200;
// What values may take of memory: whole tokenizers take 5 to 15 bytes a byte of text, "[0,0,...]"
// takes 44. Nothing that is read as JSON needs more than a gibibyte.
constexpr size_t kMostTimes = 24, kHarmless = size_t{64} << 20, kMostBytes = size_t{1} << 30;

/// "line 3, column 7" of a byte, both from 1; columns count bytes.
std::string place_of(std::string_view text, size_t byte) {
  byte = std::min(byte, text.size());
  size_t line = 1, start = 0;
  for (size_t i = 0; i < byte; ++i) {
    if (text[i] == '\n') ++line, start = i + 1;
  }
  return fmt::format("line {}, column {}", line, byte - start + 1);
}

}  // namespace

/// The receiver of nlohmann's events. Depth, repeated keys and memory are checked here.
class Json::Builder {
 public:
  Builder(std::string_view text, const std::string& source)
      : text_(text),
        source_(source),
        most_bytes_(std::clamp(kMostTimes * text.size(), kHarmless, kMostBytes)) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) {
    const bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    return add(fits ? Json(static_cast<int64_t>(value)) : Json(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) {
    charge(value.size());
    return add(Json(std::move(value)));
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const Object& object = std::get<Object>(open_.back().value_);
    charge(name.size() + sizeof(Member) - sizeof(Json));
    check(object.find(name) == static_cast<size_t>(-1), ErrorKind::data,
          "{}: key '{}' appears twice in one object{}", source_, name, path());
    keys_.back() = std::move(name);
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) {
    std::string reason = error.what();  // "[json.exception...] parse error at line ...: reason"
    const size_t head = reason.find(": ");
    if (head != std::string::npos) reason.erase(0, head + 2);
    if (text_.empty()) reason = "the text is empty (0 bytes)";
    fail(ErrorKind::data, "{}: not valid JSON at {}: {}", source_,
         place_of(text_, byte > 0 ? byte - 1 : 0), reason);
  }

  Json take() { return std::move(root_); }

 private:
  /// Counts what is taken, but not what vectors hold ready and the allocator adds.
  void charge(size_t bytes) {
    used_ += bytes;
    check(used_ <= most_bytes_, ErrorKind::data,
          "{}: the values of this JSON ({} bytes of text) take more than {} bytes of memory; the "
          "file is damaged or hostile",
          source_, text_.size(), most_bytes_);
  }

  bool open(Json value) {
    check(open_.size() < kDeepest, ErrorKind::data,
          "{}: JSON is nested more than {} levels deep; the file is damaged or hostile", source_,
          kDeepest);
    open_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    Json value = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(value));
  }

  bool add(Json value) {
    charge(sizeof(Json));
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_array()) {
      std::get<Array>(open_.back().value_).push_back(std::move(value));
    } else {
      std::get<Object>(open_.back().value_).add(std::move(keys_.back()), std::move(value));
    }
    return true;
  }

  /// " (in 'a.b')": where the parser is, for messages.
  std::string path() const {
    std::string names;
    for (size_t i = 0; i + 1 < keys_.size(); ++i) {
      const bool is_array = open_[i].is_array();
      const std::string step = is_array ? fmt::format("[{}]", open_[i].size()) : keys_[i];
      names += (names.empty() || is_array ? "" : ".") + step;
    }
    return names.empty() ? "" : fmt::format(" (in '{}')", names);
  }

  std::string_view text_;
  const std::string& source_;
  size_t most_bytes_, used_ = 0;
  std::vector<Json> open_;         // values not closed yet, outermost first
  std::vector<std::string> keys_;  // for each, the key whose value is being read
  Json root_;
};

Json Json::parse(std::string_view text, const std::string& source) {
  Builder builder(text, source);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace heddle
