// Every instruction set of this processor.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace brigade::comm::testing {

// Calls `body(name)` with each instruction set that this processor has and the kernels were compiled for.
inline void on_every_target(const std::function<void(const char*)>& body) {
  const auto choose = [](std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_GT(targets.size(), 0u);
  for (const std::int64_t target : targets) {
    choose(target);
    body(hwy::TargetName(target));
  }
  choose(0);
}

}  // namespace brigade::comm::testing
