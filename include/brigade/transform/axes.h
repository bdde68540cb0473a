// Which dimension of each tensor is split over devices: JAX's in_axes and out_axes.
#pragma once

#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "brigade/tree/path.h"

namespace brigade {

struct None {};

// Not split: every device gets the whole (in_axes), or all agree and one value is returned (out_axes).
inline constexpr None none{};

// One choice for everything below, or one per child: `0`, `-1`, `none`, `{0, none, 1}`, `{{0, none}, 1}`. Children
// follow arguments, fields, elements, or keys in order; a choice may stop at any depth (a tree prefix).
class Axes {
 public:
  Axes(int axis) : axis_(axis) {}  // NOLINT(google-explicit-constructor): written as `.in_axes = 0`
  Axes(None) {}                    // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<Axes> children) : is_leaf_(false), children_(children) {}

  // The choice for the leaf at `path`; std::nullopt means none. The first step of the path may be the argument.
  // Throws TreeError, with the place such as `in_axes[0].w1`, when this is no prefix of the tree that the path is in; its
  // text names the `axis` of the pmap at `site`.
  std::optional<int> at(const tree::Path& path, std::string_view name, std::string_view axis,
                        std::source_location site) const;

  // What holds for child `index`; itself where one choice holds for everything below.
  Axes child(std::size_t index) const { return is_leaf_ || index >= children_.size() ? *this : children_[index]; }

 private:
  const Axes& down(const tree::Path& path, std::string_view name, std::string_view axis,
                   std::source_location site) const;

  bool is_leaf_ = true;
  std::optional<int> axis_ = {};
  std::vector<Axes> children_ = {};
};

}  // namespace brigade
