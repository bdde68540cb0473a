#include "runtime/control_group.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace brigade {
namespace {

namespace fs = std::filesystem;

// "max 100000" or "150000 100000": microseconds in a period of microseconds. 0 when there is no limit.
int cores_in(const fs::path& cpu_max) {
  std::ifstream file(cpu_max);
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  std::istringstream number(quota);
  double microseconds = 0;
  return number >> microseconds ? static_cast<int>(std::ceil(microseconds / period)) : 0;
}

// The group's path below the root of the hierarchy: the line "0::/path". Empty for the root, and for a group that lies
// outside what this process can see ("/../other").
fs::path group_in(const fs::path& cgroup_of_process) {
  std::ifstream file(cgroup_of_process);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::/")) continue;
    const fs::path group = fs::path(line.substr(4)).lexically_normal();
    return group.begin() != group.end() && *group.begin() == ".." ? fs::path() : group;
  }
  return {};
}

}  // namespace

int quota_cores(const fs::path& cgroup_of_process, const fs::path& hierarchy) {
  int smallest = 0;
  for (fs::path group = group_in(cgroup_of_process);; group = group.parent_path()) {
    const int cores = cores_in(hierarchy / group / "cpu.max");
    if (cores > 0) smallest = smallest > 0 ? std::min(smallest, cores) : cores;
    if (group.empty()) return smallest;  // a relative path shrinks to nothing
  }
}

}  // namespace brigade
