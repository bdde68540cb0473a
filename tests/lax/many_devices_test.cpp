// Far more devices than cores.
#include <gtest/gtest.h>

#include "brigade/brigade.h"

namespace brigade {
namespace many_devices_test {

const bool kThirtyTwo = (set_cpu_devices(32), true);

TEST(ManyDevices, ThirtyTwoMakeProgressOnThisMachine) {
  ASSERT_TRUE(kThirtyTwo);
  ASSERT_EQ(device_count(), 32);
  const auto f = pmap(
      [](torch::Tensor x) {
        for (int i = 0; i < 20; ++i) x = lax::psum(x, "i") / 32 + lax::pmax(x, "i") * 0;
        return x;
      },
      {.axis_name = "i"});
  const torch::Tensor x = torch::arange(64, torch::kFloat).reshape({32, 2});
  for (int call = 0; call < 20; ++call) {
    const auto out = f(x);
    for (int i = 0; i < 32; ++i) EXPECT_TRUE(torch::equal(out[i], x.mean(0))) << i;
  }
}

TEST(ManyDevices, ThirtyTwoTrainStepsStayEqual) {
  const auto step = pmap(
      [](torch::Tensor w, torch::Tensor x) {
        const auto g = grad([](const torch::Tensor& v, const torch::Tensor& rows) {
          return torch::matmul(rows, v).square().mean();
        })(w, x);
        return w - 0.1 * lax::pmean(g, "i");
      },
      {.axis_name = "i"});
  Sharded<torch::Tensor> w = replicate(torch::randn({8, 4}));
  const torch::Tensor x = torch::randn({32, 16, 8});
  for (int i = 0; i < 10; ++i) w = step(std::move(w), x);
  for (int i = 1; i < 32; ++i) EXPECT_TRUE(torch::equal(w[i], w[0]));
}

}  // namespace many_devices_test
}  // namespace brigade
