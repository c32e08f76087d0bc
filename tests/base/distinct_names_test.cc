// Numbers behind names that stand there already.
#include "heddle/base/distinct_names.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using Names = std::vector<std::string>;

TEST(DistinctNames, the_first_of_equal_names_keeps_it_and_others_get_their_number) {
  EXPECT_EQ(distinct_names({"crane", "ant", "crane", "crane"}),
            (Names{"crane", "ant", "crane (class 2)", "crane (class 3)"}));
}

TEST(DistinctNames, names_that_differ_stay) {
  EXPECT_EQ(distinct_names({"ant", "bee", ""}), (Names{"ant", "bee", ""}));
  EXPECT_EQ(distinct_names({}), Names{});
}

TEST(DistinctNames, a_name_that_looks_like_a_numbered_one_stays_too) {
  EXPECT_EQ(distinct_names({"a", "a", "a (class 1)"}),
            (Names{"a", "a (class 1) (class 1)", "a (class 1)"}));
}

TEST(DistinctNames, distinct_names_are_not_numbered_again) {
  const Names once = distinct_names({"a", "a", "b", "a (class 1)", "a"});
  EXPECT_EQ(distinct_names(once), once);
}

}  // namespace
}  // namespace heddle
