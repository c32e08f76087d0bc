// How ranks find each other, and who is kept out.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/dist/secret.h"
#include "heddle/dist/socket.h"
#include "tests/support/cli_runner.h"
#include "tests/support/rank_processes.h"
#include "tests/support/wait.h"

namespace heddle::testing {
namespace {

using dist::GroupOptions;

constexpr int kUsage = static_cast<int>(ErrorKind::usage);

std::string meet(const GroupOptions& options) {
  const auto group = dist::make_group(options);
  std::string all;
  for (const std::string& text : group->gather(std::to_string(group->rank()))) all += text;
  return all;
}

void expect_error(const RankOutcome& outcome, int code, const std::string& text) {
  EXPECT_EQ(outcome.exit_code, code) << outcome.text;
  EXPECT_NE(outcome.text.find(text), std::string::npos) << outcome.text;
}

// RFC 4231, test case 2.
TEST(Secret, proof_is_hmac_sha256) {
  EXPECT_EQ(dist::hex_of(dist::proof_of("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Meeting, rank_with_another_secret_is_kept_out_and_told_so) {
  RankProcesses processes(
      2,
      [](const GroupOptions& options) {
        if (options.rank == 1) setenv("HEDDLE_SECRET", "quite another secret", 1);
        return meet(options);
      },
      [](GroupOptions& options) { options.start_seconds = 2; });
  const auto outcomes = processes.wait();
  expect_error(outcomes[0], static_cast<int>(ErrorKind::ranks),
               "rank 1 did not start within 2 s (a wrong secret came from 127.0.0.1)");
  expect_error(outcomes[1], kUsage, "has another secret");
}

TEST(Meeting, second_process_of_a_rank_is_sent_away_and_the_others_meet) {
  RankProcesses processes(
      5,
      [](const GroupOptions& options) {
        if (options.start_seconds == 19) usleep(500'000);  // the second rank 1
        if (options.rank == 3) sleep(2);
        return meet(options);
      },
      [](GroupOptions& options) {
        options.ranks = 4;
        if (options.rank == 4) options.rank = 1, options.start_seconds = 19;
      });
  const auto outcomes = processes.wait();
  for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(outcomes[rank].text, "0123");
  expect_error(outcomes[4], kUsage, "is there twice: the first is on " + dist::host_name());
}

TEST(Meeting, ranks_that_were_told_other_counts_end_with_both) {
  RankProcesses processes(2, meet, [](GroupOptions& options) {
    if (options.rank == 1) options.ranks = 4;
  });
  for (const RankOutcome& outcome : processes.wait()) {
    expect_error(outcome, kUsage, "was told that there are 4 ranks, rank 0");
  }
}

TEST(Meeting, strangers_at_the_port_are_let_go) {
  RankProcesses processes(2, [](const GroupOptions& options) {
    std::vector<dist::Socket> strangers;
    if (options.rank == 1) {
      const int port = dist::parse_endpoint(options.rendezvous.substr(6), "").port;
      const std::string head = "heddle-ranks 1\r\n" + std::string(32, 'n');
      const std::string sayings[] = {"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                                     std::string(100'000, '\xff'),
                                     "heddle-ranks 2\r\n",
                                     "heddle-",
                                     head,
                                     head + std::string(4, '\xff'),
                                     head + std::string(4, '\0'),
                                     head + dist::framed(std::string(33, 'x')),
                                     head + dist::framed(std::string(4000, 'x'))};
      std::string why;
      for (int i = 0; i < 120; ++i) {  // more than there is room for
        auto socket = dist::connect_to({"127.0.0.1", port}, 5, why);
        if (!socket) return "no connection: " + why;
        dist::send_all(*socket, sayings[i % 9], dist::now_seconds());
        strangers.push_back(std::move(*socket));
      }
    }
    return meet(options);
  });
  for (const RankOutcome& outcome : processes.wait()) {
    EXPECT_EQ(outcome.text, "01");
    EXPECT_LT(outcome.seconds, 10);
  }
}

TEST(Meeting, what_listens_there_and_is_no_rank_is_named) {
  dist::Socket other = dist::listen_at({"127.0.0.1", 0});
  const int port = dist::port_of(other);
  RankProcesses processes(1, [port](const GroupOptions& given) {
    GroupOptions options = given;
    options.rendezvous = fmt::format("tcp://localhost:{}", port);
    options.rank = 1, options.ranks = 2;
    return meet(options);
  });
  ASSERT_TRUE(dist::wait_for(other, false, dist::now_seconds() + 10));
  const auto caller = dist::accept_one(other);
  dist::send_all(*caller, "HTTP/1.1 400 Bad Request\r\n\r\n", dist::now_seconds() + 1);
  expect_error(processes.wait()[0], kUsage, "is no rank of this version of heddle");
}

// A cluster's DNS may learn the name of rank 0 as that begins.
TEST(Meeting, host_that_is_not_known_is_asked_for_again) {
  RankProcesses processes(1, [](const GroupOptions& given) {
    GroupOptions options = given;
    options.rendezvous = "tcp://no-such-host.invalid:5";
    options.rank = 1, options.ranks = 2, options.start_seconds = 1.5;
    return meet(options);
  });
  const RankOutcome outcome = processes.wait()[0];
  expect_error(outcome, static_cast<int>(ErrorKind::ranks), "within 1.5 s: the host ");
  expect_error(outcome, static_cast<int>(ErrorKind::ranks), "is not known here");
  EXPECT_GE(outcome.seconds, 1.5);
}

TEST(Meeting, port_that_is_taken_is_a_system_error) {
  dist::Socket other = dist::listen_at({"127.0.0.1", 0});
  setenv("HEDDLE_SECRET", "a secret that tests share", 1);
  GroupOptions options;
  options.rendezvous = fmt::format("tcp://127.0.0.1:{}", dist::port_of(other));
  options.rank = 0, options.ranks = 2;
  try {
    dist::make_group(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::system);
    EXPECT_NE(std::string(error.what()).find("is taken"), std::string::npos) << error.what();
  }
}

TEST(Meeting, is_at_the_address_of_the_loopback_that_is_named) {
  std::vector<std::string> hosts = {"127.0.0.2"};
  try {
    dist::listen_at({"::1", 0});
    hosts.emplace_back("[::1]");
  } catch (const Error&) {  // no IPv6 on this machine
  }
  for (const std::string& host : hosts) {
    RankProcesses processes(
        4,
        [](const GroupOptions& options) {
          unsetenv("HEDDLE_LISTENER");
          return meet(options);
        },
        [&](GroupOptions& options) {
          const int port = dist::parse_endpoint(options.rendezvous.substr(6), "").port;
          options.rendezvous = fmt::format("tcp://{}:{}", host, port);
        });
    for (const RankOutcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, "0123") << host;
  }
}

// Linux gives ports to connections at an even distance from the first, by turns.
TEST(Connection, to_a_port_where_nobody_listens_is_none_to_itself) {
  int low = 0, high = 0;
  std::istringstream(read_file("/proc/sys/net/ipv4/ip_local_port_range")) >> low >> high;
  ASSERT_GT(high, low);
  const int port = low + (high - low) / 4 * 2;
  std::string why;
  for (int i = 0; i < 30'000; ++i) {
    const auto socket = dist::connect_to({"127.0.0.1", port}, 1, why);
    ASSERT_FALSE(socket && dist::port_of(*socket) == port) << i;
  }
}

TEST(Meeting, by_a_file_which_its_owner_alone_can_read_and_which_is_gone_afterwards) {
  TempDir folder;
  const std::string path = (folder / "place").string();
  // Of a job that was killed: nobody listens there.
  write_file(
      path,
      R"({"heddle_rendezvous":true,"host":"gone","addresses":["127.0.0.1"],"port":1,"secret":"old"})");
  RankProcesses processes(4, [path](const GroupOptions& given) {
    GroupOptions options = given;
    unsetenv("HEDDLE_SECRET");
    unsetenv("HEDDLE_LISTENER");
    options.rendezvous = "file://" + path;
    std::string mode;
    if (options.rank == 0) usleep(300'000);
    if (options.rank == 3) {
      sleep(1);
      struct stat status = {};
      stat(path.c_str(), &status);
      mode = fmt::format(" {:o}", status.st_mode & 0777);
    }
    return meet(options) + mode;
  });
  const auto outcomes = processes.wait();
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(outcomes[rank].text, rank == 3 ? "0123 600" : "0123");
  }
  EXPECT_FALSE(path_exists(path));
}

// Rank 0 of two, whose other rank never comes.
RankProcesses rank_0_alone(const std::string& path) {
  return RankProcesses(1, [path](const GroupOptions& given) {
    GroupOptions options = given;
    unsetenv("HEDDLE_LISTENER");
    options.rendezvous = "file://" + path;
    options.ranks = 2, options.start_seconds = 3;
    return meet(options);
  });
}

TEST(Meeting, file_of_another_job_stays_when_rank_0_gives_up) {
  TempDir folder;
  const std::string path = (folder / "place").string();
  RankProcesses processes = rank_0_alone(path);
  ASSERT_TRUE(comes_true([&] { return path_exists(path); }));
  const std::string other =
      R"({"heddle_rendezvous":true,"host":"other","addresses":[],"port":1,"secret":"its own"})";
  write_file(path, other);
  expect_error(processes.wait()[0], static_cast<int>(ErrorKind::ranks), "rank 1 did not start");
  EXPECT_EQ(read_file(path), other);
}

TEST(Meeting, file_is_gone_when_rank_0_gives_up_and_when_a_signal_ends_it) {
  TempDir folder;
  const std::string path = (folder / "place").string();
  expect_error(rank_0_alone(path).wait()[0], static_cast<int>(ErrorKind::ranks),
               "rank 1 did not start");
  EXPECT_FALSE(path_exists(path));
  RankProcesses processes = rank_0_alone(path);
  ASSERT_TRUE(comes_true([&] { return path_exists(path); }));
  processes.signal(0, SIGTERM);
  EXPECT_EQ(processes.wait()[0].exit_code, 128 + SIGTERM);
  EXPECT_FALSE(path_exists(path));
}

// As over NFS, where a name may be there and what it names not any more, or not yet.
TEST(Meeting, file_that_cannot_be_read_yet_is_waited_for) {
  TempDir folder;
  const std::string path = (folder / "place").string();
  std::filesystem::create_directory(path);
  RankProcesses processes(2, [path](const GroupOptions& given) {
    GroupOptions options = given;
    unsetenv("HEDDLE_LISTENER");
    options.rendezvous = "file://" + path;
    if (options.rank == 0) {
      sleep(1);
      std::filesystem::remove(path);
    }
    return meet(options);
  });
  for (const RankOutcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, "01");
}

TEST(Meeting, file_of_something_else_is_left_alone) {
  TempDir folder;
  const std::string path = (folder / "notes.txt").string();
  write_file(path, "what I wanted to keep\n");
  RankProcesses processes(2, [path](const GroupOptions& given) {
    GroupOptions options = given;
    unsetenv("HEDDLE_LISTENER");
    options.rendezvous = "file://" + path;
    return meet(options);
  });
  for (const RankOutcome& outcome : processes.wait()) {
    expect_error(outcome, kUsage, "is there and is no rendezvous of heddle");
  }
  EXPECT_EQ(read_file(path), "what I wanted to keep\n");
}

// --- flags and environment -----------------------------------------------------------------------

std::string error_of(const GroupOptions& options) {
  try {
    dist::make_group(options);
    return "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
}

TEST(GroupFlags, that_contradict_each_other_are_usage_errors) {
  unsetenv("HEDDLE_SECRET");
  const std::string at = "tcp://127.0.0.1:29500";
  const auto expect = [](const GroupOptions& options, const std::string& text) {
    const std::string error = error_of(options);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  expect({.rank = 0, .ranks = 2}, "no place to meet");
  expect({.rendezvous = at}, "which of how many");
  expect({.rendezvous = at, .rank = 2, .ranks = 2}, "they count from 0 to 1");
  expect({.rendezvous = at, .rank = 0, .ranks = 3}, "1, 2, 4, 8");
  expect({.rendezvous = at, .rank = 0, .ranks = 2}, "need a secret");
  expect({.rendezvous = "udp://x", .rank = 0, .ranks = 2}, "tcp://HOST:PORT or file://PATH");
  expect({.rendezvous = "file://", .rank = 0, .ranks = 2}, "tcp://HOST:PORT or file://PATH");
  expect({.rendezvous = "tcp://host", .rank = 0, .ranks = 2}, "HOST:PORT is needed");
  expect({.rendezvous = "tcp://host:0", .rank = 0, .ranks = 2}, "HOST:PORT is needed");
  expect({.rendezvous = "tcp://a:b:5", .rank = 0, .ranks = 2}, "HOST:PORT is needed");
  setenv("HEDDLE_SECRET", "short", 1);
  expect({.rendezvous = at, .rank = 0, .ranks = 2}, "the secret has 5 bytes");
  setenv("HEDDLE_SECRET", "long enough for a test", 1);
  expect({.start_seconds = 0.5}, "--start-seconds is 0.5; 1 to 1000000 seconds");
  expect({.lost_seconds = 0.1}, "--lost-seconds is 0.1; 3 to 1000000 seconds");
  expect({.lost_seconds = 1e300}, "--lost-seconds is 1e+300; 3 to 1000000 seconds");
  expect({.step_seconds = 1}, "--step-seconds is 1; 3 to 1000000 seconds");
  setenv("HEDDLE_RANK", "first", 1);
  expect({.rendezvous = at, .ranks = 2}, "HEDDLE_RANK is 'first'");
  unsetenv("HEDDLE_RANK");
  unsetenv("HEDDLE_SECRET");
}

TEST(GroupFlags, one_rank_is_alone_and_a_launcher_counts_with_a_rendezvous_only) {
  EXPECT_TRUE(dist::make_group({})->is_alone());
  setenv("SLURM_PROCID", "1", 1);
  setenv("SLURM_NTASKS", "4", 1);
  EXPECT_TRUE(dist::make_group({})->is_alone());
  EXPECT_NE(error_of({.rendezvous = "tcp://127.0.0.1:29500"}).find("need a secret"),
            std::string::npos);
  setenv("SLURM_NTASKS", "1", 1);
  setenv("SLURM_PROCID", "0", 1);
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);  // mpirun in a job of Slurm: its ranks count
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_NE(error_of({.rendezvous = "tcp://127.0.0.1:29500"}).find("need a secret"),
            std::string::npos);
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_TRUE(dist::make_group({.rendezvous = "tcp://127.0.0.1:29500"})->is_alone());
  unsetenv("SLURM_PROCID");
  unsetenv("SLURM_NTASKS");
}

}  // namespace
}  // namespace heddle::testing
