// Sums over all leaves of a step, in the middle of forward or backward: what layers need whose numbers depend on more rows than
// their leaf has.
//
// Every leaf of the step calls it, the same number of times in the same order. A device that carries several leaves runs them by
// turns: a leaf that waits hands over to the next. So all of them are in their forward at once, and hold their activations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <source_location>
#include <string_view>
#include <vector>

namespace brigade::training {

struct LeafSumOptions {
  std::string_view tag = "leaf_sum";  // names the call in messages
  std::int64_t group = 0;  // consecutive leaves that are summed together; 0: all. The last group may be smaller
};

// The sums of `values` over the leaves of this leaf's group, in the tree T over them: the same bits whatever device carries
// which leaf. Plain data: no gradient flows through, which is for a torch::autograd::Function around two such calls. `values`
// are contiguous CPU tensors without a graph, of the same shapes in all leaves.
//
// Where no DataParallel runs: inside the body of a pmap the devices of its axis are the leaves; elsewhere there is one leaf, and
// the sums are copies. Throws CollectiveMismatch when leaves call different things, or one ends while others wait.
std::vector<at::Tensor> leaf_sum(const std::vector<at::Tensor>& values, LeafSumOptions options = {},
                                 std::source_location site = std::source_location::current());

// How many leaves of this step hold rows; devices of the axis inside a pmap; 1 elsewhere.
std::int64_t leaf_count();

}  // namespace brigade::training
