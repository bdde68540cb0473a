// pmap: one function, run on every device at once, each on its share of the arguments. The model is JAX's classic pmap.
//
//   auto step = pmap([](Params p, torch::Tensor x) { ... lax::pmean(grads, "devices") ... }, {.axis_name = "devices"});
//   Sharded<Params> next = step(params, x);      // x: (N, ...); the body sees (...)
//
// Arguments
//   torch::Tensor, and trees of them  split along in_axes (default 0): the body sees the tensor without that dimension.
//   An
//                                     axis of `none` passes it whole.
//   Sharded<T>                        each device gets its own value, with no copy.
//   everything else                   numbers, strings, structs without tensors: the same on every device.
// Result: Sharded<R> for a body that returns the tree R, nothing for a body that returns void.
//
// The number of devices N is options.axis_size, else the number of options.devices, else the size along the mapped
// axes.
//
// Throws ShapeError when sizes along mapped axes disagree (every argument is listed with its shape), or a rank is too
// low for its axis; InvalidArgument when there is no mapped argument and no other N, when N exceeds the devices, when
// `devices` is empty or names one twice; TreeError when in_axes is no prefix of the arguments, or the devices' results
// differ in structure; AxisError when called inside a body. When a body throws, its exception reaches the caller
// unchanged, after the other devices were released from their collectives and have left; last_failure() tells the rest,
// and the next call works.
//
// Gradients flow through: when an argument requires grad, so do the results that depend on it, to any order.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/runtime/axis.h"
#include "brigade/runtime/device.h"
#include "brigade/transform/axes.h"
#include "brigade/transform/grad.h"
#include "brigade/transform/sharded.h"
#include "brigade/transform/spmd_call.h"
#include "brigade/tree/tree.h"

namespace brigade {

struct PmapOptions {
  std::string axis_name = {};                       // for collectives in the body
  Axes in_axes = 0;                                 // one for all arguments, or one per argument
  Axes out_axes = 0;                                // what Sharded::stack() of the result goes by
  std::optional<std::vector<Device>> devices = {};  // in order of position; default: the first N of devices()
  std::optional<std::int64_t> axis_size = {};
};

namespace detail {

template <class T>
inline constexpr bool is_sharded = false;
template <class T>
inline constexpr bool is_sharded<Sharded<T>> = true;

// What the body gets for an argument of type Arg.
template <class Arg>
struct BodyArgument {
  using type = std::decay_t<Arg>;
};
template <class T>
struct BodyArgument<Sharded<T>> {
  using type = T;
};
template <class Arg>
using BodyArgumentOf = typename BodyArgument<std::remove_cvref_t<Arg>>::type;

// The devices of a pmap, by the number of them that a call needs. Shared by its copies and by the graphs of its
// results.
class AxisCache {
 public:
  AxisCache(std::string name, std::optional<std::vector<Device>> devices, std::source_location site)
      : name_(std::move(name)), devices_(std::move(devices)), site_(site) {}

  // Throws InvalidArgument when there are not as many devices.
  std::shared_ptr<Axis> get(std::int64_t size);

  // The axis of the latest get(); null before.
  std::shared_ptr<Axis> latest();

 private:
  std::string name_;
  std::optional<std::vector<Device>> devices_;
  std::source_location site_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Axis>> axes_;
  std::shared_ptr<Axis> latest_;
};

}  // namespace detail

template <class F>
class Pmapped {
 public:
  Pmapped(F f, PmapOptions options, std::source_location site)
      : f_(std::move(f)),
        options_(std::move(options)),
        site_(site),
        axes_(std::make_shared<detail::AxisCache>(options_.axis_name, options_.devices, site)) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    using Result = std::remove_cvref_t<std::invoke_result_t<const F&, detail::BodyArgumentOf<Args>...>>;
    const std::vector<detail::Input> inputs = gather(args...);
    const std::shared_ptr<Axis> axis = axes_->get(count_devices(args...));
    const std::vector<std::size_t> wanted = wanted_gradients(inputs);
    detail::PerDevice leaves(static_cast<std::size_t>(axis->size()));

    // What runs on the device at `position`.
    const auto run_body = [&](int position) -> decltype(auto) {
      const DepthGuard depth(wanted.empty() ? 0 : 1);
      std::size_t next = 0, next_wanted = 0;
      const auto take = [&]() {
        const std::size_t number = next++;
        if (next_wanted == wanted.size() || wanted[next_wanted] != number) return inputs[number].at(position);
        ++next_wanted;
        auto& own = leaves[static_cast<std::size_t>(position)];
        own.push_back(inputs[number].at(position).detach().requires_grad_());
        return own.back();
      };
      // Braces, as they alone fix the order in which arguments take their tensors.
      std::tuple<detail::BodyArgumentOf<Args>...> own{argument_at(args, position, take)...};
      return std::apply([&](auto&... values) -> decltype(auto) { return f_(std::move(values)...); }, own);
    };

