// How a DataParallel trains. Every member has a default; errors name the member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "brigade/optim/clip.h"
#include "brigade/optim/groups.h"
#include "brigade/optim/rule.h"
#include "brigade/optim/schedule.h"
#include "brigade/optim/sgd.h"
#include "brigade/runtime/device.h"
#include "brigade/train/compression.h"

namespace torch::optim {
class Optimizer;
}

namespace brigade::training {

// Arithmetic of forward and backward. Parameters, gradients and optimizer state are in their own dtype always.
enum class Precision : std::uint8_t {
  kFloat32,   // that of the parameters
  kBFloat16,  // libtorch's autocast around the loss function
};

// What happens when a loss or a gradient is NaN or infinite. One decision for all devices, before anything is updated.
enum class NonFinite : std::uint8_t {
  kStop,  // NonFiniteError, naming tensor, element and device; parameters are those before the step
  kSkip,  // the step updates nothing, and is counted
};

enum class Overlap : std::uint8_t {
  kOn,   // a bucket is reduced as soon as all of its gradients are there, while backward goes on
  kOff,  // all are reduced after it
};

// What happens when memory was found to have changed by itself: a flipped bit, or a stray write.
enum class OnDrift : std::uint8_t {
  kStop,  // DriftError, naming tensor, element, values and device. Nothing was updated
  kWarn,  // a line in the log; the step goes on with what it found
  // Puts back what was there, from a replica that still has it, or by the one bit whose change gives the recorded digest, and
  // runs the step's leaves again. Stops when neither helps.
  kHeal,
};

// Every block of parameters and optimizer state is digested (XXH3, 64 bits) as a step writes it, and again before the next
// update, on every replica.
struct Audit {
  std::int64_t every = 1;  // steps; 0: never. What changes in a step between is not found
  OnDrift on_drift = OnDrift::kStop;
};

// The loss is multiplied by it before backward, and gradients are divided by it, so that small ones do not vanish in half
// precision. P. Micikevicius et al., "Mixed precision training", ICLR 2018.
struct LossScale {
  double initial = 1;         // a power of two keeps all bits
  double growth = 2;          // after `interval` steps in a row with finite gradients
  double backoff = 0.5;       // after a step with others, which is skipped
  std::int64_t interval = 0;  // 0: the scale stays as it is, and NonFinite says what happens

  // As torch.cuda.amp.GradScaler.
  static LossScale dynamic() { return {.initial = 65536, .interval = 2000}; }
};

struct DataParallelOptions {
  // One of the two. A rule of our own is applied by all devices, each to its share; state lies in one copy. An optimizer of
  // libtorch is made from the parameters and runs on one device, on averaged gradients.
  optim::Rule optimizer = optim::sgd();
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor> parameters)> torch_optimizer = {};

  schedule::Schedule learning_rate = schedule::constant(0.01);
  std::vector<optim::Group> groups = {};  // parameters with a rate or decay of their own
  optim::Clip clip = {};

  // Rows of one step, in one of two forms.
  // Usual: each device takes `accumulate` times `per_device_batch` rows. Rows of a step, and bits, depend on the devices.
  std::int64_t per_device_batch = 0;
  std::int64_t accumulate = 1;
  // Invariant: `global_batch` rows in `logical_shards` equal shards, on however many devices up to that: the same bits.
  // Without logical_shards: the rows of a step are fixed, bits depend on the devices.
  std::int64_t global_batch = 0;
  std::int64_t logical_shards = 0;

  std::vector<Device> devices = {};  // empty: all of this process
  bool share_parameters = true;      // one copy of the parameters for all devices of the process

  std::size_t first_bucket_bytes = std::size_t{1} << 20;
  std::size_t bucket_bytes = std::size_t{25} << 20;
  Overlap overlap = Overlap::kOn;
  Compression compress = {};  // of each leaf's gradients, before they are summed

  Precision precision = Precision::kFloat32;
  LossScale loss_scale = {};
  NonFinite non_finite = NonFinite::kStop;
  Audit audit = {};

  std::int64_t noise_scale_every = 0;  // steps between measurements of the gradient noise scale; 0: never
  std::int64_t seed = 0;               // of dropout
};

}  // namespace brigade::training
