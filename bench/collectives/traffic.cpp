#include "collectives/traffic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/traffic.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "support/aligned.h"
#include "support/rounds.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;

// The buffers are aligned and whole vectors long.
void add(const float* a, const float* b, float* c, std::size_t count) {
  const Tag d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    hn::Store(hn::Add(hn::Load(d, a + i), hn::Load(d, b + i)), d, c + i);
}

void add_past_caches(const float* a, const float* b, float* c, std::size_t count) {
  const Tag d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    hn::Stream(hn::Add(hn::Load(d, a + i), hn::Load(d, b + i)), d, c + i);
  hwy::FlushStream();
}

}  // namespace brigade::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::bench {
namespace {

HWY_EXPORT(add);
HWY_EXPORT(add_past_caches);

}  // namespace

double traffic_nanoseconds(Team& team, std::size_t bytes, int calls) {
  constexpr std::size_t kVector = 64;  // floats, no less than any vector has
  const std::size_t count = bytes / (3 * sizeof(float)) / static_cast<std::size_t>(team.size()) / kVector * kVector;
  return team.run([&](comm::Group& member) {
    const AlignedVector<float> a(count, 1.0F);
    const AlignedVector<float> b(count, 2.0F);
    AlignedVector<float> c(count);
    // Who is through waits for the others: counted is the time of all.
    const auto timed = [&](auto loop) {
      const auto work = [&] {
        loop(a.data(), b.data(), c.data(), count);
        member.barrier({});
      };
      work();
      return nanoseconds_per_call(calls, work);
    };
    const double ordinary = timed(HWY_DYNAMIC_DISPATCH(add));
    return std::min(ordinary, timed(HWY_DYNAMIC_DISPATCH(add_past_caches)));
  });
}

}  // namespace brigade::bench
#endif
