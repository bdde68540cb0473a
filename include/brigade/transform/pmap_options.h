// How a pmap maps.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "brigade/runtime/device.h"
#include "brigade/runtime/mesh.h"
#include "brigade/transform/axes.h"

namespace brigade {

struct PmapOptions {
  std::string axis_name = {};     // for collectives in the body
  std::optional<Mesh> mesh = {};  // several names, with their sizes, instead of axis_name and axis_size
  Axes in_axes = 0;               // one for all arguments, or one per argument
  Axes out_axes = 0;              // what Sharded::stack() of the result goes by
  std::optional<std::vector<Device>> devices = {};  // in order of position; default: the first N of devices()
  std::optional<std::int64_t> axis_size = {};
};

namespace detail {

// `options` with the name and size that its mesh gives the axis. Throws InvalidArgument when it says them itself.
PmapOptions with_mesh(PmapOptions options, std::source_location site);

}  // namespace detail
}  // namespace brigade
