#include "brigade/transform/pad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "brigade/brigade.h"
#include "support/nine_devices.h"

namespace brigade {
namespace pad_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Batch {
  torch::Tensor x, labels;
  double scale = 0.5;
};

Batch batch_of(std::int64_t rows) {
  return {torch::arange(rows * 2, torch::kFloat).reshape({rows, 2}), torch::arange(rows), 0.5};
}

TEST(PadAndMask, GivesRowsInOrderAndRepeatsTheLast) {
  const auto [rows, mask] = pad_and_mask(batch_of(5), 3);
  EXPECT_TRUE(torch::equal(rows.labels, torch::tensor({{0, 1}, {2, 3}, {4, 4}})));
  EXPECT_EQ(rows.x.sizes(), torch::IntArrayRef({3, 2, 2}));
  EXPECT_TRUE(torch::equal(rows.x[2][1], torch::tensor({8.0F, 9.0F})));
  EXPECT_TRUE(torch::equal(mask, torch::tensor({{true, true}, {true, true}, {true, false}})));
  EXPECT_EQ(rows.scale, 0.5);
}

TEST(PadAndMask, LeavesDevicesWithoutTrueRowsWhereThereAreTooFew) {
  const auto [rows, mask] = pad_and_mask(torch::tensor({7, 8}), 4);
  EXPECT_TRUE(torch::equal(rows, torch::tensor({{7}, {8}, {8}, {8}})));
  EXPECT_TRUE(torch::equal(mask.sum(1), torch::tensor({1, 1, 0, 0})));
  EXPECT_EQ(pad_and_mask(torch::ones({0, 3}), 4).rows.sizes(), torch::IntArrayRef({4, 0, 3}));
}

TEST(PadAndMask, CopiesNothingWhereNothingIsMissing) {
  const Batch batch = batch_of(6);
  const auto [rows, mask] = pad_and_mask(batch, 3);
  EXPECT_EQ(rows.x.data_ptr(), batch.x.data_ptr());
  EXPECT_TRUE(torch::equal(rows.x, batch.x.reshape({3, 2, 2})));
  EXPECT_TRUE(mask.all().item<bool>());
}

TEST(PadAndMask, TakesTheDevicesOfThisProcessWhenNoneAreSaid) {
  EXPECT_EQ(pad_and_mask(torch::ones({10, 2})).rows.sizes(), torch::IntArrayRef({9, 2, 2}));
}

TEST(PadAndMask, GivesTheTrueMeanAndItsGradientThroughAPmap) {
  const torch::Tensor x = torch::randn({10, 3}, torch::kDouble);
  const auto f = pmap(
      [](torch::Tensor rows, torch::Tensor real) {
        const torch::Tensor losses = rows.square().sum(1);
        return lax::psum((losses * real).sum(), "i") / lax::psum(real.sum(), "i");
      },
      {.axis_name = "i", .out_axes = none});
  const auto mean = [&](const torch::Tensor& at) {
    const auto [rows, mask] = pad_and_mask(at, 4);
    return f(rows, mask).unreplicate();
  };
  EXPECT_TRUE(torch::allclose(mean(x), x.square().sum(1).mean()));
  // Only device 0's mean is used, and the transpose of psum gives every device the cotangent of that one.
  EXPECT_TRUE(torch::allclose(grad(mean)(x), 2 * x / 10));
}

TEST(PadAndMask, SaysWhichTensorDoesNotFit) {
  Batch uneven = batch_of(5);
  uneven.labels = torch::arange(4);
  EXPECT_THAT([&] { pad_and_mask(uneven, 2); },
              ThrowsMessage<ShapeError>(AllOf(HasSubstr("4 rows here and 5 in x"), HasSubstr("argument labels"),
                                              HasSubstr("pad_test.cpp:"))));
  EXPECT_THAT([] { pad_and_mask(torch::tensor(1.0), 2); }, ThrowsMessage<ShapeError>(HasSubstr("which has no rows")));
  EXPECT_THAT([] { pad_and_mask(torch::Tensor(), 2); }, ThrowsMessage<TreeError>(HasSubstr("undefined")));
  EXPECT_THAT([] { pad_and_mask(torch::ones({2}), 0); }, ThrowsMessage<InvalidArgument>(HasSubstr("for 0 devices")));
  EXPECT_THAT([] { pad_and_mask(std::vector<torch::Tensor>{}, 2); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a batch without tensors")));
}

}  // namespace pad_test
}  // namespace brigade
