// Two parameters whose gradients autograd hands over as views of one memory: what one of them becomes must not show in the other.
#include <gmock/gmock.h>

#include "train/support.h"

namespace brigade::training {
namespace shared_gradients_test {

using namespace testing;

struct Flattened {
  at::Tensor a, b;  // [3, 2] and [2, 3], added as vectors of 6
};

TEST(GradientsInOneMemory, AreSummedEachForItself) {
  const Flattened start = {.a = random::normal(random::key(1), {3, 2}), .b = random::normal(random::key(2), {2, 3})};
  const at::Tensor x = random::normal(random::key(3), {8, 6});
  const auto loss = [](const Flattened& p, const at::Tensor& rows) {
    return at::mv(rows, p.a.view({6}) + p.b.view({6})).square().mean();
  };
  // Of the sum over rows: 2 x^T x (a + b).
  const at::Tensor expected = 2 * at::mv(x.t(), at::mv(x, start.a.view({6}) + start.b.view({6}))) / 8;
  for (const comm::Codec& codec : {comm::Codec(), compress::none()}) {
    for (const std::int64_t accumulate : {1, 2, 4}) {
      DataParallel trainer(start, {.per_device_batch = 8 / accumulate,
                                   .accumulate = accumulate,
                                   .devices = first_devices(1),
                                   .compress = {.codec = codec}});
      trainer.step(x, loss);
      for (const NamedTensor& gradient : trainer.gradients())
        EXPECT_TRUE(at::allclose(gradient.tensor.view({6}), expected, 1e-5, 1e-6))
            << gradient.name << ", " << accumulate;
    }
  }
}

}  // namespace shared_gradients_test
}  // namespace brigade::training
