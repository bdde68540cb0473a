// Buffers of modules on all replicas.
#pragma once

#include <cstdint>
#include <vector>

#include "brigade/train/replica.h"

namespace brigade::training {

// What was written into buffers of the first replica, such as running statistics, holds for all.
class BufferCopies {
 public:
  // Copies those that were written since the last call.
  void spread(const std::vector<Replica>& replicas);

 private:
  std::vector<std::uint32_t> versions_;  // of the first replica's, when the others were made equal
};

}  // namespace brigade::training
