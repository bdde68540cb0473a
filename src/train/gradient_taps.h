// Where the gradients of one replica's parameters come out of backward.
//
// A hook behind the accumulation of each parameter takes the gradient away as soon as it is complete, so `.grad` is undefined
// again and the memory that autograd computed into is the gradient's own: nothing is copied. A backward that is nobody's step,
// such as that of another model's loss through this one, leaves gradients where libtorch puts them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace brigade::training {

class GradientTaps {
 public:
  using Sink = c10::function_ref<void(std::size_t parameter, at::Tensor gradient)>;

  // `parameters` are leaves that require grad.
  explicit GradientTaps(std::vector<at::Tensor> parameters);
  ~GradientTaps();
  GradientTaps(const GradientTaps&) = delete;
  GradientTaps& operator=(const GradientTaps&) = delete;

  // While it lives, gradients go to `sink`, on the thread that runs backward: defined, with the parameter's sizes. What it
  // throws leaves backward(). Whatever `.grad` held is dropped.
  class Listening {
   public:
    Listening(GradientTaps& taps, Sink sink);
    ~Listening() { taps_.sink_ = nullptr; }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    GradientTaps& taps_;
    Sink sink_;
  };

 private:
  class Tap;
  struct Hooked;

  std::vector<at::Tensor> parameters_;
  std::vector<Hooked> hooked_;
  const Sink* sink_ = nullptr;  // while somebody listens
};

}  // namespace brigade::training
