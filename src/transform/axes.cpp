#include "brigade/transform/axes.h"

#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade {

// What holds at `path`: a choice for something above it, or the entry for it.
const Axes& Axes::down(const tree::Path& path, std::string_view name, std::string_view axis,
                       std::source_location site) const {
  if (path.parent() == nullptr) return *this;
  const Axes& above = down(*path.parent(), name, axis, site);
  if (above.is_leaf_) return above;
  if (above.children_.size() != path.step().count) {
    throw TreeError(
        fmt::format("{} has {} entries where the value has {} children: give one entry for each, or one for all of "
                    "them",
                    path.parent()->text(name), above.children_.size(), path.step().count),
        {.axis = std::string(axis), .site = site});
  }
  return above.children_[path.step().index];
}

std::optional<int> Axes::at(const tree::Path& path, std::string_view name, std::string_view axis,
                            std::source_location site) const {
  if (is_leaf_) return axis_;
  const Axes& axes = down(path, name, axis, site);
  if (!axes.is_leaf_) {
    throw TreeError(
        fmt::format("{} has {} entries where the value is a single tensor or a Sharded: give one axis, or none",
                    path.text(name), axes.children_.size()),
        {.axis = std::string(axis), .site = site});
  }
  return axes.axis_;
}

}  // namespace brigade
