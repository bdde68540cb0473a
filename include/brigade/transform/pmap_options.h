// How a pmap maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "brigade/runtime/device.h"
#include "brigade/transform/axes.h"

namespace brigade {

struct PmapOptions {
  std::string axis_name = {};                       // for collectives in the body
  Axes in_axes = 0;                                 // one for all arguments, or one per argument
  Axes out_axes = 0;                                // what Sharded::stack() of the result goes by
  std::optional<std::vector<Device>> devices = {};  // in order of position; default: the first N of devices()
  std::optional<std::int64_t> axis_size = {};
};

}  // namespace brigade
