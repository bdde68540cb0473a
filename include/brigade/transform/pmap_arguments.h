// The arguments of one call of a pmap.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "brigade/transform/call_inputs.h"
#include "brigade/transform/input.h"
#include "brigade/transform/pmap_errors.h"
#include "brigade/transform/pmap_options.h"
#include "brigade/transform/sharded.h"
#include "brigade/tree/tree.h"

namespace brigade::detail {

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

// Refers to the arguments and lives as long as the call. `Args` are as a forwarding reference deduces them: those that
// are no references were passed with std::move or are temporaries.
template <class... Args>
class PmapArguments {
 public:
  PmapArguments(const PmapOptions& options, std::source_location site, std::remove_reference_t<Args>&... args)
      : options_(options), site_(site), args_(args...) {}

  // Every tensor, in the order in which bodies take them.
  std::vector<Input> inputs() const;

  // N, after checking that every mapped argument agrees with it.
  std::int64_t device_count() const;

  // What the body on the device at `position` is called with.
  std::tuple<BodyArgumentOf<Args>...> for_body(int position, CallInputs& inputs) const {
    const auto take = [&] { return inputs.take(position); };
    // Braces, as they alone fix the order in which arguments take their tensors.
    return std::apply(
        [&](const auto&... args) { return std::tuple<BodyArgumentOf<Args>...>{own_argument(args, position, take)...}; },
        args_);
  }

  // Throws InvalidArgument when the body at `position`, which has returned, wrote into what it does not own.
  void require_no_trespass(int position, const CallInputs& inputs) const {
    if (const auto number = inputs.trespass(position)) {
      throw_trespass(inputs[*number], position,
                     {.argument = path_of(*number), .axis = options_.axis_name, .device = position, .site = site_});
    }
  }

  // To be called while handling what the body at `position` threw: says which argument libtorch cannot save.
  void explain_inference_tensor(const std::exception& error, int position, const CallInputs& inputs) const {
    if (!is_refusal_of_inference_tensor(error)) return;
    std::vector<std::string> paths;
    for (std::size_t number = 0; number < inputs.size(); ++number) {
      if (inputs[number].is_inference()) paths.push_back(path_of(number));
    }
    if (!paths.empty()) throw_inference_saved(paths, {.axis = options_.axis_name, .device = position, .site = site_});
  }

  // The call has succeeded: what was passed with std::move is gone.
  void consume() const {
    visit_tensors([&]<class Value>(const tree::Path& path, Value& value, auto moved) {
      if constexpr (decltype(moved)::value) take_away(path, value, /*failed=*/false);
    });
  }

  // The call has failed: only what bodies had written into by then is gone.
  void drop_written(const CallInputs& inputs) const {
    std::size_t number = 0;
    visit_tensors([&](const tree::Path& path, auto& value, auto moved) {
      const std::size_t end = number + count_inputs(value);
      bool written = false;
      for (; number < end; ++number) written = written || (inputs[number].owned() && inputs.written(number));
      if constexpr (decltype(moved)::value) {
        if (written) take_away(path, value, /*failed=*/true);
      }
    });
  }

 private:
  template <class Arg>
  static constexpr bool kMoved = !std::is_reference_v<Arg> && !std::is_const_v<Arg>;

  // Calls visit(path, tensor or Sharded, whether it was moved, as a std::bool_constant) for each tensor of each argument;
  // a Sharded counts as one.
  template <class Visit>
  void visit_tensors(const Visit& visit) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (visit_argument<Args>(I, std::get<I>(args_), visit), ...); }
    (std::index_sequence_for<Args...>());
  }

  template <class Arg, class Visit>
  static void visit_argument(std::size_t index, std::remove_reference_t<Arg>& arg, const Visit& visit) {
    const tree::Path root;
    const tree::Path path = root.below({.index = index, .count = sizeof...(Args)});
    constexpr std::bool_constant<kMoved<Arg>> kIsMoved;
    if constexpr (is_sharded<std::remove_cvref_t<Arg>>) {
      visit(path, arg, kIsMoved);
    } else if constexpr (tree::Tree<std::remove_cvref_t<Arg>>) {  // a string literal is an array until it is copied
      const auto visit_leaf = [&](const tree::Path& at, auto& leaf) {
        if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) visit(at, leaf, kIsMoved);
      };
      tree::walk(path, visit_leaf, arg);
    }
  }

  static std::size_t count_inputs(const at::Tensor&) { return 1; }
  template <class T>
  static std::size_t count_inputs(const Sharded<T>& sharded) {
    return sharded.size() == 0 ? 0 : tree::flatten(sharded[0]).size();
  }

  static void take_away(const tree::Path&, at::Tensor& tensor, bool) { tensor = at::Tensor(); }
  template <class T>
  void take_away(const tree::Path& path, Sharded<T>& sharded, bool failed) const {
    sharded.take_away({.argument = path.step().index, .pmap = site_, .failed = failed});
  }

  // Of an input, such as `[0].w1`.
  std::string path_of(std::size_t number) const;

  ErrorContext context(const tree::Path& path) const {
    return {.argument = path.text(), .axis = options_.axis_name, .site = site_};
  }

  std::optional<int> axis_of(const tree::Path& path) const {
    return options_.in_axes.at(path, "in_axes", options_.axis_name, site_);
  }

  void check_tensor(const tree::Path& path, const at::Tensor& tensor) const {
    if (!tensor.defined()) {
      throw TreeError("an argument of a pmap is undefined: it was never given a value, or it was moved from",
                      context(path));
    }
    if (tensor.requires_grad() && tensor.is_inference() && at::GradMode::is_enabled())
      throw_inference_differentiated(context(path));
  }

  void add_inputs(const tree::Path& path, const at::Tensor& tensor, std::vector<Input>& inputs) const {
    check_tensor(path, tensor);
    const std::optional<int> axis = axis_of(path);
    inputs.push_back(axis ? Input::split(tensor, mapped_dim(tensor, *axis, [&] { return context(path); }))
                          : Input::whole(tensor));
  }

  template <class T>
  void add_inputs(const tree::Path& path, const Sharded<T>& sharded, std::vector<Input>& inputs) const;

  // The argument of the body at `position`, with every tensor from `take`.
  template <class Arg, class Take>
  static BodyArgumentOf<const Arg&> own_argument(const Arg& arg, int position, const Take& take) {
    BodyArgumentOf<const Arg&> own = [&]() -> const auto& {
      if constexpr (is_sharded<Arg>) {
        return arg[position];
      } else {
        return arg;
      }
    }
    ();
    tree::for_each(
        [&](const tree::Path&, auto& leaf) {
          if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) leaf = take();
        },
        own);
    return own;
  }

  const PmapOptions& options_;
  std::source_location site_;
  std::tuple<std::remove_reference_t<Args>&...> args_;
};

