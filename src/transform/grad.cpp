#include "brigade/transform/grad.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "brigade/base/error.h"
#include "brigade/runtime/axis.h"

namespace brigade::detail {

namespace {

const std::string kVariableName = "brigade::grad";

}  // namespace

bool is_grad_variable(const at::Tensor& tensor) { return tensor.name() == kVariableName; }

int& differentiation_depth() noexcept {
  thread_local int depth = 0;
  return depth;
}

Variables make_variables(const std::vector<at::Tensor>& originals, std::function<std::string(std::size_t)> path_of,
                         bool recording, bool others_require_grad) {
  if (c10::InferenceMode::is_enabled()) {
    throw InvalidArgument(
        "gradients cannot be taken in InferenceMode, where nothing is recorded: leave its scope first. "
        "torch::NoGradGuard "
        "switches gradients off for the code around, and grad works inside it");
  }
  Variables variables;
  variables.create_graph = recording && (others_require_grad || differentiation_depth() > 0);
  variables.tensors.reserve(originals.size());
  for (std::size_t i = 0; i < originals.size(); ++i) {
    const at::Tensor& original = originals[i];
    if (!original.defined()) {
      throw TreeError("cannot differentiate with respect to an undefined tensor: give it a value first",
                      {.argument = path_of(i)});
    }
    if (!original.is_floating_point() && !original.is_complex()) {
      throw InvalidArgument(
          fmt::format("cannot differentiate with respect to a tensor of dtype {}: pass it as another argument, or "
                      "convert it to a floating dtype",
                      c10::toString(original.scalar_type())),
          {.argument = path_of(i)});
    }
    if (original.is_inference()) {
      throw InvalidArgument(
          "cannot differentiate with respect to an inference tensor, made in InferenceMode: clone it outside of that "
          "mode first",
          {.argument = path_of(i)});
    }
    if (recording && original.requires_grad()) {
      // Someone outside differentiates with respect to it: stay connected, as a variable of one's own.
      variables.create_graph = true;
      variables.tensors.push_back(original.view_as(original));
    } else {
      variables.tensors.push_back(original.detach().requires_grad_());
      // Results that are differentiated further keep this leaf in their graph; the name tells it from a captured one.
      if (variables.create_graph && inside_body())
        torch::autograd::impl::set_name(variables.tensors.back(), kVariableName);
    }
  }
  variables.path_of = std::move(path_of);
  return variables;
}

void require_scalar(const at::Tensor& loss) {
  if (!loss.defined() || loss.numel() != 1) {
    throw ShapeError(
        fmt::format("a function to differentiate returns a scalar, and this one returned {}: take its sum() or mean()",
                    loss.defined() ? "shape " + c10::str(loss.sizes()) : "an undefined tensor"));
  }
  if (!loss.is_floating_point()) {
    throw InvalidArgument(
        fmt::format("a function to differentiate returns a floating scalar, and this one returned dtype {}",
                    c10::toString(loss.scalar_type())));
  }
}

std::vector<at::Tensor> differentiate(const at::Tensor& loss, const Variables& variables) {
  require_scalar(loss);
  std::vector<at::Tensor> gradients(variables.tensors.size());
  if (loss.requires_grad() && !variables.tensors.empty()) {
    gradients = torch::autograd::grad({loss}, variables.tensors, {}, variables.create_graph, variables.create_graph,
                                      /*allow_unused=*/true);
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(variables.tensors[i]);
  }
  return gradients;
}

}  // namespace brigade::detail
