#include "collectives/peers.h"

#include <fmt/format.h>

namespace brigade::bench {

CollectivePeer::CollectivePeer(std::string name, const std::vector<std::string>& command, Report& report)
    : name_(std::move(name)), report_(report) {
  try {
    if (command.empty()) throw PeerAbsent(name_ + ": was not found when this was built");
    program_ = std::make_unique<Peer>(name_, command);
    program_->ask(line_of({{.bytes = sizeof(float)}, 1}));
  } catch (const PeerAbsent& absent) {
    leave_out(absent);
  }
}

double CollectivePeer::nanoseconds(const Collective& collective, int calls) {
  if (!program_) throw PeerAbsent(name_ + ": failed before");
  try {
    return program_->ask(line_of({collective, calls})).at("ns");
  } catch (const PeerAbsent& absent) {
    leave_out(absent);
    throw;
  }
}

void CollectivePeer::leave_out(const PeerAbsent& reason) {
  program_.reset();
  report_.note(fmt::format("left out: {}", reason.what()));
}

CollectivePeer open_mpi(int ranks, Report& report) {
#ifdef BRIGADE_MPI_PEER
  return {"Open MPI", under_mpirun(ranks, BRIGADE_MPI_PEER), report};
#else
  static_cast<void>(ranks);
  return {"Open MPI", {}, report};
#endif
}

CollectivePeer gloo(Report& report) {
#ifdef BRIGADE_GLOO_PEER
  return {"Gloo", {BRIGADE_GLOO_PEER}, report};
#else
  return {"Gloo", {}, report};
#endif
}

}  // namespace brigade::bench
