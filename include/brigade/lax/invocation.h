// One call of a collective by one device: what it is called, over which devices it runs, and where it is written.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/base/error.h"
#include "brigade/runtime/axis.h"

namespace brigade::lax {

using Site = std::source_location;

// Groups of ranks on the named axis, such as {{0, 2}, {1, 3}}: the collective runs in each of them by itself, with ranks
// and sums in the order in which the group lists its members. Every rank stands in exactly one. Empty: all together.
// What a list of members needs is made at its first use and kept as long as the axis: name few different ones.
using AxisIndexGroups = std::vector<std::vector<int>>;

// For collectives that take no other options.
struct GroupOptions {
  AxisIndexGroups axis_index_groups = {};
};

namespace detail {

struct Invocation {
  std::string_view name = {};  // "psum"; in static storage
  AxisPlace place = {};        // on the axis, or in this device's group of it
  std::int64_t axis_index = 0;
  Site site = {};
  bool backward = false;
  // The path of leaf number i. Only while the tree is there, which backward does not have.
  c10::function_ref<std::string(std::size_t)> path_of = nullptr;

  int size() const noexcept { return place.size(); }
  comm::Group& group() const noexcept { return place.group(); }

  // Where an error belongs: of the whole call, or of the leaf with that number.
  ErrorContext context() const;
  ErrorContext context(std::size_t leaf) const;

  // The same call, as its gradient makes it.
  Invocation in_backward() const;

  // What devices compare. Those of which only some differentiate would not meet in backward, so the tag tells them
  // apart; `arguments` are those that the communication core does not see, such as a dimension.
  std::string tag(bool recorded, std::string_view arguments = {}) const;
};

// Collectives whose results have shapes that depend on the number of devices need groups of one size.
enum class GroupSizes { kAny, kEqual };

// Throws as find_axis(), and InvalidArgument unless every rank of the axis stands in exactly one of `groups`.
Invocation enter(std::string_view name, const AxisNames& axis, const AxisIndexGroups& groups, Site site,
                 GroupSizes sizes = GroupSizes::kAny);

}  // namespace detail
}  // namespace brigade::lax
