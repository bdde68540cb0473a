// A model as the trainer sees it: tensors with names, whatever kind of C++ object holds them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "brigade/tree/tree.h"

namespace torch::nn {
class Module;
}

namespace brigade::training {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// One device's copy of a model. Tensors are the model's own: what is written into them, the model computes with.
struct Replica {
  std::vector<NamedTensor> parameters =
      {};  // that require grad: they are trained. A tied one stands once, by its first name
  std::vector<NamedTensor> constants = {};              // frozen parameters
  std::vector<NamedTensor> buffers = {};                // of a module
  std::shared_ptr<torch::nn::Module> module = nullptr;  // null for a tree
};

Replica replica_of(std::shared_ptr<torch::nn::Module> module);

namespace detail {

// Tensors by path. They are made to require grad when they are floating-point leaves; none is shared with `tensors`.
Replica replica_of(std::vector<at::Tensor>& tensors, const std::vector<std::string>& paths);

}  // namespace detail

// Of any tree of parameters. Its tensors become copies that require grad, integers stay as they are.
template <tree::Tree T>
Replica replica_of(T& parameters) {
  std::vector<at::Tensor> tensors = tree::flatten(parameters);
  Replica replica = detail::replica_of(tensors, tree::paths(parameters));
  parameters = tree::unflatten(parameters, tensors);
  return replica;
}

}  // namespace brigade::training
