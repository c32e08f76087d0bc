// What runs and models are called on pages.
#include "heddle/inspect/run_history.h"

#include <gtest/gtest.h>

namespace heddle::inspect {
namespace {

using Names = std::vector<std::string>;

TEST(ShortNames, are_the_last_names_that_tell_paths_apart) {
  EXPECT_EQ(short_names({"runs/m30k/"}), Names{"m30k"});
  EXPECT_EQ(short_names({"runs/a", "runs/b"}), (Names{"a", "b"}));
  EXPECT_EQ(short_names({"here/run", "there/run"}), (Names{"here/run", "there/run"}));
}

// Every run has a folder of that name.
TEST(ShortNames, best_model_of_a_run_is_named_with_its_run) {
  EXPECT_EQ(short_names({"runs/m30k/best"}), Names{"m30k/best"});
  EXPECT_EQ(short_names({"runs/m30k/best/"}), Names{"m30k/best"});
}

}  // namespace
}  // namespace heddle::inspect
