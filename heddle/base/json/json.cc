// JSON values: access and comparison; parsing by nlohmann's event parser, which does not recurse;
// writing: numbers that read back to the same bits, strings that are always UTF-8.
#include "heddle/base/json/json.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"

namespace heddle {
namespace {

constexpr size_t kMissing = static_cast<size_t>(-1);
constexpr size_t kIndexFrom = 24;  // members; below that a scan is faster than a hash
constexpr size_t kDeepest = 200;   // levels that are read
// What values may take of memory: whole tokenizers take 5 to 15 bytes a byte of text, "[0,0,...]"
// takes 44. Nothing that is read as JSON needs more than a gibibyte.
constexpr size_t kMostTimes = 24, kHarmless = size_t{64} << 20, kMostBytes = size_t{1} << 30;

std::string key_name(std::string_view key, std::string_view source) {
  return source.empty() ? fmt::format("key '{}'", key) : fmt::format("{}: key '{}'", source, key);
}

[[noreturn]] void fail_type(const Json& value, std::string_view what, const char* needed) {
  fail(ErrorKind::data, "{} is {}; {} is needed", what, value.describe(), needed);
}

template <class T, class As>
std::vector<T> each_as(const Json::Array& array, std::string_view what, As as) {
  std::vector<T> values;
  for (const Json& value : array) {
    values.push_back((value.*as)(fmt::format("{}[{}]", what, values.size())));
  }
  return values;
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      out += kUnknownCharacter;
      ++i;
      continue;
    }
    const char letter = c == '"' || c == '\\' ? c
                        : c == '\n'           ? 'n'
                        : c == '\t'           ? 't'
                        : c == '\r'           ? 'r'
                                              : '\0';
    if (letter != '\0') {
      (out += '\\') += letter;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out.append(text, i, length);
    }
    i += length;
  }
  out += '"';
}

void write_double(std::string& out, double value) {
  check(std::isfinite(value), ErrorKind::data, "JSON has no way to write the number {}", value);
  const std::string text = fmt::format("{}", value);  // shortest that reads back
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

void new_line(std::string& out, int indent, int level) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(level), ' ');
}

/// What f writes of each member, between brackets.
template <class Members, class F>
void write_list(std::string& out, std::string_view brackets, const Members& members, int indent,
                int level, const F& f) {
  out += brackets[0];
  bool is_first = true;
  for (const auto& member : members) {
    if (!is_first) out += indent < 0 ? ", " : ",";
    is_first = false;
    new_line(out, indent, level + 1);
    f(member);
  }
  if (!is_first) new_line(out, indent, level);
  out += brackets[1];
}

void write(std::string& out, const Json& value, int indent, int level) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    fmt::format_to(std::back_inserter(out), "{}", value.as_int());
  } else if (value.is_number()) {
    write_double(out, value.as_double());
  } else if (value.is_string()) {
    write_string(out, value.as_string());
  } else if (value.is_array()) {
    write_list(out, "[]", value.as_array(), indent, level,
               [&](const Json& element) { write(out, element, indent, level + 1); });
  } else {
    write_list(out, "{}", value.as_object(), indent, level, [&](const Json::Member& member) {
      write_string(out, member.first);
      out += ": ";
      write(out, member.second, indent, level + 1);
    });
  }
}

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

size_t Json::Object::find(std::string_view key) const {
  if (!index.empty()) {
    const auto it = index.find(std::string(key));
    return it == index.end() ? kMissing : it->second;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].first == key) return i;
  }
  return kMissing;
}

Json& Json::Object::add(std::string key, Json value) {
  members.emplace_back(std::move(key), std::move(value));
  if (index.empty() && members.size() >= kIndexFrom) {
    for (size_t i = 0; i < members.size(); ++i) index.emplace(members[i].first, i);
  } else if (!index.empty()) {
    index.emplace(members.back().first, members.size() - 1);
  }
  return members.back().second;
}

bool Json::Object::operator==(const Object& other) const {
  const auto is_there = [&](const Member& member) {
    const size_t place = other.find(member.first);
    return place != kMissing && other.members[place].second == member.second;
  };
  return members.size() == other.members.size() && std::ranges::all_of(members, is_there);
}

Json Json::object(std::initializer_list<Member> members) {
  Json json;
  auto& object = json.value_.emplace<Object>();
  for (const auto& [key, value] : members) object.add(key, value);
  return json;
}

Json Json::load(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  struct stat info;  // of a pipe nothing is known beforehand
  const bool is_seen = stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  check(!is_seen || info.st_size <= kMostBytes, ErrorKind::data,
        "{}: {} bytes are too many for a file of settings; at most {} are read", path,
        is_seen ? info.st_size : 0, kMostBytes);
  return parse(read_file(path), path);
}

