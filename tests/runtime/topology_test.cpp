#include "brigade/runtime/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/control_group.h"

namespace brigade {
namespace topology_test {

namespace fs = std::filesystem;

// A hierarchy of control groups in a folder of its own, and a process that is in one of them.
class QuotaCores : public testing::Test {
 protected:
  QuotaCores() { fs::create_directories(folder_ / "cgroup"); }
  ~QuotaCores() override { fs::remove_all(folder_); }

  void limit(const std::string& group, const std::string& cpu_max) {
    fs::create_directories(folder_ / "cgroup" / group);
    std::ofstream(folder_ / "cgroup" / group / "cpu.max") << cpu_max << '\n';
  }

  int cores_of_process_in(const std::string& lines) {
    std::ofstream(folder_ / "process") << lines << '\n';
    return quota_cores(folder_ / "process", folder_ / "cgroup");
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("brigade-quota-" + std::to_string(getpid()));
};

TEST_F(QuotaCores, AreThoseOfTheProcessesOwnGroup) {
  limit("service", "300000 100000");
  limit("other", "100000 100000");
  EXPECT_EQ(cores_of_process_in("0::/service"), 3);
}

TEST_F(QuotaCores, AreTheFewestOnTheWayToTheRoot) {
  limit("a/b/c", "800000 100000");
  limit("a/b", "max 100000");
  limit("a", "200000 100000");
  EXPECT_EQ(cores_of_process_in("0::/a/b/c"), 2);
  limit("", "50000 100000");
  EXPECT_EQ(cores_of_process_in("0::/a/b/c"), 1);
}

TEST_F(QuotaCores, AreRoundedUp) {
  limit("service", "250000 100000");
  EXPECT_EQ(cores_of_process_in("0::/service"), 3);
}

TEST_F(QuotaCores, OfAContainerAreThoseOfTheRootThatItSees) {
  limit("", "400000 100000");
  EXPECT_EQ(cores_of_process_in("0::/"), 4);
  EXPECT_EQ(cores_of_process_in("0::/../../neighbour"), 4);
}

TEST_F(QuotaCores, AreZeroWithoutALimit) {
  EXPECT_EQ(cores_of_process_in("0::/service"), 0);
  limit("service", "max 100000");
  EXPECT_EQ(cores_of_process_in("0::/service"), 0);
  EXPECT_EQ(cores_of_process_in("4:cpu:/service"), 0);
}

TEST_F(QuotaCores, AreZeroWhereNothingCanBeRead) {
  limit("service", "nonsense");
  EXPECT_EQ(cores_of_process_in("0::/service"), 0);
  EXPECT_EQ(quota_cores("/no/such/file", "/no/such/folder"), 0);
}

TEST(Topology, CountsTheProcessorsOfTheAffinityMask) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(allowed_processors().size(), static_cast<std::size_t>(CPU_COUNT(&set)));
}

TEST(Topology, HasFewerCoresUnderANarrowerMask) {
  // On a thread of its own: the mask belongs to the thread.
  std::thread([] {
    const int first = allowed_processors().front();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(usable_cores(), 1);
    EXPECT_EQ(allowed_processors(), std::vector<int>{first});
  }).join();
}

TEST(Topology, ReadsMemoryAndProcessor) {
  const MemoryInfo memory = memory_info();
  EXPECT_GT(memory.total_bytes, 0);
  EXPECT_GT(memory.available_bytes, 0);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
  EXPECT_FALSE(processor_name().empty());
}

}  // namespace topology_test
}  // namespace brigade
