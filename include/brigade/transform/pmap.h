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
// Result: Sharded<R> for a body that returns the tree R, nothing for a body that returns void. A body that returns its
// argument, or a view of it, returns the caller's memory.
//
// The number of devices N is options.axis_size, or the size of options.mesh, else the number of options.devices, else the
// size along the mapped axes.
//
// Donation: an argument passed with std::move is consumed when the call succeeds. The body then has the only handle to
// each tensor of a Sharded that nobody else holds, so it may update it in place, and collectives may reuse its memory;
// slices of a tensor that nobody else holds may be written into, too. Reading a consumed Sharded throws and says which
// argument of which pmap took it; a consumed tensor is undefined. A call that throws consumes nothing, but for what a body
// had already written into: that reads as lost.
//
// Writing in place into any other argument is an error, as all who hold it would see it. It is noticed by the tensor's
// version when the body returns, so not when the body throws first, nor in inference tensors, in tensors that the body
// captured, or behind libtorch's back.
//
// Throws ShapeError when sizes along mapped axes disagree (every argument is listed with its shape), or a rank is too low
// for its axis; InvalidArgument when there is no mapped argument and no other N, when N exceeds the devices, when
// `devices` is empty or names one twice, when `mesh` stands beside an axis_name or axis_size, when a body writes in place
// into an argument that it does not own, when backward needs an argument that is an inference tensor, and when a result
// depends on a tensor that requires grad and is no argument (captured, or made in the body: detach what is only to be looked
// at); TreeError when in_axes or out_axes are no prefix of the arguments or results, or the devices' results differ in
// structure; AxisError when called inside a body; CollectiveMismatch and DeadlineExceeded as collectives do
// (lax/collectives.h). When a body throws, its exception reaches the caller unchanged, after
// the other devices were released from their collectives and have left; last_failure() tells the rest, and the next call
// works.
//
// Calls from several threads take turns on the devices they share. A body must not wait for another thread that calls a
// pmap: its devices are taken. Both then wait, and a warning says so.
//
// Grad mode, inference mode and autocast are the caller's (its cache of casts is off in bodies). Gradients flow through:
// when an argument requires grad, so do the results that depend on it, to any order. The gradient of a tensor that is split
// is those of the devices, stacked; of one that is passed whole their sum, in the tree order of psum; of a Sharded each
// device's own.
#pragma once

#include <c10/util/Exception.h>

#include <memory>
#include <optional>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/runtime/axis.h"
#include "brigade/transform/axis_cache.h"
#include "brigade/transform/call_inputs.h"
#include "brigade/transform/grad.h"
#include "brigade/transform/pmap_arguments.h"
#include "brigade/transform/pmap_options.h"
#include "brigade/transform/pmap_results.h"
#include "brigade/transform/sharded.h"
#include "brigade/tree/tree.h"

namespace brigade {

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
    const detail::PmapArguments<Args...> arguments(options_, site_, args...);
    std::vector<detail::Input> tensors = arguments.inputs();
    const std::shared_ptr<Axis> axis = axes_->get(arguments.device_count());
    detail::CallInputs inputs(std::move(tensors), axis->size());
    try {
      if constexpr (std::is_void_v<Result>) {
        axis->run([&](int position) { run_body<Result>(position, arguments, inputs); });
        arguments.consume();
      } else {
        static_assert(tree::Tree<Result>,
                      "the body of a pmap returns a tree: tensors, numbers, and containers and aggregates of them");
        std::vector<std::optional<Result>> results(static_cast<std::size_t>(axis->size()));
        axis->run([&](int position) {
          results[static_cast<std::size_t>(position)].emplace(run_body<Result>(position, arguments, inputs));
        });
        Sharded<Result> out(detail::results_outside(axis, inputs, std::move(results), options_, site_),
                            options_.out_axes);
        arguments.consume();
        return out;
      }
    } catch (...) {
      arguments.drop_written(inputs);
      throw;
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
  // On the device at `position`, on its thread.
  template <class Result, class Arguments>
  Result run_body(int position, const Arguments& arguments, detail::CallInputs& inputs) const {
    // A gradient inside records its graph when the devices' results are to be differentiated.
    const detail::DifferentiationDepth depth(inputs.recorded() ? 1 : 0);
    auto own = arguments.for_body(position, inputs);
    const auto call = [&]() -> Result {
      try {
        return std::apply([&](auto&... values) -> Result { return f_(std::move(values)...); }, own);
      } catch (const c10::Error& error) {
        arguments.explain_inference_tensor(error, position, inputs);
        throw;
      }
    };
    if constexpr (std::is_void_v<Result>) {
      call();
      arguments.require_no_trespass(position, inputs);
    } else {
      Result result = call();
      arguments.require_no_trespass(position, inputs);
      return result;
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
