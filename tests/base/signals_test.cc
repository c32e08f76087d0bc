// SIGINT, SIGTERM and SIGHUP are noted once; the first two end the program the second time.
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

TEST(SignalsDeathTest, terminal_that_is_closed_ends_nothing_at_once) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        raise(SIGHUP);
        usleep(400'000);
        raise(SIGHUP);
        _exit(pending_signal());
      },
      ::testing::ExitedWithCode(SIGHUP), "");
}

// As `nohup` leaves it.
TEST(SignalsDeathTest, hangup_that_is_ignored_stays_so) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        install_signal_handlers();
        raise(SIGHUP);
        _exit(pending_signal());
      },
      ::testing::ExitedWithCode(0), "");
}

// A server loads its models anew.
TEST(SignalsDeathTest, hangup_can_be_a_request_of_its_own) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        install_hangup_handler();
        raise(SIGHUP);
        _exit(pending_signal() == 0 && take_hangup() && !take_hangup() ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(SignalsDeathTest, deferred_signal_ends_the_program_when_that_is_over) {
  EXPECT_EXIT(
      {
        {
          const DeferredSignals deferred;
          raise(SIGTERM);
          if (pending_signal() != SIGTERM) _exit(1);
        }
        _exit(2);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalsDeathTest, what_is_noted_already_or_ignored_is_not_deferred) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        install_signal_handlers();
        {
          const DeferredSignals deferred;
          raise(SIGHUP);
          if (pending_signal() != 0) _exit(1);
          raise(SIGTERM);
        }
        _exit(pending_signal());
      },
      ::testing::ExitedWithCode(SIGTERM), "");
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
