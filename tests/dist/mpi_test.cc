// Ranks that mpirun starts: the same sums by MPI's messages, and what is said where MPI is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "heddle/base/error.h"
#include "heddle/base/rng.h"
#include "heddle/dist/group.h"
#include "heddle/dist/start.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

constexpr int64_t kValues = 1000003;  // more than a part of a message

std::vector<float> values_of(int64_t rank) {
  RngStream rng(make_key(11, static_cast<uint64_t>(rank), 0));
  std::vector<float> values(kValues);
  for (float& v : values) v = static_cast<float>(rng.next() >> 8) - 8e6f;
  return values;
}

uint64_t hash_of(const std::vector<float>& values) {
  return hash_name({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

// Of so many ranks, in one process.
std::vector<float> tree_sum(int64_t ranks) {
  std::vector<std::vector<float>> parts;
  for (int64_t rank = 0; rank < ranks; ++rank) parts.push_back(values_of(rank));
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    for (size_t i = 0; i < parts.size() / 2; ++i) {
      std::vector<float> sum = parts[2 * i];
      for (size_t k = 0; k < sum.size(); ++k) sum[k] = sum[k] + parts[2 * i + 1][k];
      parts[i] = std::move(sum);
    }
  }
  return parts[0];
}

// What each of the processes of the tests below does; without a launcher it is the only one.
TEST(MpiRank, has_the_sums_of_its_group) {
  const auto group = dist::make_group({});
  std::vector<float> values = values_of(group->rank());
  group->reduce_scatter(values);
  group->all_gather(values);
  EXPECT_EQ(hash_of(values), hash_of(tree_sum(group->ranks())));
  const auto hosts = group->gather(std::string(static_cast<size_t>(group->rank()), 'x'));
  const std::string text = group->broadcast(group->rank() == 0 ? "of rank 0" : "of another");
  fmt::print("rank {} of {}: {:x}, {} texts, the last of {}, {}\n", group->rank(), group->ranks(),
             hash_of(values), hosts.size(), hosts.back().size(), text);
}

CliResult run_ranks(int ranks, const std::map<std::string, std::string>& environment) {
  CliOptions options;
  options.environment = environment;
  options.environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
  options.environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  // Containers forbid it to read another process, and a sanitizer finds what MPI itself leaves.
  options.environment["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none";
  options.environment["ASAN_OPTIONS"] = "detect_leaks=0";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return run_command({"mpirun", "-np", std::to_string(ranks), "--oversubscribe", "--mca",
                      "mpi_yield_when_idle", "1", self, "--gtest_filter=MpiRank.*"},
                     options);
}

// A process that a launcher of another MPI has started: Open MPI takes it for one alone.
CliResult run_unknown() {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  CliOptions options;
  options.environment = {{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}};
  options.environment["ASAN_OPTIONS"] = "detect_leaks=0";
  return run_command({self, "--gtest_filter=MpiRank.*"}, options);
}

bool is_there() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return std::filesystem::exists(self.parent_path().parent_path() / "lib" / "libheddle-mpi.so");
}

TEST(Mpi, sums_have_the_bits_of_a_tree_in_one_process) {
  if (!is_there()) GTEST_SKIP() << "built without MPI: no libheddle-mpi.so";
  for (const int ranks : {2, 4}) {
    const uint64_t sum = hash_of(tree_sum(ranks));
    const CliResult result = run_ranks(ranks, {});
    EXPECT_EQ(result.exit_code, 0) << result.out;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string line =
          fmt::format("rank {} of {}: {:x}, {} texts, the last of {}, of rank 0\n", rank, ranks,
                      sum, ranks, ranks - 1);
      EXPECT_NE(result.out.find(line), std::string::npos) << line << result.out;
    }
  }
}

TEST(Mpi, a_plug_in_that_is_not_there_is_said) {
  if (!is_there()) GTEST_SKIP() << "built without MPI: no libheddle-mpi.so";
  const CliResult none = run_ranks(2, {{"HEDDLE_MPI_PLUGIN", "/nowhere/libheddle-mpi.so"}});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_NE(none.out.find("openmpi-bin"), std::string::npos) << none.out;
  EXPECT_NE(none.out.find("--rendezvous"), std::string::npos) << none.out;
  const CliResult other = run_ranks(2, {{"HEDDLE_MPI_PLUGIN", "libz.so.1"}});
  EXPECT_NE(other.out.find("none of heddle's"), std::string::npos) << other.out;
  const CliResult odd = run_ranks(3, {});
  EXPECT_NE(odd.out.find("there are 3 ranks; 1, 2, 4"), std::string::npos) << odd.out;
}

TEST(Mpi, a_launcher_that_it_does_not_know_is_said) {
  if (!is_there()) GTEST_SKIP() << "built without MPI: no libheddle-mpi.so";
  const CliResult result = run_unknown();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.out.find("the launcher has started 2 processes, but to this MPI (Open MPI"),
            std::string::npos)
      << result.out;
}

}  // namespace
}  // namespace heddle::testing