    if constexpr (std::is_void_v<Result>) {
      axis->run(run_body);
      (consume(std::forward<Args>(args)), ...);
    } else {
      static_assert(tree::Tree<Result>,
                    "the body of a pmap returns a tree: tensors, numbers, and containers and aggregates of them");
      std::vector<std::optional<Result>> results(static_cast<std::size_t>(axis->size()));
      axis->run([&](int position) { results[static_cast<std::size_t>(position)].emplace(run_body(position)); });
      std::vector<detail::Input> differentiated;
      for (const std::size_t number : wanted) differentiated.push_back(inputs[number]);
      Sharded<Result> out(outside(axis, std::move(differentiated), std::move(leaves), results), options_.out_axes);
      (consume(std::forward<Args>(args)), ...);
      return out;
    }
  }

  // Where each device's time went, in the calls since the last reset_statistics(). Empty before the first call.
  std::vector<DeviceStatistics> statistics() const {
    const auto axis = axes_->latest();
    return axis ? axis->statistics() : std::vector<DeviceStatistics>{};
  }
  void reset_statistics() const {
    if (const auto axis = axes_->latest()) axis->reset_statistics();
  }

 private:
  // An inner grad must record its graph when the devices' results are to be differentiated.
  class DepthGuard {
   public:
    explicit DepthGuard(int depth) noexcept : before_(std::exchange(detail::differentiation_depth(), depth)) {}
    ~DepthGuard() { detail::differentiation_depth() = before_; }
    DepthGuard(const DepthGuard&) = delete;
    DepthGuard& operator=(const DepthGuard&) = delete;

   private:
    int before_;
  };

  // Calls visit(path, tensor or Sharded) for each tensor of each argument; a Sharded counts as one.
  template <class Visit, class... Args>
  static void for_each_argument(Visit&& visit, const Args&... args) {
    tree::Path path;
    std::size_t index = 0;
    const auto walk_one = [&](const auto& arg) {
      path.push({.index = index++, .count = sizeof...(Args)});
      using Arg = std::remove_cvref_t<decltype(arg)>;
      if constexpr (detail::is_sharded<Arg>) {
        visit(std::as_const(path), arg);
      } else if constexpr (tree::Tree<Arg>) {
        const auto visit_leaf = [&](const tree::Path& at, const auto& leaf) {
          if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) visit(at, leaf);
        };
        tree::walk(path, visit_leaf, arg);
      }
      path.pop();
    };
    (walk_one(args), ...);
  }

  std::optional<int> axis_of(const tree::Path& path) const { return options_.in_axes.at(path, "in_axes", site_); }

  // Whether in_axes leaves the argument at `path` as it is by default.
  bool is_default_axis(const tree::Path& path) const { return axis_of(path) == 0; }

  // Every tensor of the arguments, in the order in which bodies take them.
  template <class... Args>
  std::vector<detail::Input> gather(const Args&... args) const;

  // N, after checking that every mapped argument agrees with it.
  template <class... Args>
  std::int64_t count_devices(const Args&... args) const;

  static std::vector<std::size_t> wanted_gradients(const std::vector<detail::Input>& inputs) {
    std::vector<std::size_t> numbers;
    if (!at::GradMode::is_enabled()) return numbers;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].requires_grad()) numbers.push_back(i);
    }
    return numbers;
  }

  template <class Arg, class Take>
  static detail::BodyArgumentOf<Arg> argument_at(const Arg& arg, int position, const Take& take) {
    detail::BodyArgumentOf<Arg> own = [&]() -> const auto& {
      if constexpr (detail::is_sharded<Arg>) {
        return arg[position];
      } else {
        return arg;
      }
    }
    ();
    if constexpr (tree::Tree<detail::BodyArgumentOf<Arg>>) {
      tree::for_each(
          [&](const tree::Path&, auto& leaf) {
            if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) leaf = take();
          },
          own);
    }
    return own;
  }

  // The results outside the devices' graphs, after checking that they have one structure.
  template <class Result>
  static std::vector<Result> outside(const std::shared_ptr<Axis>& axis, std::vector<detail::Input> inputs,
                                     detail::PerDevice leaves, const std::vector<std::optional<Result>>& results) {
    detail::PerDevice tensors;
    for (const auto& result : results) {
      tree::require_same_structure(*results.front(), *result);
      tensors.push_back(tree::flatten(*result));
    }
    tensors = detail::connect(axis, std::move(inputs), std::move(leaves), std::move(tensors));
    std::vector<Result> values;
    for (std::size_t d = 0; d < results.size(); ++d) values.push_back(tree::unflatten(*results[d], tensors[d]));
    return values;
  }

  // A Sharded passed with std::move is consumed, once the call has succeeded.
  template <class Arg>
  void consume(Arg&& arg) const {
    if constexpr (std::is_rvalue_reference_v<Arg&&> && detail::is_sharded<Arg>) {
      arg.donate("the pmap over axis \"" + options_.axis_name + "\" at " + to_string(site_));
    }
  }

  F f_;
  PmapOptions options_;
  std::source_location site_;
  std::shared_ptr<detail::AxisCache> axes_;
};

// See the head of this file. `site` is where the pmap was written, for messages. The function is shared by all devices,
// so it is called as const: a body keeps no state of its own.
template <class F>
Pmapped<std::decay_t<F>> pmap(F&& f, PmapOptions options = {},
                              std::source_location site = std::source_location::current()) {
  return Pmapped<std::decay_t<F>>(std::forward<F>(f), std::move(options), site);
}

}  // namespace brigade

#include "brigade/transform/pmap_arguments.h"
