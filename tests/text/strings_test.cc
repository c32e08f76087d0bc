// The limit of a text, and its encoding.
#include "heddle/text/strings/strings.h"

#include <gtest/gtest.h>

#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(CheckText, one_mebibyte_is_taken_and_one_byte_more_is_a_data_error_that_names_the_line) {
  EXPECT_NO_THROW(check_text(std::string(kLongestText, 'a'), "line 3"));
  expect_error(ErrorKind::data, {"line 3: 1048577 bytes are too long"},
               [] { check_text(std::string(kLongestText + 1, 'a'), "line 3"); });
}

TEST(CheckText, bytes_that_are_no_utf8_are_a_data_error) {
  expect_error(ErrorKind::data, {"line 3: not UTF-8"}, [] { check_text("a\xFF", "line 3"); });
}

}  // namespace
}  // namespace heddle
