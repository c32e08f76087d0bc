// What routes take out of a body, and how they refuse it. Knows no request, no model and no server.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"

namespace heddle::serve {

/// A request that is not answered as asked, thrown by routes.
struct Refusal {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error", code = {};
  double retry_after = 0;  ///< seconds; 0: not said
  std::string allow = {};  ///< of 405: the method that the path takes
};

/// Throws a Refusal with status 400.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, const Args&... args) {
  throw Refusal{.message = fmt::vformat(format, fmt::make_format_args(args...))};
}

/// More than any token has: words have 5, runs of spaces more.
inline constexpr int64_t kMostBytesOfToken = 64;
/// Whether a text of so many bytes has more than so many tokens, whatever they are.
bool is_beyond(size_t bytes, int64_t most_tokens);
/// Refusal::code of a text that is too long, as OpenAI's clients know it.
inline constexpr const char* kTooLong = "context_length_exceeded";
/// Errors: Refusal of a text of which that is so. It is not tokenized: that would cost the others
/// more than anything else of a refusal. `what` opens the message.
void check_bytes(size_t bytes, int64_t most_tokens, const std::string& what);

/// Errors: Refusal if it is no JSON object of at most so many levels.
Json json_of_body(std::string_view text, int64_t most_levels = 32);
/// A form, "a=b&c=d", as JSON: every member is a string, but for the number of "alternatives", and
/// one that comes several times an array. Errors: Refusal.
Json json_of_form(std::string_view form);
/// The number, or the bool, that a field of a form says. Errors: Refusal, naming `key`.
Json number_of_text(const std::string& key, const std::string& value);
Json bool_of_text(const std::string& key, const std::string& value);

/// Whether it is there; null is as good as absent.
bool has_member(const Json& body, const char* key);
/// A member between two bounds; `otherwise` where it is absent or null. Errors: Refusal.
int64_t int_of(const Json& body, const char* key, int64_t otherwise, int64_t low, int64_t high);
double number_of(const Json& body, const char* key, double otherwise, double low, double high);
bool bool_of(const Json& body, const char* key, bool otherwise);
std::string text_of(const Json& body, const char* key, const std::string& otherwise = "");
/// One of several words, the first where it is absent or null. Errors: Refusal that lists them.
std::string choice_of(const Json& body, const char* key, std::initializer_list<const char*> words);
/// An array of integers, 4,096 at most; none where it is absent or null. Errors: Refusal.
std::vector<int64_t> ints_of(const Json& body, const char* key);
/// A text or an array of texts, at most so many. Errors: Refusal if it is absent.
std::vector<std::string> texts_of(const Json& body, const char* key, int64_t most);
/// Errors: Refusal that names one of these members if it does something: they are not there yet.
void refuse_members(const Json& body, std::initializer_list<const char*> keys);
/// Errors: Refusal that names the first member that is none of these, with the one that is close.
void refuse_others(const Json& body, std::initializer_list<const char*> keys);
/// A part of a path or a form with its %XX as the bytes that they stand for.
/// plus_is_space: as in forms
std::string percent_decoded(std::string_view text, bool plus_is_space = false);

}  // namespace heddle::serve
