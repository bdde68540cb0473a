// The share of the processors that the control groups of a process allow it.
#pragma once

#include <filesystem>

namespace brigade {

// Cores of the smallest quota (cpu.max of cgroup v2) from the process's own group up to the root, rounded up; 0 when
// none is set. `cgroup_of_process` is its file in /proc, `hierarchy` the folder where the hierarchy is mounted.
int quota_cores(const std::filesystem::path& cgroup_of_process = "/proc/self/cgroup",
                const std::filesystem::path& hierarchy = "/sys/fs/cgroup");

}  // namespace brigade
