// UTF-8 validation against table 3-7 of the Unicode Standard.
#include "heddle/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "heddle/text/strings/strings.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

using namespace std::string_literals;

TEST(Utf8, well_formed_text_has_no_invalid_byte) {
  for (const std::string& text :
       {""s, "a"s, "plain ASCII, longer than eight bytes"s, "\0\x01\x7F"s, "Ä€😀"s, "\uFFFD\uFFFF"s,
        "\uD7FF\uE000"s, "\U0010FFFF"s, "\U00010000"s, "12345678\u2581"s}) {
    EXPECT_EQ(first_invalid_utf8(text), std::nullopt) << text;
  }
}

TEST(Utf8, ill_formed_text_names_the_first_byte_of_the_bad_sequence) {
  const struct {
    std::string text;
    size_t at;
  } cases[] = {
      {"\x80"s, 0},              // stray continuation
      {"ab\xC0\xAF"s, 2},        // overlong
      {"\xC1\xBF"s, 0},          // overlong
      {"x\xE0\x9F\xBF"s, 1},     // overlong
      {"\xF0\x8F\xBF\xBF"s, 0},  // overlong
      {"\xED\xA0\x80"s, 0},      // surrogate
      {"\xF4\x90\x80\x80"s, 0},  // beyond U+10FFFF
      {"\xF5\x80\x80\x80"s, 0},  //
      {"\xFF"s, 0},              //
      {"abcdefgh\xE2\x96"s, 8},  // cut short
      {"\xE2\x96\x81\xC3"s, 3},  // cut short
      {"\xC3(\xA9"s, 0},         // interrupted
      {"long enough for words\xFE end"s, 21},
  };
  for (const auto& c : cases) EXPECT_EQ(first_invalid_utf8(c.text), c.at) << c.text;
}

TEST(Utf8, every_code_point_is_read_back_and_every_surrogate_refused) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    if (c < 0x80) {
      text = {static_cast<char>(c)};
    } else if (c < 0x800) {
      text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      text = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
              static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    if (c >= 0xD800 && c < 0xE000) {
      ASSERT_EQ(first_invalid_utf8(text), 0u) << c;
      continue;
    }
    ASSERT_EQ(first_invalid_utf8(text), std::nullopt) << c;
    size_t at = 0;
    ASSERT_EQ(next_code_point(text, at), c);
    ASSERT_EQ(at, text.size());
  }
}

TEST(Utf8, check_says_where_and_which_byte) {
  EXPECT_NO_THROW(check_utf8("Ä", "line 3"));
  expect_error(ErrorKind::data, {"line 3: not UTF-8: byte 0xff at offset 2", "convert"},
               [] { check_utf8("ab\xFFz", "line 3"); });
}

TEST(Utf8, an_image_in_place_of_a_text_is_called_one) {
  expect_error(ErrorKind::data, {"line 1: this is an image (PNG)", "heddle classify"},
               [] { check_utf8("\x89PNG\r", "line 1"); });
  expect_error(ErrorKind::data, {"x.jpg: this is an image (JPEG)"},
               [] { check_utf8("\xFF\xD8\xFF\xE0", "x.jpg"); });
  expect_error(ErrorKind::data, {"not UTF-8"}, [] { check_utf8("\xFF\xD8", "line 1"); });
}

TEST(Strings, commas_split_and_empty_parts_are_left_out) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split_at_commas("query,value"), (Parts{"query", "value"}));
  EXPECT_EQ(split_at_commas(",a,,b c,"), (Parts{"a", "b c"}));
  EXPECT_EQ(split_at_commas(""), Parts());
}

}  // namespace
}  // namespace heddle
