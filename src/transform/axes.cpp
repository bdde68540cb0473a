#include "brigade/transform/axes.h"

#include <fmt/format.h>

#include "brigade/base/error.h"

namespace brigade {

std::optional<int> Axes::at(const tree::Path& path, std::string_view name, std::source_location site) const {
  const Axes* axes = this;
  tree::Path walked{std::string(name)};
  for (const tree::Step& step : path.steps()) {
    if (axes->is_leaf_) return axes->axis_;
    if (axes->children_.size() != step.count) {
      throw TreeError(
          fmt::format("{} has {} entries where the value has {} children: give one entry for each, or one for all of "
                      "them",
                      walked.text(), axes->children_.size(), step.count),
          {.site = site});
    }
    walked.push(step);
    axes = &axes->children_[step.index];
  }
  if (!axes->is_leaf_) {
    throw TreeError(
        fmt::format("{} has {} entries where the value is a single tensor or a Sharded: give one axis, or none",
                    walked.text(), axes->children_.size()),
        {.site = site});
  }
  return axes->axis_;
}

}  // namespace brigade
