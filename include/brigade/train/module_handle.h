// What a model made of libtorch's modules is held by.
#pragma once

namespace brigade::training {

// A torch::nn::ModuleHolder, or a shared_ptr to a module.
template <class M>
concept ModuleHandle = requires(M& model) {
  model.operator->();
};

}  // namespace brigade::training
