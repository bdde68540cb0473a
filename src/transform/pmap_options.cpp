#include "brigade/transform/pmap_options.h"

#include "brigade/base/error.h"

namespace brigade::detail {

PmapOptions with_mesh(PmapOptions options, std::source_location site) {
  if (!options.mesh) return options;
  if (!options.axis_name.empty() || options.axis_size) {
    throw InvalidArgument("a mesh names its axes and gives their sizes: leave out axis_name and axis_size",
                          {.axis = options.mesh->name(), .site = site});
  }
  options.axis_name = options.mesh->name();
  options.axis_size = options.mesh->size();
  return options;
}

}  // namespace brigade::detail
