// Other libraries that carry out the same collectives between processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/collective.h"
#include "support/peer.h"
#include "support/report.h"

namespace brigade::bench {

class CollectivePeer {
 public:
  // The report outlives the peer. It notes when the peer is left out: `command` is empty as none was found when this was
  // built, or it does not work, now or later.
  CollectivePeer(std::string name, const std::vector<std::string>& command, Report& report);

  const std::string& name() const noexcept { return name_; }
  bool works() const noexcept { return program_ != nullptr; }

  // Of one call. Throws PeerAbsent when the peer fails now or has failed before.
  double nanoseconds(const Collective& collective, int calls);

 private:
  void leave_out(const PeerAbsent& reason);

  std::string name_;
  Report& report_;
  std::unique_ptr<Peer> program_;
};

// `ranks` processes on this machine.
CollectivePeer open_mpi(int ranks, Report& report);

// Two processes on this machine, which carry out all_reduce.
CollectivePeer gloo(Report& report);

}  // namespace brigade::bench
