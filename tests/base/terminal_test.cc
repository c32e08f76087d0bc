// Control characters that files hold are spelled out for messages and terminals.
#include "heddle/base/log.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Printable, text_without_control_characters_stays_as_it_is) {
  for (const char* text : {"", "a\tb\nc", "Ä€😀 \u2581", "שלום\u200f"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, control_characters_and_bytes_that_are_no_utf8_are_spelled_out) {
  EXPECT_EQ(printable("\x1b]0;title\a\r\x7f"), "\\x1b]0;title\\x07\\x0d\\x7f");
  EXPECT_EQ(printable("a\u009b31mb\u0085"), "a\\u009b31mb\\u0085");
  EXPECT_EQ(printable("a\u202eb\u2066c"), "a\\u202eb\\u2066c");
  EXPECT_EQ(printable("\x9b"
                      "31m\xff\xc2"),
            "\\x9b31m\\xff\\xc2");
  EXPECT_EQ(printable("\xe2\x80x"), "\\xe2\\x80x");
}

TEST(ControlSpeller, characters_that_parts_cut_in_two_come_whole) {
  const std::string text = "Ä€😀\u009b\x1bz";
  std::string out;
  ControlSpeller speller;
  for (const char c : text) speller.add({&c, 1}, out);
  EXPECT_EQ(out, printable(text));
  EXPECT_EQ(out, "Ä€😀\\u009b\\x1bz");
}

TEST(Log, a_message_spells_control_characters_out) {
  testing::internal::CaptureStderr();
  log_warning("tensor '{}'", "\x1b[31mred");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: tensor '\\x1b[31mred'\n");
}

}  // namespace
}  // namespace heddle
