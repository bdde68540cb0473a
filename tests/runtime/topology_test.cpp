#include "brigade/runtime/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace brigade {
namespace {

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

}  // namespace
}  // namespace brigade
