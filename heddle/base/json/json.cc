// JSON values: access and comparison. Parsing is in json_parse.cc, writing in json_write.cc.
#include "heddle/base/json/json.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle {

namespace {

constexpr size_t kMissing = static_cast<size_t>(-1);
constexpr size_t kIndexFrom = 24;  // members; below that a scan is faster than a hash

std::string key_name(std::string_view key, std::string_view source) {
  return source.empty() ? fmt::format("key '{}'", key) : fmt::format("{}: key '{}'", source, key);
}

[[noreturn]] void fail_type(const Json& value, std::string_view what, const char* needed) {
  fail(ErrorKind::data, "{} is {}; {} is needed", what, value.describe(), needed);
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
  std::vector<int64_t> values;
  for (const Json& value : as_array(what)) {
    values.push_back(value.as_int(fmt::format("{}[{}]", what, values.size())));
  }
  return values;
}

std::vector<std::string> Json::as_strings(std::string_view what) const {
  std::vector<std::string> values;
  for (const Json& value : as_array(what)) {
    values.push_back(value.as_string(fmt::format("{}[{}]", what, values.size())));
  }
  return values;
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

}  // namespace heddle
