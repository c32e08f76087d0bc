// The layout of progress lines and of numbers in them; log levels.
#include "heddle/base/progress.h"

#include <gtest/gtest.h>

#include "heddle/base/log.h"

namespace heddle {
namespace {

TEST(Counted, one_has_no_s_and_thousands_have_commas) {
  EXPECT_EQ(counted(0, "update"), "0 updates");
  EXPECT_EQ(counted(1, "update"), "1 update");
  EXPECT_EQ(counted(1'003'854, "token"), "1,003,854 tokens");
  EXPECT_EQ(counted(1, "line was", "lines were"), "1 line was");
  EXPECT_EQ(counted(-12'000, "line was", "lines were"), "-12,000 lines were");
}

TEST(Progress, line_fills_the_columns_with_a_bar) {
  const std::string line = progress_line("training", 0.5, "loss 2.31", 65, 80);
  EXPECT_EQ(line, "training [===============>              ]  50 %  loss 2.31  1 min 05 s left");
  EXPECT_LE(line.size(), 80u);
  EXPECT_EQ(progress_line("a", 1, "", -1, 40), "a [==============================] 100 %");
}

TEST(Progress, line_never_exceeds_the_columns) {
  for (int columns = 1; columns < 120; ++columns) {
    for (double fraction : {-1.0, 0.0, 0.999, 1.0, 7.0}) {
      EXPECT_LE(progress_line("training", fraction, "epoch 3", 1e6, columns).size(),
                static_cast<size_t>(columns));
    }
  }
}

TEST(Progress, plain_line_has_no_bar) {
  EXPECT_EQ(progress_line("training", 0.25, "epoch 3", 12, 0),
            "training  25 %  epoch 3  12 s left");
}

TEST(Progress, plain_lines_appear_at_their_interval_and_not_when_quiet) {
  if (is_terminal()) GTEST_SKIP() << "standard error is a terminal";
  testing::internal::CaptureStderr();
  {
    Progress rare("rare", 0, 1000), often("often", 0, 0);
    EXPECT_FALSE(rare.is_due());
    rare.update(0.5, "");
    often.update(0.5, "text");
    set_log_level(LogLevel::warning);
    often.update(0.6, "hidden");
    log_info("hidden {}", 1);
    log_warning("seen {}", 2);
    log_error("seen {}", 3);
    set_log_level(LogLevel::info);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("rare"), std::string::npos);
  EXPECT_NE(text.find("often  50 %  text"), std::string::npos);
  EXPECT_EQ(text.find("hidden"), std::string::npos);
  EXPECT_NE(text.find("warning: seen 2\nerror: seen 3\n"), std::string::npos);
}

TEST(Progress, numbers_are_written_for_people) {
  EXPECT_EQ(format_duration(0.44), "0.4 s");
  EXPECT_EQ(format_duration(12.4), "12 s");
  EXPECT_EQ(format_duration(59.7), "1 min 00 s");
  EXPECT_EQ(format_duration(7620), "2 h 07 min");
  EXPECT_EQ(format_duration(86400 * 3 + 3600 * 4), "3 d 04 h");
  EXPECT_EQ(format_duration(-1), "unknown");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(-100), "-100");
}

}  // namespace
}  // namespace heddle
