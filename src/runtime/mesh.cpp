#include "brigade/runtime/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "brigade/base/error.h"

namespace brigade {

Mesh::Mesh(std::initializer_list<MeshAxis> axes, std::source_location site) : Mesh(std::vector<MeshAxis>(axes), site) {}

Mesh::Mesh(std::vector<MeshAxis> axes, std::source_location site) : axes_(std::move(axes)) {
  const ErrorContext context{.site = site};
  if (axes_.empty()) {
    throw InvalidArgument("a mesh without axes: give it at least one, as in Mesh{{\"devices\", 8}}", context);
  }
  for (auto axis = axes_.begin(); axis != axes_.end(); ++axis) {
    if (axis->name.empty()) throw InvalidArgument("an axis of a mesh has no name: collectives need one", context);
    if (std::any_of(axes_.begin(), axis, [&](const MeshAxis& other) { return other.name == axis->name; })) {
      throw InvalidArgument(fmt::format("axis \"{}\" stands twice in a mesh: give every axis its own name", axis->name),
                            context);
    }
    if (axis->size < 1) {
      throw InvalidArgument(fmt::format("axis \"{}\" of a mesh has size {}: it is a number of devices, at least 1",
                                        axis->name, axis->size),
                            context);
    }
    if (axis->size > std::numeric_limits<int>::max() / size_) {
      throw InvalidArgument(fmt::format("a mesh of more than {} devices", std::numeric_limits<int>::max()), context);
    }
    size_ *= axis->size;
  }
}

std::string Mesh::name() const {
  std::vector<std::string_view> names;
  for (const MeshAxis& axis : axes_) names.push_back(axis.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace brigade
