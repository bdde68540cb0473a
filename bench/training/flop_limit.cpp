#include "training/flop_limit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "brigade/comm/group.h"
#include "support/rounds.h"

namespace brigade::bench {

double mlp_flops(std::int64_t rows, std::int64_t hidden) {
  return 2.0 * static_cast<double>(rows * hidden) * (2 * 784 + 3 * 10);
}

double flop_nanoseconds(Team& team, double flops, int calls) {
  constexpr std::int64_t kSize = 1024;
  constexpr double kFlops = 2.0 * kSize * kSize * kSize;
  const int products = std::max(3, static_cast<int>(std::lround(calls * flops / kFlops)));
  const double one = team.run([&](comm::Group& member) {
    const at::Tensor a = at::ones({kSize, kSize});
    at::Tensor out = at::empty({kSize, kSize});
    at::mm_out(out, a, a);
    member.barrier({});
    const double nanoseconds = nanoseconds_per_call(products, [&] { at::mm_out(out, a, a); });
    member.barrier({});
    return nanoseconds;
  });
  return one * flops / kFlops;
}

}  // namespace brigade::bench
