// Where a leaf stands in a tree: field names and indices from the root, for messages and for choosing axes by position.
//
// This part of the room knows nothing of torch.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace brigade::tree {

// One level of the way down. `name` is empty for what has only an index.
struct Step {
  std::string_view name = {};  // field of an aggregate or key of a map; outlives the walk
  std::size_t index = 0;       // position among the children
  std::size_t count = 0;       // number of children
};

// A place refers to the one above it, on the stack of the walk that came by: going down costs no memory, and a path ends with
// the walk.
class Path {
 public:
  Path() = default;  // the root
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  Path below(Step step) const& noexcept { return {this, step}; }
  Path below(Step step) const&& = delete;  // its parent would be gone

  // The place above, and the step from there to here. Null, and nothing, at the root.
  const Path* parent() const noexcept { return parent_; }
  const Step& step() const noexcept { return step_; }

  // "[0].w1", "layers[2].bias", `["encoder"]`: names as `.name`, keys of maps that are no identifiers as `["key"]`, the
  // rest as `[index]`. After `root`, such as "in_axes", if there is one.
  std::string text(std::string_view root = {}) const;

 private:
  Path(const Path* parent, Step step) noexcept : parent_(parent), step_(step) {}

  const Path* parent_ = nullptr;
  Step step_;
};

// Throws TreeError: two trees that must have one structure differ at `path`, as `difference` says.
[[noreturn]] void throw_structure_mismatch(const Path& path, std::string_view difference);

// Throws TreeError: `count` values do not fill a tree with `places` for them.
[[noreturn]] void throw_leaf_count_mismatch(std::size_t places, std::size_t count);

}  // namespace brigade::tree
