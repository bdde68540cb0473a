#include "brigade/runtime/topology.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "runtime/control_group.h"

namespace brigade {
namespace {

// The text after "key:" on the first line of `path` that starts with key; empty when there is none.
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? std::string{} : line.substr(first);
  }
  return {};
}

std::int64_t kibibytes_in_meminfo(const std::string& key) {
  std::istringstream text(value_in("/proc/meminfo", key));
  std::int64_t kibibytes = 0;
  return text >> kibibytes ? kibibytes * 1024 : 0;
}

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  // A machine may have more processors than a cpu_set_t holds; the kernel refuses a mask that is too small.
  for (int capacity = CPU_SETSIZE; capacity <= 64 * CPU_SETSIZE && processors.empty(); capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(bytes, set);
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (int cpu = 0; cpu < capacity; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, set)) processors.push_back(cpu);
      }
    }
    CPU_FREE(set);
  }
  return processors;
}

int usable_cores() {
  int cores = static_cast<int>(allowed_processors().size());
  if (cores == 0) cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const int quota = quota_cores(); quota > 0) cores = std::min(cores, quota);
  return std::max(1, cores);
}

MemoryInfo memory_info() {
  return {.total_bytes = kibibytes_in_meminfo("MemTotal"), .available_bytes = kibibytes_in_meminfo("MemAvailable")};
}

std::string processor_name() {
  const std::string name = value_in("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace brigade
