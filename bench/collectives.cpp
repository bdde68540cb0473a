// All-reduce of float32 between two devices of one process, against Open MPI and Gloo between two processes.
#include <fmt/format.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "brigade/comm/thread_group.h"
#include "support/aligned.h"
#include "support/peer.h"
#include "support/pin.h"
#include "support/report.h"
#include "support/rounds.h"

namespace {

using namespace brigade::bench;
using brigade::comm::DType;
using brigade::comm::Group;
using brigade::comm::Piece;
using brigade::comm::ThreadGroup;

constexpr std::size_t kLargest = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kTimePerSide{20};

// Two devices: the calling thread and one that sleeps between rounds.
class Ours {
 public:
  Ours() : group_(2, {}), thread_([this] { serve(); }) {}
  ~Ours() {
    start(0, 0);
    thread_.join();
  }

  double nanoseconds(std::size_t bytes, int calls) {
    start(bytes, calls);
    return measure(group_.member(0), bytes, calls);
  }

 private:
  static double measure(Group& member, std::size_t bytes, int calls) {
    const Pinned pinned(member.rank());
    const AlignedVector<float> in(bytes / sizeof(float), 1.0F);
    AlignedVector<float> out(in.size());
    const Piece piece = {
        .dtype = DType::kFloat32, .in = std::as_bytes(std::span(in)), .out = std::as_writable_bytes(std::span(out))};
    const auto all_reduce = [&] { member.all_reduce({}, {&piece, 1}, {.tag = "psum"}); };
    for (int i = 0; i < 3; ++i) all_reduce();
    member.barrier({});
    return nanoseconds_per_call(calls, all_reduce);
  }

  void start(std::size_t bytes, int calls) {
    {
      const std::lock_guard lock(mutex_);
      bytes_ = bytes;
      calls_ = calls;
      ++requests_;
    }
    asked_.notify_one();
  }

  void serve() {
    for (int served = 0;;) {
      std::size_t bytes = 0;
      int calls = 0;
      {
        std::unique_lock lock(mutex_);
        asked_.wait(lock, [&] { return requests_ > served; });
        served = requests_;
        bytes = bytes_;
        calls = calls_;
      }
      if (calls == 0) return;
      measure(group_.member(1), bytes, calls);
    }
  }

  ThreadGroup group_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::size_t bytes_ = 0;
  int calls_ = 0;
  int requests_ = 0;
  std::thread thread_;
};

std::string size_name(std::size_t bytes) {
  if (bytes >= std::size_t{1} << 20) return fmt::format("{} MB", bytes >> 20);
  if (bytes >= 1024) return fmt::format("{} KB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

// One library's all-reduce, and what it has taken so far, by size.
struct Side {
  std::string name;
  std::function<double(std::size_t bytes, int calls)> nanoseconds;
  std::vector<std::vector<double>> taken = {};

  void measure(std::size_t index, std::size_t bytes) {
    if (taken.size() <= index) taken.resize(index + 1);
    const double guess = taken[index].empty() ? nanoseconds(bytes, 3) : taken[index].back();
    taken[index].push_back(nanoseconds(bytes, calls_to_fill(kTimePerSide, guess)));
  }
};

void add_peer(std::vector<Side>& sides, Report& report, std::vector<std::unique_ptr<Peer>>& peers,
              const std::string& name, const std::vector<std::string>& command) {
  try {
    if (command.empty()) throw PeerAbsent(name + ": was not found when this was built");
    auto peer = std::make_unique<Peer>(name, command);
    peer->ask("4 1");
    sides.push_back({name, [peer = peer.get()](std::size_t bytes, int calls) {
                       return peer->ask(fmt::format("{} {}", bytes, calls)).at("ns").get<double>();
                     }});
    peers.push_back(std::move(peer));
  } catch (const PeerAbsent& absent) {
    report.note(fmt::format("left out: {}", absent.what()));
  }
}

std::vector<std::string> mpi_command() {
#ifdef BRIGADE_MPI_PEER
  return under_mpirun(2, BRIGADE_MPI_PEER);
#else
  return {};
#endif
}

std::vector<std::string> gloo_command() {
#ifdef BRIGADE_GLOO_PEER
  return {BRIGADE_GLOO_PEER};
#else
  return {};
#endif
}

}  // namespace

int main() {
  Report report("collectives");
  Ours ours;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<Side> sides;
  sides.push_back({"Brigade", [&](std::size_t bytes, int calls) { return ours.nanoseconds(bytes, calls); }});
  add_peer(sides, report, peers, "Open MPI", mpi_command());
  add_peer(sides, report, peers, "Gloo", gloo_command());

  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 4; bytes <= kLargest; bytes *= 4) sizes.push_back(bytes);
  std::vector<double> exchanges;
  measure_rounds([&](int round, double exchange) {
    exchanges.push_back(exchange);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      // Every round begins with another side.
      for (std::size_t s = 0; s < sides.size(); ++s) {
        sides[(s + static_cast<std::size_t>(round)) % sides.size()].measure(i, sizes[i]);
      }
    }
  });

  for (std::size_t s = 1; s < sides.size(); ++s) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::vector<Round> rounds;
      for (std::size_t r = 0; r < exchanges.size(); ++r) {
        rounds.push_back({exchanges[r], sides[0].taken[i][r] / 1000, sides[s].taken[i][r] / 1000});
      }
      report.add(summarise(fmt::format("all_reduce {} vs {}", size_name(sizes[i]), sides[s].name), "us", rounds));
    }
  }
  return report.finish();
}
