// SIGINT and SIGTERM are noted once, and end the program the second time.
#include "heddle/base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace heddle {
namespace {

TEST(SignalsDeathTest, first_signal_is_noted_and_the_work_goes_on) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        if (pending_signal() != 0) _exit(1);
        raise(SIGTERM);
        _exit(pending_signal());
      },
      ::testing::ExitedWithCode(SIGTERM), "");
}

TEST(SignalsDeathTest, second_signal_ends_the_program_at_once) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        raise(SIGINT);
        usleep(400'000);
        raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
}

// A launcher passes on what the terminal has sent to all.
TEST(SignalsDeathTest, signal_that_comes_twice_at_once_counts_as_one) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        raise(SIGINT);
        raise(SIGINT);
        _exit(pending_signal());
      },
      ::testing::ExitedWithCode(SIGINT), "");
}

}  // namespace
}  // namespace heddle
