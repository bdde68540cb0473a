// The graph that gradients take back through a call of a pmap.
#pragma once

#include <memory>
#include <source_location>
#include <vector>

#include "brigade/runtime/axis.h"
#include "brigade/transform/input.h"

namespace brigade::detail {

// The results of a call as the caller sees them: outside the devices' graphs, and differentiable with respect to
// `inputs` when these require grad. `leaves[d][k]` is the variable that stood for inputs[k] on device d,
// `results[d][j]` what came out of it. Backward runs the devices' backward passes together on `axis`, so collectives in
// it meet as they did forward. Derivatives of any order follow, as backward is such a call itself when it has to be
// differentiable.
//
// Throws InvalidArgument when a result depends on a tensor that requires grad and is not among `leaves`; `site` is that of
// the pmap, for the message.
PerDevice connect(std::shared_ptr<Axis> axis, std::vector<Input> inputs, PerDevice leaves, PerDevice results,
                  std::source_location site);

}  // namespace brigade::detail
