// Ranks that are killed, stopped, stuck or fail: the others name them and end.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "heddle/base/error.h"
#include "heddle/dist/rendezvous.h"
#include "heddle/dist/share_out.h"
#include "heddle/dist/socket.h"
#include "tests/support/rank_processes.h"

namespace heddle::testing {
namespace {

using dist::GroupOptions;

constexpr int kRanks = static_cast<int>(ErrorKind::ranks);
// Seconds: a deadline that a rank of a loaded machine keeps, and after which a test is given up.
constexpr double kDeadline = 15, kPatience = 300;

// Updates without an end, as training would make them.
std::string train(const GroupOptions& options) {
  const auto group = dist::make_group(options);
  std::vector<float> values(10'000, 1.0f);
  for (int64_t update = 1;; ++update) {
    group->note_update(update);
    group->reduce_scatter(values);
    group->all_gather(values);
    usleep(2000);
  }
}

void get_on_within_deadline(GroupOptions& options) { options.step_seconds = kDeadline; }

void expect_named(const RankOutcome& outcome, const std::string& text, double seconds) {
  EXPECT_EQ(outcome.exit_code, kRanks);
  EXPECT_NE(outcome.text.find(text), std::string::npos) << outcome.text;
  EXPECT_LT(outcome.seconds, seconds);
}

class LostRank : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Each, LostRank, ::testing::Values(0, 2));

TEST_P(LostRank, that_is_killed_is_named_by_all_others_at_once) {
  const int64_t lost = GetParam();
  RankProcesses processes(4, train);
  sleep(3);  // of a rank is known what it said in the last second
  processes.signal(lost, SIGKILL);
  const auto outcomes = processes.wait();
  for (int64_t rank = 0; rank < 4; ++rank) {
    const RankOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    if (rank == lost) continue;
    expect_named(
        outcome,
        fmt::format("rank {} ({}) has ended without a word, in update ", lost, dist::host_name()),
        10);
  }
}

TEST_P(LostRank, that_is_stopped_is_named_after_its_silence) {
  const int64_t lost = GetParam();
  RankProcesses processes(4, train, [](GroupOptions& options) { options.lost_seconds = 3; });
  sleep(1);
  processes.signal(lost, SIGSTOP);
  auto outcomes = processes.wait(8);  // the stopped one is killed then
  for (int64_t rank = 0; rank < 4; ++rank) {
    const RankOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    if (rank == lost) continue;
    expect_named(outcome, fmt::format("rank {} ({}) was last heard ", lost, dist::host_name()),
                 7.5);
  }
}

TEST_P(LostRank, that_fails_is_quoted_by_all_others) {
  const int64_t lost = GetParam();
  RankProcesses processes(4, [lost](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    std::vector<float> values(100, 1.0f);
    try {
      for (int64_t update = 1;; ++update) {
        check(update < 50 || group->rank() != lost, ErrorKind::system, "out: the disk is full");
        group->note_update(update);
        group->reduce_scatter(values);
      }
    } catch (const Error& error) {
      group->leave_with(error.what());
      throw;
    }
    return std::string();
  });
  const auto outcomes = processes.wait();
  for (int64_t rank = 0; rank < 4; ++rank) {
    const RankOutcome& outcome = outcomes[static_cast<size_t>(rank)];
    if (rank == lost) {
      EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorKind::system));
      EXPECT_EQ(outcome.text, "out: the disk is full");
    } else {
      expect_named(outcome,
                   fmt::format("rank {} ({}): out: the disk is full", lost, dist::host_name()), 10);
    }
  }
}

