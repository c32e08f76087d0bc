// Quotas of control groups, of both versions.
#include "heddle/base/parallel.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/base/temporary.h"

namespace heddle {
namespace {

struct Groups : TemporaryFolder {
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(*this / file).parent_path());
    write(file, text);
  }
};

TEST(Cores, a_quota_of_the_second_version_is_rounded_up_to_whole_cores) {
  for (const auto& [line, cores] : std::vector<std::pair<std::string, int>>{{"200000 100000\n", 2},
                                                                            {"150000 100000\n", 2},
                                                                            {"10000 100000\n", 1},
                                                                            {"max 100000\n", 0},
                                                                            {"", 0},
                                                                            {"200000\n", 0},
                                                                            {"nonsense\n", 0},
                                                                            {"-1 100000\n", 0},
                                                                            {"200000 0\n", 0}}) {
    Groups groups;
    groups.put("cpu.max", line);
    EXPECT_EQ(cpu_quota(groups.path(), "0::/\n"), cores) << line;
  }
}

TEST(Cores, the_smallest_quota_of_a_group_and_those_above_it_counts) {
  Groups groups;
  groups.put("a/cpu.max", "300000 100000\n");
  groups.put("a/b/cpu.max", "max 100000\n");
  groups.put("a/b/c/cpu.max", "500000 100000\n");
  EXPECT_EQ(cpu_quota(groups.path(), "0::/a/b/c\n"), 3);
  EXPECT_EQ(cpu_quota(groups.path(), "0::/a/b/c/outside\n"), 3);
  EXPECT_EQ(cpu_quota(groups.path(), "0::/\n"), 0);
}

TEST(Cores, a_quota_of_the_first_version_lies_under_its_controllers) {
  Groups groups;
  groups.put("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "250000\n");
  groups.put("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  groups.put("memory/docker/x/cpu.cfs_quota_us", "1\n");
  const std::string lines = "12:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/\n";
  EXPECT_EQ(cpu_quota(groups.path(), lines), 3);
  groups.put("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpu_quota(groups.path(), lines), 0);
}

TEST(Cores, text_that_names_no_group_gives_no_quota) {
  const Groups groups;
  for (const char* lines : {"", "\n", "0", "0:", "x:y", "0::", ":::", "4:cpuset:/\n"}) {
    EXPECT_EQ(cpu_quota(groups.path(), lines), 0) << lines;
  }
}

TEST(Cores, at_least_one_core_is_there) { EXPECT_GE(available_cores(), 1); }

}  // namespace
}  // namespace heddle
