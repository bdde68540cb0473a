#include "buffer_copies.h"

#include <ATen/ATen.h>

#include <utility>

namespace brigade::training {

void BufferCopies::spread(const std::vector<Replica>& replicas) {
  const at::NoGradGuard no_grad;
  const std::vector<NamedTensor>& first = replicas.front().buffers;
  versions_.resize(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto version = static_cast<std::uint32_t>(first[i].tensor._version());
    if (std::exchange(versions_[i], version) == version) continue;
    for (std::size_t r = 1; r < replicas.size(); ++r) replicas[r].buffers[i].tensor.copy_(first[i].tensor);
  }
}

}  // namespace brigade::training
