// Adam of 10 million parameters in float32: ours, two threads with half of them each, against torch::optim::Adam on one
// thread and against what the memory allows.
//
// The limit is a loop without arithmetic to speak of, on the same two threads: it reads parameters, gradient and two
// buffers of state, and writes all but the gradient, as an update must.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/optim/adam.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "brigade/optim/adam.h"
#include "support/aligned.h"
#include "support/contest.h"
#include "support/report.h"
#include "support/team.h"

namespace {

namespace bench = brigade::bench;
namespace optim = brigade::optim;

constexpr std::size_t kElements = 10'000'000;
constexpr std::size_t kHalf = kElements / 2;
constexpr auto kTimePerEntrant = std::chrono::milliseconds(300);

// One optimizer's memory.
struct Buffers {
  Buffers() {
    for (std::size_t i = 0; i < kElements; ++i) {
      parameters[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
      gradient[i] = static_cast<float>(std::cos(0.9 * static_cast<double>(i)));
    }
  }

  bench::AlignedVector<float> parameters = bench::AlignedVector<float>(kElements);
  bench::AlignedVector<float> gradient = bench::AlignedVector<float>(kElements);
  bench::AlignedVector<float> exp_avg = bench::AlignedVector<float>(kElements);
  bench::AlignedVector<float> exp_avg_sq = bench::AlignedVector<float>(kElements);
};

// Of one call of `pass(first element)` for both halves, which nobody begins before the call before it has ended.
template <class Pass>
double nanoseconds(bench::Team& team, int calls, Pass pass) {
  return team.run([&](brigade::comm::Group& member) {
    const auto first = static_cast<std::size_t>(member.rank()) * kHalf;
    member.barrier({});
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) {
      pass(first);
      member.barrier({});
    }
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
  });
}

void update_half(const optim::Rule& rule, Buffers& buffers, std::size_t first) {
  const auto half = [first](bench::AlignedVector<float>& values) { return std::span(values).subspan(first, kHalf); };
  const std::array<std::span<float>, 2> state = {half(buffers.exp_avg), half(buffers.exp_avg_sq)};
  rule.update({.parameters = half(buffers.parameters), .gradient = half(buffers.gradient), .state = state},
              {.learning_rate = 1e-3, .index = 1000, .divisor = 64});
}

void pass_over_half(Buffers& buffers, std::size_t first) {
  float* const parameters = buffers.parameters.data() + first;
  const float* const gradient = buffers.gradient.data() + first;
  float* const exp_avg = buffers.exp_avg.data() + first;
  float* const exp_avg_sq = buffers.exp_avg_sq.data() + first;
#pragma GCC ivdep  // the buffers do not overlap
  for (std::size_t i = 0; i < kHalf; ++i) {
    const float g = gradient[i];
    exp_avg[i] = g - exp_avg[i];
    exp_avg_sq[i] = g - exp_avg_sq[i];
    parameters[i] = g - parameters[i];
  }
}

// PyTorch's Adam on one tensor, in the calling thread.
class TorchsAdam {
 public:
  TorchsAdam() : parameters_(at::randn({kElements}).requires_grad_()), adam_({parameters_}, {1e-3}) {
    parameters_.mutable_grad() = at::randn({kElements});
  }

  double nanoseconds(int calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) adam_.step();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
  }

 private:
  torch::Tensor parameters_;
  torch::optim::Adam adam_;
};

}  // namespace

int main() {
  at::set_num_threads(1);
  bench::Report report("optim");
  bench::Team team(2);
  const optim::Rule rule = optim::adam();
  Buffers ours;
  Buffers limit;
  TorchsAdam torchs;
  bench::Contest contest = {
      .name = "Adam of 10 M parameters, 2 threads",
      .about = {{"parameters", kElements}, {"threads", 2}},
      .entrants = {
          {"Brigade",
           [&](int calls) {
             return nanoseconds(team, calls, [&](std::size_t first) { update_half(rule, ours, first); });
           }},
          {"torch::optim::Adam, 1 thread", [&](int calls) { return torchs.nanoseconds(calls); }, 5.0},
          {"traffic limit",
           [&](int calls) {
             return nanoseconds(team, calls, [&](std::size_t first) { pass_over_half(limit, first); });
           },
           0.8},
      }};
  bench::hold({std::move(contest)}, kTimePerEntrant, report);
  return report.finish();
}
