// The threads of the test's own process.
#pragma once

#include <dirent.h>

namespace brigade {

inline int threads_of_this_process() {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

}  // namespace brigade
