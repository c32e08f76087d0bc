// The nearest known name to a mistyped one.
#include "heddle/base/names.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

const std::vector<std::string> kCommands = {"train", "translate", "tokenizer", "eval", "info"};

TEST(NearestName, one_letter_off_is_found) {
  EXPECT_EQ(nearest_name("trian", kCommands), "train");
  EXPECT_EQ(nearest_name("tran", kCommands), "train");
  EXPECT_EQ(nearest_name("translatte", kCommands), "translate");
}

TEST(NearestName, swapped_letters_count_as_one_edit) {
  EXPECT_EQ(nearest_name("ab", {"xa", "ba"}), "ba");
  EXPECT_EQ(nearest_name("fra", {"fa", "fr"}), "fr");  // as near, but begins alike
}

TEST(NearestName, nothing_alike_gives_nothing) {
  EXPECT_EQ(nearest_name("xyzzy", kCommands), "");
  EXPECT_EQ(nearest_name("", kCommands), "");
  EXPECT_EQ(nearest_name("train", {}), "");
}

TEST(NearestName, short_names_are_not_swallowed_whole) {
  EXPECT_EQ(nearest_name("xy", {"ab"}), "");
}

TEST(NearestName, tie_gives_the_first) { EXPECT_EQ(nearest_name("cot", {"cat", "cut"}), "cat"); }

}  // namespace
}  // namespace heddle
