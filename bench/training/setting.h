// What is trained: the same network from the same parameters on the same rows, on all sides, by plain SGD.
#pragma once

#include <cstdint>
#include <string>

#include "brigade/data/safetensors.h"

namespace brigade::bench {

inline constexpr double kLearningRate = 0.01;
inline constexpr int kStepsBeforeLoss = 3;  // before the losses of all sides are compared

struct Setting {
  std::string model = {};  // mlp, cnn or transformer
  std::int64_t devices = 0;
  std::int64_t batch = 0;   // rows a device
  std::int64_t hidden = 0;  // of the mlp

  // Parameters by the names of bench/peers/ddp_step.py; x and y, the rows of all devices in order.
  data::TensorMap start = {};
};

// With parameters as libtorch draws them, and random rows. The same at each call.
Setting make_setting(std::string model, std::int64_t devices, std::int64_t batch, std::int64_t hidden);

}  // namespace brigade::bench
