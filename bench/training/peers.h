// PyTorch DistributedDataParallel and JAX pmap: the programs of bench/peers, which take the same steps.
#pragma once

#include <memory>
#include <string>

#include "support/peer.h"
#include "support/report.h"
#include "training/setting.h"

namespace brigade::bench {

enum class Library { kPytorch, kJax };

class TrainingPeer {
 public:
  // Returns once it is ready. One that cannot be started, or ends, is absent, and the report says so.
  TrainingPeer(Library library, const Setting& setting, Report& report);

  const std::string& name() const noexcept { return name_; }
  bool is_there() const noexcept { return program_ != nullptr; }

  // Mean over all rows, after kStepsBeforeLoss steps.
  double loss() const noexcept { return loss_; }

  // Of a step, over a round of 0.3 s. Throws PeerAbsent.
  double step_nanoseconds();

 private:
  void leave_out(const PeerAbsent& reason);

  std::string name_;
  Report& report_;
  std::unique_ptr<Peer> program_;
  double loss_ = 0;
};

}  // namespace brigade::bench