std::string Json::describe() const {
  if (is_null()) return "null";
  if (const bool* value = std::get_if<bool>(&value_)) return *value ? "true" : "false";
  if (is_number()) return fmt::format("the number {}", dump());
  if (const auto* text = std::get_if<std::string>(&value_)) {
    if (text->size() <= 60) return fmt::format("the string {}", dump());
    return fmt::format("a string of {} bytes", text->size());
  }
  const char* plural = size() == 1 ? "" : "s";
  if (is_array()) return fmt::format("an array of {} element{}", size(), plural);
  return fmt::format("an object of {} member{}", size(), plural);
}

bool Json::as_bool(std::string_view what) const {
  if (const bool* value = std::get_if<bool>(&value_)) return *value;
  fail_type(*this, what, "true or false");
}

int64_t Json::as_int(std::string_view what) const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return *value;
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond, a double has lost the integer
  if (const double* value = std::get_if<double>(&value_)) {
    if (std::abs(*value) <= kExact && *value == std::floor(*value)) {
      return static_cast<int64_t>(*value);
    }
  }
  fail_type(*this, what, "an integer of 64 bits");
}

double Json::as_double(std::string_view what) const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  fail_type(*this, what, "a number");
}

const std::string& Json::as_string(std::string_view what) const {
  if (const auto* value = std::get_if<std::string>(&value_)) return *value;
  fail_type(*this, what, "a string");
}

const Json::Array& Json::as_array(std::string_view what) const {
  if (const auto* value = std::get_if<Array>(&value_)) return *value;
  fail_type(*this, what, "an array");
}

std::vector<int64_t> Json::as_ints(std::string_view what) const {
  return each_as<int64_t>(as_array(what), what, &Json::as_int);
}

std::vector<std::string> Json::as_strings(std::string_view what) const {
  return each_as<std::string>(as_array(what), what, &Json::as_string);
}

const std::vector<Json::Member>& Json::as_object(std::string_view what) const {
  if (const auto* object = std::get_if<Object>(&value_)) return object->members;
  fail_type(*this, what, "an object");
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  const size_t place = object->find(key);
  return place == kMissing ? nullptr : &object->members[place].second;
}

const Json& Json::at(std::string_view key, std::string_view source) const {
  if (!is_object()) fail_type(*this, source.empty() ? "value" : source, "an object");
  const Json* value = find(key);
  check(value != nullptr, ErrorKind::data, "{} is missing", key_name(key, source));
  return *value;
}

bool Json::get_bool(std::string_view key, std::string_view source) const {
  return at(key, source).as_bool(key_name(key, source));
}

int64_t Json::get_int(std::string_view key, std::string_view source) const {
  return at(key, source).as_int(key_name(key, source));
}

double Json::get_double(std::string_view key, std::string_view source) const {
  return at(key, source).as_double(key_name(key, source));
}

const std::string& Json::get_string(std::string_view key, std::string_view source) const {
  return at(key, source).as_string(key_name(key, source));
}

// Adding a member may move those before it: never `a["x"] = a["y"]` where `x` may be new, as
// `a["y"]` is read after.
Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object();
  auto* object = std::get_if<Object>(&value_);
  check(object != nullptr, ErrorKind::internal, "Json: key '{}' asked of {}", key, describe());
  const size_t place = object->find(key);
  if (place != kMissing) return object->members[place].second;
  return object->add(std::string(key), Json());
}

bool Json::erase(std::string_view key) {
  auto* object = std::get_if<Object>(&value_);
  const size_t place = object == nullptr ? kMissing : object->find(key);
  if (place == kMissing) return false;
  std::vector<Member> members = std::move(object->members);
  members.erase(members.begin() + static_cast<std::ptrdiff_t>(place));
  *object = Object();
  for (Member& member : members) object->add(std::move(member.first), std::move(member.second));
  return true;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array();
  auto* array = std::get_if<Array>(&value_);
  check(array != nullptr, ErrorKind::internal, "Json: an element added to {}", describe());
  array->push_back(std::move(value));
}

size_t Json::size() const {
  if (const auto* array = std::get_if<Array>(&value_)) return array->size();
  if (const auto* object = std::get_if<Object>(&value_)) return object->members.size();
  return 0;
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

std::string Json::dump(int indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

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
    check(object.find(name) == kMissing, ErrorKind::data,
          "{}: key '{}' appears twice in one object{}", source_, name, path());
    keys_.back() = std::move(name);
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) {
    std::string reason = error.what();  // "[json.exception...] parse error at line ...: reason"
    for (const std::string_view mark : {": ", "] "}) {  // a number too large has the second alone
      const size_t head = reason.find(mark);
      if (head == std::string::npos) continue;
      reason.erase(0, head + 2);
      break;
    }
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
