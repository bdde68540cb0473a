// Gradients of leaves as they come out of a codec, before they are summed.
//
// What the codec carries from step to step (residuals, factors) belongs to one leaf and one parameter, so it does not matter which
// device carries the leaf. A step writes what comes next beside what is there, and only one that counts puts it in its place: when a
// step throws, or is skipped, the next one starts from what was before it.
//
// A gradient that is not finite passes as it is, as the step will not count and its error names where it lies. A leaf that has no
// gradient of a parameter sends nothing, and its residual waits: the parameter may have none on any device, and must stay then.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "brigade/comm/compress/distortion.h"
#include "brigade/random/key.h"
#include "brigade/train/compression.h"
#include "brigade/train/replica.h"
#include "layout.h"

namespace brigade::training {

class GradientCompression {
 public:
  // For steps of up to `leaves` leaves. `layout` outlives it. Random numbers come of (seed, step, leaf, parameter). Throws
  // InvalidArgument for options that cannot be, and for parameters that are not float32.
  GradientCompression(const Layout& layout, const Compression& options, std::int64_t leaves, std::int64_t seed,
                      std::source_location site);

  // Before the devices run. `unit` is what a leaf's gradient will be divided by, up to a factor that all steps have: residuals are
  // taken from that of the step that left them to this one's.
  void begin(std::int64_t step, double unit);

  // The gradient of `leaf` as it arrives, in memory of its own. On the device that carries the leaf.
  at::Tensor passed(std::int64_t leaf, std::size_t parameter, at::Tensor gradient);

  // The step counts. On one thread, when all devices are through.
  void keep();

  // Of the step that was begun; nothing before options.start_step.
  std::optional<CompressionReport> report() const;

  std::string describe() const;

  // What is carried on, as tensors on its memory, for checkpoints; to be read and written between steps. Of each leaf, so a run
  // continues on any number of devices: "residual.<leaf>.<parameter>", with the codec's own numbers behind it, and its unit.
  std::vector<NamedTensor> state();

 private:
  struct Carried {
    std::vector<float> state = {};  // Codec::state_size() numbers; none before the first passage, which stand for zeros
    double unit = 1;                // that its residual is in
  };

  // Of one parameter's gradient in one leaf.
  struct Passage {
    Carried carried = {};
    std::vector<float> next = {};
    bool is_written = false;  // in this step
    comm::Distortion distortion = {};
  };

  Passage& at(std::int64_t leaf, std::size_t parameter) noexcept {
    return passages_[static_cast<std::size_t>(leaf) * shapes_.size() + parameter];
  }

  const Layout& layout_;
  const comm::Codec codec_;
  const std::int64_t start_step_;
  const random::Key stream_;
  std::vector<comm::Matrix> shapes_;  // of the parameters
  std::vector<Passage> passages_;     // [leaf][parameter]

  bool is_active_ = false;
  random::Key key_;  // of the step
  double unit_ = 1;
};

}  // namespace brigade::training
