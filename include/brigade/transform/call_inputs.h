// The tensors that one call of a pmap hands to its devices.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "brigade/transform/input.h"

namespace brigade::detail {

class CallInputs {
 public:
  // `inputs` in the order in which bodies take them.
  CallInputs(std::vector<Input> inputs, int devices);

  // Whether somebody outside differentiates: then gradients inside the bodies record their graphs, too.
  bool recorded() const noexcept { return recorded_; }

  // On the thread of the device at `position`: what the body gets for the first input, then the second, and so on.
  at::Tensor take(int position);

  // There, when the body has left: the first input that it wrote into and does not own.
  std::optional<std::size_t> trespass(int position) const;

  // Whether a body wrote into this input, on any device. When all have left.
  bool written(std::size_t number) const;

  const Input& operator[](std::size_t number) const { return inputs_[number]; }
  std::size_t size() const noexcept { return inputs_.size(); }

  bool any_differentiated() const noexcept;

  // For connect(): the inputs that are differentiated, and the variables that stood for them on each device.
  std::vector<Input> differentiated() const;
  PerDevice variables();

 private:
  // What tells whether a tensor was written into, also when the body has let go of it.
  struct Mark {
    explicit Mark(c10::VariableVersion of) : versions(std::move(of)), first(current()) {}

    // An inference tensor counts no versions.
    std::uint32_t current() const { return versions.enabled() ? versions.current_version() : 0; }
    bool moved() const { return current() != first; }

    c10::VariableVersion versions;
    std::uint32_t first;
  };

  struct Taken {
    c10::SmallVector<Mark, 4> marks;  // of the inputs so far
    std::vector<at::Tensor> variables;
    // Keeps devices out of each other's cache lines: an aligned allocation, which would do so too, takes longer than all
    // others of a call.
    std::array<std::byte, 64> apart;
  };

  std::vector<Input> inputs_;
  c10::SmallVector<bool, 16> is_differentiated_;
  std::vector<Taken> taken_;  // by position
  bool recorded_;
};

}  // namespace brigade::detail
