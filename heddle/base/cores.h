// How many cores this process may use.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// Cores that the affinity mask of the process allows (`taskset`), and no more than the quota of
/// its control groups pays for (containers: `docker --cpus 2`), rounded up. At least 1.
int available_cores();

/// The quota of the control groups that `groups` names (the text of /proc/self/cgroup), in cores
/// rounded up; 0 where there is none. The smallest counts of a group and those above it. `root` is
/// where their files lie, /sys/fs/cgroup.
/// Sources: the kernel's documentation, cgroup-v2 (cpu.max) and cgroup-v1 (cpu.cfs_quota_us).
int cpu_quota(const std::string& root, std::string_view groups);

}  // namespace heddle
