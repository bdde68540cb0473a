#include "brigade/train/replica.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <unordered_set>

#include "brigade/base/error.h"
#include "brigade/runtime/axis.h"
#include "brigade/train/data_parallel.h"

namespace brigade::training {

std::shared_ptr<torch::nn::Module> detail::clone_of(const torch::nn::Module& module, std::source_location site) {
  try {
    return module.clone();
  } catch (const c10::Error&) {
    throw InvalidArgument(
        fmt::format("DataParallel: a {} cannot be cloned for the other devices: derive it from "
                    "torch::nn::Cloneable<...>, or give a factory that makes one, such as [] {{ return Net(); }}",
                    module.name()),
        {.site = site});
  }
}

Replica replica_of(std::shared_ptr<torch::nn::Module> module) {
  Replica replica;
  std::unordered_set<const at::TensorImpl*> seen;
  for (const auto& item : module->named_parameters()) {
    if (!item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    (item.value().requires_grad() ? replica.parameters : replica.constants).push_back({item.key(), item.value()});
  }
  for (const auto& item : module->named_buffers()) {
    if (!item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    replica.buffers.push_back({item.key(), item.value()});
  }
  replica.module = std::move(module);
  return replica;
}

namespace detail {

GeneratorKept::GeneratorKept() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  state_ = generator.get_state();
}

GeneratorKept::~GeneratorKept() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state_);
}

std::size_t current_position() {
  return inside_body() ? static_cast<std::size_t>(place_of_body(std::source_location::current()).position) : 0;
}

Replica replica_of(std::vector<at::Tensor>& tensors, const std::vector<std::string>& paths) {
  Replica replica;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    const bool trains = tensors[i].is_floating_point() || tensors[i].is_complex();
    tensors[i] = tensors[i].detach().clone();
    if (trains) tensors[i].requires_grad_();
    (trains ? replica.parameters : replica.constants).push_back({paths[i], tensors[i]});
  }
  return replica;
}

}  // namespace detail
}  // namespace brigade::training
