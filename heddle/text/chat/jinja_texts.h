// Python's methods of texts, which are UTF-8 here and counted in characters.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/chat/jinja_value.h"

namespace heddle {

/// Without white space, or characters of `which` if there are some, at its ends.
std::string jinja_stripped(std::string_view text, std::string_view which, bool begin, bool end);
/// Where `part` first stands, from byte `from` on; npos if it does not. In linear time, whatever
/// they are: texts and what is sought in them may be a client's.
size_t jinja_find(std::string_view text, std::string_view part, size_t from = 0);
/// Where it last stands. In linear time too.
size_t jinja_find_last(std::string_view text, std::string_view part);
/// Parts between `sign`, of which at most `most` are used (-1: all), from the right if so asked;
/// without a sign words between white space.
std::vector<std::string> jinja_split(std::string_view text, const std::string& sign, int64_t most,
                                     bool from_right, JinjaBudget& budget);
/// Lines as Python's splitlines() has them, with what ends them if so asked.
std::vector<std::string> jinja_lines(std::string_view text, bool keeps_ends, JinjaBudget& budget);
/// The first `most` occurrences (-1: all) of `from` exchanged; of "" the places between characters.
std::string jinja_replaced(std::string_view text, const std::string& from, const std::string& to,
                           int64_t most, JinjaBudget& budget);
/// "upper", "lower", "title" or "capitalize", as Python's methods are called.
std::string jinja_cased(const std::string& how, const std::string& text);
/// Jinja's filter title: the first letter of each word between spaces, hyphens and brackets.
std::string jinja_title(const std::string& text);
/// "isdigit", "isupper", ..: as Python's methods are called.
bool jinja_is(const std::string& what, const std::string& text);
/// "{} {name}".format(..). Errors: data for formats behind ':' or '!'.
std::string jinja_braced(const std::string& form, const std::vector<JinjaValue>& values,
                         const std::vector<std::pair<std::string, JinjaValue>>& named,
                         JinjaBudget& budget);

}  // namespace heddle
