// One node of the autograd graph for a collective, which is linear in all of its tensors together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "brigade/lax/invocation.h"

namespace brigade::lax::detail {

// From the cotangents of the results to those of the inputs. It runs on the device's own backward, and is
// differentiable itself, which gives higher derivatives. Holds its Invocation, and with it the axis: deep backward passes move between
// threads.
using Transpose = std::function<std::vector<at::Tensor>(std::vector<at::Tensor> cotangents)>;

// Whether the collective of these inputs has to be recorded at all.
bool needs_recording(const std::vector<at::Tensor>& inputs);

// How often record_linear() has been called on this thread.
std::uint64_t recorded_collectives() noexcept;

// Makes `results`, fresh tensors computed from the data of `inputs` one by one, differentiable. Results that get no
// cotangent count as zero, so that every device enters the collective of backward with the same tensors.
void record_linear(const Invocation& call, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& results,
                   Transpose transpose);

}  // namespace brigade::lax::detail
