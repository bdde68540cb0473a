// A process that writes checkpoints is killed at random moments.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "guard/support.h"

namespace brigade::guard {
namespace kill_test {

using namespace testing;

// Writes checkpoints from `first` on for ever, and says on `report` after each that it is written.
[[noreturn]] void write_until_killed(const std::filesystem::path& folder, std::int64_t first, int report) {
  try {
    Store store(system_calls(), {.folder = folder, .keep_last = 2});
    for (std::int64_t step = first;; ++step) {
      store.write(content_of(example(step)));
      if (::write(report, "w", 1) != 1) ::_exit(1);
    }
  } catch (...) {
    ::_exit(2);
  }
}

// How many writes it reported. `after` of them are waited for, and then it runs on for a random number of looks at the pipe.
std::int64_t run_and_kill(const std::filesystem::path& folder, std::int64_t first, std::int64_t after, int looks) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    write_until_killed(folder, first, ends[1]);
  }
  ::close(ends[1]);
  char byte = 0;
  std::int64_t written = 0;
  while (written < after && ::read(ends[0], &byte, 1) == 1) ++written;
  for (int i = 0; i < looks; ++i) (void)::getppid();
  ::kill(child, SIGKILL);
  while (::read(ends[0], &byte, 1) == 1) ++written;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself, with " << WEXITSTATUS(status);
  return written;
}

TEST(Kill, AtARandomMomentLeavesTheNewestOrTheOneBefore) {
  const TemporaryFolder folder;
  std::mt19937 random(20);
  std::int64_t newest = -1;
  for (int round = 0; round < 60; ++round) {
    const std::int64_t first = newest + 1;
    const std::int64_t written =
        run_and_kill(folder.path(), first, round % 3, std::uniform_int_distribution(0, 20000)(random));
    const auto found = newest_in(folder.path());
    // What was written before the report of it could be is there as well.
    const std::int64_t reported = first + written - 1;
    if (!found) {
      EXPECT_LT(reported, 0);
      continue;
    }
    EXPECT_TRUE(found->step == reported || found->step == reported + 1) << found->step << ", reported " << reported;
    EXPECT_EQ(*found, example(found->step));
    newest = found->step;
  }
  EXPECT_GT(newest, 30);
  write(folder.path(), {newest + 1}, 2);  // nobody holds the folder
  for (const std::string& name : names_in(folder.path())) EXPECT_FALSE(name.starts_with(".tmp")) << name;
}

}  // namespace kill_test
}  // namespace brigade::guard
