// Where a leaf stands in a tree: field names and indices from the root, for messages and for choosing axes by position.
//
// This part of the room knows nothing of torch.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::tree {

// One level of the way down. `name` is empty for what has only an index.
struct Step {
  std::string_view name = {};  // field of an aggregate or key of a map; outlives the walk
  std::size_t index = 0;       // position among the children
  std::size_t count = 0;       // number of children
};

class Path {
 public:
  // `root` starts every text, such as "in_axes" or "argument".
  explicit Path(std::string root = {}) : root_(std::move(root)) {}

  void push(Step step) { steps_.push_back(step); }
  void pop() noexcept { steps_.pop_back(); }
  const std::vector<Step>& steps() const noexcept { return steps_; }

  // "[0].w1", "layers[2].bias", `["encoder"]`: names as `.name`, keys of maps that are no identifiers as `["key"]`, the
  // rest as `[index]`.
  std::string text() const;

 private:
  std::string root_;
  std::vector<Step> steps_;
};

// Throws TreeError: two trees that must have one structure differ at `path`, as `difference` says.
[[noreturn]] void throw_structure_mismatch(const Path& path, std::string_view difference);

// Throws TreeError: `count` values do not fill a tree with `places` for them.
[[noreturn]] void throw_leaf_count_mismatch(std::size_t places, std::size_t count);

}  // namespace brigade::tree
