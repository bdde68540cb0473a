// pmap: one function, run on every device at once, each on its share of the arguments. The model is JAX's classic pmap.
//
//   auto step = pmap([](Params p, torch::Tensor x) { ... lax::pmean(grads, "devices") ... }, {.axis_name = "devices"});
//   Sharded<Params> next = step(params, x);      // x: (N, ...); the body sees (...)
//
// Arguments
//   torch::Tensor, and trees of them   split along in_axes (default 0): the body sees the tensor without that
//                                      dimension. An axis of `none` passes it whole.
//   Sharded<T>                         each device gets its own value, with no copy.
//   trees without tensors              numbers, strings, enums, configuration: the same on every device.
// Anything else is captured by the body, or made a static value of trees (tree::is_static).
// Result: Sharded<R> for a body that returns the tree R, nothing for a body that returns void.
//
// The number of devices N is options.axis_size, or the size of options.mesh, else the number of options.devices, else the size along the mapped axes.
//
// Throws ShapeError when sizes along mapped axes disagree (every argument is listed with its shape), or a rank is too low
// for its axis; InvalidArgument when there is no mapped argument and no other N, when N exceeds the devices, when
// `devices` is empty or names one twice, when `mesh` stands beside an axis_name or axis_size, and when a result depends on a tensor that requires grad and is no argument
// (captured, or made in the body: detach what is only to be looked at);
// TreeError when in_axes or out_axes are no prefix of the arguments or results, or the devices' results differ in
// structure; AxisError when called inside a body. When a body throws, its exception reaches the caller unchanged, after
// the other devices were released from their collectives and have left; last_failure() tells the rest, and the next call
// works. A body must not wait for another thread that calls a pmap: its devices are taken.
//
// Gradients flow through: when an argument requires grad, so do the results that depend on it, to any order.
#pragma once

#include <memory>
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
#include "brigade/transform/axis_cache.h"
#include "brigade/transform/grad.h"
#include "brigade/transform/sharded.h"
#include "brigade/transform/spmd_call.h"
#include "brigade/tree/tree.h"

namespace brigade {

struct PmapOptions {
  std::string axis_name = {};     // for collectives in the body
  std::optional<Mesh> mesh = {};  // several names, with their sizes, instead of axis_name and axis_size
  Axes in_axes = 0;               // one for all arguments, or one per argument
  Axes out_axes = 0;              // what Sharded::stack() of the result goes by
  std::optional<std::vector<Device>> devices = {};  // in order of position; default: the first N of devices()
  std::optional<std::int64_t> axis_size = {};
};

namespace detail {

// `options` with the name and size that its mesh gives the axis. Throws InvalidArgument when it says them itself.
PmapOptions with_mesh(PmapOptions options, std::source_location site);

// What the body gets for an argument of type Arg.
template <class Arg>
struct BodyArgument {
  static_assert(
      tree::Tree<Arg>,
      "an argument of a pmap is a Sharded of its own, or a tree of tensors, numbers, strings and enums; let the body "
      "capture anything else, or specialise brigade::tree::is_static for it");
  using type = Arg;
};
template <class T>
struct BodyArgument<Sharded<T>> {
  using type = T;
};
template <class Arg>
using BodyArgumentOf = typename BodyArgument<std::decay_t<Arg>>::type;

}  // namespace detail

template <class F>
class Pmapped {
 public:
  Pmapped(F f, PmapOptions options, std::source_location site)
      : f_(std::move(f)),
        options_(detail::with_mesh(std::move(options), site)),
        site_(site),
        axes_(std::make_shared<detail::AxisCache>(options_.axis_name, options_.mesh, options_.devices, site)) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    using Result = std::remove_cvref_t<std::invoke_result_t<const F&, detail::BodyArgumentOf<Args>...>>;
    const std::vector<detail::Input> inputs = gather(args...);
    const std::shared_ptr<Axis> axis = axes_->get(count_devices(args...));
    const std::vector<std::size_t> wanted = wanted_gradients(inputs);
    // Whether somebody outside differentiates: then gradients inside the bodies record their graphs, too.
    const bool recorded = at::GradMode::is_enabled() && (!wanted.empty() || detail::differentiation_depth() > 0);
    detail::PerDevice leaves(static_cast<std::size_t>(axis->size()));