template <class... Args>
std::vector<Input> PmapArguments<Args...>::inputs() const {
  std::vector<Input> inputs;
  visit_tensors([&](const tree::Path& path, const auto& value, auto moved) {
    const std::size_t first = inputs.size();
    add_inputs(path, value, inputs);
    if constexpr (decltype(moved)::value) {
      for (std::size_t number = first; number < inputs.size(); ++number) inputs[number].give_up();
    }
  });
  // When all have their handles, as one tensor may be two arguments.
  for (Input& input : inputs) input.settle_ownership();
  return inputs;
}

template <class... Args>
template <class T>
void PmapArguments<Args...>::add_inputs(const tree::Path& path, const Sharded<T>& sharded,
                                        std::vector<Input>& inputs) const {
  if (axis_of(path) != 0) {
    throw TreeError("a Sharded argument is mapped as it is: leave its in_axes at 0", context(path));
  }
  const auto& values = sharded.values();
  const std::size_t first = inputs.size();
  for (const T& own : values) {
    std::size_t next = first;
    const auto add_leaf = [&](const tree::Path& at, const auto&, const auto& leaf) {
      if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) {
        check_tensor(at, leaf);
        if (next == inputs.size()) {
          std::vector<at::Tensor> column;
          column.reserve(values.size());
          inputs.push_back(Input::per_device(std::move(column)));
        }
        inputs[next++].add(leaf);
      }
    };
    tree::walk(path, add_leaf, values.front(), own);
  }
}

template <class... Args>
std::string PmapArguments<Args...>::path_of(std::size_t number) const {
  std::string found;
  std::size_t next = 0;
  const auto count = [&](const tree::Path& at) {
    if (next++ == number) found = at.text();
  };
  visit_tensors([&](const tree::Path& path, const auto& value, auto) {
    if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(value)>>) {
      count(path);
    } else if (value.size() > 0) {
      const auto count_leaf = [&](const tree::Path& at, const auto& leaf) {
        if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(leaf)>>) count(at);
      };
      tree::walk(path, count_leaf, value[0]);
    }
  });
  return found;
}

template <class... Args>
std::int64_t PmapArguments<Args...>::device_count() const {
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
  std::optional<std::string_view> from;
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
      return axis ? std::optional(value.size(*axis)) : std::nullopt;  // inputs() has checked that it exists
    } else {
      return value.size();
    }
  };
  visit_tensors([&](const tree::Path& path, const auto& value, auto) {
    const auto size = size_of(path, value);
    if (!size) return;
    if (!expected) expected = size;
    agree = agree && *size == *expected;
  });
  if (!agree) {
    std::vector<SizeClaim> claims;
    visit_tensors([&](const tree::Path& path, const auto& value, auto) {
      SizeClaim& claim = claims.emplace_back(SizeClaim{.argument = path.text(), .size = size_of(path, value)});
      if constexpr (tree::TensorLeaf<std::remove_cvref_t<decltype(value)>>) {
        claim.shape = "shape " + c10::str(value.sizes());
        if (axis_of(path) == 0) claim.kind = SizeClaim::Kind::kRows;
      } else {
        claim.shape = "a Sharded over " + std::to_string(value.size()) + " devices";
        claim.kind = SizeClaim::Kind::kSharded;
      }
    });
    throw_sizes_disagree(*expected, from, claims, options_.axis_name, site_);
  }
  if (!expected) {
    throw InvalidArgument(
        "a pmap needs at least one mapped argument, from which it takes the number of devices: pass a tensor with a "
        "leading dimension or a Sharded, or say .axis_size",
        {.axis = options_.axis_name, .site = site_});
  }
  return *expected;
}

}  // namespace brigade::detail
