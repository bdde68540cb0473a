#include "axis_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace brigade {
namespace {

std::vector<std::string> names_of(const std::vector<MeshAxis>& axes) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : axes) names.push_back(axis.name);
  return names;
}

}  // namespace

std::string axis_text(std::string_view name) {
  return name.empty() ? "an unnamed axis" : fmt::format("axis \"{}\"", name);
}

Dims dims_of(const std::vector<MeshAxis>& axes, const AxisNames& names, c10::function_ref<ErrorContext()> context) {
  Dims dims;
  for (const std::string_view name : names) {
    const auto found = std::find_if(axes.begin(), axes.end(), [&](const MeshAxis& axis) { return axis.name == name; });
    if (found == axes.end() || name.empty()) {
      if (axes.front().name.empty()) {
        throw AxisError(
            fmt::format("axis \"{}\" is not in scope here: the pmap gives its axis no name; set .axis_name", name),
            context());
      }
      const std::vector<std::string> known = names_of(axes);
      const std::string nearest = nearest_name(name, known);
      throw AxisError(fmt::format("axis \"{}\" is not in scope here: in scope {} {}{}", name,
                                  known.size() == 1 ? "is" : "are", quoted_list(known),
                                  nearest.empty() || known.size() == 1 ? "" : "; was \"" + nearest + "\" meant?"),
                      context());
    }
    const int dim = static_cast<int>(found - axes.begin());
    if (std::find(dims.begin(), dims.end(), dim) != dims.end()) {
      throw InvalidArgument(fmt::format("axis \"{}\" stands twice among the axes of a collective", name), context());
    }
    dims.push_back(dim);
  }
  if (dims.empty()) {
    throw InvalidArgument("a collective over no axis: in scope " + quoted_list(names_of(axes)), context());
  }
  return dims;
}

std::vector<int> positions_along(const std::vector<MeshAxis>& axes, const Dims& dims, int position) {
  std::vector<int> strides(axes.size());
  int stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= static_cast<int>(axes[i].size);
  }
  const auto stride_of = [&](int dim) { return strides[static_cast<std::size_t>(dim)]; };
  const auto size_of = [&](int dim) { return static_cast<int>(axes[static_cast<std::size_t>(dim)].size); };

  std::vector<int> positions = {position};
  for (const int dim : dims) positions[0] -= position / stride_of(dim) % size_of(dim) * stride_of(dim);
  for (const int dim : dims) {
    std::vector<int> finer;
    for (const int start : positions) {
      for (int i = 0; i < size_of(dim); ++i) finer.push_back(start + i * stride_of(dim));
    }
    positions = std::move(finer);
  }
  return positions;
}

}  // namespace brigade