    // What runs on the device at `position`.
    const auto run_body = [&](int position) -> Result {
      const DepthGuard depth(recorded ? 1 : 0);
      std::size_t next = 0, next_wanted = 0;
      const auto take = [&]() {
        const std::size_t number = next++;
        if (next_wanted == wanted.size() || wanted[next_wanted] != number) return inputs[number].constant_at(position);
        ++next_wanted;
        auto& own = leaves[static_cast<std::size_t>(position)];
        own.push_back(inputs[number].at(position).detach().requires_grad_());
        return own.back();
      };
      // Braces, as they alone fix the order in which arguments take their tensors.
      std::tuple<detail::BodyArgumentOf<Args>...> own{argument_at(args, position, take)...};
      return std::apply([&](auto&... values) -> Result { return f_(std::move(values)...); }, own);
    };

    if constexpr (std::is_void_v<Result>) {
      axis->run(run_body);
      consume_all(std::forward<Args>(args)...);
    } else {
      static_assert(tree::Tree<Result>,
                    "the body of a pmap returns a tree: tensors, numbers, and containers and aggregates of them");
      std::vector<std::optional<Result>> results(static_cast<std::size_t>(axis->size()));
      axis->run([&](int position) { results[static_cast<std::size_t>(position)].emplace(run_body(position)); });
      std::vector<detail::Input> differentiated;
      for (const std::size_t number : wanted) differentiated.push_back(inputs[number]);
      Sharded<Result> out(outside(axis, std::move(differentiated), std::move(leaves), results), options_.out_axes);
      consume_all(std::forward<Args>(args)...);
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

  [[noreturn]] void throw_undefined(const std::string& argument) const {
    throw TreeError("an argument of a pmap is undefined: give it a value first", {.argument = argument, .site = site_});
  }

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
  static detail::BodyArgumentOf<const Arg&> argument_at(const Arg& arg, int position, const Take& take) {
    detail::BodyArgumentOf<const Arg&> own = [&]() -> const auto& {
      if constexpr (detail::is_sharded<Arg>) {
        return arg[position];
      } else {
        return arg;
      }
    }
    ();
    if constexpr (tree::Tree<detail::BodyArgumentOf<const Arg&>>) {
      tree::for_each(
          [&](const tree::Path&, auto& leaf) {
            if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) leaf = take();
          },
          own);
    }
    return own;
  }

  // The results outside the devices' graphs, after checking that they have one structure, to which out_axes fit.
  template <class Result>
  std::vector<Result> outside(const std::shared_ptr<Axis>& axis, std::vector<detail::Input> inputs,
                              detail::PerDevice leaves, const std::vector<std::optional<Result>>& results) const {
    detail::PerDevice tensors;
    for (std::size_t position = 0; position < results.size(); ++position) {
      check_result(static_cast<int>(position), *results.front(), *results[position]);
      tensors.push_back(tree::flatten(*results[position]));
    }
    tensors = detail::connect(axis, std::move(inputs), std::move(leaves), std::move(tensors));
    std::vector<Result> values;
    for (std::size_t d = 0; d < results.size(); ++d) values.push_back(tree::unflatten(*results[d], tensors[d]));
    return values;
  }

  template <class Result>
  void check_result(int position, const Result& first, const Result& own) const {
    const auto check_leaf = [&](const tree::Path& path, const auto& a, const auto& b) {
      if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(a)>>) {
        if (position == 0) options_.out_axes.at(path, "out_axes", site_);
        if (a.defined() != b.defined()) tree::throw_structure_mismatch(path, "one tensor is undefined, another is not");
      }
    };
    if (position == 0) {
      tree::for_each(check_leaf, first, own);
      return;
    }
    try {
      tree::for_each(check_leaf, first, own);
    } catch (const TreeError& error) {
      throw TreeError(
          "the body's result on this device has another structure than on device 0: " + std::string(error.what()),
          {.axis = options_.axis_name, .device = position, .site = site_});
    }
  }

  // A Sharded passed with std::move is consumed, once the call has succeeded.
  template <class... Args>
  void consume_all(Args&&... args) const {
    std::size_t index = 0;
    const auto consume = [&]<class Arg>(Arg&& arg) {
      if constexpr (std::is_rvalue_reference_v<Arg&&> && detail::is_sharded<Arg>) {
        arg.donate("argument " + std::to_string(index) + " of the pmap at " + to_string(site_));
      }
      ++index;
    };
    (consume(std::forward<Args>(args)), ...);
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
