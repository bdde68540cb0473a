// Compiled with OpenMP and without the precompiled header (see CMakeLists.txt): in libtorch 1.13 at::parallel_for is a
// template that runs serially in code compiled otherwise.
#include <ATen/Parallel.h>

#include "random/fill.h"

#if !defined(INTRA_OP_PARALLEL)
#error "at::parallel_for would run serially here: compile this file with OpenMP"
#endif

namespace brigade::random {

void for_each_chunk(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  // Some 10 microseconds of drawing, about what it costs to wake another thread.
  constexpr std::int64_t kGrain = std::int64_t{1} << 15;
  at::parallel_for(0, count, kGrain, work);
}

}  // namespace brigade::random