TEST_P(LostRank, that_does_not_get_on_is_named_and_those_that_wait_for_it_are_not) {
  const int64_t lost = GetParam();
  RankProcesses processes(
      4,
      [lost](const GroupOptions& options) {
        const auto group = dist::make_group(options);
        std::vector<float> values(100, 1.0f);
        for (int64_t update = 1;; ++update) {
          group->note_update(update);
          for (int i = 0; update == 7 && group->rank() == lost && i < 300; ++i) {
            usleep(100'000);
            group->check_alive();
          }
          group->reduce_scatter(values);
        }
        return std::string();
      },
      [](GroupOptions& options) { options.step_seconds = 3; });
  for (const RankOutcome& outcome : processes.wait()) {
    expect_named(outcome, fmt::format("rank {} ({}) has not got on for ", lost, dist::host_name()),
                 15);
    EXPECT_NE(outcome.text.find(", in update 7"), std::string::npos) << outcome.text;
  }
}

// Items of a share that take a small part of the deadline each, and all together longer than it.
TEST(HungRank, in_its_share_is_named_and_one_that_notes_its_items_is_not) {
  const auto share = [](bool hangs) {
    return [hangs](const GroupOptions& options) {
      const auto group = dist::make_group(options);
      const auto items = dist::share_out_each<int64_t>(*group, 72, [&](int64_t item) {
        usleep(1'000'000);
        while (hangs && item == 6) {
          usleep(100'000);
          group->check_alive();
        }
        return item;
      });
      return std::to_string(items.size());
    };
  };
  RankProcesses hanging(4, share(true), get_on_within_deadline);
  RankProcesses noting(4, share(false), get_on_within_deadline);
  for (const RankOutcome& outcome : hanging.wait(kPatience)) {
    expect_named(outcome, fmt::format("rank 2 ({}) has not got on for ", dist::host_name()),
                 kPatience);
  }
  for (const RankOutcome& outcome : noting.wait(kPatience)) EXPECT_EQ(outcome.text, "72");
}

// Rank 0, until somebody has typed a line.
TEST(WaitingRank, that_waits_for_input_has_no_deadline) {
  RankProcesses processes(
      4,
      [](const GroupOptions& options) {
        const auto group = dist::make_group(options);
        group->expect_work();
        if (group->rank() == 0) {
          group->note_input_wait(true);
          sleep(8);
          group->note_input_wait(false);
        }
        return group->broadcast("a line");
      },
      [](GroupOptions& options) { options.step_seconds = 3; });
  for (const RankOutcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, "a line");
}

// As a validation of rank 0 that takes longer than the deadline, and says that it goes on.
TEST(WaitingRank, gets_on_by_what_it_has_waited_for) {
  RankProcesses processes(
      4,
      [](const GroupOptions& options) {
        const auto group = dist::make_group(options);
        group->note_update(1);
        for (int i = 0; group->rank() == 0 && i < 170; ++i) {
          usleep(100'000);
          note_work();
        }
        group->broadcast("its loss");
        usleep(2'200'000);  // the next update: longer than a beat, shorter than the deadline
        group->barrier();
        return std::string("through");
      },
      get_on_within_deadline);
  for (const RankOutcome& outcome : processes.wait(kPatience)) EXPECT_EQ(outcome.text, "through");
}

// What it is sent fills what the system keeps for it: it is slow, and not lost.
TEST(WaitingRank, keeps_its_connection_to_one_that_does_not_receive_for_long) {
  RankProcesses processes(
      2,
      [](const GroupOptions& options) {
        const auto group = dist::make_group(options);
        std::vector<float> values(8'000'000, 1.0f);
        if (group->rank() == 1) sleep(8);
        group->reduce_scatter(values);
        return std::string("through");
      },
      [](GroupOptions& options) { options.lost_seconds = 3; });
  for (const RankOutcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, "through");
}

// Ctrl-Z and fg, a container that is paused: for longer than any deadline, and rank 0 goes on
// first.
TEST(PausedRanks, that_go_on_have_lost_nobody) {
  RankProcesses processes(
      2,
      [](const GroupOptions& options) {
        const auto group = dist::make_group(options);
        std::vector<float> values(10'000, 1.0f);
        for (int64_t update = 1; update <= 300; ++update) {
          group->note_update(update);
          group->reduce_scatter(values);
          usleep(10'000);
        }
        return std::string("through");
      },
      [](GroupOptions& options) { options.lost_seconds = 4, options.step_seconds = 5; });
  sleep(1);
  for (const int64_t rank : {0, 1}) processes.signal(rank, SIGSTOP);
  sleep(6);
  processes.signal(0, SIGCONT);
  usleep(500'000);
  processes.signal(1, SIGCONT);
  for (const RankOutcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, "through");
}

// Rank 1 can reach the place where they meet, and not the port of rank 0: a firewall, say.
TEST(MissingRank, that_met_and_then_did_not_connect_is_named_with_the_port) {
  RankProcesses processes(
      2,
      [](const GroupOptions& options) {
        if (options.rank == 0) return train(options);
        const dist::Meeting met =
            dist::meet({.rank = 1,
                        .ranks = 2,
                        .endpoint = dist::parse_endpoint(options.rendezvous.substr(6), ""),
                        .file = "",
                        .secret = std::getenv("HEDDLE_SECRET")});
        sleep(4);
        return std::string("met");
      },
      [](GroupOptions& options) { options.start_seconds = 2; });
  const auto outcomes = processes.wait();
  expect_named(outcomes[0],
               fmt::format("rank 1 ({}) did not connect to port {} of ", dist::host_name(),
                           processes.port()),
               10);
  EXPECT_EQ(outcomes[1].text, "met");
}

TEST(MissingRank, is_named_by_all_that_came) {
  RankProcesses processes(
      4,
      [](const GroupOptions& options) {
        if (options.rank == 1 || options.rank == 3) return std::string("never came");
        return train(options);
      },
      [](GroupOptions& options) { options.start_seconds = 2; });
  const auto outcomes = processes.wait();
  for (const size_t rank : {0, 2}) {
    expect_named(outcomes[rank], "ranks 1, 3 did not start within 2 s", 10);
  }
}

TEST(MissingRank, that_ended_while_the_others_came_is_named) {
  RankProcesses processes(4, [](const GroupOptions& options) {
    if (options.rank == 3) {
      sleep(3);
      return std::string("late");
    }
    if (options.rank == 2) alarm(1);  // ends it by SIGALRM
    return train(options);
  });
  const auto outcomes = processes.wait();
  for (const size_t rank : {0, 1}) {
    expect_named(
        outcomes[rank],
        fmt::format("rank 2 ({}) has ended before all ranks were there", dist::host_name()), 10);
  }
}

TEST(FinishedRank, that_said_good_bye_is_no_loss) {
  RankProcesses processes(4, [](const GroupOptions& options) {
    {
      const auto group = dist::make_group(options);
      group->barrier();
      if (group->rank() == 3) return std::string("first");
      sleep(2);  // saving, say
      group->check_alive();
    }
    return std::string("last");
  });
  const auto outcomes = processes.wait();
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(outcomes[rank].text, rank == 3 ? "first" : "last");
    EXPECT_EQ(outcomes[rank].exit_code, 0);
  }
}

}  // namespace
}  // namespace heddle::testing
