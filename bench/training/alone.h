// Two devices that train at the same time and never meet: what a step takes without its reduction.
//
// Each is a DataParallel on one device, in a process of its own: the device that a program's first thread is, which has
// neither to be woken nor to be waited for.
#pragma once

#include <string>

#include "support/peer.h"
#include "training/steps.h"

namespace brigade::bench {

class BothAlone {
 public:
  // `command` runs serve_alone() of the same setting. This and nanoseconds() throw std::runtime_error when it does not.
  BothAlone(const Setting& setting, std::vector<std::string> command);

  // Nanoseconds of a step, the mean of both.
  double nanoseconds(int calls);

 private:
  Step own_;
  Peer other_;
};

// The other one: for every number of calls that it reads from standard input, as many steps. Returns at its end.
void serve_alone(const Setting& setting);

}  // namespace brigade::bench
