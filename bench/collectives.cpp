// Collectives of float32 between devices of one process: against Open MPI and Gloo between as many processes, against what
// the memory allows, and against other ways to ask for the same.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "collectives/peers.h"
#include "collectives/traffic.h"
#include "collectives/verification.h"
#include "support/collective.h"
#include "support/contest.h"
#include "support/report.h"
#include "support/rounds.h"
#include "support/team.h"

namespace {

using namespace brigade::bench;
using brigade::comm::DType;
using brigade::comm::Group;
using brigade::comm::Operation;
using brigade::comm::Piece;

constexpr std::chrono::milliseconds kTimePerEntrant{20};
constexpr std::size_t kKilobyte = 1024;
constexpr std::size_t kMegabyte = 1024 * kKilobyte;

// Ours: nanoseconds of one call, which carries `spans` tensors of that size.
double nanoseconds(Team& team, const Collective& collective, int calls, std::size_t spans = 1) {
  const bool broadcasts = collective.operation == Operation::kBroadcast;
  return team.run([&](Group& member) {
    const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(collective.elements())};
    std::vector<Buffers> buffers;
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < spans; ++i) buffers.emplace_back(collective, member.size());
    for (Buffers& one : buffers) {
      pieces.push_back({.dtype = DType::kFloat32,
                        .in = std::as_bytes(std::span(one.in)),
                        .out = std::as_writable_bytes(std::span(one.out)),
                        .shape = shape});
    }
    int root = 0;
    const auto work = [&] {
      if (broadcasts) {
        for (Piece& piece : pieces) piece.in = root == member.rank() ? piece.out : std::span<std::byte>();
      }
      member.run({.operation = collective.operation, .root = root, .pieces = pieces}, {.tag = "bench"});
      if (broadcasts) root = (root + 1) % member.size();
    };
    for (int i = 0; i < 3; ++i) work();
    member.barrier({});
    return nanoseconds_per_call(calls, work);
  });
}

std::string size_name(std::size_t bytes) {
  if (bytes >= kMegabyte) return fmt::format("{} MB", bytes / kMegabyte);
  if (bytes >= kKilobyte) return fmt::format("{} KB", bytes / kKilobyte);
  return fmt::format("{} B", bytes);
}

Contest contest(Team& team, const Collective& collective) {
  return {.name = fmt::format("{} {}, {} participants", name_of(collective.operation), size_name(collective.bytes),
                              team.size()),
          .about = {{"operation", name_of(collective.operation)},
                    {"bytes", collective.bytes},
                    {"participants", team.size()}},
          .entrants = {{"Brigade", [&team, collective](int calls) { return nanoseconds(team, collective, calls); }}}};
}

void add_peer(Contest& contest, CollectivePeer& peer, const Collective& collective, double goal) {
  if (!peer.works()) return;
  contest.entrants.push_back(
      {peer.name(), [&peer, collective](int calls) { return peer.nanoseconds(collective, calls); }, goal});
}

double all_reduce_goal(std::size_t bytes) {
  if (bytes <= kKilobyte) return 1.0;
  return bytes <= 256 * kKilobyte ? 3.0 : 2.5;
}

// An all-reduce among P participants reads P inputs and writes P outputs, each once.
void add_traffic_limit(Contest& contest, Team& team, std::size_t bytes) {
  const std::size_t traffic = 2 * static_cast<std::size_t>(team.size()) * bytes;
  contest.entrants.push_back(
      {"traffic limit", [&team, traffic](int calls) { return traffic_nanoseconds(team, traffic, calls); }, 0.75});
}

Contest spans_contest(Team& team) {
  constexpr std::size_t kSpans = 500;
  constexpr std::size_t kBytes = 64 * kKilobyte;
  return {.name = "all_reduce of 500 spans of 64 KB",
          .entrants = {{"Brigade", [&team](int calls) { return nanoseconds(team, {.bytes = kBytes}, calls, kSpans); }},
                       {"one span", [&team](int calls) { return nanoseconds(team, {.bytes = kSpans * kBytes}, calls); },
                        1 / 1.5}}};
}

Contest verification_contest() {
  constexpr double kLimit = 30;
  return {.name = "verification of one call",
          .entrants = {{"Brigade", verification_nanoseconds}, {"limit", [](int) { return kLimit; }, 1.0}},
          .unit = Contest::Unit::kNanoseconds};
}

void two_devices(Report& report) {
  Team team(2);
  CollectivePeer mpi = open_mpi(2, report);
  CollectivePeer tcp = gloo(report);
  std::vector<Contest> contests;
  for (std::size_t bytes = 4; bytes <= 64 * kMegabyte; bytes *= 4) {
    const Collective collective = {.bytes = bytes};
    Contest& added = contests.emplace_back(contest(team, collective));
    add_peer(added, mpi, collective, all_reduce_goal(bytes));
    add_peer(added, tcp, collective, 8.0);
    if (bytes >= 16 * kMegabyte) add_traffic_limit(added, team, bytes);
  }
  for (const Operation operation :
       {Operation::kAllGather, Operation::kReduceScatter, Operation::kAllToAll, Operation::kBroadcast}) {
    for (std::size_t bytes = 4; bytes <= 16 * kMegabyte; bytes *= 4) {
      const Collective collective = {.operation = operation, .bytes = bytes};
      Contest& added = contests.emplace_back(contest(team, collective));
      add_peer(added, mpi, collective, 1.0);
    }
  }
  contests.push_back(spans_contest(team));
  contests.push_back(verification_contest());
  hold(std::move(contests), kTimePerEntrant, report);
}

// More participants than this machine has cores, if it has few.
void many_devices(int participants, Report& report) {
  Team team(participants);
  CollectivePeer mpi = open_mpi(participants, report);
  const Collective collective = {.bytes = 256 * kKilobyte};
  std::vector<Contest> contests = {contest(team, collective)};
  add_peer(contests[0], mpi, collective, 2.0);
  hold(std::move(contests), kTimePerEntrant, report);
}

// What is left of the speed when every core carries many devices.
void rates(int participants, Report& report) {
  Team team(participants);
  std::vector<Contest> contests;
  for (const std::size_t bytes : {std::size_t{4}, 256 * kKilobyte}) {
    contests.push_back(contest(team, {.bytes = bytes}));
    contests.back().unit = Contest::Unit::kCallsPerSecond;
  }
  hold(std::move(contests), kTimePerEntrant, report);
}

}  // namespace

int main() {
  Report report("collectives");
  report.note(
      "sizes are of one block: what a participant gives and gets in all_reduce and broadcast, gives in all_gather, "
      "keeps "
      "in reduce_scatter, and sends to each in all_to_all; the root of a broadcast changes with every call");
  report.note(
      "traffic limit: the time in which both cores read and write as many bytes by c = a + b (the better of ordinary "
      "and "
      "streaming stores) in buffers that are as large together; an all_reduce of N bytes reads N and writes N for each "
      "participant, and reads that stores cause do not count");
  two_devices(report);
  for (const int participants : {4, 8}) many_devices(participants, report);
  rates(32, report);
  return report.finish();
}
