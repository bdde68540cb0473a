// What the bodies of one call returned.
#pragma once

#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/transform/call_inputs.h"
#include "brigade/transform/grad.h"
#include "brigade/transform/pmap_options.h"
#include "brigade/transform/sharded.h"
#include "brigade/transform/spmd_graph.h"
#include "brigade/tree/tree.h"

namespace brigade::detail {

// Throws TreeError when out_axes are no prefix of the result, or the devices' results differ in structure.
template <class Result>
void check_result(int position, const Result& first, const Result& own, const PmapOptions& options,
                  std::source_location site) {
  const auto check_leaf = [&](const tree::Path& path, const auto& a, const auto& b) {
    if (position == 0) options.out_axes.at(path, "out_axes", options.axis_name, site);
    if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(a)>>) {
      if (a.defined() != b.defined()) tree::throw_structure_mismatch(path, "one tensor is undefined, another is not");
    }
  };
  if (position == 0) {
    tree::for_each(check_leaf, first, own);
    return;
  }
  try {
    tree::for_each(check_leaf, first, own);
  } catch (const TreeError& error) {
    throw TreeError(
        "the body's result on this device has another structure than on device 0: " + std::string(error.what()),
        {.axis = options.axis_name, .device = position, .site = site});
  }
}

// The checked results as the caller sees them: outside the devices' graphs, and connected to the caller's.
template <class Result>
typename Sharded<Result>::Values results_outside(const std::shared_ptr<Axis>& axis, CallInputs& inputs,
                                                 std::vector<std::optional<Result>> results, const PmapOptions& options,
                                                 std::source_location site) {
  bool in_graph = inputs.any_differentiated();
  for (std::size_t position = 0; position < results.size(); ++position) {
    check_result(static_cast<int>(position), *results.front(), *results[position], options, site);
    in_graph = in_graph || requires_grad(*results[position]);
  }
  typename Sharded<Result>::Values values;
  if constexpr (requires { values.reserve(results.size()); }) values.reserve(results.size());
  if (!in_graph) {
    for (auto& result : results) values.push_back(std::move(*result));
    return values;
  }
  PerDevice tensors;
  for (const auto& result : results) tensors.push_back(tree::flatten(*result));
  tensors = connect(axis, inputs.differentiated(), inputs.variables(), std::move(tensors), site);
  for (std::size_t d = 0; d < results.size(); ++d) values.push_back(tree::unflatten(*results[d], tensors[d]));
  return values;
}

}  // namespace brigade::detail
