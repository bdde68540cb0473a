// The machine: cores that this process may use, memory, processor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brigade {

// Numbers of the logical processors that the affinity mask allows.
std::vector<int> allowed_processors();

// Cores that this process may use: the affinity mask, cut by the smallest quota of its control groups (rounded up). At
// least 1.
int usable_cores();

struct MemoryInfo {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
};

// From /proc/meminfo; zeros when it cannot be read.
MemoryInfo memory_info();

// Such as "AMD EPYC"; "unknown processor" when /proc/cpuinfo does not say.
std::string processor_name();

}  // namespace brigade
