// What a model made of libtorch's modules is held by.
#pragma once

#include <concepts>

namespace brigade::training {

// A torch::nn::ModuleHolder, or a shared_ptr to a module.
template <class M>
concept ModuleHandle = requires(M& model) {
  model.operator->();
};

// Something that makes models. A handle can be called as well, which forwards to its module, but compilers cannot be asked
// whether one can be called without arguments.
template <class F>
concept ModelFactory = !ModuleHandle<F> && std::invocable<F&>;

}  // namespace brigade::training
