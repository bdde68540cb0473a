#include "brigade/lax/invocation.h"

#include <c10/util/SmallVector.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "brigade/lax/collectives.h"

namespace brigade::lax {

std::int64_t axis_index(const AxisNames& axis, Site site) { return find_axis(axis, site).rank(); }

std::int64_t axis_size(const AxisNames& axis, Site site) { return find_axis(axis, site).size(); }

namespace detail {
namespace {

// Throws unless each of the `size` ranks stands in exactly one group.
void require_partition(const Invocation& call, const AxisIndexGroups& groups, int size, GroupSizes sizes) {
  c10::SmallVector<bool, 64> seen(static_cast<std::size_t>(size), false);
  for (const std::vector<int>& group : groups) {
    for (const int rank : group) {
      if (rank < 0 || rank >= size) {
        throw InvalidArgument(fmt::format("axis_index_groups of {} name rank {}, and the axis has ranks 0 to {}",
                                          call.name, rank, size - 1),
                              call.context());
      }
      if (std::exchange(seen[static_cast<std::size_t>(rank)], true)) {
        throw InvalidArgument(
            fmt::format("axis_index_groups of {} name rank {} twice: it belongs to one group", call.name, rank),
            call.context());
      }
    }
  }
  if (const auto missing = std::find(seen.begin(), seen.end(), false); missing != seen.end()) {
    throw InvalidArgument(
        fmt::format("axis_index_groups of {} leave out rank {}: give it a group, if need be of its own", call.name,
                    missing - seen.begin()),
        call.context());
  }
  const auto differs = [&](const std::vector<int>& group) { return group.size() != groups.front().size(); };
  if (const auto other = std::find_if(groups.begin(), groups.end(), differs);
      sizes == GroupSizes::kEqual && other != groups.end()) {
    throw InvalidArgument(
        fmt::format("axis_index_groups of {} have sizes {} and {}, and shapes of its results depend on "
                    "them: make all groups equally large",
                    call.name, groups.front().size(), other->size()),
        call.context());
  }
}

}  // namespace

ErrorContext Invocation::context() const {
  return {.axis = std::string(place.name), .device = place.position, .site = site};
}

ErrorContext Invocation::context(std::size_t leaf) const {
  ErrorContext result = context();
  if (path_of) result.argument = path_of(leaf);
  return result;
}

Invocation Invocation::in_backward() const {
  Invocation call = *this;
  call.backward = true;
  call.path_of = nullptr;
  return call;
}

std::string Invocation::tag(bool recorded, std::string_view arguments) const {
  std::string text(name);
  if (!arguments.empty()) text.append("(").append(arguments).append(")");
  if (backward) {
    text.append(" in backward");
  } else if (recorded) {
    text.append(" of what requires grad");
  }
  return text;
}

Invocation enter(std::string_view name, const AxisNames& axis, const AxisIndexGroups& groups, Site site,
                 GroupSizes sizes) {
  Invocation call{.name = name, .place = find_axis(axis, site), .site = site};
  const int rank = call.place.rank();
  call.axis_index = rank;
  if (groups.empty()) return call;
  require_partition(call, groups, call.size(), sizes);
  const auto own = std::find_if(groups.begin(), groups.end(), [rank](const std::vector<int>& group) {
    return std::find(group.begin(), group.end(), rank) != group.end();
  });
  call.place = call.place.among(*own);
  return call;
}

}  // namespace detail
}  // namespace brigade::lax
