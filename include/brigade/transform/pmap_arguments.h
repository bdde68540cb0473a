// How a pmap reads its arguments. Included by pmap.h.
#pragma once

#include "brigade/transform/pmap.h"

namespace brigade {

template <class F>
template <class... Args>
std::vector<detail::Input> Pmapped<F>::gather(const Args&... args) const {
  std::vector<detail::Input> inputs;
  for_each_argument(
      [&](const tree::Path& path, const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (tree::TensorLeaf<Value>) {
          if (!value.defined()) throw_undefined(path.text());
          const std::optional<int> axis = axis_of(path);
          inputs.push_back(axis ? detail::Input::split(value, detail::mapped_dim(value, *axis, path, site_))
                                : detail::Input::whole(value));
        } else {
          if (!options_.in_axes.is_default_at(path)) {
            throw TreeError("a Sharded argument is mapped as it is: leave its in_axes at 0",
                            {.argument = path.text(), .site = site_});
          }
          std::vector<std::vector<at::Tensor>> rows;
          for (const auto& own : value) {
            const auto check_leaf = [&](const tree::Path& at, const auto& first, const auto& leaf) {
              if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
                if (!first.defined() || !leaf.defined()) throw_undefined(at.text());
              }
            };
            tree::Path inside(path.text());
            tree::walk(inside, check_leaf, value[0], own);
            rows.push_back(tree::flatten(own));
          }
          for (std::size_t k = 0; !rows.empty() && k < rows[0].size(); ++k) {
            std::vector<at::Tensor> column;
            for (const auto& row : rows) column.push_back(row[k]);
            inputs.push_back(detail::Input::per_device(std::move(column)));
          }
        }
      },
      args...);
  return inputs;
}

template <class F>
template <class... Args>
std::int64_t Pmapped<F>::count_devices(const Args&... args) const {
  if (options_.devices && options_.devices->empty()) {
    throw InvalidArgument("no devices: `devices` is empty; leave it out to use all, or name at least one",
                          {.axis = options_.axis_name, .site = site_});
  }
  if (options_.axis_size && *options_.axis_size < 1) {
    throw InvalidArgument(
        "axis_size is " + std::to_string(*options_.axis_size) + ": it is the number of devices, at least 1",
        {.axis = options_.axis_name, .site = site_});
  }
  std::optional<std::int64_t> expected;
  std::string from;
  if (options_.axis_size) {
    expected = options_.axis_size;
    from = options_.mesh ? "the size of the mesh" : "axis_size";
  } else if (options_.devices) {
    expected = static_cast<std::int64_t>(options_.devices->size());
    from = "the number of devices given";
  }
  bool agree = true;
  const auto size_of = [&](const tree::Path& path, const auto& value) -> std::optional<std::int64_t> {
    if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(value)>>) {
      const std::optional<int> axis = axis_of(path);
      return axis ? std::optional(value.size(*axis)) : std::nullopt;  // gather() has checked that it exists
    } else {
      return value.size();
    }
  };
  for_each_argument(
      [&](const tree::Path& path, const auto& value) {
        const auto size = size_of(path, value);
        if (!size) return;
        if (!expected) {
          expected = size;
          from = "as the first of them";
        }
        agree = agree && *size == *expected;
      },
      args...);
  if (!agree) {
    std::vector<detail::SizeClaim> claims;
    for_each_argument(
        [&](const tree::Path& path, const auto& value) {
          std::string shape;
          if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(value)>>) {
            shape = "shape " + c10::str(value.sizes());
          } else {
            shape = "a Sharded over " + std::to_string(value.size()) + " devices";
          }
          claims.push_back({.argument = path.text(), .shape = shape, .size = size_of(path, value)});
        },
        args...);
    detail::throw_sizes_disagree(*expected, from, claims, options_.axis_name, site_);
  }
  if (!expected) {
    throw InvalidArgument(
        "a pmap needs at least one mapped argument, from which it takes the number of devices: pass a tensor with a "
        "leading "
        "dimension or a Sharded, or say .axis_size",
        {.axis = options_.axis_name, .site = site_});
  }
  return *expected;
}

}  // namespace brigade
