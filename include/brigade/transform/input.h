// One tensor among the arguments of a call, and what of it each device gets.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace brigade::detail {

class Input {
 public:
  static Input split(at::Tensor tensor, std::int64_t dim) { return {{std::move(tensor)}, Kind::kSplit, dim}; }
  static Input whole(at::Tensor tensor) { return {{std::move(tensor)}, Kind::kWhole, 0}; }
  static Input per_device(std::vector<at::Tensor> tensors) { return {std::move(tensors), Kind::kPerDevice, 0}; }

  // The tensor of the next position, for an input per device.
  void add(at::Tensor tensor) { tensors_.push_back(std::move(tensor)); }

  // The caller passed the argument with std::move. Bodies then own it, which is that they may write into it, unless
  // somebody else could see that: another handle or view of its memory, a graph, or, where it is passed whole, all
  // devices.
  void give_up() noexcept { given_up_ = true; }

  // Decides whether bodies own it. Called while its only handles are the argument's and this one's.
  void settle_ownership();

  // The call's results are differentiable. Called before any device runs.
  void record() noexcept { recorded_ = true; }

  bool given_up() const noexcept { return given_up_; }
  bool owned() const noexcept { return owned_; }
  bool is_whole() const noexcept { return kind_ == Kind::kWhole; }
  bool requires_grad() const;
  bool is_inference() const;

  // What the device at `position` gets: a slice without its dimension, the whole, or its own. No copy, and no part of
  // the caller's graph. Where the body owns a tensor that is not split, this is the only handle to its storage, as far
  // as the body can tell; the argument keeps the memory for a call that fails.
  //
  // It counts its versions apart from the caller's, so that what others write into the same memory meanwhile is not taken
  // for the body's. Only when recorded, and not the body's alone, it shares the caller's count, as autograd needs that to
  // notice later writes.
  at::Tensor at(int position) const;

  // The tensors that gradients go back to: one, or one per device.
  const std::vector<at::Tensor>& tensors() const noexcept { return tensors_; }

  // From each device's gradient of what it got to the gradients of tensors(): stacked, or summed in the fixed tree
  // order, or each its own. Differentiable.
  std::vector<at::Tensor> combine(const std::vector<at::Tensor>& gradients) const;

 private:
  enum class Kind : std::uint8_t { kSplit, kWhole, kPerDevice };

  Input(std::vector<at::Tensor> tensors, Kind kind, std::int64_t dim)
      : tensors_(std::move(tensors)), dim_(dim), kind_(kind) {}

  std::size_t number_of(int position) const noexcept {
    return kind_ == Kind::kPerDevice ? static_cast<std::size_t>(position) : 0;
  }

  std::vector<at::Tensor> tensors_;
  std::int64_t dim_;  // of kSplit
  Kind kind_;
  bool recorded_ = false;
  bool given_up_ = false;
  bool owned_ = false;
};

// Per-device tensors, [position][number].
using PerDevice = std::vector<std::vector<at::Tensor>>;

}  // namespace brigade::detail
