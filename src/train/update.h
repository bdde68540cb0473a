// The update of parameters from the reduced gradient.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "brigade/optim/step.h"
#include "brigade/train/options.h"
#include "brigade/train/replica.h"
#include "layout.h"

namespace brigade::training {

// What all devices have decided of one step.
struct Decision {
  bool updates = true;  // everything is finite
  double learning_rate = 0;
  double divisor = 1;  // of the gradient: the total weight times the loss scale
  double clip_factor = 1;
  double clip_value = 0;
  std::vector<bool> used = {};  // segments that had a gradient on some device; others stay as they are
};

// One device's part of an update: its share of the blocks, and a meeting of all.
struct Share {
  std::size_t device = 0;
  BlockRange blocks = {};
  const Flat* parameters = nullptr;  // of this device's replica
  std::function<void()> meet = {};
  std::function<void(const Part& part)> written = {};  // is told what was, while it is in the cache
};

class Update {
 public:
  virtual ~Update() = default;

  // On every device at once. Writes what written() says of this device's replica.
  virtual void apply(const Share& share, const Decision& decision) = 0;

  // The blocks that `device`, whose share is `blocks`, updates in its replica.
  virtual BlockRange written(std::size_t device, BlockRange blocks) const = 0;

  // What it remembers from step to step, in one copy.
  virtual std::vector<NamedFlat> buffers() const = 0;

  // Once, after apply() has returned on all devices.
  virtual void conclude(const Decision& decision) = 0;

  // What it remembers, by name, as tensors on its own memory. Throws InvalidArgument when that cannot be had.
  virtual std::vector<NamedTensor> state() = 0;

  virtual std::string describe() const = 0;
};

// By a rule of ours: every device updates its share. State is one copy, in the layout of the parameters.
std::unique_ptr<Update> update_by_rule(const Layout& layout, const Flat& gradients, const optim::Rule& rule,
                                       const std::vector<optim::Group>& groups);

// By an optimizer of libtorch, on device 0. `parameters` are those of its replica, in the order of the layout.
std::unique_ptr<Update> update_by_torch(const Layout& layout, const Flat& gradients,
                                        std::unique_ptr<torch::optim::Optimizer> optimizer,
                                        std::vector<at::Tensor> parameters);

}  // namespace brigade::training
